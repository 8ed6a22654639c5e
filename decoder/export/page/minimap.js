// SPDX-License-Identifier: Apache-2.0
// A small picture of one whole thread, with the part that the lanes show.

const MAP_ROWS = 20;

class MiniMap {
  constructor(page) {
    this.page = page;
    this.canvas = document.getElementById('map');
    this.context = this.canvas.getContext('2d');
    this.image = document.createElement('canvas');
    this.listen();
  }
  thread() { return this.page.selected ? this.page.selected.thread : this.page.threads[0]; }
  // Returns the depths to draw: all of them, or some at equal distances.
  levels(thread, floor) {
    const all = thread.deepest + 1 - floor, rows = Math.max(1, Math.min(all, MAP_ROWS));
    return Array.from({length: rows}, (_, row) => floor + Math.floor(row * all / rows)).filter((depth) => depth <= thread.deepest);
  }
  // Redraws the picture if thread, size or theme has changed.
  picture(thread, width, height, ratio) {
    const lanes = this.page.lanes, begin = lanes.beginOf(thread), floor = lanes.floorOf(thread);
    const key = [this.page.threads.indexOf(thread), width, height, ratio, begin, lanes.back].join();
    if (key === this.key) return;
    this.key = key;
    const columns = Math.max(1, Math.round(width * ratio)), high = Math.round(height * ratio);
    this.image.width = columns;
    this.image.height = high;
    const context = this.image.getContext('2d'), levels = this.levels(thread, floor);
    const tall = Math.min(4 * ratio, (high - 4 * ratio) / Math.max(1, levels.length));
    const image = context.createImageData(columns, high), pixels = new Uint32Array(image.data.buffer);
    levels.forEach((depth, row) => {
      const top = Math.round(2 * ratio + row * tall), end = Math.max(top + 1, Math.round(2 * ratio + (row + 1) * tall));
      this.row(thread, depth, begin, columns, (x, color) => {
        for (let y = top; y < end; ++y) pixels[y * columns + x] = color;
      });
    });
    context.putImageData(image, 0, 0);
  }
  // Calls put(x, color) for each column in which a call of this depth runs.
  row(thread, depth, begin, columns, put) {
    const {colors, dark} = this.page.lanes, step = (thread.total - begin) / columns;
    const end = thread.levelStart[depth + 1];
    let at = thread.firstAt(depth, begin);
    for (let x = 0; x < columns && at < end; ++x) {
      at = thread.nextAt(depth, begin + x * step, at);
      if (at < end && thread.levelBegin[at] < begin + (x + 1) * step) put(x, colors.get(thread.levelName[at], dark, true));
    }
  }
  paint() {
    const thread = this.thread(), ratio = window.devicePixelRatio || 1, lanes = this.page.lanes;
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (!thread || !width || !height) return;
    const wide = Math.round(width * ratio), high = Math.round(height * ratio);
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      this.canvas.width = wide;
      this.canvas.height = high;
    }
    this.picture(thread, width, height, ratio);
    const context = this.context;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.drawImage(this.image, 0, 0, width, height);
    const x = (p) => (p - lanes.beginOf(thread)) / Math.max(1, thread.total - lanes.beginOf(thread)) * width;
    context.fillStyle = lanes.dimColor;
    for (const [place] of (thread.gaps || []).slice(-500)) {
      // A gap at the end is drawn beside the mark of the crash.
      context.fillRect(Math.min(x(place), width - 4), height - 4, 2, 4);
    }
    if (thread.died) {
      context.fillStyle = lanes.crashColor;
      context.fillRect(width - 2, 0, 2, height);
    }
    const left = Math.max(0, x(thread.total + lanes.left)), right = Math.min(width, x(thread.total + lanes.right));
    const begin = Math.min(left, width - 6), end = Math.max(right, begin + 6);
    context.fillStyle = lanes.color('--veil');
    context.fillRect(0, 0, begin, height);
    context.fillRect(end, 0, width - end, height);
    context.strokeStyle = lanes.accent;
    context.lineWidth = 2;
    context.strokeRect(begin + 1, 1, end - begin - 2, height - 2);
    const cursor = this.page.cursor;
    if (cursor && cursor.thread === thread) {
      context.fillStyle = lanes.accent;
      context.fillRect(Math.min(width - 2, x(cursor.p - 0.5)), 0, 2, height);
    }
  }
  // Centers the lanes on the place under the pointer.
  center(offset) {
    const thread = this.thread(), lanes = this.page.lanes;
    if (!thread) return;
    const begin = lanes.beginOf(thread), span = lanes.right - lanes.left;
    const p = begin + offset / this.canvas.clientWidth * (thread.total - begin) - thread.total;
    lanes.left = p - span / 2;
    lanes.right = lanes.left + span;
    lanes.draw();
  }
  listen() {
    const canvas = this.canvas;
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.center(event.offsetX);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (canvas.hasPointerCapture(event.pointerId)) this.center(event.offsetX);
    });
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      const lanes = this.page.lanes;
      lanes.zoom(Math.exp(event.deltaY * 0.002), lanes.canvas.clientWidth / 2);
    }, {passive: false});
  }
}
