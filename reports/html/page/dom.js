// SPDX-License-Identifier: MIT
// dom.js: the report's data, and how it reaches the page. Names come from somebody else's files: they only ever become text nodes, so
// none of them can be markup, and characters that nobody could see, or that turn the text around them, are written out.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);

const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const SHORT = {'\n': '\\n', '\t': '\\t', '\r': '\\r'};

function visible(value) {
  return String(value).replace(UNSEEN, (c) => SHORT[c] || '\\u{' + c.charCodeAt(0).toString(16) + '}');
}

function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : visible(child));
  }
  return node;
}

// h('p', {class: 'soft', onclick: f}, 'text', node, [nodes]). Attributes with null or false are left out.
function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) {
      node.addEventListener(name.slice(2), value);
    } else {
      node.setAttribute(name, value === true ? '' : visible(value));
    }
  }
  return append(node, children);
}

const plural = (count, word) => count + ' ' + word + (count === 1 ? '' : 's');
const short = (text, most) => text.length > most ? text.slice(0, most) + '…' : text;
const titleOf = (table, id) => (data.words[table][id] || [id])[0];

function say(text) {
  const node = document.getElementById('said');
  node.textContent = text;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { node.textContent = ''; }, 2500);
}

// Where the clipboard is not allowed, the text is selected for the reader's own copy.
async function copy(text, from) {
  try {
    await navigator.clipboard.writeText(text);
    say('Copied');
  } catch (refused) {
    getSelection().selectAllChildren(from);
    say('Selected: press Ctrl+C');
  }
}

function command(text) {
  const code = h('code', {tabindex: 0}, text);
  return h('div', {class: 'command'}, code, h('button', {type: 'button', class: 'copy', onclick: () => copy(text, code)}, 'Copy'));
}

// Rows that are made when they come into sight, so that a report with many of them opens at once. `make` answers the node of one row.
const BATCH = 100;
function lazily(list, rows, make) {
  let shown = 0;
  const sentinel = h('div', {class: 'more'});
  const next = (count) => {
    const part = document.createDocumentFragment();
    const end = Math.min(shown + count, rows.length);
    for (; shown < end; ++shown) part.append(make(rows[shown], shown));
    list.append(part);
    sentinel.textContent = shown < rows.length ? (rows.length - shown) + ' more below' : '';
    if (shown === rows.length) watch.disconnect();
    return shown < rows.length;
  };
  const watch = new IntersectionObserver((seen) => {
    if (seen.some((one) => one.isIntersecting)) next(BATCH);
  }, {rootMargin: '600px'});
  if (next(BATCH)) watch.observe(sentinel);
  return {list, sentinel, next, all: () => next(rows.length)};
}

// Something that is made when the reader opens it.
function fold(title, make, open) {
  const body = h('div');
  const node = h('details', {}, h('summary', {}, title), body);
  node.addEventListener('toggle', () => {
    if (node.open && !body.firstChild) append(body, [make()]);
  });
  if (open) {
    append(body, [make()]);
    node.open = true;
  }
  return node;
}

function table(heads, rows, most = 200) {
  const body = h('tbody');
  const row = (cells) => h('tr', {}, cells.map((cell, i) => h('td', {class: heads[i].n ? 'n' : null}, cell)));
  for (const cells of rows.slice(0, most)) body.append(row(cells));
  const node = h('table', {}, h('thead', {}, h('tr', {}, heads.map((one) => h('th', {scope: 'col', class: one.n ? 'n' : null}, one.text)))), body);
  if (rows.length <= most) return node;
  const more = h('button', {type: 'button', class: 'more', onclick: () => {
    for (const cells of rows.slice(most)) body.append(row(cells));
    more.remove();
  }}, 'Show ' + (rows.length - most) + ' more');
  return [node, more];
}

// Call stacks. data.frames and data.stacks hold each frame and each stack once.
function frameText(frame) {
  const [name, module, file, line] = data.frames[frame];
  const place = file ? file + (line > 0 ? ':' + line : '') : module;
  return {name, place};
}

function source(frame) {
  const at = data.frames[frame][4];
  if (at === undefined) return null;
  const [first, here, lines] = data.sources[at];
  const digits = String(first + lines.length).length;
  const node = h('pre', {class: 'source', tabindex: 0, role: 'region', 'aria-label': 'source lines'}, lines.map((text, i) =>
    h('span', {class: first + i === here ? 'here' : null}, String(first + i).padStart(digits) + '  ', text.replace(/\t/g, '    '))));
  node.style.setProperty('--gutter', digits + 6 + 'ch');  // what goes on below is indented by four more
  return node;
}

const BASE = /[^/\\]*$/;
function stack(number, withSource = 1) {
  const frames = data.stacks[number] || [];
  let left = withSource;
  return h('ol', {class: 'stack'}, frames.map((frame) => {
    const {name, place} = frameText(frame);
    const lines = left > 0 ? source(frame) : null;
    if (lines) --left;
    return h('li', {}, h('div', {class: 'clip'}, name), h('div', {class: 'where', title: place}, short(BASE.exec(place)[0], 200)), lines);
  }));
}

function origin(number) {
  const frames = data.stacks[number] || [];
  if (frames.length === 0) return '';
  const {name, place} = frameText(frames[0]);
  return short(name, 160) + '  ' + short(BASE.exec(place)[0], 80);
}
