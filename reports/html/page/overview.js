// SPDX-License-Identifier: MIT
// overview.js: the first page: how many defects, the list of them, the cases, and what the base has that this report has not.

const ORDER = {new: 0, changed: 1, none: 2, unchanged: 3};
const accepted = (defect) => defect.suppressed && !defect.suppressed.expired;

// Defects that a suppression accepts come last, new ones first.
const rank = (defect) => (accepted(defect) ? 10 : 0) + (ORDER[defect.change] ?? 2);
const SORTS = {
  first: ['New first', (a, b) => rank(a) - rank(b) || a.number - b.number],
  case: ['By case', (a, b) => a.caseNumber - b.caseNumber || a.number - b.number],
  rule: ['By rule', (a, b) => a.rules[0].localeCompare(b.rules[0]) || a.number - b.number],
  trials: ['Most trials first', (a, b) => b.trials - a.trials || a.number - b.number],
};
const view = {text: '', change: '', sort: 'first', order: [], shown: null, scroll: 0};

// Every defect gets an address that stays the same from report to report, and the text that the filter looks through.
function prepare() {
  const known = new Map();
  data.defects.forEach((defect, i) => {
    defect.number = i;
    defect.caseNumber = data.runs[defect.run].case;
    const base = (data.cases[defect.caseNumber].name || data.runs[defect.run].mode) + '/' + (defect.fingerprint || 'defect');
    const times = (known.get(base) || 0) + 1;
    known.set(base, times);
    defect.address = 'defect/' + encodeURIComponent(base + (times > 1 ? '~' + times : ''));
  });
  view.order = data.defects.slice();
}

function searchText(defect) {
  if (defect.search === undefined) {
    const root = data.findings[defect.members[0].findings[0]];
    const names = (place) => place ? [place[0], ...(data.stacks[place[1]] || []).flatMap((f) => [data.frames[f][0], data.frames[f][2]])] : [];
    defect.search = [defect.rules.join(' '), defect.amount, defect.blame, defect.fingerprint, data.cases[defect.caseNumber].name, defect.change,
      root.title, root.detail, ...names(root.acquired), ...names(root.where), ...root.faults.flatMap((f) => [f[0]]), ...names(root.faults[0])]
      .join('\n').toLowerCase();
  }
  return defect.search;
}

function changeTag(change) {
  return change === 'none' ? null : h('span', {class: 'tag ' + change}, titleOf('change', change));
}

function defectRow(defect, i) {
  const root = data.findings[defect.members[0].findings[0]];
  const at = root.acquired || root.where || root.faults[0] || null;
  const name = data.cases[defect.caseNumber].name;
  return h('li', {}, h('a', {class: 'defect' + (accepted(defect) ? ' quiet' : ''), href: '#' + defect.address, 'data-number': defect.number},
    h('span', {class: 'number'}, i + 1),
    h('div', {class: 'what'},
      h('div', {class: 'clip'}, h('span', {class: 'rule'}, defect.rules.join(', ')), h('span', {class: 'lost'}, short(defect.amount || root.title, 300))),
      h('div', {class: 'blame clip'}, short(defect.blame || root.title, 400)),
      at && h('div', {class: 'place'}, at[0] + '  ' + origin(at[1]))),
    h('div', {class: 'side'},
      changeTag(defect.change),
      accepted(defect) && h('span', {class: 'tag'}, 'suppressed'),
      defect.suppressed && defect.suppressed.expired && h('span', {class: 'tag look'}, 'suppression expired'),
      name && h('span', {}, name),
      defect.trials > 0 && h('span', {}, plural(defect.trials, 'trial')))));
}

function matches(defect) {
  if (view.change === 'suppressed' ? !accepted(defect) : view.change && (accepted(defect) || defect.change !== view.change)) return false;
  return view.text.toLowerCase().split(/\s+/).every((word) => searchText(defect).includes(word));
}

