// SPDX-License-Identifier: Apache-2.0
// Draws the lanes. Calls narrower than a pixel share one, so the cost of a frame depends on the
// width of the screen and not on the length of the trace.

const ROW = 17, TITLE = 22, AXIS = 20, WAITS = 14, MOST_ROWS = 40;
// Calls of at least this width show their name.
const LABELLED = 30;

class Painter {
  // --- the layout of a lane ---
  // The first depth shown, and the number of branches before the first one shown. Both leave out
  // start-up code.
  floorOf(thread) { return this.startUp ? 0 : thread.floor || 0; }
  beginOf(thread) { return this.startUp ? 0 : thread.start || 0; }
  rows(thread) {
    if (thread.folded) return 0;
    return Math.max(1, Math.min(thread.deepest + 1 - this.floorOf(thread), MOST_ROWS));
  }
  // Height without the row of waits, which not every thread has.
  barHeight(thread) { return TITLE + this.rows(thread) * ROW; }
  laneHeight(thread) {
    const waits = !thread.folded && thread.off && thread.off.length;
    return this.barHeight(thread) + (thread.folded ? 2 : 10) + (waits ? WAITS : 0);
  }
  // Returns the depth of the lane's first row. Deep lanes follow the selected call.
  firstDepth(thread) {
    const floor = this.floorOf(thread);
    if (thread.deepest - floor < MOST_ROWS) return floor;
    const selected = this.page.selected;
    const depth = selected && selected.thread === thread && selected.call !== NONE
        ? thread.depth[selected.call] : thread.deepest;
    return Math.max(floor, Math.min(thread.deepest + 1 - MOST_ROWS, depth - (MOST_ROWS >> 1)));
  }
  // Visits the visible lanes with their upper edges.
  eachLane(height, visit) {
    let y = AXIS - this.top;
    for (const thread of this.page.threads) {
      const lane = this.laneHeight(thread);
      if (y + lane > AXIS && y < height) visit(thread, y);
      y += lane;
    }
    this.bottom = y + this.top;
  }
  xOf(thread, p) { return (p - thread.total - this.left) * this.scale; }
  // --- a frame ---
  color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }
  takeColors() {
    this.back = this.color('--back');
    this.dark = parseInt(this.back.slice(1, 3), 16) < 128;
    this.hitPixel = packedHex(this.dark ? '#b08800' : '#f2c94c');
    this.textColor = this.color('--text');
    this.dimColor = this.color('--dim');
    this.edge = this.color('--edge');
    this.panelColor = this.color('--panel');
    this.crashColor = this.color('--crash');
    this.crashPixel = packedHex(this.crashColor);
    this.accent = this.color('--accent');
  }
  paint() {
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    const wide = Math.round(width * ratio), high = Math.round(height * ratio);
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      this.canvas.width = wide;
      this.canvas.height = high;
    }
    const context = this.context;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.takeColors();
    context.fillStyle = this.back;
    context.fillRect(0, 0, width, height);
    this.scale = width / (this.right - this.left);
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    this.paintRows(width, height, ratio);
    this.eachLane(height, (thread, y) => this.paintLane(thread, y, width));
    this.paintAxis(width);
    if (this.page.map) this.page.map.paint();
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
  // Puts a row into the strip, except for calls wide enough for a name, which are collected for
  // later.
  layRow(thread, depth, top, width) {
    const scale = this.scale, row = this.lines.push(top) - 1;
    if (depth > thread.deepest) return;
    // Positions count from the thread's beginning; lanes end at 0.
    const origin = thread.total + this.left, visible = thread.total + this.right;
    const {levelBegin, levelEnd, levelName} = thread, end = thread.levelStart[depth + 1];
    const selected = this.page.selected && this.page.selected.thread === thread
        ? this.page.selected.call : NONE;
    let at = thread.firstAt(depth, Math.max(origin, this.beginOf(thread)));
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
    const label = this.label(name, x2 - x - 8);
    context.fillStyle = this.textColor;
    context.fillText(label, Math.max(x, 0) + 4, top + ROW / 2);
  }
  // Returns as much of the function's short name as fits.
  label(name, room) {
    const text = this.page.short.get(name);
    let size = this.labels.get(name);
    if (size === undefined) {
      size = this.context.measureText(text).width / Math.max(1, text.length);
      this.labels.set(name, size);
    }
    const count = Math.floor(room / size);
    return count >= text.length ? text : text.slice(0, Math.max(1, count - 1)) + '\u2026';
  }
  paintLane(thread, y, width) {
    this.paintEdges(thread, y, width);
    this.paintTitle(thread, y, width);
    if (!thread.folded) this.paintOff(thread, y, width);
    this.paintGaps(thread, y, width);
    if (thread.died) {
      this.context.fillStyle = this.crashColor;
      this.context.fillRect((0 - this.left) * this.scale, y + 2, 2, this.barHeight(thread) - 2);
    }
    const cursor = this.page.cursor;
    if (cursor && cursor.thread === thread) {
      const x = this.xOf(thread, cursor.p - 0.5);
      this.context.fillStyle = this.accent;
      this.context.fillRect(x - 1, y + TITLE - 4, 2, this.barHeight(thread) - TITLE + 4);
    }
  }
  // Draws the line between lanes, and the area before the first branch shown.
  paintEdges(thread, y, width) {
    const context = this.context;
    context.fillStyle = this.edge;
    context.fillRect(0, y, width, 1);
    if (thread.folded) return;
    const x = Math.min(width, this.xOf(thread, this.beginOf(thread)));
    if (x < 1) return;
    context.fillStyle = this.panelColor;
    context.fillRect(0, y + TITLE, x - 1, this.barHeight(thread) - TITLE);
    if (!this.beginOf(thread) || x < 90) return;
    context.fillStyle = this.dimColor;
    context.fillText('start-up ( m )', x - 80, y + TITLE + ROW / 2);
  }
  paintTitle(thread, y, width) {
    const context = this.context, middle = y + TITLE / 2 + 1;
    context.fillStyle = thread.died ? this.crashColor : this.textColor;
    context.fillText((thread.folded ? '\u25b8 ' : '\u25be ') + thread.title, 6, middle);
    let x = 6 + context.measureText('\u25be ' + thread.title).width + 8;
    const say = (text, color) => {
      context.fillStyle = color;
      context.fillText(text, x, middle);
      x += context.measureText(text).width + 8;
    };
    if (thread.died) say('died', this.crashColor);
    const words = [];
    if (thread.folded) words.push(this.page.endOf(thread));
    const above = this.firstDepth(thread) - this.floorOf(thread);
    if (!thread.folded && above) words.push(above.toLocaleString() + ' callers above these rows');
    if (thread.note) words.push(thread.note);
    if (words.length && x < width) say(words.join('; '), this.dimColor);
  }
  // Draws off-CPU times. They take no width, because lanes measure branches.
  paintOff(thread, y, width) {
    const context = this.context;
    context.fillStyle = this.dimColor;
    const height = this.barHeight(thread);
    let line = -Infinity, label = 0;
    for (const [place, ns, preempted] of thread.off || []) {
      const x = this.xOf(thread, place + 0.5);
      if (x < 0 || x > width) continue;
      if (x - line >= 2) {
        context.fillRect(x, y + TITLE, 1, height - TITLE + WAITS);
        line = x;
      }
      const text = (preempted ? 'preempted ' : 'waited ') + duration(ns);
      const wide = context.measureText(text).width, begin = Math.min(x + 3, width - wide - 4);
      if (begin < label) continue;
      context.fillText(text, begin, y + height + WAITS / 2);
      label = begin + wide + 6;
    }
  }
  // Draws gaps as dashed lines, at most one every few pixels.
  paintGaps(thread, y, width) {
    const context = this.context;
    let line = -Infinity;
    for (const [place] of thread.gaps || []) {
      const x = this.xOf(thread, place);
      if (x < 0 || x > width || x - line < 3) continue;
      line = x;
      context.fillStyle = this.back;
      context.fillRect(x - 1, y + TITLE, 3, this.barHeight(thread) - TITLE);
      context.strokeStyle = this.crashColor;
      context.lineWidth = 1;
      context.setLineDash([3, 3]);
      context.beginPath();
      context.moveTo(x + 0.5, y + TITLE);
      context.lineTo(x + 0.5, y + this.barHeight(thread));
      context.stroke();
      context.setLineDash([]);
    }
  }
  paintAxis(width) {
    const context = this.context;
    context.fillStyle = this.panelColor;
    context.fillRect(0, 0, width, AXIS);
    context.fillStyle = this.edge;
    context.fillRect(0, AXIS - 1, width, 1);
    context.fillStyle = this.dimColor;
    const step = Math.max(1, Math.pow(10, Math.ceil(Math.log10((this.right - this.left) / (width / 110)))));
    let label = -Infinity;
    for (let at = Math.ceil(this.left / step) * step; at <= this.right; at += step) {
      const x = (at - this.left) * this.scale;
      if (at > 0) break;
      context.fillRect(x, AXIS - 5, 1, 4);
      const text = at === 0 ? 'the end' : at.toLocaleString();
      const wide = context.measureText(text).width, begin = Math.min(x + 4, width - wide - 4);
      if (begin < label) continue;
      context.fillText(text, begin, AXIS / 2);
      label = begin + wide + 8;
    }
  }
}
