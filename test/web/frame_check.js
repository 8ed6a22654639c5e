// SPDX-License-Identifier: Apache-2.0
// Counts the cost of a frame of the page's lanes, and compares the frame with a slow rendering.
'use strict';

const WIDTH = 700, HEIGHT = 600, ROW = 17, NAMES = 50;

// A generator of equal numbers in every run.
let state = 1;
function random(below) {
  state = (Math.imul(state, 1103515245) + 12345) >>> 0;
  return (state >>> 8) % below;
}

// Makes a thread of `calls` calls, most of them short and deep.
function makeThread(Thread, calls) {
  const thread = Object.assign(new Thread(), {n: calls, title: 'made', died: true, total: 0});
  for (const column of ['begin', 'end', 'name', 'site', 'parent', 'depth']) {
    thread[column] = new Uint32Array(calls);
  }
  thread.how = new Uint8Array(calls);
  thread.deepest = 0;
  const open = [];
  let position = 0;
  const close = () => { thread.end[open.pop()] = position += 1 + random(3); };
  for (let i = 0; i < calls; ++i) {
    while (open.length && (open.length > 30 || random(2))) close();
    position += random(40) ? 1 + random(4) : random(2000);
    thread.begin[i] = position;
    thread.name[i] = random(NAMES);
    thread.how[i] = random(500) ? 0 : 2 << 3;
    thread.depth[i] = open.length;
    thread.deepest = Math.max(thread.deepest, open.length);
    open.push(i);
  }
  while (open.length) close();
  thread.total = position + 5;
  thread.sortByDepth();
  return thread;
}

function makeLanes(model, thread) {
  const lanes = Object.create(model.Lanes.prototype);
  let drawn = 0;
  const context = new Proxy({}, {
    get: (target, name) => name === 'measureText' ? () => ({width: 60}) : () => { ++drawn; },
    set: () => true,
  });
  return Object.assign(lanes, {
    page: {threads: [thread], selected: null, matches: null, short: new model.ShortNames(Array(NAMES).fill('function'))},
    canvas: {clientWidth: WIDTH, clientHeight: HEIGHT, width: WIDTH, height: HEIGHT},
    context, color: () => '#102030', top: 0, labels: new Map(),
    colors: new model.Colors(NAMES), strip: new model.Strip(), draw: () => {},
    frame() { drawn = 0; this.paint(); return drawn; },
  });
}

// Renders rows by examining every call.
function slowly(model, lanes, thread, first, rows) {
  const strip = new model.Strip();
  strip.begin(WIDTH, Math.ceil(HEIGHT / ROW) + 2, 1);
  const origin = thread.total + lanes.left;
  for (let row = 0; row < rows; ++row) {
    let free = -Infinity;
    for (let call = 0; call < thread.n; ++call) {
      if (thread.depth[call] !== first + row) continue;
      const x = (thread.begin[call] - origin) * lanes.scale, x2 = (thread.end[call] - origin) * lanes.scale;
      if (thread.end[call] <= origin || thread.end[call] <= free || x > WIDTH) continue;
      if (x2 - x < 1) {
        const pixel = Math.floor(x);
        strip.pixel(row, pixel, lanes.fill(thread.name[call], true));
        free = origin + (pixel + 1) / lanes.scale;
      } else if (x2 - x < 30) {
        lanes.layCall.call({strip, fill: (...how) => lanes.fill(...how), crashPixel: lanes.crashPixel},
                           row, call, thread, x, x2);
      }
    }
  }
  return strip;
}

exports.check = (model) => {
  const rows = Math.ceil(HEIGHT / ROW) + 2;
  for (const calls of [1000, 200000]) {
    const thread = makeThread(model.Thread, calls);
    const lanes = makeLanes(model, thread);
    for (let span = thread.total * 1.2; span > 10; span /= 7) {
      for (const share of [0, 0.4, 0.9]) {
        lanes.left = -thread.total * (1 - share);
        lanes.right = lanes.left + span;
        const drawn = lanes.frame();
        // A wide call draws a name, a box and a mark; all others are one drawing for each row.
        if (drawn > rows * (1 + 3 * (WIDTH / 30 + 2)) + 200) throw new Error('a frame draws ' + drawn);
        if (lanes.looked > 2 * rows * (WIDTH + 2)) throw new Error('a frame looks at ' + lanes.looked);
        const slow = slowly(model, lanes, thread, lanes.firstDepth(thread), lanes.lines.length);
        for (let i = 0; i < lanes.lines.length * WIDTH; ++i) {
          if (slow.pixels[i] !== lanes.strip.pixels[i]) {
            throw new Error('another pixel at ' + i % WIDTH + ' of row ' + Math.floor(i / WIDTH));
          }
        }
      }
    }
  }
};
