// SPDX-License-Identifier: Apache-2.0
// The trace: columns of numbers, decoded from the blocks in the page.

const NONE = 0xffffffff;
const BEGIN_TAIL = 1, BEGIN_SIGNAL = 2, BEGIN_UNSEEN = 3, BEGIN_ON_STACK = 5;
const END_TAIL = 1;
const END_NAMES = ['returned', 'ended by a tail call', 'left by an exception or longjmp',
                   'end not recorded', 'had not returned',
                   'suspended by a stack switch'];

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const table = new Uint8Array(128);
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  for (let i = 0; i < 64; ++i) table[digits.charCodeAt(i)] = i;
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const out = new Uint8Array(text.length / 4 * 3 - padding);
  for (let i = 0, at = 0; i < text.length; i += 4) {
    const word = table[text.charCodeAt(i)] << 18 | table[text.charCodeAt(i + 1)] << 12 |
                 table[text.charCodeAt(i + 2) & 127] << 6 | table[text.charCodeAt(i + 3) & 127];
    out[at++] = word >> 16;
    if (at < out.length) out[at++] = word >> 8;
    if (at < out.length) out[at++] = word;
  }
  return out;
}

async function unpack(id) {
  const bytes = fromBase64(document.getElementById(id).textContent.trim());
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function duration(ns) {
  for (const [unit, name] of [[1e9, ' s'], [1e6, ' ms'], [1e3, ' us']]) {
    if (ns >= unit) return (ns / unit).toFixed(ns < 9.95 * unit ? 1 : 0) + name;
  }
  return ns + ' ns';
}

function counted(number, one, many) {
  return number.toLocaleString() + ' ' + (number === 1 ? one : many);
}

class Reader {
  constructor(bytes) { this.bytes = bytes; this.at = 0; }
  number() {
    let value = 0, scale = 1;
    for (;;) {
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (byte < 128 || byte === undefined) return value;
      scale *= 128;
    }
  }
  signed() {
    const value = this.number();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }
}

// Lines, functions that are inlined somewhere (scopes), and blocks of straight-line code.
class Code {
  static async load(meta) {
    const code = new Code();
    const reader = new Reader(await unpack('code'));
    code.files = meta.files;
    const lines = reader.number();
    code.lineFile = new Uint32Array(lines);
    code.lineNumber = new Uint32Array(lines);
    code.lineIds = new Map();
    for (let i = 0; i < lines; ++i) {
      code.lineFile[i] = reader.number();
      code.lineNumber[i] = reader.number();
      code.lineIds.set(code.lineFile[i] * 16777216 + code.lineNumber[i], i);
    }
    const scopes = reader.number();
    for (const column of ['scopeAround', 'scopeName', 'scopeLine']) {
      code[column] = new Uint32Array(scopes);
    }
    for (let i = 0; i < scopes; ++i) {
      code.scopeAround[i] = reader.number();
      code.scopeName[i] = reader.number();
      code.scopeLine[i] = reader.number();
    }
    code.loadBlocks(reader);
    code.findSource();
    return code;
  }
  // Stepping by line stops at lines whose text is in the page. If the page has no text at all, it
  // stops at lines outside of system libraries. `own` lines are outside of system headers.
  findSource() {
    const some = this.files.some((file) => file.text !== undefined);
    this.hasSource = Uint8Array.from(this.lineFile, (number) => {
      const file = this.files[number];
      return number && (some ? file.text !== undefined : !file.system) ? 1 : 0;
    });
    this.own = this.hasSource.map((has, line) => has && !this.files[this.lineFile[line]].path.startsWith('/usr/') ? 1 : 0);
  }
  // Reads the lines of each block, and the scopes that begin at one of the lines.
  loadBlocks(reader) {
    const blocks = reader.number();
    this.blockStart = new Uint32Array(blocks + 1);
    this.scopesStart = new Uint32Array(blocks + 1);
    const entries = [], scopes = [], lines = [];
    for (let i = 0; i < blocks; ++i) {
      for (let count = reader.number(); count > 0; --count) entries.push(reader.number());
      this.blockStart[i + 1] = entries.length;
      for (let count = reader.number(); count > 0; --count) {
        scopes.push(reader.number());
        lines.push(reader.number());
      }
      this.scopesStart[i + 1] = scopes.length;
    }
    this.entries = Uint32Array.from(entries);
    this.scopes = Uint32Array.from(scopes);
    this.scopesLine = Uint32Array.from(lines);
  }
  // Returns the scope inlined at a line of a block; 0 if there is none.
  scopeAt(block, k) {
    let scope = 0;
    for (let i = this.scopesStart[block]; i < this.scopesStart[block + 1]; ++i) {
      if (this.scopesLine[i] <= k) scope = this.scopes[i];
    }
    return scope;
  }
  // Instructions are large, so they are unpacked on first use.
  async loadInstructions() {
    if (this.insns) return;
    const reader = new Reader(await unpack('insns'));
    const count = reader.number();
    this.insnAt = new Float64Array(count);
    this.insnText = new Uint32Array(count);
    let at = 0;
    for (let i = 0; i < count; ++i) {
      at += reader.signed();
      this.insnAt[i] = at;
      this.insnText[i] = reader.number();
    }
    const blocks = this.blockStart.length - 1;
    this.insnStart = new Uint32Array(blocks + 1);
    const ids = [];
    for (let i = 0; i < blocks; ++i) {
      let id = 0;
      for (let k = reader.number(); k > 0; --k) {
        id += reader.signed();
        ids.push(id);
      }
      this.insnStart[i + 1] = ids.length;
    }
    this.insnTexts = JSON.parse(document.getElementById('texts').textContent);
    this.insns = Uint32Array.from(ids);
  }
  // Returns the instruction numbers of a block.
  instructionsOf(block) { return this.insns.subarray(this.insnStart[block], this.insnStart[block + 1]); }
  place(line) {
    if (!line) return '';
    const path = this.files[this.lineFile[line]].path;
    return path.slice(path.lastIndexOf('/') + 1) + ':' + this.lineNumber[line];
  }
}

// One thread. Position p is the p-th branch; block p is the code that ran before it.
class Thread {
  static async load(meta, index) {
    const thread = new Thread();
    Object.assign(thread, meta.threads[index]);
    const reader = new Reader(await unpack('calls' + index));
    const n = thread.n = reader.number();
    for (const column of ['begin', 'end', 'name', 'site', 'parent', 'depth']) {
      thread[column] = new Uint32Array(n);
    }
    thread.how = new Uint8Array(n);
    const open = [];
    let begin = 0, depth = 0, deepest = 0;
    for (let i = 0; i < n; ++i) {
      begin += reader.number();
      depth += reader.signed();
      thread.begin[i] = begin;
      thread.end[i] = begin + reader.number();
      thread.name[i] = reader.number();
      thread.how[i] = reader.number();
      thread.site[i] = reader.number();
      thread.depth[i] = depth;
      thread.parent[i] = depth ? open[depth - 1] : NONE;
      open[depth] = i;
      deepest = Math.max(deepest, depth);
    }
    thread.deepest = deepest;
    const raw = await unpack('blocks' + index);
    thread.blocks = thread.wide ? new Uint32Array(raw.buffer, 0, raw.length >> 2)
                                : new Uint16Array(raw.buffer, 0, raw.length >> 1);
    thread.total = thread.blocks.length;
    thread.sortByDepth();
    thread.findStart(meta.names);
    return thread;
  }
  // Finds where the program's own code begins: `start` branches had run when main, or the thread's
  // function, was called; these calls have depth `floor`. Both are 0 if unknown.
  findStart(names) {
    this.start = this.floor = 0;
    let end = -1;
    for (let i = 0; i < this.n; ++i) {
      const name = names[this.name[i]];
      const within = name === 'start_thread' ? 1 : name === 'main' || name === 'main.main' ? 0 : -1;
      // After an exec there is another main. A main that calls itself counts once.
      if (within < 0 || this.begin[i] < end) continue;
      // If it was running when the trace began, nothing is known of the code before it.
      const begin = this.how[i] & 7, first = begin === BEGIN_UNSEEN || begin === BEGIN_ON_STACK;
      this.start = first ? 0 : this.begin[i];
      this.floor = this.depth[i] + within;
      end = this.end[i];
    }
  }
  sortByDepth() {
    this.levelStart = new Uint32Array(this.deepest + 2);
    for (let i = 0; i < this.n; ++i) ++this.levelStart[this.depth[i] + 1];
    for (let d = 0; d <= this.deepest; ++d) this.levelStart[d + 1] += this.levelStart[d];
    const next = this.levelStart.slice();
    for (const column of ['level', 'levelBegin', 'levelEnd', 'levelName']) {
      this[column] = new Uint32Array(this.n);
    }
    for (let i = 0; i < this.n; ++i) {
      const at = next[this.depth[i]]++;
      this.level[at] = i;
      this.levelBegin[at] = this.begin[i];
      this.levelEnd[at] = this.end[i];
      this.levelName[at] = this.name[i];
    }
  }
  // Returns the index in `level` of the first call at this depth that ends after `position`.
  firstAt(depth, position) {
    return this.firstBetween(this.levelStart[depth], this.levelStart[depth + 1], position);
  }
  // Returns firstAt(), searched from `low` on, near which the result is expected.
  nextAt(depth, position, low) {
    const end = this.levelStart[depth + 1];
    let high = low;
    for (let step = 1; high < end && this.levelEnd[high] <= position; step *= 2) {
      low = high + 1;
      high += step;
    }
    return this.firstBetween(low, Math.min(high, end), position);
  }
  firstBetween(low, high, position) {
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.levelEnd[middle] > position) high = middle; else low = middle + 1;
    }
    return low;
  }
  // Returns the call that this one replaced by tail calls, or else the call itself.
  madeAs(call) {
    const depth = this.depth[call];
    let at = this.firstAt(depth, this.end[call] - 1);
    while (at < this.levelStart[depth + 1] && this.level[at] < call) ++at;
    while ((this.how[call] & 7) === BEGIN_TAIL && at > this.levelStart[depth]) {
      const before = this.level[at - 1];
      if (this.how[before] >> 3 !== END_TAIL || this.end[before] !== this.begin[call]) break;
      call = before;
      --at;
    }
    return call;
  }
  // Returns the line of the call site.
  siteOf(call) { return this.site[this.madeAs(call)]; }
  // Returns the block of another call that ran last before block p (-1) or first after it (1); 0 if
  // there is none.
  otherCall(p, way) {
    const call = this.callAt(p), depth = call === NONE ? 0 : this.depth[call] + 1;
    let place = way < 0 ? (call === NONE ? 0 : this.begin[call]) : call === NONE ? Infinity : this.end[call] + 1;
    if (depth <= this.deepest) {
      const first = this.levelStart[depth], at = this.firstAt(depth, p - 1);
      if (way < 0 && at > first) place = Math.max(place, this.levelEnd[at - 1]);
      if (way > 0 && at < this.levelStart[depth + 1]) place = Math.min(place, this.levelBegin[at] + 1);
    }
    return place > this.total ? 0 : place;
  }
  // Returns -1 if a signal entered the call, 1 if an exception left it, and else 0.
  markOf(call) {
    if (this.how[call] >> 3 === 2) return 1;
    return (this.how[call] & 7) === BEGIN_SIGNAL ? -1 : 0;
  }
  // Returns the innermost call of block p, at most `most` deep; NONE if none is known.
  callAt(p, most = this.deepest) {
    let found = NONE;
    for (let depth = 0; depth <= Math.min(most, this.deepest); ++depth) {
      const at = this.firstAt(depth, p - 1);
      if (at === this.levelStart[depth + 1]) break;
      const call = this.level[at];
      if (this.begin[call] >= p) break;
      found = call;
    }
    return found;
  }
  // Calls visit(p) for each block of the call's own code, without what it called.
  own(call, visit) {
    let p = this.begin[call] + 1;
    const depth = this.depth[call];
    for (let i = call + 1; i < this.n && this.depth[i] > depth; ++i) {
      if (this.depth[i] !== depth + 1) continue;
      for (; p <= this.begin[i]; ++p) visit(p);
      p = Math.max(p, this.end[i] + 1);
    }
    for (; p <= this.end[call] && p <= this.total; ++p) visit(p);
  }
  // Returns the time from position p to the end, [least, most] in ns; null if unknown.
  timeOf(p) {
    if (!this.pins || !this.pins.length) return null;
    const count = (test) => {
      let low = 0, high = this.pins.length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (test(this.pins[middle])) low = middle + 1; else high = middle;
      }
      return low;
    };
    const passed = count(([, , , latest]) => latest <= p);
    let most = this.since;
    if (passed) {
      const [begin, end, earliest] = this.pins[passed - 1];
      most = earliest === p ? begin : end;
    }
    const ahead = count(([, , earliest]) => earliest <= p);
    const least = ahead < this.pins.length ? this.pins[ahead][0] : 0;
    return [Math.min(least, most), most];
  }
  timeText(p) {
    const time = this.timeOf(p);
    if (!time) return '';
    if (time[1] === 0) return '';
    const [least, most] = time.map(duration);
    return least === most ? least : least + ' to ' + most;
  }
  // Returns the last off-CPU time before block p; null if there is none.
  offBefore(p) {
    let found = null;
    for (const off of this.off || []) if (off[0] + 1 < p) found = off;
    return found;
  }
  // Returns the description of a gap between two blocks; '' if there is none.
  gapBetween(p, q) {
    const low = Math.min(p, q), high = Math.max(p, q);
    for (const [place, text] of this.gaps || []) if (place >= low && place < high) return text;
    return '';
  }
  block(p) { return this.blocks[p - 1]; }
}
