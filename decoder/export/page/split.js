// SPDX-License-Identifier: Apache-2.0
// A bar between two parts of the page that can be dragged or moved with the arrow keys.

class Split {
  // `part` is the element after the bar; its size is a share of both parts.
  constructor(bar, part, done) {
    Object.assign(this, {bar, part, done});
    bar.addEventListener('pointerdown', (event) => {
      bar.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    bar.addEventListener('pointermove', (event) => {
      if (!bar.hasPointerCapture(event.pointerId)) return;
      const box = bar.parentElement.getBoundingClientRect();
      this.set(this.upright() ? (box.bottom - event.clientY) / box.height : (box.right - event.clientX) / box.width);
    });
    bar.addEventListener('dblclick', () => this.set(0.4));
    bar.addEventListener('keydown', (event) => {
      const way = {ArrowLeft: 1, ArrowUp: 1, ArrowRight: -1, ArrowDown: -1}[event.key];
      if (!way) return;
      this.set(this.share + way * 0.02);
      event.preventDefault();
      event.stopPropagation();
    });
    this.set(0.4);
  }
  // Narrow screens stack the parts.
  upright() { return getComputedStyle(this.bar.parentElement).flexDirection === 'column'; }
  set(share) {
    this.share = Math.max(0.12, Math.min(0.85, share));
    this.part.style.flexBasis = (this.share * 100).toFixed(1) + '%';
    this.bar.setAttribute('aria-valuenow', Math.round(this.share * 100));
    this.done();
  }
}
