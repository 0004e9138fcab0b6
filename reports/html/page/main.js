// SPDX-License-Identifier: MIT
// main.js: which page is shown, the keyboard, and the theme.

const root = document.documentElement;
const main = document.getElementById('view');

function openDefect() {
  const address = location.hash.slice(1);
  return address.startsWith('defect/') ? data.defects.find((one) => one.address === address) : undefined;
}

function openCase() {
  const address = location.hash.slice(1);
  if (!address.startsWith('case/')) return -1;
  return data.cases.findIndex((one) => 'case/' + encodeURIComponent(one.name) === address);
}

let before = '';
function show() {
  const listed = before === '' || before === '#';
  if (listed) view.scroll = scrollY;
  redraws.clear();
  const defect = openDefect();
  const number = openCase();
  const crumbs = document.getElementById('crumbs');
  const name = defect ? data.cases[defect.caseNumber].name : number >= 0 ? data.cases[number].name : '';
  crumbs.replaceChildren();
  if (defect || number >= 0) append(crumbs, [h('a', {href: '#'}, 'All defects'), name && ' / ', name && defect ? h('a', {href: '#case/' + encodeURIComponent(name)}, short(name, 60)) : short(name, 60)]);
  main.replaceChildren(defect ? defectPage(defect) : number >= 0 ? casePage(number) : overview());
  document.title = defect ? short(visible(defect.rules.join(', ') + ' ' + defect.amount), 80) + ' – cuaudit' : visible(headline()) + ' – cuaudit report';
  scrollTo(0, defect || number >= 0 ? 0 : view.scroll);
  if (before !== '' || defect) main.focus({preventScroll: true});
  if (!defect && number < 0 && view.last !== undefined) focusRow(view.order.findIndex((one) => one.number === view.last));
  if (defect) view.last = defect.number;
  before = location.hash || '#';
}

const rows = () => [...document.querySelectorAll('.defect')];

function focusRow(index) {
  if (index < 0 || index >= view.order.length) return;
  while (rows().length <= index && view.shown.next(BATCH)) {}
  const row = rows()[index];
  if (!row) return;
  row.focus({preventScroll: true});
  row.scrollIntoView({block: 'nearest'});
}

function move(by) {
  const defect = openDefect();
  if (defect) {
    const next = view.order[view.order.indexOf(defect) + by];
    if (next) location.hash = next.address;
    return;
  }
  const at = rows().indexOf(document.activeElement);
  focusRow(at < 0 ? (by > 0 ? 0 : -1) : at + by);
}

function back() {
  if (location.hash.length > 1) location.hash = '';
}

const dialog = document.getElementById('keys');
const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  u: back,
  Escape: back,
  c: () => { const button = document.querySelector('.copy'); if (button) button.click(); },
  '?': () => dialog.showModal(),
  '/': () => {
    if (!document.getElementById('filter')) back();
    requestAnimationFrame(() => { const filter = document.getElementById('filter'); if (filter) filter.focus(); });
  },
};

addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
  const typing = event.target.matches('input, select, textarea');
  if (typing && event.key === 'Escape') event.target.blur();
  if (typing || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});

// The choice is kept where the browser allows it; a file opened from a disk may have no storage.
const THEMES = ['auto', 'light', 'dark'];
function setTheme(theme) {
  root.dataset.theme = theme;
  document.getElementById('theme').textContent = 'Theme: ' + theme;
  for (const draw of redraws) draw();
}
function keptTheme() {
  try { return localStorage.getItem('cuaudit-theme') || 'auto'; } catch (refused) { return 'auto'; }
}
document.getElementById('theme').addEventListener('click', () => {
  const next = THEMES[(THEMES.indexOf(root.dataset.theme) + 1) % THEMES.length];
  try { localStorage.setItem('cuaudit-theme', next); } catch (refused) { /* kept for this visit only */ }
  setTheme(next);
});
document.getElementById('help').addEventListener('click', () => dialog.showModal());
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { for (const draw of redraws) draw(); });

// On paper the whole list is wanted.
addEventListener('beforeprint', () => { if (view.shown) view.shown.all(); });
document.querySelector('.skip').addEventListener('click', (event) => { event.preventDefault(); main.focus(); });
addEventListener('hashchange', show);
prepare();
setTheme(THEMES.includes(keptTheme()) ? keptTheme() : 'auto');
show();
root.dataset.ready = 'true';
