// SPDX-License-Identifier: Apache-2.0
// A link to a place, in the fragment of the page's URL. Places count from the end, so that a page
// with a longer part of the same trace understands it.

function linkTo({thread, p, k}) {
  return '#thread=' + thread.tid + '&before-end=' + (thread.total - p) + (k >= 0 ? '&line=' + k : '');
}

// Returns the place of a link, {thread, p, k}; null if it is not in this page.
function placeOf(link, threads, count) {
  const words = new Map(link.replace(/^#/, '').split('&').map((word) => word.split('=')));
  const number = (name) => /^\d{1,15}$/.test(words.get(name) || '') ? Number(words.get(name)) : null;
  const thread = threads.find((one) => one.tid === number('thread'));
  const before = number('before-end');
  if (!thread || before === null || before >= thread.total) return null;
  const p = thread.total - before, last = count(thread, p) - 1, line = number('line');
  return {thread, p, k: line === null ? last : Math.min(line, last)};
}

// Copies text. Returns false if the page may not use the clipboard.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch (refused) {
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}
