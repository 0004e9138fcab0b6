// SPDX-License-Identifier: MIT
// defect.js: the page of one defect: what is lost, who is to blame, the places, the way back, and the command that shows it again.

function step(title, place, kind) {
  if (!place || (!place[0] && !(data.stacks[place[1]] || []).length)) return null;
  return h('section', {class: 'step' + (kind ? ' ' + kind : '')}, h('h2', {}, title), h('div', {class: 'call'}, place[0]), stack(place[1]));
}

function failing(root) {
  return root.faults.map((fault, i) => step(i > 0 ? 'and then this failed' : 'When this failed', [fault[0], fault[1]], 'failed'));
}

const RESULTS = {refused: 'made to fail', failed: 'failed'};

// The way back from the fault beside what the fault-free run releases from there on. Both are lists of calls; equal calls stand on one
// line (longest common subsequence). A missing release has no equal: what the program released there was something else.
function align(left, right) {
  const same = (a, b) => !a.missing && (a.place === b.place || a.call === b.call);
  const n = left.length, m = right.length;
  const most = Array.from({length: n + 1}, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; --i) {
    for (let j = m - 1; j >= 0; --j) most[i][j] = same(left[i], right[j]) ? most[i + 1][j + 1] + 1 : Math.max(most[i + 1][j], most[i][j + 1]);
  }
  const rows = [];
  for (let i = 0, j = 0; i < n || j < m;) {
    if (i < n && j < m && same(left[i], right[j])) {
      rows.push([left[i++], right[j++]]);
    } else if (j === m || (i < n && most[i + 1][j] >= most[i][j + 1])) {
      rows.push([left[i++], null]);
    } else {
      rows.push([null, right[j++]]);
    }
  }
  return rows;
}

const FEW = 4;
function wayBack(defect) {
  const back = defect.unwinding;
  const sequence = data.runs[defect.run].sequence;
  if (!back || !sequence) return null;
  const missing = new Set(back.missing);
  const left = back.held.map((call) => ({place: sequence.calls[call][0], call: sequence.places[sequence.calls[call][0]][0], missing: missing.has(call)}));
  const right = back.steps.map(([place, result], i) => ({place, call: sequence.places[place][0], result, failing: i === 0}));
  const cell = (one) => {
    if (!one) return h('td', {class: 'soft'}, '');
    const at = sequence.places[one.place];
    const told = one.result ? (one.failing ? ' made to fail: ' : ' failed: ') + one.result : '';
    return h('td', {class: one.failing ? 'failing' : null}, h('span', {class: 'mono'}, at[0]), h('span', {class: one.failing ? '' : 'soft'}, told),
      at[1] >= 0 && h('div', {class: 'soft small'}, placeText(at)));
  };
  const [first, ...rest] = right;
  // A release that was made to fail stands beside itself.
  const itself = first && left.length > 0 && left[0].place === first.place ? left.shift() : null;
  const aligned = align(left, rest);
  const row = ([free, after]) => h('tr', {}, cell(free),
    !after && free && free.missing ? h('td', {class: 'missing'}, 'missing: ' + free.call) :
      !after && free ? h('td', {class: 'soft'}, 'not made; nothing is lost by it') : cell(after));
  // What the program does when all is compared is of less interest.
  const end = aligned.findLastIndex(([free]) => free) + 1;
  const later = aligned.slice(end);
  const kept = later.length > FEW ? aligned.slice(0, end) : aligned;
  const body = h('tbody', {}, first && row([itself, first]), kept.map(row));
  const more = later.length > FEW && h('button', {type: 'button', class: 'more', onclick: () => {
    append(body, later.map(row));
    more.remove();
  }}, 'Show ' + later.length + ' more calls after the failure');
  return [
    h('h2', {}, 'The way back'),
    h('p', {class: 'soft small'}, 'Left: what the fault-free run releases of what is held when the call fails. Right: what the program does after the failure.'),
    h('table', {class: 'beside'},
      h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, 'Without the fault'), h('th', {scope: 'col'}, 'After ' + short(back.faults.join(', then '), 160)))),
      body),
    more,
    back.more > 0 && h('p', {class: 'soft small'}, '… and ' + plural(back.more, 'more call') + ' that this report does not hold')];
}

