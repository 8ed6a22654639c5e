// SPDX-License-Identifier: Apache-2.0
// Finds functions by name, and their calls and inlined runs, from a place in the trace on.

class Search {
  constructor(code, names, threads) {
    Object.assign(this, {code, names, threads});
    this.inlined = new Uint8Array(names.length);
    for (let scope = 1; scope < code.scopeName.length; ++scope) this.inlined[code.scopeName[scope]] = 1;
    this.set('');
  }
  // Finds the functions whose names contain the text.
  set(text) {
    const wanted = text.toLowerCase();
    this.runs = new Map();
    this.found = [];
    this.matches = null;
    if (!text) return;
    this.matches = new Uint8Array(this.names.length);
    this.names.forEach((name, i) => {
      if (!name.toLowerCase().includes(wanted)) return;
      this.matches[i] = 1;
      this.found.push(i);
    });
  }
  label(name) { return this.names[name] + (this.inlined[name] ? ' (inlined)' : ''); }
  summary() {
    const count = this.found.length, inlined = this.found.filter((name) => this.inlined[name]).length;
    return count + (inlined && inlined === count ? ' inlined' : '') +
        (count === 1 ? ' function' : ' functions') +
        (inlined && inlined < count ? ', ' + inlined + ' of them inlined' : '');
  }
  // Returns the inlined runs of all results, or of one function; null if it is nowhere inlined.
  runsOf(thread, only) {
    const key = this.threads.indexOf(thread) + ' ' + only;
    let runs = this.runs.get(key);
    if (runs === undefined) {
      const wanted = Uint8Array.from(this.code.scopeName, (name, scope) =>
          scope && (only === undefined ? this.matches[name] : name === only) ? 1 : 0);
      runs = wanted.includes(1) ? new InlinedRuns(thread, this.code, wanted) : null;
      this.runs.set(key, runs);
    }
    return runs;
  }
  // Returns the next (1) or previous (-1) result of all functions, or of one, as {thread, call} or
  // {thread, call, runs, run}; null if there is none. Continues in the next thread, and after the
  // last one in the first. `from` is the result of a step, or a place {thread, call, p, k}, whose
  // call is skipped.
  step(way, from, only) {
    if (!this.matches && only === undefined) return null;
    const first = this.threads.indexOf(from.thread);
    for (let turn = 0; turn <= this.threads.length; ++turn) {
      const thread = this.threads[(first + turn) % this.threads.length];
      const found = this.inThread(thread, way, turn ? null : from, only);
      if (found) return found;
    }
    return null;
  }
  inThread(thread, way, from, only) {
    const runs = this.runsOf(thread, only);
    const call = this.nextCall(thread, way, from, only);
    const run = runs ? this.nextRun(thread, runs, way, from) : -1;
    const hasRun = run >= 0 && run < runs.count;
    if (!hasRun) return call === NONE ? null : {thread, call};
    const runFirst = call !== NONE && runs.p[run] <= thread.begin[call];
    if (call !== NONE && runFirst !== way > 0) return {thread, call};
    return {thread, call: thread.callAt(runs.p[run]), runs, run};
  }
  nextCall(thread, way, from, only) {
    let at = way < 0 ? thread.n - 1 : 0;
    if (from && from.runs) {
      let high = thread.n;
      for (at = 0; at < high;) {
        const middle = (at + high) >>> 1;
        if (thread.begin[middle] < from.runs.p[from.run]) at = middle + 1; else high = middle;
      }
      if (way < 0) --at;
    } else if (from && from.call !== NONE) {
      at = from.call + way;
    }
    for (; at >= 0 && at < thread.n; at += way) {
      const name = thread.name[at];
      if (only === undefined ? this.matches[name] : name === only) return at;
    }
    return NONE;
  }
  nextRun(thread, runs, way, from) {
    if (!from) return way < 0 ? runs.count - 1 : 0;
    if (from.runs === runs) return from.run + way;
    let before = 0;
    if (from.runs) {
      before = runs.before(from.runs.p[from.run], from.runs.k[from.run] + (way < 0 ? 0 : 1));
    } else if (from.p !== undefined) {
      before = runs.before(from.p, from.k + 1);
    } else {
      before = runs.before(thread.begin[from.call] + 1, 0);
    }
    return way < 0 ? before - 1 : before;
  }
}
