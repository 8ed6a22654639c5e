// The page: selection, the cursor that walks the trace, search, keys.

class Page {
  static async load() {
    const page = new Page();
    page.meta = JSON.parse(document.getElementById('meta').textContent);
    document.getElementById('title').textContent = page.meta.title;
    document.getElementById('cause').textContent = page.meta.cause;
    document.title = page.meta.title;
    page.live = document.getElementById('live');
    page.code = await Code.load(page.meta);
    page.threads = [];
    for (let i = 0; i < page.meta.threads.length; ++i) {
      page.threads.push(await Thread.load(page.meta, i));
      await new Promise((resolve) => setTimeout(resolve));
    }
    page.finder = new Search(page.code, page.meta.names, page.threads);
    page.lanes = new Lanes(page);
    page.panel = new Panel(page);
    page.listen();
    if (page.threads.length) {
      page.toEnd(page.threads[0]);
      page.lanes.show(-page.threads[0].total, 0);
    }
    return page;
  }
  say(text) { this.live.textContent = text; }
  // --- the cursor: a line of a block ---
  lineAt(cursor) {
    if (cursor.k < 0 || cursor.k >= this.count(cursor.thread, cursor.p)) return 0;
    const block = cursor.thread.block(cursor.p);
    return this.code.entries[this.code.blockStart[block] + cursor.k];
  }
  count(thread, p) {
    const block = thread.block(p);
    return this.code.blockStart[block + 1] - this.code.blockStart[block];
  }
  toEnd(thread) {
    this.cursor = {thread, p: thread.total, k: this.count(thread, thread.total) - 1};
    if (this.cursor.k < 0) this.move(-1);
    this.arrive();
  }
  // Shows where the cursor is.
  arrive() {
    const {thread, p} = this.cursor;
    const call = thread.callAt(p);
    if (!this.selected || this.selected.thread !== thread || this.selected.call !== call) {
      this.selected = {thread, call};
      this.panel.show(thread, call);
    }
    this.panel.follow();
    this.lanes.reveal(p - thread.total);
    const left = thread.total - p;
    this.say(this.code.place(this.lineAt(this.cursor)) + ' ' + this.functionAt(this.cursor) + ', ' +
             left.toLocaleString() + (left === 1 ? ' branch' : ' branches') +
             this.timeBefore(thread, p - 1) + ' before the end');
  }
  // "f, inlined into main".
  functionAt({thread, p, k}) {
    const {code} = this, {names} = this.meta, scope = code.scopeAt(thread.block(p), k);
    const call = thread.callAt(p);
    const name = call === NONE ? '' : names[thread.name[call]];
    return scope ? names[code.scopeName[scope]] + ', inlined into ' + name : name;
  }
  timeBefore(thread, p) {
    const text = thread.timeText(p);
    return text && ' and ' + text;
  }
  // To where it was off its CPU the last time.
  toWait() {
    if (!this.cursor) return;
    const {thread, p} = this.cursor;
    const off = thread.offBefore(p);
    if (!off) {
      this.say(thread.off ? 'No wait is known before' : 'No times were recorded');
      return;
    }
    const [place, ns, preempted, back] = off;
    this.cursor = {thread, p: place + 1, k: this.count(thread, place + 1) - 1};
    this.arrive();
    this.say((preempted ? 'Preempted for ' : 'Waited for ') + duration(ns) + ', until ' +
             duration(back) + ' before the end');
  }
  // To the next (1) or previous (-1) entry of a line that is another one.
  move(way) {
    const {thread} = this.cursor;
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
      const line = this.code.entries[this.code.blockStart[thread.block(p)] + k];
      if (line && line !== from) break;
    }
    this.cursor = {thread, p, k};
    return true;
  }
  step(way) {
    if (!this.cursor) return;
    if (this.move(way)) this.arrive();
    else this.say(way < 0 ? 'The trace begins here' : 'The trace ends here');
  }
  // Back, but not into what was called.
  stepOver() {
    if (!this.cursor) return;
    const {thread} = this.cursor;
    const call = thread.callAt(this.cursor.p);
    const depth = call === NONE ? 0 : thread.depth[call];
    while (this.move(-1)) {
      const inner = thread.callAt(this.cursor.p, depth + 1);
      if (inner === NONE || thread.depth[inner] <= depth) {
        this.arrive();
        return;
      }
      const p = thread.begin[inner];
      if (p < 1) break;
      // The block that made the call; the next move looks at what stands in it.
      this.cursor = {thread, p, k: this.count(thread, p)};
    }
    this.arrive();
    this.say('The trace begins here');
  }
  // The last run of a line before the cursor.
  goToLine(file, number) {
    const line = this.code.lineIds.get(file * 16777216 + number);
    const {thread} = this.cursor || {thread: this.selected.thread};
    const holds = new Uint8Array(this.code.blockStart.length);
    for (let block = 0; block + 1 < this.code.blockStart.length; ++block) {
      for (let k = this.code.blockStart[block]; k < this.code.blockStart[block + 1]; ++k) {
        if (this.code.entries[k] === line) holds[block] = 1;
      }
    }
    const begin = this.cursor ? this.cursor.p : thread.total;
    for (let turn = 0; turn < 2; ++turn) {
      for (let p = turn ? thread.total : begin - 1; p >= 1; --p) {
        if (!holds[thread.block(p)]) continue;
        const start = this.code.blockStart[thread.block(p)];
        let k = this.count(thread, p) - 1;
        while (this.code.entries[start + k] !== line) --k;
        this.cursor = {thread, p, k};
        this.arrive();
        return;
      }
    }
  }
  select(thread, call) {
    this.selected = {thread, call};
    // Where it ended, seen from within.
    const p = Math.max(1, Math.min(thread.end[call], thread.total));
    this.cursor = {thread, p, k: Math.max(0, this.count(thread, p) - 1)};
    this.panel.show(thread, call);
    this.panel.mark();
    this.lanes.draw();
    this.say(this.meta.names[thread.name[call]] + ', ' + this.panel.describe(thread, call));
  }
  // --- search ---
  search(text) {
    const box = document.getElementById('hits'), finder = this.finder;
    box.replaceChildren();
    finder.set(text);
    this.matches = finder.matches;
    for (const name of finder.found.slice(0, 100)) {
      box.append(element('button', finder.label(name), () => this.next(-1, name)));
    }
    if (text) this.say(finder.summary());
    this.lanes.draw();
  }
  // The next or previous call of a function that was searched for, or run where it is inlined.
  next(way, only) {
    if ((!this.matches && only === undefined) || !this.selected) return;
    const {thread, call} = this.selected, {p, k} = this.cursor;
    // Who has moved since goes on from there.
    const last = this.match && this.match.cursor === this.cursor ? this.match.found : null;
    const found = this.finder.step(way, last || {thread, call, p, k}, only);
    if (!found) {
      this.say('No call of it');
      return;
    }
    if (found.runs) this.selectRun(found); else this.select(found.thread, found.call);
    this.match = {found, cursor: this.cursor};
    this.lanes.reveal(this.cursor.p - found.thread.total);
  }
  // Where it ended, as of a call.
  selectRun({thread, call, runs, run}) {
    this.selected = {thread, call};
    this.cursor = {thread, p: runs.endP[run], k: runs.endK[run]};
    this.panel.show(thread, call);
    this.panel.follow();
    const {code} = this, {names} = this.meta;
    const scope = runs.scope[run], around = code.scopeAround[scope];
    const site = code.place(code.scopeLine[scope]);
    const into = around ? names[code.scopeName[around]] : call === NONE ? '' : names[thread.name[call]];
    this.say(names[code.scopeName[scope]] + ', inlined' + (into && ' into ' + into) + (site && ' at ' + site));
  }
  // --- buttons and keys ---
  dialog(text) {
    document.getElementById('dialog-text').textContent = text;
    document.getElementById('dialog').showModal();
  }
  theme() {
    const root = document.documentElement;
    const dark = root.classList.contains('dark') ||
        (!root.classList.contains('light') && matchMedia('(prefers-color-scheme: dark)').matches);
    root.classList.toggle('dark', !dark);
    root.classList.toggle('light', dark);
    this.lanes.draw();
  }
  listen() {
    const on = (id, act) => document.getElementById(id).addEventListener('click', act);
    const thread = () => this.selected ? this.selected.thread : this.threads[0];
    const keys = {
      'w': () => this.lanes.zoom(0.7), 's': () => this.lanes.zoom(1 / 0.7),
      '+': () => this.lanes.zoom(0.7), '-': () => this.lanes.zoom(1 / 0.7),
      'a': () => this.lanes.pan(-80, 0), 'd': () => this.lanes.pan(80, 0),
      'ArrowLeft': () => this.lanes.pan(-80, 0), 'ArrowRight': () => this.lanes.pan(80, 0),
      'ArrowUp': () => this.lanes.pan(0, -60), 'ArrowDown': () => this.lanes.pan(0, 60),
      '[': () => this.step(-1), ']': () => this.step(1), '{': () => this.stepOver(),
      '0': () => this.lanes.whole(), 'End': () => this.toEnd(thread()),
      'o': () => this.toWait(),
      'i': () => this.selected && this.selected.call !== NONE && this.panel.toggle(),
      'f': () => this.fit(), 'n': () => this.next(-1), 'N': () => this.next(1),
      '/': () => document.getElementById('search').focus(),
      '?': () => this.dialog(this.meta.keys),
    };
    on('back', keys['[']);
    on('forward', keys[']']);
    on('over', keys['{']);
    on('crash', () => this.threads.length && keys.End());
    on('all', keys['0']);
    on('help', keys['?']);
    on('text', () => this.dialog(this.meta.text));
    on('theme', () => this.theme());
    on('assembly', keys.i);
    const search = document.getElementById('search');
    search.addEventListener('input', () => this.search(search.value));
    document.addEventListener('keydown', (event) => {
      if (event.target === search) {
        if (event.key === 'Enter') this.next(event.shiftKey ? 1 : -1);
        if (event.key === 'Escape') document.getElementById('canvas').focus();
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.tagName === 'SELECT' || document.getElementById('dialog').open) return;
      const act = keys[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.lanes.draw());
  }
  fit() {
    if (!this.selected || this.selected.call === NONE) return;
    const {thread, call} = this.selected;
    this.lanes.show(thread.begin[call] - thread.total, thread.end[call] - thread.total);
  }
}

Page.load().then((page) => {
  document.body.dataset.state = 'ready';
  window.page = page;
}, (error) => {
  document.body.dataset.state = 'failed';
  document.getElementById('live').textContent = 'This page cannot be shown here: ' + error.message;
});
