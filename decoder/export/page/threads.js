// SPDX-License-Identifier: Apache-2.0
// The list of threads. An entry goes to its thread's end, and folds or unfolds its lane.

// With more threads than this, only the lane of the culprit is open at first.
const OPEN_LANES = 3;

class ThreadList {
  constructor(page) {
    this.page = page;
    this.box = document.getElementById('threads');
    this.rows = [];
    const {threads} = page;
    for (const thread of threads) thread.folded = threads.length > OPEN_LANES && thread !== page.culprit();
    this.box.hidden = threads.length < 2;
    if (this.box.hidden) return;
    const head = element('div');
    head.className = 'head';
    head.append(element('span', threads.length + ' threads'),
                element('button', 'Open all', () => this.foldAll(false)),
                element('button', 'Fold', () => this.foldAll(true)));
    head.lastChild.title = 'Fold all lanes except that of the selected thread';
    this.box.append(head);
    for (const thread of threads) this.rows.push(this.row(thread));
    this.box.addEventListener('keydown', (event) => this.key(event));
    this.mark();
  }
  row(thread) {
    const row = element('div'), go = element('button', undefined, () => this.page.goToThread(thread));
    row.className = 'thread' + (thread.died ? ' died' : '');
    const fold = element('button', '', () => this.page.fold(thread));
    fold.className = 'fold';
    fold.tabIndex = -1;
    go.className = 'go';
    go.append(element('b', thread.title));
    if (thread.died) go.append(element('em', 'died'));
    go.append(element('small', this.page.ownEnd(thread)));
    go.title = thread.title + '\n' + this.page.endOf(thread, true);
    row.append(fold, go);
    this.box.append(row);
    return {thread, row, fold, go};
  }
  foldAll(folded) {
    const selected = this.page.selected && this.page.selected.thread;
    for (const thread of this.page.threads) thread.folded = folded && thread !== selected;
    this.mark();
    this.page.lanes.top = 0;
    this.page.lanes.draw();
  }
  // Marks the selected thread and the folded ones. Tab reaches the selected one only.
  mark() {
    const selected = this.page.selected ? this.page.selected.thread : this.page.threads[0];
    for (const {thread, row, fold, go} of this.rows) {
      row.classList.toggle('selected', thread === selected);
      go.tabIndex = thread === selected ? 0 : -1;
      if (thread === selected) go.setAttribute('aria-current', 'true'); else go.removeAttribute('aria-current');
      fold.textContent = thread.folded ? '\u25b8' : '\u25be';
      fold.setAttribute('aria-expanded', !thread.folded);
      fold.setAttribute('aria-label', (thread.folded ? 'Show' : 'Hide') + ' the calls of ' + thread.title);
    }
  }
  key(event) {
    const at = this.rows.findIndex(({row}) => row.contains(event.target));
    if (at < 0) return;
    const to = {ArrowDown: at + 1, ArrowUp: at - 1}[event.key];
    if (to !== undefined && this.rows[to]) {
      this.rows[to].go.focus();
    } else if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
      this.page.fold(this.rows[at].thread, event.key === 'ArrowLeft');
    } else if (to === undefined) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
