// SPDX-License-Identifier: MIT
// strip.js: the calls of the fault-free run as a strip of cells, each coloured by what came of it when the call was made to fail, and the
// second faults as a matrix. A bar below the colour is what a second fault found that the first one alone did not.

// From the mildest to the worst. A cell shows the worst verdict of its trials, by colour and by letter.
const VERDICTS = [
  ['pass', 'v-pass', '', 'unwound and reported'], ['retained_for_retry', 'v-pass', ''], ['benign', 'v-quiet', ''], ['release_refused', 'v-quiet', ''],
  ['abandoned_at_exit', 'v-quiet', ''], ['absorbed', 'v-quiet', '', 'unwound, nobody was told'], ['not_exercised', 'v-unproved', '?', 'proves nothing'],
  ['misreported', 'v-told', 'T', 'told its caller the wrong thing'], ['not_recovered', 'v-next', 'N', 'the next cycle failed'],
  ['leak', 'v-leak', 'L', 'something is left'], ['misuse', 'v-misuse', 'M', 'a rule of the driver was broken'], ['hang', 'v-dead', 'H'],
  ['abort', 'v-dead', 'A'], ['crash', 'v-dead', 'C', 'crash, abort or hang']];
const RANK = new Map(VERDICTS.map(([id], i) => [id, i]));
const classOf = (rank) => rank < 0 ? 'v-none' : VERDICTS[rank][1];
const letterOf = (rank) => rank < 0 ? '' : VERDICTS[rank][2];
const meaningOf = (rank) => rank < 0 ? 'not tried' : titleOf('verdict', VERDICTS[rank][0]);

// A trial is [call or -1, verdict, [fault...], [place of each further fault...], [defect of its run...]].
const rankOf = (sequence, trial) => RANK.get(sequence.verdicts[trial[1]]) ?? -1;

// The worst verdict of each call: of its trials alone, and of those with a second fault.
function ranks(sequence) {
  if (sequence.ranks) return sequence.ranks;
  const first = new Int8Array(sequence.calls.length).fill(-1);
  const second = new Int8Array(sequence.calls.length).fill(-1);
  for (const trial of sequence.trials) {
    if (trial[0] < 0) continue;
    const of = trial[2].length > 1 ? second : first;
    of[trial[0]] = Math.max(of[trial[0]], rankOf(sequence, trial));
  }
  sequence.ranks = {first, second};
  return sequence.ranks;
}

function worst(sequence) {
  const {first, second} = ranks(sequence);
  return first.map((rank, i) => Math.max(rank, second[i]));
}

// One line of colour for the table of cases.
const COLOURS = {'v-none': '--sunken', 'v-pass': '--call-pass', 'v-quiet': '--call-quiet', 'v-leak': '--call-leak', 'v-misuse': '--call-misuse',
  'v-dead': '--call-dead', 'v-next': '--call-next', 'v-told': '--call-told', 'v-unproved': '--soft'};
function mini(sequence) {
  const all = worst(sequence);
  const stops = [];
  for (let i = 0; i < all.length;) {
    const from = i;
    while (i < all.length && classOf(all[i]) === classOf(all[from])) ++i;
    stops.push(`var(${COLOURS[classOf(all[from])]}) ${100 * from / all.length}% ${100 * i / all.length}%`);
  }
  const bad = all.filter((rank) => rank >= RANK.get('misreported')).length;
  const node = h('div', {class: 'mini', role: 'img', 'aria-label': plural(all.length, 'call') + ', ' + bad + ' with findings when they fail'});
  if (stops.length > 0) node.style.background = `linear-gradient(90deg, ${stops.join(', ')})`;
  return node;
}

const isWorse = (first, all) => all > first && all >= RANK.get('misreported');
function underline(node, rank) { node.style.boxShadow = `inset 0 -0.4rem 0 var(${COLOURS[classOf(rank)]})`; }

function legend(first, all) {
  const shown = new Set([...first, ...all]);
  const keys = new Map();
  for (const [rank, [, style, letter, text]] of VERDICTS.entries()) {
    if (text && [...shown].some((one) => one >= 0 && VERDICTS[one][1] === style)) keys.set(style, [style === 'v-dead' ? '' : letter, text, rank]);
  }
  if (shown.has(-1)) keys.set('v-none', ['', 'not tried']);
  const node = h('div', {class: 'legend'}, [...keys].map(([style, [letter, text]]) => h('span', {}, h('span', {class: 'cell ' + style, 'aria-hidden': 'true'}, letter), text)));
  const worse = all.find((rank, i) => isWorse(first[i], rank));
  if (worse !== undefined) {
    const cell = h('span', {class: 'cell v-none', 'aria-hidden': 'true'});
    underline(cell, worse);
    append(node, [h('span', {}, cell, 'worse after a second fault')]);
  }
  return node;
}

function trialRow(run, trial) {
  const sequence = run.sequence;
  const rank = rankOf(sequence, trial);
  const shown = trial[4].map((number) => data.defects[run.first_defect + number]).filter(Boolean);
  return [h('span', {class: 'mono'}, trial[2].map((fault) => sequence.faults[fault]).join(', then ')),
    [h('span', {class: 'cell ' + classOf(rank), 'aria-hidden': 'true'}, letterOf(rank)), ' ', meaningOf(rank)],
    shown.map((defect) => [h('a', {href: '#' + defect.address}, short(defect.amount || defect.rules.join(', '), 60)), ' '])];
}

