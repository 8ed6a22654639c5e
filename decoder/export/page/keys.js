// SPDX-License-Identifier: Apache-2.0
// The keys of the page, with their buttons and help texts.

function keyBindings(page) {
  const {lanes} = page;
  const thread = () => page.selected ? page.selected.thread : page.threads[0];
  const some = (act) => () => { if (page.threads.length) act(); };
  const bindings = [
    {keys: ['x'], button: 'crash', words: 'the crash: the end of the thread that died', act: () => page.toCrash()},
    {keys: ['End'], words: 'the end of the selected thread', act: some(() => page.toEnd(thread()))},
    {keys: ['['], button: 'back', words: 'step back to the previous line with source', act: () => page.step(-1)},
    {keys: [']'], button: 'forward', words: 'step forward to the next line with source', act: () => page.step(1)},
    {keys: ['{'], button: 'over', words: 'step back over calls', act: () => page.stepOver(-1)},
    {keys: ['}'], button: 'onOver', words: 'step forward over calls', act: () => page.stepOver(1)},
    {keys: ['<'], button: 'backCall', words: 'step back to the previous call, with or without source', act: () => page.stepCall(-1)},
    {keys: ['>'], button: 'onCall', words: 'step forward to the next call, with or without source', act: () => page.stepCall(1)},
    {keys: ['o'], words: 'the last wait before the current place, if times were recorded', act: () => page.toWait()},
    {keys: ['/'], words: 'find a function, inlined or not', act: () => document.getElementById('search').focus()},
    {keys: ['n'], words: 'the previous search result', act: () => page.next(-1)},
    {keys: ['N'], words: 'the next search result', act: () => page.next(1)},
    {keys: ['i'], button: 'assembly', words: 'show instructions or lines of the selected call', act: () => page.selected && page.panel.toggle()},
    {keys: ['1'], button: 'last', words: 'the last 50 calls of the selected thread', act: some(() => lanes.lastCalls(thread()))},
    {keys: ['0'], button: 'all', words: 'the whole trace', act: () => lanes.whole()},
    {keys: ['f'], words: 'zoom to the selected call', act: () => page.fit()},
    {keys: ['m'], button: 'startup', words: 'show or hide what ran before main', act: () => lanes.setStartUp(!lanes.startUp)},
    {keys: ['t'], words: 'the next thread', act: () => page.otherThread(1)},
    {keys: ['T'], words: 'the previous thread', act: () => page.otherThread(-1)},
    {keys: ['c'], words: 'fold the lane of the selected thread, or unfold it', act: some(() => page.fold(thread()))},
    {keys: ['w', '+'], words: 'zoom in, at the pointer or the current place', act: () => lanes.zoom(0.7)},
    {keys: ['s', '-'], words: 'zoom out', act: () => lanes.zoom(1 / 0.7)},
    {keys: ['a', 'ArrowLeft'], words: 'move left', act: () => lanes.pan(-80, 0)},
    {keys: ['d', 'ArrowRight'], words: 'move right', act: () => lanes.pan(80, 0)},
    {keys: ['ArrowUp'], words: 'move up', act: () => lanes.pan(0, -60)},
    {keys: ['ArrowDown'], words: 'move down', act: () => lanes.pan(0, 60)},
    {keys: ['l'], button: 'link', words: 'copy a link to the current place', act: () => page.copyLink()},
    {keys: ['?'], button: 'help', words: 'this help', act: () => page.dialog(helpText(bindings))},
  ];
  return bindings;
}

function helpText(bindings) {
  const names = {ArrowLeft: 'Left', ArrowRight: 'Right', ArrowUp: 'Up', ArrowDown: 'Down'};
  const rows = bindings.map(({keys, words}) => [keys.map((key) => names[key] || key).join(' '), words]);
  const mouse = [['wheel', 'zoom at the pointer; with shift: left and right; with alt: up and down'],
                 ['drag', 'move'], ['click', 'select a call; on a title: fold the lane'],
                 ['double click', 'zoom to the call'],
                 ['a line\u2019s count', 'go to the previous run of that line']];
  return [...rows, ...mouse].map(([key, words]) => key.padEnd(14) + words).join('\n');
}
