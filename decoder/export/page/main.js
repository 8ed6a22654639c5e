// SPDX-License-Identifier: Apache-2.0
// The page: selection, search, buttons and keys.

class Page extends Walker {
  static async load() {
    const page = new Page();
    page.meta = JSON.parse(document.getElementById('meta').textContent);
    document.getElementById('title').textContent = page.meta.title;
    document.title = page.meta.title;
    page.live = document.getElementById('live');
    page.said = 0;
    page.code = await Code.load(page.meta);
    page.short = new ShortNames(page.meta.names);
    page.threads = [];
    for (let i = 0; i < page.meta.threads.length; ++i) {
      page.threads.push(await Thread.load(page.meta, i));
      await new Promise((resolve) => setTimeout(resolve));
    }
    page.finder = new Search(page.code, page.meta.names, page.threads);
    page.tip = new Tip();
    page.lanes = new Lanes(page);
    page.map = new MiniMap(page);
    page.panel = new Panel(page);
    page.values = new Values(page);
    page.list = new ThreadList(page);
    page.split = new Split(document.getElementById('split'), document.getElementById('panel'), () => page.lanes.draw());
    page.showCause();
    page.listen();
    page.open();
    return page;
  }
  // Opens at the place of the link, or else at the crash.
  open() {
    if (!this.threads.length) {
      this.say('No thread has a trace');
      return;
    }
    this.toCrash();
    this.goToLink();
  }
  // The thread that died or whose failure ended the program.
  culprit() { return this.threads[this.meta.open || 0]; }
  // The place of the crash, {p, call}: the thread's end, or the call by which it failed.
  crashPlace() { return this.crash || (this.crash = this.findCrash(this.culprit())); }
  findCrash(thread) {
    for (let call = thread.n - 1; this.meta.by && call >= 0; --call) {
      // After a gap, a call continues that was made before it.
      const begin = thread.how[call] & 7, made = begin !== BEGIN_UNSEEN && begin !== BEGIN_ON_STACK;
      if (!made || this.meta.names[thread.name[call]] !== this.meta.by || thread.begin[call] < 1) continue;
      const first = thread.madeAs(call);
      return {p: thread.begin[first], call: thread.parent[first]};
    }
    return {p: thread.total, call: thread.callAt(thread.total)};
  }
  toCrash() {
    if (!this.threads.length) return;
    const thread = this.culprit(), {p} = this.crashPlace();
    this.lanes.top = 0;
    this.lanes.lastCalls(thread, p);
    if (p === thread.total) {
      this.toEnd(thread);
      return;
    }
    this.put(thread, p);
    this.arrive();
  }
  // The red line: why the program ended, in which function, and at which line.
  showCause() {
    const box = document.getElementById('cause'), thread = this.culprit();
    box.append(element('b', this.meta.cause));
    if (!thread) return;
    const {p} = this.crashPlace();
    const [, where, place] = /^(in|at) (.*)$/s.exec(this.endOf(thread, false, p));
    box.append(' ' + where + ' ', element('button', place, () => this.toCrash()));
    box.lastChild.title = this.endOf(thread, true, p);
    if (!thread.died) document.getElementById('crash').textContent = this.meta.by ? 'The failure' : 'The end';
  }
  // Describes where a thread was at its end, or in block `end`: "in f at a.c:12", "in memcpy,
  // called by f at a.c:12", "in f (prog+0x12)".
  endOf(thread, full, end = thread.total) {
    const name = (number) => full ? this.meta.names[number] : this.short.get(number);
    const {code} = this, p = Math.min(end, this.lastBlock(thread));
    const block = thread.block(p), k = this.count(thread, p) - 1;
    const call = thread.callAt(end), scope = k < 0 ? 0 : code.scopeAt(block, k);
    const line = k < 0 || p !== end ? 0 : this.lineAt({thread, p, k});
    if (call === NONE && !scope) {
      return thread.place && end === thread.total ? 'at ' + thread.place : 'in code without a known call';
    }
    let text = 'in ' + name(scope ? code.scopeName[scope] : thread.name[call]);
    if (line) text += ' at ' + code.place(line);
    if (line && code.own[line]) return text;
    const from = this.callerOf(thread, call);
    if (from) return text + ', called by ' + name(thread.name[from.call]) + ' at ' + code.place(from.site);
    return line || !thread.place || end !== thread.total ? text : text + ' (' + thread.place + ')';
  }
  // Returns the program's own part of endOf(), for narrow places.
  ownEnd(thread) {
    const k = this.count(thread, thread.total) - 1, line = k < 0 ? 0 : this.lineAt({thread, p: thread.total, k});
    const from = this.code.own[line] ? null : this.callerOf(thread, thread.callAt(thread.total));
    if (!from) return this.endOf(thread);
    return this.short.get(thread.name[from.call]) + ' at ' + this.code.place(from.site);
  }
  // Returns the innermost caller with source, and its call site. Prefers callers outside of system
  // headers, and ignores callers of main.
  callerOf(thread, call) {
    let found = null;
    for (let at = call; at !== NONE && thread.depth[at] > thread.floor; at = thread.parent[at]) {
      const site = thread.siteOf(at);
      if (this.code.own[site]) return {call: thread.parent[at], site};
      if (!found && this.code.hasSource[site]) found = {call: thread.parent[at], site};
    }
    return found;
  }
  say(text) {
    ++this.said;
    this.live.textContent = text;
    this.live.title = text;
  }
  // Shows the place of the cursor.
  arrive(note = '') {
    const {thread, p} = this.cursor;
    this.choose(thread, thread.callAt(p));
    this.panel.follow();
    this.lanes.reveal(p - thread.total);
    const left = thread.total - p, place = this.code.place(this.lineAt(this.cursor));
    this.say(note + (place && place + ' ') + this.functionAt(this.cursor) + ', ' +
             counted(left, 'branch', 'branches') +
             this.timeBefore(thread, p - 1) + ' before the end');
  }
  choose(thread, call) {
    const old = this.selected;
    if (old && old.thread === thread && old.call === call && call !== NONE) return;
    this.selected = {thread, call};
    thread.folded = false;
    this.panel.show(thread, call);
    this.list.mark();
  }
  // Returns a name such as "f, inlined into main".
  functionAt({thread, p, k}) {
    const {code, short} = this, scope = code.scopeAt(thread.block(p), k);
    const call = thread.callAt(p);
    const name = call === NONE ? '' : short.get(thread.name[call]);
    return scope ? short.get(code.scopeName[scope]) + ', inlined into ' + name : name;
  }
  timeBefore(thread, p) {
    const text = thread.timeText(p);
    return text && ' and ' + text;
  }
  // Selects a call and goes to its end, inside the call.
  select(thread, call) {
    this.put(thread, Math.max(1, Math.min(thread.end[call], thread.total)));
    this.selected = {thread, call};
    this.panel.show(thread, call);
    this.panel.follow();
    this.list.mark();
    this.lanes.draw();
    this.say(this.short.get(thread.name[call]) + ', ' + this.panel.describe(thread, call));
  }
  goToThread(thread) {
    thread.folded = false;
    this.toEnd(thread);
  }
  // Goes to the next (1) or previous (-1) thread in the list.
  otherThread(way) {
    const {threads} = this;
    if (!this.selected) return;
    const at = threads.indexOf(this.selected.thread) + way;
    this.goToThread(threads[(at + threads.length) % threads.length]);
  }
  fold(thread, folded = !thread.folded) {
    thread.folded = folded;
    this.list.mark();
    this.lanes.draw();
  }
  // --- links ---
  async copyLink() {
    if (!this.cursor) return;
    const link = linkTo(this.cursor);
    this.ownLink = link;
    location.hash = link;
    const {said} = this;
    const copied = await copyText(location.href);
    // The clipboard may take its time: what the page has said meanwhile stays.
    if (this.said === said) this.say((copied ? 'Copied: ' : 'The link is in the address line: ') + link);
  }
  goToLink() {
    const place = placeOf(location.hash, this.threads, (thread, p) => this.count(thread, p));
    if (!place) {
      if (location.hash.startsWith('#thread=')) this.say('The link leads to no place in this page: ' + location.hash);
      return;
    }
    this.cursor = place;
    this.arrive();
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
  // Goes to the next or previous search result: a call or an inlined run.
  next(way, only) {
    if ((!this.matches && only === undefined) || !this.selected) return;
    const {thread, call} = this.selected, {p, k} = this.cursor;
    // After a step, the search continues from the new place.
    const last = this.match && this.match.cursor === this.cursor ? this.match.found : null;
    const found = this.finder.step(way, last || {thread, call, p, k}, only);
    if (!found) {
      this.say('No call found');
      return;
    }
    if (found.runs) this.selectRun(found); else this.select(found.thread, found.call);
    this.match = {found, cursor: this.cursor};
    this.lanes.reveal(this.cursor.p - found.thread.total);
  }
  // Goes to the end of an inlined run, as select() does for a call.
  selectRun({thread, call, runs, run}) {
    this.selected = {thread, call};
    this.cursor = {thread, p: runs.endP[run], k: runs.endK[run]};
    this.panel.show(thread, call);
    this.panel.follow();
    this.list.mark();
    const {code, short} = this;
    const scope = runs.scope[run], around = code.scopeAround[scope];
    const site = code.place(code.scopeLine[scope]);
    const into = around ? short.get(code.scopeName[around]) : call === NONE ? '' : short.get(thread.name[call]);
    this.say(short.get(code.scopeName[scope]) + ', inlined' + (into && ' into ' + into) + (site && ' at ' + site));
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
  fit() {
    if (!this.selected || this.selected.call === NONE) return;
    const {thread, call} = this.selected;
    this.lanes.show(thread.begin[call] - thread.total, thread.end[call] - thread.total);
  }
  listen() {
    const bindings = keyBindings(this);
    for (const {button, act} of bindings) {
      if (button) document.getElementById(button).addEventListener('click', act);
    }
    document.getElementById('text').addEventListener('click', () => this.dialog(this.meta.text));
    document.getElementById('theme').addEventListener('click', () => this.theme());
    const acts = new Map(bindings.flatMap(({keys, act}) => keys.map((key) => [key, act])));
    const search = document.getElementById('search');
    search.addEventListener('input', () => this.search(search.value));
    document.addEventListener('keydown', (event) => {
      if (event.target === search) {
        if (event.key === 'Enter') this.next(event.shiftKey ? 1 : -1);
        if (event.key === 'Escape') document.getElementById('canvas').focus();
        return;
      }
      if (event.key === 'Escape') this.tip.hide();
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.tagName === 'SELECT' || document.getElementById('dialog').open) return;
      const act = acts.get(event.key);
      // Keys that scroll keep their meaning in an element that can be scrolled.
      if (!act || (event.key.startsWith('Arrow') && event.target.id === 'source')) return;
      event.preventDefault();
      act();
    });
    window.addEventListener('hashchange', () => {
      if (location.hash !== this.ownLink) this.goToLink();
      this.ownLink = null;
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.lanes.draw());
  }
}

Page.load().then((page) => {
  document.body.dataset.state = 'ready';
  window.page = page;
}, (error) => {
  document.body.dataset.state = 'failed';
  document.getElementById('live').textContent = 'This browser cannot show the page: ' + error.message;
});