// First faults down, the places of the calls made while unwinding across.
function matrix(run, call) {
  const sequence = run.sequence;
  const seconds = sequence.trials.filter((trial) => trial[2].length > 1 && trial[3][0] >= 0 && (call < 0 || trial[0] === call));
  if (seconds.length === 0) return null;
  const across = [...new Set(seconds.map((trial) => trial[3][0]))];
  const column = new Map(across.map((place, i) => [place, i]));
  const down = new Map();
  for (const trial of seconds) {
    const cells = down.get(trial[2][0]) || Array.from(across, () => []);
    cells[column.get(trial[3][0])].push(trial);
    down.set(trial[2][0], cells);
  }
  const told = h('div', {'aria-live': 'polite'});
  const cell = (trials, fault, place) => {
    if (trials.length === 0) return h('td', {}, h('span', {class: 'cell v-none'}));
    const rank = Math.max(...trials.map((trial) => rankOf(sequence, trial)));
    const label = sequence.faults[fault] + ', then ' + sequence.places[place][0] + ': ' + meaningOf(rank);
    return h('td', {}, h('button', {type: 'button', class: 'cell ' + classOf(rank), title: label, 'aria-label': label, onclick: () => {
      told.replaceChildren(...[table([{text: 'Faults'}, {text: 'What came of it'}, {text: 'Defect'}], trials.map((trial) => trialRow(run, trial)))].flat());
    }}, letterOf(rank)));
  };
  const rows = [...down].map(([fault, cells]) => h('tr', {}, h('th', {scope: 'row'}, sequence.faults[fault]), cells.map((trials, i) => cell(trials, fault, across[i]))));
  const head = h('tr', {}, h('td', {}), across.map((place) => h('th', {scope: 'col'}, h('span', {title: sequence.places[place][0]}, short(sequence.places[place][0] + ' ' + columnPlace(sequence.places[place]), 60)))));
  return [h('div', {class: 'wide', tabindex: 0, role: 'region', 'aria-label': call < 0 ? 'All second faults' : 'Second faults of call ' + (call + 1)}, h('table', {class: 'matrix'}, h('thead', {}, head), h('tbody', {}, rows))), told];
}

const columnPlace = (at) => at[1] < 0 ? '' : BASE.exec(frameText(at[1]).place)[0];

function callPanel(run, call) {
  const sequence = run.sequence;
  const [place, phase, cycle] = sequence.calls[call];
  const at = sequence.places[place];
  const mine = sequence.trials.filter((trial) => trial[0] === call && trial[2].length === 1);
  const seconds = matrix(run, call);
  return h('div', {class: 'panel'},
    h('div', {}, h('b', {class: 'mono'}, at[0]), ' ', h('span', {class: 'soft'}, 'call ' + (call + 1) + (phase ? ', ' + phase : '') + (cycle ? ', cycle ' + cycle : ''))),
    at[1] >= 0 && h('div', {class: 'soft small'}, placeText(at)),
    mine.length > 0 ? table([{text: 'Fault'}, {text: 'What came of it'}, {text: 'Defect'}], mine.map((trial) => trialRow(run, trial)), 40) :
      h('p', {class: 'soft'}, 'No trial made this call fail.'),
    seconds && [h('h3', {}, 'A second call failed on the way back'), seconds]);
}

const CELLS = 3000;
function strip(run) {
  const sequence = run.sequence;
  const all = worst(sequence);
  const {first} = ranks(sequence);
  const panel = h('div');
  let open = null;
  const cells = [];
  const select = (node, call) => {
    if (open) open.setAttribute('aria-expanded', 'false');
    const same = open === node;
    open = same ? null : node;
    if (!same) node.setAttribute('aria-expanded', 'true');
    panel.replaceChildren(...(same ? [] : [callPanel(run, call)]));
  };
  const cell = (call) => {
    const at = sequence.places[sequence.calls[call][0]];
    const later = isWorse(first[call], all[call]);
    const label = (call + 1) + ' ' + at[0] + ': ' + meaningOf(first[call]) + (later ? ', and after a second fault: ' + meaningOf(all[call]) : '');
    const node = h('button', {type: 'button', class: 'cell ' + classOf(first[call]), title: label, 'aria-label': label, 'aria-expanded': 'false',
      tabindex: call === 0 ? 0 : -1, onclick: () => select(node, call)}, letterOf(first[call]));
    if (later) underline(node, all[call]);
    cells.push(node);
    return node;
  };
  const groups = [];
  const end = Math.min(sequence.calls.length, CELLS);
  for (let i = 0; i < end;) {
    const [, phase, cycle] = sequence.calls[i];
    const name = [cycle ? 'cycle ' + cycle : '', phase].filter(Boolean).join(', ');
    const group = h('div', {class: 'strip', role: 'group', 'aria-label': name || 'calls'});
    for (; i < end && sequence.calls[i][1] === phase && sequence.calls[i][2] === cycle; ++i) group.append(cell(i));
    groups.push(name && h('div', {class: 'phase'}, name), group);
  }
  const node = h('div', {onkeydown: (event) => {
    const at = cells.indexOf(document.activeElement);
    const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: cells.length - 1}[event.key];
    if (at < 0 || to === undefined || !cells[to]) return;
    event.preventDefault();
    cells[at].tabIndex = -1;
    cells[to].tabIndex = 0;
    cells[to].focus();
  }}, groups);
  const hidden = sequence.calls.length - end + sequence.more;
  return [h('h2', {}, 'What failing each call did'), legend(first, all), node,
    hidden > 0 && h('p', {class: 'soft small'}, plural(hidden, 'more call') + ' not drawn'),
    sequence.more_trials > 0 && h('p', {class: 'soft small'}, plural(sequence.more_trials, 'more trial') + ' not shown'),
    panel,
    sequence.trials.some((trial) => trial[2].length > 1) && fold('All second faults: first fault by call on the way back', () => matrix(run, -1) || 'None hit.')];
}