function defectList() {
  const holder = h('div');
  const count = h('p', {class: 'soft small', role: 'status'});
  const draw = () => {
    view.order = data.defects.filter(matches).sort(SORTS[view.sort][1]);
    const list = h('ol', {class: 'defects'});
    view.shown = lazily(list, view.order, defectRow);
    const all = view.order.length === data.defects.length;
    count.textContent = all ? '' : view.order.length + ' of ' + plural(data.defects.length, 'defect');
    holder.replaceChildren(list, view.shown.sentinel);
  };
  const counts = new Map();
  for (const one of data.defects) {
    const key = accepted(one) ? 'suppressed' : one.change;
    counts.set(key, (counts.get(key) || 0) + 1);
  }
  const chips = h('div', {class: 'chips', role: 'group', 'aria-label': 'Show'});
  const chip = (key, text) => h('button', {type: 'button', 'aria-pressed': String(view.change === key), onclick: (event) => {
    view.change = key;
    for (const one of chips.children) one.setAttribute('aria-pressed', String(one === event.currentTarget));
    draw();
  }}, text);
  if (counts.size > 1) {
    append(chips, [chip('', 'All ' + data.defects.length)]);
    for (const key of ['new', 'changed', 'unchanged', 'none', 'suppressed']) {
      if (counts.has(key)) append(chips, [chip(key, (key === 'suppressed' ? key : titleOf('change', key)) + ' ' + counts.get(key))]);
    }
  }
  const filter = h('input', {type: 'search', id: 'filter', placeholder: 'Filter: function, kind, call, case …  ( / )', 'aria-label': 'Filter the defects',
    value: view.text, oninput: (event) => { view.text = event.currentTarget.value; draw(); }});
  const sort = h('select', {id: 'sort', onchange: (event) => { view.sort = event.currentTarget.value; draw(); }},
    Object.entries(SORTS).map(([key, [text]]) => h('option', {value: key, selected: key === view.sort}, text)));
  draw();
  const tools = data.defects.length > 1 && h('div', {class: 'tools'}, filter, h('label', {}, 'Order', sort), chips);
  return [tools, count, holder];
}

// What a whole audit comes to. Nothing is called clean that proved nothing.
function headline() {
  const live = data.defects.filter((one) => !accepted(one));
  const fresh = live.filter((one) => one.change === 'new').length;
  const quiet = data.runs.filter((one) => !['clean', 'findings', 'left'].includes(one.outcome));
  const absent = data.cases.filter((one) => one.not_run);
  const cut = data.runs.filter((one) => one.cut_short);
  if (data.base !== null && fresh > 0) return plural(fresh, 'new defect');
  const apart = live.filter((one) => one.change === 'none').length;
  const changed = live.filter((one) => one.change === 'changed').length;
  if (data.base !== null && apart > 0) return plural(apart, 'defect') + ' not compared with the base';
  if (data.base !== null && live.length > 0) return 'No new defects' + (changed > 0 ? ', ' + changed + ' changed' : '');
  if (live.length > 0) return plural(live.length, 'defect');
  if (quiet.length === data.runs.length) return 'Nothing is proved';
  return quiet.length + absent.length + cut.length + data.missing.length > 0 ? 'No defects, but not everything was looked at' : 'No defects';
}

function driverTag(driver) {
  if (driver.kind === 'sim') return h('span', {class: 'tag look', title: driver.world}, 'simulated driver ' + driver.version);
  if (driver.kind === 'real') return h('span', {title: driver.path}, driver.device + ', driver ' + driver.version);
  return h('span', {}, 'no driver was reached');
}

function drivers() {
  const known = new Map();
  for (const one of data.runs) known.set([one.driver.kind, one.driver.version, one.driver.device].join('\n'), one.driver);
  return [...known.values()].map(driverTag);
}

