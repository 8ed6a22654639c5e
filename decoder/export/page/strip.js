// SPDX-License-Identifier: Apache-2.0
// Draws calls that are too narrow for a name. Each row is a line of pixels in a separate canvas.
// The lines are filled as an array once for each frame, and drawn row by row, so that the cost of a
// frame does not depend on the number of calls.

// Pixels in the format of a canvas: 0xAABBGGRR.
function packed(red, green, blue) {
  return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
}
function packedHex(text) {
  const value = parseInt(text.slice(1), 16);
  return packed(value >> 16 & 255, value >> 8 & 255, value & 255);
}
function packedHsl(hue, saturation, light) {
  const most = saturation * Math.min(light, 1 - light);
  const part = (n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (light - most * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return packed(part(0), part(8), part(4));
}
function cssColor(color) {
  return 'rgb(' + (color & 255) + ' ' + (color >> 8 & 255) + ' ' + (color >> 16 & 255) + ')';
}

// A color for each function. Calls narrower than a pixel have a stronger one.
class Colors {
  constructor(names) {
    this.tables = [0, 1, 2, 3].map(() => new Uint32Array(names));
    this.texts = [[], []];
  }
  table(dark, small) { return this.tables[(dark ? 2 : 0) + (small ? 1 : 0)]; }
  get(name, dark, small) {
    const table = this.table(dark, small);
    if (table[name] === 0) {
      const light = dark ? (small ? 0.4 : 0.3) : (small ? 0.7 : 0.82);
      // The golden angle makes the colors of adjacent numbers distinct.
      table[name] = packedHsl((name * 137.508) % 360, 0.45, light);
    }
    return table[name];
  }
  text(name, dark) {
    const texts = this.texts[dark ? 1 : 0];
    return texts[name] || (texts[name] = cssColor(this.get(name, dark, false)));
  }
}

class Strip {
  constructor() {
    this.canvas = document.createElement('canvas');
    this.context = this.canvas.getContext('2d');
    this.width = this.rows = 0;
  }
  // Clears the strip. `ratio` is the number of screen pixels for each CSS pixel.
  begin(width, rows, ratio) {
    this.ratio = ratio;
    width = Math.ceil(width * ratio);
    if (width > this.width || rows > this.rows) {
      this.width = this.canvas.width = Math.max(width, this.width);
      this.rows = this.canvas.height = Math.max(rows, this.rows);
      this.image = this.context.createImageData(this.width, this.rows);
      this.pixels = new Uint32Array(this.image.data.buffer);
    } else {
      this.pixels.fill(0, 0, this.width * rows);
    }
    this.used = rows;
  }
  pixel(row, x, color) {
    if (this.ratio !== 1) this.span(row, x, x + 1, color);
    else if (x >= 0 && x < this.width) this.pixels[row * this.width + x] = color;
  }
  // Fills from x to x2; the pixels at both ends get a share of the color.
  span(row, x, x2, color) {
    x = Math.max(0, x * this.ratio);
    x2 = Math.min(this.width, x2 * this.ratio);
    const first = Math.floor(x), last = Math.floor(x2);
    if (first === last) {
      this.mix(row, first, color, x2 - x);
      return;
    }
    this.mix(row, first, color, first + 1 - x);
    const begin = row * this.width;
    this.pixels.fill(color, begin + first + 1, begin + last);
    this.mix(row, last, color, x2 - last);
  }
  // Mixes a share of the color into a pixel.
  mix(row, x, color, part) {
    if (part <= 0 || x >= this.width) return;
    const at = row * this.width + x;
    if (part >= 1) {
      this.pixels[at] = color;
      return;
    }
    const below = this.pixels[at], alpha = below >>> 24;
    const rest = (1 - part) * alpha / 255, whole = part + rest;
    const byte = (shift) => Math.round(
        ((color >> shift & 255) * part + (below >> shift & 255) * rest) / whole) << shift;
    this.pixels[at] = (Math.round(whole * 255) << 24 | byte(16) | byte(8) | byte(0)) >>> 0;
  }
  put() {
    this.context.putImageData(this.image, 0, 0, 0, 0, this.width, this.used);
  }
  draw(context, row, top, height, width) {
    context.drawImage(this.canvas, 0, row, width * this.ratio, 1, 0, top, width, height);
  }
}
