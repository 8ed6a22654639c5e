// SPDX-License-Identifier: Apache-2.0
// Reads a page of `backtrail report --html` as a browser would, and walks its trace.
// usage: node page_check.js PAGE [TEXT...]     prints its findings, one fact for each line, and for
// each TEXT the functions whose names contain it, with the search results in both directions
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

// The scripts without the page's own start.
const inner = code.replace(/^\s*'use strict';\s*\(\(\) => \{/, '').replace(/Page\.load\(\)\.then[\s\S]*$/, '');
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
vm.runInContext(inner + '\nglobalThis.model = {Code, Thread, Page, Lanes, Strip, Colors, Search, ShortNames, Values, shortName, linkTo, placeOf, NONE};', sandbox);
const {Code, Thread, Page, Lanes, Strip, Colors, Search, ShortNames, Values, shortName, linkTo, placeOf, NONE} = sandbox.model;
require('./frame_check.js').check({Thread, Lanes, Strip, Colors, ShortNames});
require('./names_check.js').check(shortName);

// A step over calls from the deepest call looks one level deeper.
function checkDepths(thread) {
  const p = thread.end[thread.depth.indexOf(thread.deepest)];
  if (thread.callAt(p, thread.deepest + 1) !== thread.callAt(p)) {
    throw new Error('no call is deeper than the deepest one');
  }
}

// The selected call must become visible wherever the lanes are.
function checkRevealing(threads, thread) {
  const call = thread.callAt(thread.total);
  const page = {threads, selected: {thread, call}};
  for (const away of [0, 1e6]) {
    const lanes = Object.assign(Object.create(Lanes.prototype), {
      page, canvas: {clientHeight: 60}, left: -9, right: 1, top: away, startUp: true, draw: () => {}});
    lanes.reveal(0);
    lanes.scale = 1;
    const rows = [...Array(60).keys()].map((y) => lanes.find(-0.5 - lanes.left, y));
    if (call !== NONE && !rows.some((at) => at && at.thread === thread && at.call === call)) {
      throw new Error('a selected call is out of sight');
    }
  }
}

// Lists everything that a search finds from a place on, until it repeats.
function checkSearch(page, threads, text) {
  const finder = new Search(page.code, meta.names, threads), thread = threads[0];
  finder.set(text);
  console.log('search ' + text + ': ' + finder.found.map((name) => finder.label(name)).join(', '));
  const place = ({thread, call, runs, run}) => {
    if (!runs) return 'call of ' + meta.names[thread.name[call]];
    const lines = [[runs.p[run], runs.k[run]], [runs.endP[run], runs.endK[run]]].map(
        ([p, k]) => page.code.place(page.lineAt({thread, p, k})));
    const scope = runs.scope[run];
    return meta.names[page.code.scopeName[scope]] + ' in ' + meta.names[thread.name[call]] + ' ' + lines.join(' to ') +
        ' at ' + page.code.place(page.code.scopeLine[scope]);
  };
  const key = ({thread, call, runs, run}) => [threads.indexOf(thread), runs ? -1 : call, run].join();
  const order = [];
  for (const way of [-1, 1]) {
    const seen = new Map();
    let from = {thread, call: thread.callAt(thread.total), p: thread.total, k: page.count(thread, thread.total) - 1};
    for (let found; (found = finder.step(way, from)) && !seen.has(key(found)); from = found) {
      seen.set(key(found), place(found));
    }
    order.push([...seen]);
  }
  // From the end on, the forward results are the backward ones in reverse.
  const [back, forth] = order.map((found) => found.map(([one]) => one));
  if (threads.length === 1 && back.length && (new Set([...back, ...forth]).size !== back.length || forth.length !== back.length)) {
    throw new Error('back and forth find different ones: ' + back.join(' ') + ', ' + forth.join(' '));
  }
  for (const [, found] of order[0]) console.log('found ' + found);
  if (finder.found.length) console.log('found ' + back.length);
}

// Steps back from the end and tells the variables at each line; a star marks those that changed.
function tellValues(walker, thread) {
  walker.short = {get: (name) => meta.names[name]};
  walker.culprit = () => thread;
  const values = new Values(walker);
  walker.toEnd(thread);
  for (let k = 0; k < 40; ++k) {
    const here = values.here();
    if (here) {
      console.log('values at ' + walker.code.place(walker.lineAt(walker.cursor)) + ':' + here.map(
          (one) => ' ' + one.name + '=' + (one.value === null ? '?' : one.value) + (one.changed ? '*' : '')).join(''));
    }
    if (!walker.move(-1)) break;
  }
}

(async () => {
  const walker = new Page();
  walker.code = await Code.load(meta);
  walker.meta = meta;
  walker.arrive = () => {};
  console.log('title ' + meta.title);
  const threads = [];
  for (let i = 0; i < meta.threads.length; ++i) {
    const thread = await Thread.load(meta, i);
    threads.push(thread);
    checkDepths(thread);
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
    if (meta.values && i === meta.open) tellValues(walker, thread);
    // Each block belongs to at most one call.
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
  for (const text of process.argv.slice(3)) checkSearch(walker, threads, text);
  await walker.code.loadInstructions();
  const texts = new Set(Array.from(walker.code.insns, (id) => walker.code.insnTexts[walker.code.insnText[id]]));
  console.log('instructions ' + walker.code.insnAt.length + ' ' + [...texts].filter((text) => /^callq? \*/.test(text)));
  console.log('sources ' + meta.files.filter((file) => file.text !== undefined).length);
})().catch((error) => { console.error(error); process.exit(1); });
