// SPDX-License-Identifier: Apache-2.0
// The variables at the cursor, of the thread that died.

class Values {
  constructor(page) {
    this.page = page;
    this.box = document.getElementById('values');
    const given = page.meta.values || {variables: [], texts: [], places: []};
    this.variables = given.variables;
    this.texts = given.texts;
    // By place, newest first.
    this.places = given.places;
    this.at = new Map(given.places.map(([p, k], i) => [p + ' ' + k, i]));
  }
  // Returns the variables at the cursor; null if the page has none there. `changed`: the value is not
  // what it was at the line before.
  here() {
    const {cursor} = this.page;
    if (!cursor || cursor.thread !== this.page.culprit()) return null;
    const i = this.at.get(cursor.p + ' ' + cursor.k);
    if (i === undefined) return null;
    const before = this.textsAt(i + 1);
    return [...this.textsAt(i)].map(([variable, text]) => {
      const [name, words, type] = this.variables[variable];
      return {function: this.page.short.get(name), name: words, type, value: text ? this.texts[text] : null,
              changed: text !== 0 && before.has(variable) && before.get(variable) !== text};
    });
  }
  // Returns the text number of each variable at a place.
  textsAt(i) {
    const place = this.places[i] || [], out = new Map();
    for (let at = 2; at < place.length; at += 2) out.set(place[at], place[at + 1]);
    return out;
  }
  show() {
    const here = this.here();
    this.box.hidden = !here || !here.length;
    if (this.box.hidden) return;
    const table = element('table'), several = new Set(here.map((one) => one.function)).size > 1;
    let last = null;
    for (const one of here) {
      if (several && one.function !== last) table.append(this.heading(one.function));
      last = one.function;
      const row = element('tr'), value = element('td', one.value === null ? '?' : one.value);
      if (one.changed) row.className = 'changed';
      if (one.value === null) value.title = 'The trace does not tell this value';
      const name = element('th', one.name);
      name.title = one.type;
      name.scope = 'row';
      row.append(name, value);
      table.append(row);
    }
    this.box.replaceChildren(table);
  }
  heading(name) {
    const row = element('tr'), cell = element('td', name);
    cell.colSpan = 2;
    row.className = 'function';
    row.append(cell);
    return row;
  }
}