function membersOf(defect) {
  const rows = defect.members.slice(1).map((member) => {
    const first = data.findings[member.findings[0]];
    const at = first.acquired || first.where;
    return [h('span', {class: 'mono'}, first.rule), first.kind ? member.count + ' ' + first.kind + (member.bytes ? ', ' + member.bytes + ' bytes' : '') : '',
      [at ? at[0] + '  ' + origin(at[1]) : '', first.detail ? (at ? ': ' : '') + short(first.detail, 300) : '']];
  });
  return rows.length === 0 ? null : [h('h2', {}, 'With it'), table([{text: 'Rule'}, {text: 'What'}, {text: 'Place'}], rows)];
}

function otherCalls(defect) {
  const others = defect.members.flatMap((member) => member.findings).slice(1);
  const seen = new Set();
  const rows = [];
  for (const number of others) {
    const one = data.findings[number];
    const text = one.faults.map((fault) => fault[0]).join(', then ');
    if (!text || seen.has(text)) continue;
    seen.add(text);
    rows.push([h('span', {class: 'mono'}, text), origin(one.faults[one.faults.length - 1][1]),
      h('button', {type: 'button', class: 'small', onclick: (event) => copy(one.reproduce, event.currentTarget)}, 'Copy command')]);
  }
  if (rows.length === 0) return null;
  return [h('h2', {}, 'Other calls whose failure shows it'), table([{text: 'Failing call'}, {text: 'Where'}, {text: 'Reproduce'}], rows, 50)];
}

function placeText(at) {
  const {name, place} = frameText(at[1]);
  return short(name, 160) + '  ' + short(BASE.exec(place)[0], 80);
}

function places(defect, root) {
  const shown = [step('Acquired', root.acquired), ...failing(root), root.where && root.where[0] !== '' ? step('Seen at', root.where) : null,
    root.other ? step(root.other_is, root.other) : null, step(`${root.rule === 'setting_not_restored' ? 'Put back' : 'Released'} here without the fault`, defect.released)].filter(Boolean);
  return h('div', {class: 'steps' + (shown.length === 4 ? ' four' : '')}, shown);
}

function suppression(defect) {
  const one = defect.suppressed;
  if (!one) return null;
  return h('p', {class: 'warn'}, (one.expired ? 'The suppression has expired on ' : 'Suppressed until ') + one.until + ' by ' + one.owner + ': ' + one.reason + ' (' + one.entry + ')');
}

function defectPage(defect) {
  const root = data.findings[defect.members[0].findings[0]];
  const words = data.words.rule[root.rule];
  const run = data.runs[defect.run];
  return h('article', {},
    h('div', {class: 'counts'}, changeTag(defect.change), h('span', {class: 'tag bad'}, defect.rules.join(', ')), driverTag(run.driver)),
    h('h1', {}, short(defect.amount ? defect.amount + ': ' + root.title : root.title, 600)),
    (defect.blame || root.detail) && h('p', {class: 'says'}, defect.blame || root.detail),
    defect.blame && root.detail && h('p', {}, root.detail),
    defect.change === 'changed' && defect.was && h('p', {class: 'warn'}, 'The base had: ' + defect.was),
    (defect.taken_for || []).map((one) => h('p', {class: 'look'}, 'Compared: ' + one)),
    suppression(defect),
    root.reproduce && command(root.reproduce),
    places(defect, root),
    wayBack(defect),
    membersOf(defect),
    otherCalls(defect),
    h('h2', {}, 'What this means'),
    h('p', {}, words[1]), h('p', {}, words[2]),
    h('div', {class: 'facts'},
      defect.fingerprint && h('span', {}, 'fingerprint ', h('code', {}, defect.fingerprint)),
      defect.trials > 0 && h('span', {}, 'shown by ' + plural(defect.trials, 'trial')),
      root.shrunk.length > 0 && h('span', {}, 'found with ' + root.shrunk.join(', '))));
}
