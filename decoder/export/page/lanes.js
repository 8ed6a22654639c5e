// Lanes on a canvas. What is narrower than a pixel is drawn once a pixel, so a frame costs as much
// as the screen is wide, however long the trace is.

const ROW = 17, TITLE = 20, AXIS = 18, WAITS = 14, MOST_ROWS = 40;
// Calls that are so wide have their name in them.
const LABELLED = 30;

class Lanes {
  constructor(page) {
    this.page = page;
    this.canvas = document.getElementById('canvas');
    this.context = this.canvas.getContext('2d');
    this.longest = Math.max(1, ...page.threads.map((thread) => thread.total));
    this.left = -this.longest;
    this.right = this.longest * 0.02;
    this.top = 0;
    this.colors = new Colors(page.meta.names.length);
    this.strip = new Strip();
    this.labels = new Map();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    this.listen();
  }
  rows(thread) { return Math.min(thread.deepest + 1, MOST_ROWS); }
  // Without the line of what it waited for, which not every thread has.
  barHeight(thread) { return TITLE + this.rows(thread) * ROW; }
  laneHeight(thread) {
    return this.barHeight(thread) + 8 + (thread.off && thread.off.length ? WAITS : 0);
  }
  // The depth in the lane's first row: deep lanes follow the selected call.
  firstDepth(thread) {
    if (thread.deepest < MOST_ROWS) return 0;
    const selected = this.page.selected;
    const depth = selected && selected.thread === thread && selected.call !== NONE
        ? thread.depth[selected.call] : thread.deepest;
    return Math.max(0, Math.min(thread.deepest + 1 - MOST_ROWS, depth - (MOST_ROWS >> 1)));
  }
  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.paint(); });
  }
  color(name) {
    const style = getComputedStyle(document.documentElement);
    return style.getPropertyValue(name).trim();
  }
  paint() {
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (this.canvas.width !== width * ratio || this.canvas.height !== height * ratio) {
      this.canvas.width = width * ratio;
      this.canvas.height = height * ratio;
    }
    const context = this.context;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const back = this.color('--back'), text = this.color('--text');
    this.dark = parseInt(back.slice(1, 3), 16) < 128;
    this.hitPixel = packedHex(this.dark ? '#b08800' : '#f2c94c');
    this.textColor = text;
    this.edge = this.color('--edge');
    this.crashColor = this.color('--crash');
    this.crashPixel = packedHex(this.crashColor);
    this.accent = this.color('--accent');
    context.fillStyle = back;
    context.fillRect(0, 0, width, height);
    this.scale = width / (this.right - this.left);
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    this.paintRows(width, height, ratio);
    this.eachLane(height, (thread, y) => this.paintLane(thread, y, width));
    this.paintAxis(width, height);
  }
  // Those in sight.
  eachLane(height, visit) {
    let y = AXIS - this.top;
    for (const thread of this.page.threads) {
      const lane = this.laneHeight(thread);
      if (y + lane > AXIS && y < height) visit(thread, y);
      y += lane;
    }
    this.bottom = y + this.top;
  }
  paintRows(width, height, ratio) {
    this.looked = 0;
    this.lines = [];
    this.wide = [];
    this.strip.begin(width, Math.ceil(height / ROW) + 2, ratio);
    this.eachLane(height, (thread, y) => {
      const first = this.firstDepth(thread);
      for (let row = 0; row < this.rows(thread); ++row) {
        const top = y + TITLE + row * ROW;
        if (top + ROW >= AXIS && top <= height) this.layRow(thread, first + row, top, width);
      }
    });
    this.strip.put();
    this.context.imageSmoothingEnabled = false;
    this.lines.forEach((top, row) => this.strip.draw(this.context, row, top, ROW - 1, width));
    for (const call of this.wide) this.paintCall(call);
  }
  paintLane(thread, y, width) {
    const context = this.context;
    context.fillStyle = thread.died ? this.crashColor : this.textColor;
    context.fillText(thread.title + (thread.died ? '  died' : ''), 6, y + TITLE / 2);
    this.paintOff(thread, y, width);
    if (thread.died) {
      context.fillStyle = this.crashColor;
      context.fillRect((0 - this.left) * this.scale, y, 2, this.barHeight(thread));
    }
    const cursor = this.page.cursor;
    if (cursor && cursor.thread === thread) {
      const x = (cursor.p - thread.total - 0.5 - this.left) * this.scale;
      context.fillStyle = this.accent;
      context.fillRect(x - 1, y, 2, this.barHeight(thread));
    }
  }
  // Times off the CPU: they take no room, branches are what the lane is long by.
  paintOff(thread, y, width) {
    const context = this.context;
    context.fillStyle = this.color('--dim');
    const height = this.barHeight(thread);
    let line = -Infinity, label = 0;
    for (const [place, ns, preempted] of thread.off || []) {
      const x = (place + 0.5 - thread.total - this.left) * this.scale;
      if (x < 0 || x > width) continue;
      if (x - line >= 2) {
        context.fillRect(x, y + TITLE, 1, height - TITLE + WAITS);
        line = x;
      }
      const text = (preempted ? 'preempted ' : 'waited ') + duration(ns);
      if (x + 3 < label) continue;
      context.fillText(text, x + 3, y + height + WAITS / 2);
      label = x + 3 + context.measureText(text).width + 6;
    }
  }
  // Into the strip, except for what has room for a name: that is kept for later.
  layRow(thread, depth, top, width) {
    const scale = this.scale, row = this.lines.push(top) - 1;
    // Positions count from the thread's beginning; lanes end at 0.
    const origin = thread.total + this.left, visible = thread.total + this.right;
    const {levelBegin, levelEnd, levelName} = thread, end = thread.levelStart[depth + 1];
    const selected = this.page.selected && this.page.selected.thread === thread
        ? this.page.selected.call : NONE;
    let at = thread.firstAt(depth, origin);
    for (; at < end && levelBegin[at] <= visible; ++this.looked) {
      const x = (levelBegin[at] - origin) * scale, x2 = (levelEnd[at] - origin) * scale;
      if (x2 - x < 1) {
        const pixel = Math.floor(x);
        this.strip.pixel(row, pixel, this.fill(levelName[at], true));
        at = thread.nextAt(depth, origin + (pixel + 1) / scale, at + 1);
      } else if (x2 - x < LABELLED && thread.level[at] !== selected) {
        this.layCall(row, thread.level[at], thread, x, x2);
        ++at;
      } else {
        this.wide.push({thread, call: thread.level[at], x: Math.max(x, -1),
                        x2: Math.min(x2, width + 1), top});
        ++at;
      }
    }
  }
  layCall(row, call, thread, x, x2) {
    this.strip.span(row, x, x + Math.max(1, x2 - x - 0.5), this.fill(thread.name[call], false));
    const mark = thread.markOf(call);
    if (mark) this.strip.span(row, mark > 0 ? x2 - 2 : x, mark > 0 ? x2 : x + 2, this.crashPixel);
  }
  fill(name, small) {
    const matches = this.page.matches;
    if (matches && matches[name]) return this.hitPixel;
    return this.colors.get(name, this.dark, small);
  }
  paintCall({thread, call, x, x2, top}) {
    const context = this.context, name = thread.name[call], matches = this.page.matches;
    context.fillStyle = matches && matches[name] ? cssColor(this.hitPixel)
                                                 : this.colors.text(name, this.dark);
    const wide = Math.max(1, x2 - x - 0.5);
    context.fillRect(x, top, wide, ROW - 1);
    const mark = thread.markOf(call);
    if (mark) {
      context.fillStyle = this.crashColor;
      context.fillRect(mark > 0 ? x2 - 2 : x, top, 2, ROW - 1);
    }
    const selected = this.page.selected;
    if (selected && selected.thread === thread && selected.call === call) {
      context.strokeStyle = this.accent;
      context.lineWidth = 2;
      context.strokeRect(x + 1, top + 1, wide - 2, ROW - 3);
    }
    if (x2 - x < LABELLED) return;
    const label = this.label(name, x2 - x - 6);
    context.fillStyle = this.textColor;
    context.fillText(label, x + 3, top + ROW / 2);
  }
  label(name, room) {
    const text = this.page.meta.names[name];
    let size = this.labels.get(name);
    if (size === undefined) {
      size = this.context.measureText(text).width / Math.max(1, text.length);
      this.labels.set(name, size);
    }
    const count = Math.floor(room / size);
    return count >= text.length ? text : text.slice(0, Math.max(1, count - 1)) + '\u2026';
  }
  paintAxis(width) {
    const context = this.context;
    context.fillStyle = this.color('--panel');
    context.fillRect(0, 0, width, AXIS);
    context.fillStyle = this.color('--dim');
    const step = Math.pow(10, Math.ceil(Math.log10((this.right - this.left) / (width / 110))));
    for (let at = Math.ceil(this.left / step) * step; at <= this.right; at += step) {
      const x = (at - this.left) * this.scale;
      context.fillRect(x, AXIS - 4, 1, 4);
      context.fillText(at === 0 ? 'the end' : at > 0 ? '' : at.toLocaleString(), x + 3, AXIS / 2);
    }
  }
  // What stands at a place of the canvas: {thread, call, p}.
  find(x, y) {
    let top = AXIS - this.top;
    for (const thread of this.page.threads) {
      const lane = this.laneHeight(thread);
      if (y >= top && y < top + lane) {
        const depth = this.firstDepth(thread) + Math.floor((y - top - TITLE) / ROW);
        const p = this.left + x / this.scale + thread.total;
        if (depth < 0 || depth > thread.deepest) return {thread, call: NONE, p};
        const at = thread.firstAt(depth, p);
        const call = at < thread.levelStart[depth + 1] ? thread.level[at] : NONE;
        return {thread, call: call !== NONE && thread.begin[call] <= p ? call : NONE, p};
      }
      top += lane;
    }
    return null;
  }
  zoom(factor, x) {
    const at = this.left + (x === undefined ? this.canvas.clientWidth / 2 : x) / this.scale;
    const span = Math.min(this.longest * 4, Math.max(8, (this.right - this.left) * factor));
    const share = (at - this.left) / (this.right - this.left);
    this.left = at - span * share;
    this.right = this.left + span;
    this.draw();
  }
  pan(pixels, down) {
    const move = pixels / this.scale;
    this.left += move;
    this.right += move;
    this.top = Math.max(0, Math.min(this.top + down, (this.bottom || 0) - 60));
    this.draw();
  }
  show(from, to) {
    const room = Math.max(4, (to - from) * 0.1);
    this.left = from - room;
    this.right = to + room;
    this.draw();
  }
  whole() {
    this.top = 0;
    this.show(-this.longest, 0);
  }
  // Moves only as far as is needed to have the position in sight.
  reveal(p) {
    const span = this.right - this.left;
    if (p < this.left + span * 0.05 || p > this.right - span * 0.05) {
      this.left = p - span * 0.7;
      this.right = this.left + span;
    }
    this.revealRow();
    this.draw();
  }
  // Likewise the selected call, or its thread's title.
  revealRow() {
    const {thread, call} = this.page.selected;
    let y = AXIS;
    for (const other of this.page.threads) {
      if (other === thread) break;
      y += this.laneHeight(other);
    }
    if (call !== NONE) y += TITLE + (thread.depth[call] - this.firstDepth(thread)) * ROW;
    const lowest = Math.max(0, y + ROW - this.canvas.clientHeight);
    this.top = Math.max(lowest, Math.min(y - AXIS, this.top));
  }
  listen() {
    const canvas = this.canvas;
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      if (event.shiftKey) this.pan(event.deltaY || event.deltaX, 0);
      else if (event.altKey) this.pan(0, event.deltaY);
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX, 0);
      else this.zoom(Math.exp(event.deltaY * 0.002), event.offsetX);
    }, {passive: false});
    let drag = null;
    canvas.addEventListener('pointerdown', (event) => {
      drag = {x: event.offsetX, y: event.offsetY, moved: 0};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (!drag) return;
      drag.moved += Math.abs(event.offsetX - drag.x) + Math.abs(event.offsetY - drag.y);
      this.pan(drag.x - event.offsetX, drag.y - event.offsetY);
      drag.x = event.offsetX;
      drag.y = event.offsetY;
    });
    canvas.addEventListener('pointerup', (event) => {
      const still = drag && drag.moved < 4;
      drag = null;
      if (!still) return;
      const found = this.find(event.offsetX, event.offsetY);
      if (found && found.call !== NONE) this.page.select(found.thread, found.call);
    });
    canvas.addEventListener('dblclick', (event) => {
      const found = this.find(event.offsetX, event.offsetY);
      if (!found || found.call === NONE) return;
      const {thread, call} = found;
      this.show(thread.begin[call] - thread.total, thread.end[call] - thread.total);
    });
  }
}
