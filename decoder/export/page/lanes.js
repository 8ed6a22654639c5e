// SPDX-License-Identifier: Apache-2.0
// The view of the lanes: the visible part of the trace, and the actions of mouse and wheel.

// Number of calls that the page opens with.
const OPENING_CALLS = 50;

class Lanes extends Painter {
  constructor(page) {
    super();
    this.page = page;
    this.canvas = document.getElementById('canvas');
    this.context = this.canvas.getContext('2d');
    this.startUp = false;
    this.left = -1;
    this.right = 1;
    this.scale = 1;
    this.top = 0;
    this.pointer = null;
    this.colors = new Colors(page.meta.names.length);
    this.strip = new Strip();
    this.labels = new Map();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    this.listen();
  }
  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.paint(); });
  }
  // Returns the number of branches of the longest thread shown.
  longest() {
    return Math.max(1, ...this.page.threads.map((thread) => thread.total - this.beginOf(thread)));
  }
  // Returns the item at a place of the canvas, {thread, call, p, title}; null if there is none.
  find(x, y) {
    let top = AXIS - this.top;
    for (const thread of this.page.threads) {
      const lane = this.laneHeight(thread);
      if (y >= top && y < top + lane) {
        const row = Math.floor((y - top - TITLE) / ROW), depth = this.firstDepth(thread) + row;
        const p = this.left + x / this.scale + thread.total, title = y < top + TITLE;
        const none = {thread, call: NONE, p, title};
        if (row < 0 || row >= this.rows(thread) || depth > thread.deepest || p < this.beginOf(thread)) return none;
        const at = thread.firstAt(depth, p);
        const call = at < thread.levelStart[depth + 1] ? thread.level[at] : NONE;
        return call !== NONE && thread.begin[call] <= p ? {thread, call, p, title} : none;
      }
      top += lane;
    }
    return null;
  }
  // Zooms around x. The default is the pointer if it is on the lanes, else the cursor, else the
  // middle.
  zoom(factor, x) {
    const width = this.canvas.clientWidth, cursor = this.page.cursor;
    if (x === undefined && this.pointer !== null) x = this.pointer;
    if (x === undefined && cursor) {
      const at = this.xOf(cursor.thread, cursor.p - 0.5);
      if (at >= 0 && at <= width) x = at;
    }
    if (x === undefined) x = width / 2;
    const at = this.left + x / this.scale;
    const span = Math.min(this.longest() * 4, Math.max(3, (this.right - this.left) * factor));
    const share = (at - this.left) / (this.right - this.left);
    this.left = at - span * share;
    this.right = this.left + span;
    // A second key may arrive before the next frame.
    this.scale = width / span;
    this.draw();
  }
  pan(pixels, down) {
    const move = pixels / this.scale;
    this.left += move;
    this.right += move;
    this.top = Math.max(0, Math.min(this.top + down, (this.bottom || 0) - 60));
    this.draw();
  }
  // Shows the range between two places, with a small margin. Places count from the end.
  show(from, to) {
    const room = Math.max(0.4, (to - from) * 0.03);
    this.left = from - room;
    this.right = to + room;
    this.scale = this.canvas.clientWidth / (this.right - this.left);
    this.draw();
  }
  whole() {
    this.top = 0;
    this.show(-this.longest(), 0);
  }
  // Shows the last calls of a thread, up to its end or a given place.
  lastCalls(thread, end = thread.total) {
    let last = thread.n;
    while (last > 0 && thread.begin[last - 1] >= end) --last;
    const first = last > OPENING_CALLS ? thread.begin[last - OPENING_CALLS] : 0;
    this.show(Math.max(first, Math.min(end - 1, this.beginOf(thread))) - thread.total, end - thread.total);
  }
  setStartUp(shown) {
    if (this.startUp === shown) return;
    this.startUp = shown;
    document.getElementById('startup').setAttribute('aria-pressed', shown);
    this.draw();
  }
  // Unfolds what hides a place, and scrolls only as far as needed to show it.
  reveal(p) {
    const {thread, call} = this.page.selected;
    thread.folded = false;
    if (p + thread.total <= this.beginOf(thread) ||
        (call !== NONE && thread.depth[call] < this.floorOf(thread))) this.setStartUp(true);
    const span = this.right - this.left;
    if (p < this.left + span * 0.02 || p > this.right) {
      this.left = p - span * 0.7;
      this.right = this.left + span;
    }
    this.revealRow();
    this.draw();
  }
  // Scrolls to the selected call, or to its thread's title.
  revealRow() {
    const {thread, call} = this.page.selected;
    let y = AXIS;
    for (const other of this.page.threads) {
      if (other === thread) break;
      y += this.laneHeight(other);
    }
    const title = y;
    if (call !== NONE) y += TITLE + (thread.depth[call] - this.firstDepth(thread)) * ROW;
    const lowest = Math.max(0, y + ROW - this.canvas.clientHeight);
    // Shows the title too if both fit.
    const highest = lowest <= title - AXIS ? title - AXIS : y - AXIS;
    this.top = Math.max(lowest, Math.min(highest, this.top));
  }
  listen() {
    const canvas = this.canvas;
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      // Converts lines and pages of a wheel to pixels.
      const unit = [1, 16, 400][event.deltaMode] || 1, across = event.deltaX * unit, down = event.deltaY * unit;
      if (event.shiftKey) this.pan(down || across, 0);
      else if (event.altKey) this.pan(0, down);
      else if (Math.abs(across) > Math.abs(down)) this.pan(across, 0);
      else this.zoom(Math.exp(Math.max(-300, Math.min(300, down)) * (event.ctrlKey ? 0.01 : 0.002)), event.offsetX);
      this.hover(event);
    }, {passive: false});
    let drag = null;
    canvas.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      drag = {x: event.offsetX, y: event.offsetY, moved: 0};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (!drag) {
        this.hover(event);
        return;
      }
      drag.moved += Math.abs(event.offsetX - drag.x) + Math.abs(event.offsetY - drag.y);
      this.pan(drag.x - event.offsetX, drag.y - event.offsetY);
      drag.x = event.offsetX;
      drag.y = event.offsetY;
      this.page.tip.hide();
    });
    canvas.addEventListener('pointerleave', () => {
      this.pointer = null;
      this.page.tip.hide();
    });
    canvas.addEventListener('pointerup', (event) => {
      const still = drag && drag.moved < 4;
      drag = null;
      if (!still) return;
      const found = this.find(event.offsetX, event.offsetY);
      if (!found) return;
      if (found.call !== NONE) this.page.select(found.thread, found.call);
      else if (found.title) this.page.fold(found.thread);
    });
    canvas.addEventListener('pointercancel', () => { drag = null; });
    canvas.addEventListener('dblclick', (event) => {
      const found = this.find(event.offsetX, event.offsetY);
      if (!found || found.call === NONE) return;
      const {thread, call} = found;
      this.show(thread.begin[call] - thread.total, thread.end[call] - thread.total);
    });
  }
  hover(event) {
    this.pointer = event.offsetX;
    const found = this.find(event.offsetX, event.offsetY);
    this.canvas.style.cursor = found && (found.title || found.call !== NONE) ? 'pointer' : 'default';
    const lines = found ? this.wordsAt(found, event.offsetX) : [];
    const name = found && found.call !== NONE ? this.page.meta.names[found.thread.name[found.call]] : '';
    if (lines.length) this.page.tip.show(event.clientX, event.clientY, lines, name !== lines[0] && name);
    else this.page.tip.hide();
  }
  // Returns the lines of a tooltip, with its title first; empty if there are none.
  wordsAt({thread, call, p, title}, x) {
    const near = (marks) => (marks || []).filter(([place]) => Math.abs(this.xOf(thread, place) - x) < 4);
    const lines = [];
    if (call !== NONE) {
      lines.push(this.page.short.get(thread.name[call]), this.page.panel.describe(thread, call));
    } else if (title) {
      lines.push(thread.title, this.page.endOf(thread), thread.folded ? 'Click: show its calls' : 'Click: hide its calls');
    } else if (p < this.beginOf(thread) && p >= 0) {
      lines.push('Start-up', this.beginOf(thread).toLocaleString() + ' branches before the program\u2019s own code. Press m to show them.');
    }
    if (!thread.folded) {
      for (const [, ns, preempted, back] of near(thread.off).slice(0, 3)) {
        lines.push((preempted ? 'Preempted for ' : 'Waited for ') + duration(ns) + ', until ' + duration(back) + ' before the end');
      }
    }
    for (const [, text] of near(thread.gaps).slice(0, 3)) lines.push('Gap: ' + text);
    return lines;
  }
}
