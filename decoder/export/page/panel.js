// SPDX-License-Identifier: Apache-2.0
// Describes the selected call: its callers, and its source with execution counts.

const AROUND = 12, MOST_LINES = 3000, MOST_CALLERS = 100, KEPT_COUNTS = 64;
// Value of Panel.shown while instructions are shown instead of a file.
const INSTRUCTIONS = -1;

function element(tag, text, click) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (click) made.addEventListener('click', click);
  return made;
}

class Panel {
  constructor(page) {
    this.page = page;
    this.call = document.getElementById('call');
    this.file = document.getElementById('file');
    this.source = document.getElementById('source');
    this.texts = new Map();
    this.counted = new Map();
    this.instructions = false;
    this.file.addEventListener('change', () => {
      this.instructions = false;
      this.showFile(Number(this.file.value));
    });
  }
  show(thread, call) {
    this.call.replaceChildren();
    if (call === NONE) {
      this.call.append(element('h2', 'No call is known here'));
    } else {
      this.call.append(this.heading(thread.name[call]), element('div', this.describe(thread, call)),
                       this.callers(thread, call));
    }
    this.count(thread, call);
  }
  // Returns a heading with the function's short name; a click shows the full name.
  heading(name) {
    const head = element('h2'), full = this.page.meta.names[name], short = this.page.short.get(name);
    if (short === full) {
      head.textContent = full;
      return head;
    }
    const button = element('button', short, () => {
      const long = button.getAttribute('aria-expanded') !== 'true';
      button.textContent = long ? full : short;
      button.setAttribute('aria-expanded', long);
    });
    button.title = full;
    button.setAttribute('aria-expanded', false);
    head.append(button);
    return head;
  }
  // Returns the callers with their call sites. Equal callers from a recursion are combined.
  callers(thread, call) {
    const {page} = this, list = element('ol');
    for (let at = call; thread.parent[at] !== NONE && list.children.length < MOST_CALLERS;) {
      const site = thread.siteOf(at), from = at = thread.parent[at], name = thread.name[from];
      let alike = 1;
      for (; thread.parent[at] !== NONE && thread.name[thread.parent[at]] === name && thread.siteOf(at) === site; ++alike) {
        at = thread.parent[at];
      }
      const item = element('li'), times = alike > 1 ? ' \u00d7 ' + alike.toLocaleString() : '';
      item.append(element('button', page.short.get(name) + times, () => page.select(thread, from)));
      item.firstChild.title = page.meta.names[name];
      if (site) item.append(element('span', page.code.place(site)));
      list.append(item);
    }
    return list;
  }
  describe(thread, call) {
    const how = thread.how[call];
    const begin = ['called', 'tail-called', 'a signal handler',
                   'already running when the trace begins', 'resumed on its stack',
                   'already running when the trace begins (from the stack)'][how & 7];
    const site = this.page.code.place(thread.site[call]);
    return begin + (site ? ' at ' + site : '') + ', ' + END_NAMES[how >> 3] + '; ' +
        counted(thread.end[call] - thread.begin[call], 'branch', 'branches') +
        this.began(thread, call);
  }
  began(thread, call) {
    const begin = thread.how[call] & 7;
    const text = begin === BEGIN_UNSEEN || begin === BEGIN_ON_STACK ? '' : thread.timeText(thread.begin[call]);
    return text && '; it began ' + text + ' before the end';
  }
  // Returns the blocks of the call's own code with their execution counts; without a call, the
  // current block. Results are cached, because stepping returns to the same few calls.
  blocksOf(thread, call) {
    if (call === NONE) return new Map([[thread.block(this.page.cursor.p), 1]]);
    const key = thread.title + ' ' + call;
    let blocks = this.counted.get(key);
    if (blocks === undefined) {
      blocks = new Map();
      thread.own(call, (p) => {
        const block = thread.block(p);
        blocks.set(block, (blocks.get(block) || 0) + 1);
      });
      if (this.counted.size >= KEPT_COUNTS) this.counted.delete(this.counted.keys().next().value);
      this.counted.set(key, blocks);
    }
    return blocks;
  }
  // Returns the execution counts of the lines or instructions in the blocks.
  timesOf(blocks, start, held) {
    const counts = new Map();
    for (const [block, times] of blocks) {
      for (let k = start[block]; k < start[block + 1]; ++k) {
        counts.set(held[k], (counts.get(held[k]) || 0) + times);
      }
    }
    return counts;
  }
  count(thread, call) {
    const code = this.page.code;
    this.counts = this.timesOf(this.blocksOf(thread, call), code.blockStart, code.entries);
    const files = new Map();
    for (const [line, times] of this.counts) {
      const file = code.lineFile[line];
      files.set(file, (files.get(file) || 0) + times);
    }
    const order = [...files].sort((a, b) => b[1] - a[1]).map((entry) => entry[0]);
    this.file.replaceChildren();
    for (const file of order) {
      const option = element('option', code.files[file].path);
      option.value = file;
      this.file.append(option);
    }
    this.file.hidden = !order.length;
    // Code without lines shows its instructions.
    this.hasLines = order.length > 0;
    const shown = this.instructions || !this.hasLines;
    document.getElementById('assembly').setAttribute('aria-pressed', shown);
    if (shown) this.showInstructions();
    else this.showFile(order[0]);
  }
  toggle() {
    this.instructions = !this.instructions;
    const {thread, call} = this.page.selected;
    this.show(thread, call);
    this.follow();
  }
  async showInstructions() {
    const {selected, code} = this.page;
    this.shown = INSTRUCTIONS;
    await code.loadInstructions();
    if (this.page.selected !== selected || this.shown !== INSTRUCTIONS) return;
    const counts = this.timesOf(this.blocksOf(selected.thread, selected.call), code.insnStart,
                                code.insns);
    const order = [...counts.keys()].sort((a, b) => code.insnAt[a] - code.insnAt[b]);
    const table = element('table');
    for (const insn of order.slice(0, MOST_LINES)) {
      const row = element('tr');
      row.dataset.insn = insn;
      const count = element('td', counts.get(insn).toLocaleString());
      count.className = 'count';
      const address = element('td', '0x' + code.insnAt[insn].toString(16));
      address.className = 'number';
      row.append(count, address, element('td', code.insnTexts[code.insnText[insn]]));
      table.append(row);
    }
    this.source.replaceChildren(table);
    if (!this.hasLines) {
      this.source.prepend(element('p', order.length ? 'This code has no line information. Its instructions:'
                                                    : 'There is no information on this code.'));
    }
    this.mark();
  }
  lines(file) {
    let lines = this.texts.get(file);
    if (lines === undefined) {
      const text = this.page.code.files[file].text;
      lines = text === undefined ? null : text.split('\n');
      this.texts.set(file, lines);
    }
    return lines;
  }
  showFile(file) {
    const code = this.page.code;
    this.shown = file;
    this.file.value = file;
    const lines = this.lines(file);
    const ran = new Map();
    let first = Infinity, last = 0;
    for (const [line, times] of this.counts || []) {
      if (code.lineFile[line] !== file) continue;
      ran.set(code.lineNumber[line], times);
      first = Math.min(first, code.lineNumber[line]);
      last = Math.max(last, code.lineNumber[line]);
    }
    const now = this.currentLine(file);
    if (now) {
      first = Math.min(first, now);
      last = Math.max(last, now);
    }
    first = Math.max(1, first - AROUND);
    last = Math.min(last + AROUND, lines ? lines.length : last, first + MOST_LINES);
    const table = element('table');
    for (let number = first; number <= last; ++number) {
      if (!lines && !ran.has(number) && number !== now) continue;
      table.append(this.row(file, number, ran.get(number), lines ? lines[number - 1] : ''));
    }
    this.source.replaceChildren(table);
    if (!lines) {
      this.source.prepend(element('p', 'The page does not contain the text of this file. Lines that ran, with their counts: ' +
                                       '(press i for instructions)'));
    }
    this.mark();
  }
  row(file, number, times, text) {
    const row = element('tr');
    row.dataset.line = number;
    if (times) row.className = 'ran';
    const count = element('td');
    count.className = 'count';
    if (times) {
      const button = element('button', times.toLocaleString(), () => this.page.goToLine(file, number));
      button.title = 'Go to the previous run of this line';
      count.append(button);
    }
    const numberCell = element('td', String(number));
    numberCell.className = 'number';
    row.append(count, numberCell, element('td', text));
    return row;
  }
  currentLine(file) {
    const {cursor, code} = this.page;
    const line = cursor ? this.page.lineAt(cursor) : 0;
    return line && code.lineFile[line] === file ? code.lineNumber[line] : 0;
  }
  // Shows the line or instruction at the cursor.
  follow() {
    this.page.values.show();
    const line = this.page.lineAt(this.page.cursor);
    if (this.shown === INSTRUCTIONS || !line) {
      this.mark();
      return;
    }
    const file = this.page.code.lineFile[line];
    const has = this.source.querySelector(
        'tr[data-line="' + this.page.code.lineNumber[line] + '"]');
    if (this.shown !== file || !has) this.showFile(file); else this.mark();
  }
  // Returns the rows at the cursor; the last one is its exact place.
  currentRows() {
    const {cursor, code} = this.page;
    const find = (name, value) => this.source.querySelector('tr[data-' + name + '="' + value + '"]');
    if (this.shown !== INSTRUCTIONS) {
      const now = this.currentLine(this.shown);
      return now ? [find('line', now)].filter(Boolean) : [];
    }
    if (!cursor || !code.insns) return [];
    return [...code.instructionsOf(cursor.thread.block(cursor.p))].map((insn) => find('insn', insn)).filter(Boolean);
  }
  mark() {
    for (const row of this.source.querySelectorAll('tr.now, tr.block')) row.classList.remove('now', 'crash', 'block');
    const rows = this.currentRows(), row = rows.pop();
    if (!row) return;
    for (const one of rows) one.classList.add('block');
    const {page} = this, {thread, p} = page.cursor, culprit = thread === page.culprit();
    row.classList.add('now');
    if (culprit && (thread.died || page.meta.by) && p === page.crashPlace().p) row.classList.add('crash');
    // Not scrollIntoView: on a narrow screen that moves the whole page.
    const box = this.source.getBoundingClientRect();
    const at = row.getBoundingClientRect();
    if (at.top < box.top || at.bottom > box.bottom) {
      this.source.scrollTop += at.top - box.top - box.height / 2;
    }
  }
}
