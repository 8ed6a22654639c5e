// SPDX-License-Identifier: Apache-2.0
// The cursor, {thread, p, k}: line index k of block p; -1 if the block has no line. Steps move it
// by line, over calls, or by call.

class Walker {
  // The page overrides these: arrive() shows the place of the cursor after the text `note`; say()
  // shows a text.
  arrive(note) {}
  say() {}
  lineAt({thread, p, k}) {
    if (k < 0 || k >= this.count(thread, p)) return 0;
    return this.code.entries[this.code.blockStart[thread.block(p)] + k];
  }
  // Returns the number of lines of block p.
  count(thread, p) {
    const block = thread.block(p);
    return this.code.blockStart[block + 1] - this.code.blockStart[block];
  }
  // Puts the cursor on the last line of block p.
  put(thread, p) { this.cursor = {thread, p, k: this.count(thread, p) - 1}; }
  // Returns the last block of known code. If the thread's last block is unknown, the program jumped
  // to it.
  lastBlock(thread) {
    return thread.total > 1 && thread.block(thread.total) === 0 ? thread.total - 1 : thread.total;
  }
  // Goes to where the thread was last, with or without lines.
  toEnd(thread) {
    this.put(thread, this.lastBlock(thread));
    this.arrive();
  }
  atEnd() { return this.cursor.p >= this.lastBlock(this.cursor.thread); }
  // Moves to the next (1) or previous (-1) line with source that differs. Skips code without
  // source. Returns false, and does not move, if there is none.
  move(way) {
    const {thread} = this.cursor, {code} = this;
    const from = this.lineAt(this.cursor);
    let {p, k} = this.cursor;
    for (;;) {
      k += way;
      if (k < 0 || k >= this.count(thread, p)) {
        p += way;
        if (p < 1 || p > thread.total) return false;
        k = way < 0 ? this.count(thread, p) : -1;
        continue;
      }
      const line = code.entries[code.blockStart[thread.block(p)] + k];
      if (line && line !== from && code.hasSource[line]) break;
    }
    this.cursor = {thread, p, k};
    return true;
  }
  step(way) {
    if (!this.cursor) return;
    const {thread, p} = this.cursor;
    if (this.move(way)) this.moved(thread, p);
    else this.stay(way);
  }
  // Steps over calls: back to before they were made, or forward to after they returned.
  stepOver(way) {
    if (!this.cursor) return;
    const begin = this.cursor, {thread} = begin;
    const call = thread.callAt(begin.p);
    const depth = call === NONE ? 0 : thread.depth[call];
    while (this.move(way)) {
      const inner = thread.callAt(this.cursor.p, depth + 1);
      if (inner === NONE || thread.depth[inner] <= depth) {
        this.moved(thread, begin.p);
        return;
      }
      // Continues in the block before the call or after it.
      const p = way < 0 ? thread.begin[inner] : thread.end[inner] + 1;
      if (p < 1) break;
      if (p > thread.total) {
        this.toEnd(thread);
        this.say('The call did not return: the trace ends in it');
        return;
      }
      this.cursor = {thread, p, k: way < 0 ? this.count(thread, p) : -1};
    }
    this.cursor = begin;
    this.stay(way);
  }
  // Goes to the next or previous call, with or without lines.
  stepCall(way) {
    if (!this.cursor) return;
    const {thread, p} = this.cursor, place = thread.otherCall(p, way);
    if (!place) {
      this.stay(way);
      return;
    }
    this.put(thread, place);
    if (way > 0) this.cursor.k = Math.min(0, this.cursor.k);
    this.moved(thread, p);
  }
  stay(way) {
    if (way > 0 && !this.atEnd()) {
      this.toEnd(this.cursor.thread);
      this.say('The trace ends here: there are no more lines with source');
      return;
    }
    this.say(way < 0 ? 'There is no earlier line with source; < steps by call' : 'The trace ends here');
  }
  // Reports that the cursor has left block `from`.
  moved(thread, from) {
    const gap = thread.gapBetween(from, this.cursor.p);
    this.arrive(gap && 'Passed a gap: ' + gap + '. ');
  }
  // Goes to where the thread was last off its CPU.
  toWait() {
    if (!this.cursor) return;
    const {thread, p} = this.cursor;
    const off = thread.offBefore(p);
    if (!off) {
      this.say(thread.off ? 'There is no earlier wait' : 'No times were recorded');
      return;
    }
    const [place, ns, preempted, back] = off;
    this.put(thread, place + 1);
    this.arrive();
    this.say((preempted ? 'Preempted for ' : 'Waited for ') + duration(ns) + ', until ' +
             duration(back) + ' before the end');
  }
  // Goes to the last run of a line before the cursor, or else to its last run in the trace.
  goToLine(file, number) {
    const {code} = this, line = code.lineIds.get(file * 16777216 + number);
    const {thread} = this.cursor || {thread: this.selected.thread};
    const holds = new Uint8Array(code.blockStart.length);
    for (let block = 0; block + 1 < code.blockStart.length; ++block) {
      for (let k = code.blockStart[block]; k < code.blockStart[block + 1]; ++k) {
        if (code.entries[k] === line) holds[block] = 1;
      }
    }
    const begin = this.cursor ? this.cursor.p : thread.total;
    for (let turn = 0; turn < 2; ++turn) {
      for (let p = turn ? thread.total : begin - 1; p >= 1; --p) {
        if (!holds[thread.block(p)]) continue;
        const start = code.blockStart[thread.block(p)];
        let k = this.count(thread, p) - 1;
        while (code.entries[start + k] !== line) --k;
        this.cursor = {thread, p, k};
        this.arrive();
        return;
      }
    }
  }
}
