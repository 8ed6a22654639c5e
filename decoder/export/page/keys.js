// What keys do, the buttons that do the same, and the words of the help.

function keyBindings(page) {
  const {lanes} = page;
  const thread = () => page.selected ? page.selected.thread : page.threads[0];
  const some = (act) => () => { if (page.threads.length) act(); };
  const bindings = [
    {keys: ['x'], button: 'crash', words: 'the crash: the end of the thread that died', act: () => page.toCrash()},
    {keys: ['End'], words: 'the end of the selected thread', act: some(() => page.toEnd(thread()))},
    {keys: ['['], button: 'back', words: 'step back to the line before that has source', act: () => page.step(-1)},
    {keys: [']'], button: 'forward', words: 'step on to the next line that has source', act: () => page.step(1)},
    {keys: ['{'], button: 'over', words: 'step back over calls', act: () => page.stepOver(-1)},
    {keys: ['}'], button: 'onOver', words: 'step on over calls', act: () => page.stepOver(1)},
    {keys: ['<'], button: 'backCall', words: 'step back to where another call ran, with source or without', act: () => page.stepCall(-1)},
    {keys: ['>'], button: 'onCall', words: 'step on to where another call runs', act: () => page.stepCall(1)},
    {keys: ['o'], words: 'the wait before the present place, where times were recorded', act: () => page.toWait()},
    {keys: ['/'], words: 'find a function, inlined or not', act: () => document.getElementById('search').focus()},
    {keys: ['n'], words: 'the call before of what was found', act: () => page.next(-1)},
    {keys: ['N'], words: 'the call after of what was found', act: () => page.next(1)},
    {keys: ['i'], button: 'assembly', words: 'instructions of the selected call, or its lines', act: () => page.selected && page.panel.toggle()},
    {keys: ['1'], button: 'last', words: 'the last 50 calls of the selected thread', act: some(() => lanes.lastCalls(thread()))},
    {keys: ['0'], button: 'all', words: 'the whole trace', act: () => lanes.whole()},
    {keys: ['f'], words: 'the selected call as wide as the lanes', act: () => page.fit()},
    {keys: ['m'], button: 'startup', words: 'show or hide what ran before main', act: () => lanes.setStartUp(!lanes.startUp)},
    {keys: ['t'], words: 'the next thread', act: () => page.otherThread(1)},
    {keys: ['T'], words: 'the thread before', act: () => page.otherThread(-1)},
    {keys: ['c'], words: 'fold the lane of the selected thread, or unfold it', act: some(() => page.fold(thread()))},
    {keys: ['w', '+'], words: 'zoom in, at the pointer or the present place', act: () => lanes.zoom(0.7)},
    {keys: ['s', '-'], words: 'zoom out', act: () => lanes.zoom(1 / 0.7)},
    {keys: ['a', 'ArrowLeft'], words: 'move left', act: () => lanes.pan(-80, 0)},
    {keys: ['d', 'ArrowRight'], words: 'move right', act: () => lanes.pan(80, 0)},
    {keys: ['ArrowUp'], words: 'move up', act: () => lanes.pan(0, -60)},
    {keys: ['ArrowDown'], words: 'move down', act: () => lanes.pan(0, 60)},
    {keys: ['l'], button: 'link', words: 'copy a link to the present place', act: () => page.copyLink()},
    {keys: ['?'], button: 'help', words: 'these words', act: () => page.dialog(helpText(bindings))},
  ];
  return bindings;
}

function helpText(bindings) {
  const names = {ArrowLeft: 'Left', ArrowRight: 'Right', ArrowUp: 'Up', ArrowDown: 'Down'};
  const rows = bindings.map(({keys, words}) => [keys.map((key) => names[key] || key).join(' '), words]);
  const mouse = [['wheel', 'zoom at the pointer; with shift: left and right; with alt: up and down'],
                 ['drag', 'move'], ['click', 'select a call; on a title: fold the lane'],
                 ['double click', 'the call as wide as the lanes'],
                 ['a line\u2019s count', 'to the run of that line before the present place']];
  return [...rows, ...mouse].map(([key, words]) => key.padEnd(14) + words).join('\n');
}