function header() {
  const live = data.defects.filter((one) => !accepted(one));
  const number = (change) => live.filter((one) => one.change === change).length;
  const gone = (change) => data.gone.filter((one) => one.change === change).length;
  const tags = data.base === null ? [] : [
    ['new', number('new')], ['none', number('none')], ['changed', number('changed')], ['unchanged', number('unchanged')], ['fixed', gone('fixed')], ['not_run', gone('not_run')]];
  const shown = tags.filter(([, count]) => count > 0).map(([change, count]) => h('span', {class: 'tag ' + change}, count + ' ' + titleOf('change', change)));
  const suppressed = data.defects.length - live.length;
  if (suppressed > 0) shown.push(h('span', {class: 'tag'}, suppressed + ' suppressed'));
  const trials = data.runs.reduce((sum, one) => sum + one.totals.trials, 0);
  const warnings = data.runs.filter((one) => !['clean', 'findings', 'left'].includes(one.outcome))
    .map((one) => h('p', {class: 'warn'}, [data.cases[one.case].name, spoken(one.outcome), one.message || titleOf('outcome', one.outcome)].filter(Boolean).join(': ')));
  for (const one of data.runs) {
    if (one.cut_short) warnings.push(h('p', {class: 'warn'}, [data.cases[one.case].name, one.mode, one.cut_short].filter(Boolean).join(': ')));
  }
  for (const one of data.cases) {
    if (one.not_run) warnings.push(h('p', {class: 'warn'}, one.name + ': ' + one.not_run));
  }
  for (const one of data.missing) warnings.push(h('p', {class: 'warn'}, one.name + ': not run, and the base has it: ' + one.because));
  const single = data.cases.length === 1 && data.runs.length > 0;
  return h('div', {class: 'head'},
    h('h1', {}, headline()),
    data.cases.length > 1 && data.base === null && h('p', {class: 'soft'}, data.summary),
    shown.length > 0 && h('div', {class: 'counts'}, shown),
    h('div', {class: 'facts'},
      data.base !== null && h('span', {}, 'compared with ', h('b', {}, data.base)),
      drivers(),
      single ? h('code', {}, short(data.runs[0].command, 200)) : h('span', {}, plural(data.cases.length, 'case')),
      trials > 0 && h('span', {}, plural(trials, 'trial')),
      data.generated && h('span', {}, data.generated)),
    warnings);
}

function goneList() {
  if (data.gone.length === 0) return null;
  const rows = (change) => data.gone.filter((one) => one.change === change);
  const told = (one) => one.title.startsWith(one.rule) ? short(one.title, 400) : [h('span', {class: 'mono'}, one.rule), ' ', short(one.title, 400)];
  const part = (change, title) => rows(change).length === 0 ? null : [
    h('h2', {}, title),
    h('p', {class: 'soft small'}, data.words.change[change][1]),
    h('div', {class: 'gone'}, table([{text: 'Case'}, {text: 'Defect'}, {text: change === 'fixed' ? 'Fingerprint' : 'Why'}],
      rows(change).map((one) => [one.case, told(one), change === 'fixed' ? h('code', {}, one.fingerprint) : one.because])))];
  return [part('not_run', 'Not looked for again'), part('fixed', 'Fixed')];
}

function caseTable() {
  const rows = data.cases.map((one, i) => {
    const mine = data.defects.filter((defect) => defect.caseNumber === i && !accepted(defect)).length;
    const runs = one.runs.map((run) => data.runs[run]);
    const sweep = runs.find((run) => run.sequence);
    return [
      h('a', {href: '#case/' + encodeURIComponent(one.name)}, one.name || 'the program'),
      runs.length === 0 ? h('span', {class: 'tag not_run'}, 'not run') : runs.map((run) => [h('span', {class: 'tag ' + outcomeClass(run.outcome), title: titleOf('outcome', run.outcome)}, run.mode + ': ' + spoken(run.outcome)), ' ']),
      mine || '–',
      runs.reduce((sum, run) => sum + run.totals.trials, 0) || '–',
      sweep && sweep.coverage ? sweep.coverage.percent + ' %' : '–',
      sweep ? mini(sweep.sequence) : ''];
  });
  return [h('h2', {}, 'Cases'), h('div', {class: 'wide', tabindex: 0, role: 'region', 'aria-label': 'Cases'},
    table([{text: 'Case'}, {text: 'Outcome'}, {text: 'Defects', n: true}, {text: 'Trials', n: true}, {text: 'Ways to fail reached', n: true}, {text: 'Calls, by what failing each one did'}], rows))];
}

const outcomeClass = (outcome) => outcome === 'clean' ? 'good' : outcome === 'findings' || outcome === 'left' ? 'bad' : 'look';

function overview() {
  const single = data.cases.length === 1;
  return h('div', {},
    header(),
    data.defects.length > 0 && [h('h2', {}, 'Defects'), defectList()],
    single ? data.cases[0].runs.map((run) => runBody(data.runs[run])) : data.cases.length > 0 && caseTable(),
    goneList(),
    data.unused.length > 0 && [h('h2', {}, 'Suppressions that no defect matched'), h('ul', {}, data.unused.map((one) => h('li', {class: 'mono'}, one)))],
    h('p', {class: 'soft small'}, 'cuaudit ' + data.tool));
}
