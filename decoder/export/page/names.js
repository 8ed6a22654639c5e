// SPDX-License-Identifier: Apache-2.0
// Shortens function names: leaves out the contents of template brackets and parameter lists,
// innermost first, until a name fits.

const SHORT_NAME = 44;

// Operators contain brackets that enclose nothing.
const OPERATOR = /^operator *(?:<=>|<<=|>>=|<<|>>|<=|>=|->\*|->|<|>|\(\)|\[\])/;

// Leaves out text that is nested more than `depth` deep in `open` `close` brackets.
function fold(name, open, close, depth) {
  let out = '', nested = 0;
  for (let i = 0; i < name.length; ++i) {
    const operator = name[i] === 'o' && OPERATOR.exec(name.slice(i, i + 20));
    const verbatim = operator ? operator[0]
        : name.startsWith('(anonymous namespace)', i) ? '(anonymous namespace)' : '';
    if (verbatim) {
      if (nested <= depth) out += verbatim;
      i += verbatim.length - 1;
      continue;
    }
    // The > of -> closes nothing.
    const closes = name[i] === close && nested > 0 && !(close === '>' && name[i - 1] === '-');
    if (closes) --nested;
    if (nested <= depth) out += name[i];
    if (name[i] === open && nested++ === depth && name[i + 1] !== close) out += '\u2026';
  }
  return out;
}

function shortName(name, most = SHORT_NAME) {
  // Rust: <Type as Trait>::function. The contents of its first brackets must stay.
  const first = name[0] === '<' ? 1 : 0;
  const steps = [(text) => fold(text, '<', '>', first + 1), (text) => fold(text, '<', '>', first),
                 (text) => fold(text, '(', ')', 0)];
  for (let i = 0; name.length > most && i < steps.length; ++i) {
    const folded = steps[i](name);
    // A name of which only brackets would remain is kept.
    if (/\w/.test(folded.replace(/operator/, ''))) name = folded;
  }
  // Names of template functions begin with their return type.
  return name.replace(/^(?!operator)[^ (]+ (?=[^ ]+<\u2026>\(\u2026\))/, '');
}

// The short names of all functions, made on first use.
class ShortNames {
  constructor(names) {
    this.names = names;
    this.made = new Array(names.length);
  }
  get(name) { return this.made[name] || (this.made[name] = shortName(this.names[name])); }
}
