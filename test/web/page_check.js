// Reads a page of `backtrail report --html` as a browser would and walks its trace.
// usage: node page_check.js PAGE     prints what it found, one fact a line
'use strict';
const fs = require('fs');
const vm = require('vm');

const page = fs.readFileSync(process.argv[2], 'utf8');
const scripts = [...page.matchAll(/<script([^>]*)>([\s\S]*?)<\/script>/g)];
const islands = new Map();
let code = null;
for (const [, attributes, content] of scripts) {
  const id = /id="([^"]*)"/.exec(attributes);
  if (id) islands.set(id[1], content);
  else code = content;
}
if (code === null) throw new Error('no script');
if (page.split(/<\/?script/i).length - 1 !== 2 * scripts.length) throw new Error('a stray script tag');
const meta = JSON.parse(islands.get('meta'));
const body = page.slice(page.indexOf('<body>'), page.indexOf('<script'));
if (/<img|onerror|javascript:/i.test(body.replace(/<noscript>[\s\S]*?<\/noscript>/, ''))) {
  throw new Error('hostile text in the body');
}

// Everything but the page's own start.
const inner = code.replace(/^\s*'use strict';\s*\(\(\) => \{/, '').replace(/Page\.load\(\)[\s\S]*$/, '');
const stripContext = {
  createImageData: (width, height) => ({data: new Uint8ClampedArray(4 * width * height)}),
  putImageData: () => {},
};
const sandbox = {
  Blob, Response, DecompressionStream, Uint8Array, Uint16Array, Uint32Array, Map, Math, Object, JSON, Float64Array,
  document: {
    getElementById: (id) => ({textContent: islands.get(id)}),
    createElement: () => ({width: 0, height: 0, getContext: () => stripContext}),
  },
  window: {devicePixelRatio: 1},
};
vm.createContext(sandbox);
vm.runInContext(inner + '\nglobalThis.model = {Code, Thread, Page, Lanes, Strip, Colors, NONE};', sandbox);
const {Code, Thread, Page, Lanes, Strip, Colors, NONE} = sandbox.model;
require('./frame_check.js').check({Thread, Lanes, Strip, Colors});

// The selected call comes into sight from wherever the lanes had been moved.
function checkRevealing(threads, thread) {
  const call = thread.callAt(thread.total);
  const page = {threads, selected: {thread, call}};
  for (const away of [0, 1e6]) {
    const lanes = Object.assign(Object.create(Lanes.prototype), {
      page, canvas: {clientHeight: 60}, left: -9, right: 1, top: away, draw: () => {}});
    lanes.reveal(0);
    lanes.scale = 1;
    const rows = [...Array(60).keys()].map((y) => lanes.find(-0.5 - lanes.left, y));
    if (call !== NONE && !rows.some((at) => at && at.thread === thread && at.call === call)) {
      throw new Error('a selected call is out of sight');
    }
  }
}

(async () => {
  const walker = new Page();
  walker.code = await Code.load(meta);
  walker.arrive = () => {};
  console.log('title ' + meta.title);
  const threads = [];
  for (let i = 0; i < meta.threads.length; ++i) {
    const thread = await Thread.load(meta, i);
    threads.push(thread);
    checkRevealing(threads, thread);
    console.log('thread ' + thread.title + (thread.died ? ' died' : ''));
    const stack = [];
    for (let at = thread.callAt(thread.total); at !== NONE; at = thread.parent[at]) {
      stack.push(meta.names[thread.name[at]]);
    }
    console.log('stack ' + stack.join(' < '));
    walker.toEnd(thread);
    const steps = [walker.code.place(walker.lineAt(walker.cursor))];
    for (let k = 0; k < 20 && walker.move(-1); ++k) {
      steps.push(walker.code.place(walker.lineAt(walker.cursor)));
    }
    console.log('steps ' + steps.join(' '));
    // Each block belongs to one call, or to none.
    let counted = 0;
    for (let call = 0; call < thread.n; ++call) thread.own(call, () => ++counted);
    if (counted > thread.total) throw new Error('blocks counted twice');
    if (thread.off) {
      const inner = (off) => meta.names[thread.name[thread.callAt(off[0] + 1)]];
      console.log('waits ' + thread.off.map((off) => inner(off) + ' for ' + off[1]).join(', '));
      console.log('began ' + thread.timeText(thread.begin[thread.callAt(thread.total)]));
      walker.toEnd(thread);
      walker.say = (words) => console.log('at ' + words);
      walker.toWait();
    }
    console.log('blocks ' + thread.total + ' counted ' + counted);
  }
  await walker.code.loadInstructions();
  const texts = new Set(Array.from(walker.code.insns, (id) => walker.code.insnTexts[walker.code.insnText[id]]));
  console.log('instructions ' + walker.code.insnAt.length + ' ' + [...texts].filter((text) => /^callq? \*/.test(text)));
  console.log('sources ' + meta.files.filter((file) => file.text !== undefined).length);
})().catch((error) => { console.error(error); process.exit(1); });
