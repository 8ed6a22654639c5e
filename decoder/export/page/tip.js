// SPDX-License-Identifier: Apache-2.0
// A tooltip at the pointer. The panel and the list of threads show the same without a pointer.

class Tip {
  constructor() { this.box = document.getElementById('tip'); }
  // The first line is a title; `full` is a long name.
  show(x, y, lines, full) {
    const key = [...lines, full].join('\n');
    if (key !== this.key) {
      this.key = key;
      this.box.replaceChildren(...lines.map((line, i) => element(i ? 'div' : 'b', line)));
      if (full) {
        const last = element('div', full);
        last.className = 'full';
        this.box.append(last);
      }
    }
    this.box.hidden = false;
    const {offsetWidth: wide, offsetHeight: high} = this.box;
    this.box.style.left = Math.max(4, Math.min(x + 14, innerWidth - wide - 4)) + 'px';
    this.box.style.top = (y + 18 + high > innerHeight ? Math.max(4, y - high - 10) : y + 18) + 'px';
  }
  hide() { this.box.hidden = true; }
}
