// SPDX-License-Identifier: Apache-2.0
// Finds the runs of inlined functions in a thread. A run is a stretch of a call's own code, without
// callees, that came from one inlined function. It leads from one place to another; a place is line
// index k of block p.

class InlinedRuns {
  // Finds the runs of the scopes with wanted[scope] = 1, ordered by begin, outer ones first.
  constructor(thread, code, wanted) {
    for (const column of ['p', 'k', 'endP', 'endK', 'scope']) this[column] = [];
    this.code = code;
    // For each scope, the wanted scopes that contain it, outermost first.
    this.chains = [[]];
    for (let scope = 1; scope < code.scopeName.length; ++scope) {
      const around = this.chains[code.scopeAround[scope]];
      this.chains[scope] = wanted[scope] ? [...around, scope] : around;
    }
    const blocks = code.blockStart.length - 1;
    this.holds = new Uint8Array(blocks);
    for (let block = 0; block < blocks; ++block) {
      for (let i = code.scopesStart[block]; i < code.scopesStart[block + 1]; ++i) {
        if (this.chains[code.scopes[i]].length) this.holds[block] = 1;
      }
    }
    this.walk(thread);
  }
  get count() { return this.p.length; }
  // Returns the number of runs that begin before the place.
  before(p, k) {
    let low = 0, high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.p[middle] < p || (this.p[middle] === p && this.k[middle] < k)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
  // Keeps a frame for each open call: its open runs, and the last place in its own code.
  walk(thread) {
    const frames = [{end: Infinity, runs: [], p: 0, k: 0}];
    let call = 0;
    for (let p = 1; p <= thread.total; ++p) {
      while (frames[frames.length - 1].end < p) this.close(frames.pop(), 0);
      for (; call < thread.n && thread.begin[call] < p; ++call) {
        if (thread.end[call] >= p) frames.push({end: thread.end[call], runs: [], p: 0, k: 0});
      }
      const frame = frames[frames.length - 1], block = thread.block(p);
      if (this.holds[block]) this.enter(frame, p, block);
      else if (frame.runs.length) this.close(frame, 0);
    }
    while (frames.length) this.close(frames.pop(), 0);
  }
  enter(frame, p, block) {
    const code = this.code, first = code.scopesStart[block];
    for (let i = first; i < code.scopesStart[block + 1]; ++i) {
      const chain = this.chains[code.scopes[i]], place = code.scopesLine[i];
      let same = 0;
      while (same < frame.runs.length && this.scope[frame.runs[same]] === chain[same]) ++same;
      if (i !== first) {
        frame.p = p;
        frame.k = Math.max(0, place - 1);
      }
      this.close(frame, same);
      for (; same < chain.length; ++same) {
        frame.runs.push(this.p.push(p) - 1);
        this.k.push(place);
        this.scope.push(chain[same]);
      }
    }
    frame.p = p;
    frame.k = Math.max(0, code.blockStart[block + 1] - code.blockStart[block] - 1);
  }
  // Ends the frame's runs beyond the first `count`, at its last place.
  close(frame, count) {
    while (frame.runs.length > count) {
      const run = frame.runs.pop();
      this.endP[run] = frame.p;
      this.endK[run] = frame.p === this.p[run] ? Math.max(frame.k, this.k[run]) : frame.k;
    }
  }
}
