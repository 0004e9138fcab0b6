// SPDX-License-Identifier: MIT
// run.js: what one command found of a case: its totals, its strip, growth over the cycles, and what it did not reach.

const spoken = (id) => id.replaceAll('_', ' ');
const MODES = {sweep: 'Sweep', cycles: 'Cycles', run: 'One run', replay: 'Replay'};

function growth(run) {
  const rows = run.cycles.rows.filter((row) => row.trend !== 'steady');
  const steady = run.cycles.rows.length - rows.length;
  if (run.cycles.rows.length === 0) return null;
  const holder = h('div', {class: 'plots'});
  const shown = lazily(holder, rows, (row) => plot(run, row));
  return [h('h2', {}, 'Live objects over the cycles'), rows.length > 0 && [holder, shown.sentinel],
    steady > 0 && h('p', {class: 'soft'}, plural(steady, 'place') + ' did not grow')];
}

// The colour of the theme as the browser resolves it: a canvas does not know light-dark().
function colour(name) {
  const probe = document.body.appendChild(h('i'));
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

// The count after so many cycles, and between which lines it would go on when it grew as in its slowest and in its fastest doubling.
function plot(run, row) {
  const counts = run.cycles.counts.slice(0, row.live.length);
  const box = h('div', {role: 'img', 'aria-label': counts.map((n, i) => row.live[i] + ' after ' + plural(n, 'cycle')).join(', ')});
  const node = h('div', {class: 'plot'},
    h('h3', {}, row.kind, ' ', h('span', {class: 'tag ' + (row.trend === 'growth' ? 'bad' : 'look')}, row.trend)),
    h('div', {class: 'soft small'}, row.place[0] + '  ' + origin(row.place[1])),
    h('div', {class: 'small'}, row.words), box);
  if (counts.length < 2) return node;
  const from = row.live[0];
  const line = (slope) => counts.map((n) => from + slope * (n - counts[0]));
  const banded = row.trend === 'growth' && row.most > row.least;
  const draw = () => {
    const ink = colour('--soft');
    const axis = {stroke: ink, grid: {stroke: colour('--line'), width: 1}, ticks: {stroke: colour('--line'), width: 1, size: 4}, font: '11px system-ui', labelFont: '11px system-ui'};
    const series = [{label: 'cycles'}, {label: 'live', stroke: colour(row.trend === 'growth' ? '--bad' : '--look'), width: 2, points: {show: true, size: 6}}];
    const lines = [counts, row.live];
    if (banded) {
      series.push({label: 'fastest', stroke: ink, width: 1, dash: [4, 4], points: {show: false}}, {label: 'slowest', stroke: ink, width: 1, dash: [4, 4], points: {show: false}});
      lines.push(line(row.most), line(row.least));
    }
    box.replaceChildren();
    new uPlot({width: box.clientWidth || 320, height: 180, cursor: {show: false}, legend: {show: false}, scales: {x: {time: false}, y: {range: (u, low, high) => [0, Math.max(1, high * 1.1)]}},
      axes: [{...axis, label: 'cycles', labelSize: 16, size: 26}, {...axis, size: 44}], series,
      bands: banded ? [{series: [2, 3], fill: colour('--bad-ground')}] : []}, lines, box);
  };
  requestAnimationFrame(draw);
  redraws.add(draw);
  return node;
}
const redraws = new Set();

function meters(run) {
  if (!run.meters) return null;
  const rows = run.meters.rows.map((row) => [row.name, h('span', {class: 'tag ' + (row.grows ? 'bad' : 'good')}, row.grows ? 'grows' : 'does not grow'),
    row.per_cycle, row.detectable, row.noise, row.false_alarms + ' of ' + row.windows]);
  return [h('h2', {}, 'Meters'), h('p', {class: 'soft small'}, 'Bytes a cycle beside a control arm that does nothing, and the smallest leak that would have been seen.'),
    rows.length > 0 && table([{text: 'Meter'}, {text: 'Verdict'}, {text: 'Bytes a cycle', n: true}, {text: 'Detectable', n: true}, {text: 'Noise, bytes', n: true}, {text: 'False alarms of the control', n: true}], rows),
    run.meters.absent.length > 0 && h('p', {class: 'soft small'}, run.meters.absent.map((one) => one[0] + ': ' + one[1]).join('; '))];
}

function tally(title, pairs) {
  return pairs.length === 0 ? null : fold(title, () => table([{text: 'What'}, {text: 'Number', n: true}], pairs));
}

function coverage(run) {
  const rows = run.coverage ? run.coverage.rows : [];
  if (rows.length === 0) return null;
  return fold(plural(rows.length, 'way') + ' to fail not reached', () => table([{text: 'Way'}, {text: 'Phase'}, {text: 'Where'}, {text: 'Why'}],
    rows.map((row) => [h('span', {class: 'mono'}, row.call + '=' + row.code + ',' + row.how), (row.phase || 'any') + (row.unwinding ? ', while unwinding' : ''), origin(row.stack), row.why])));
}

function notes(run) {
  if (run.notes.length === 0) return null;
  return fold(plural(run.notes.length, 'note'), () => table([{text: 'Rule'}, {text: 'What'}, {text: 'Place'}, {text: 'Fault'}, {text: 'Trials', n: true}], run.notes.map((note) => {
    const at = note.acquired || note.where;
    return [h('span', {class: 'mono'}, note.rule), [note.kind ? note.count + ' ' + note.kind + ': ' : '', note.title, note.detail ? ': ' + short(note.detail, 300) : ''],
      at ? at[0] + '  ' + origin(at[1]) : '', h('span', {class: 'mono'}, note.faults.map((fault) => fault[0]).join(', then ')), note.trials];
  }), 50));
}

function live(run) {
  if (run.live.length === 0) return null;
  return [h('h2', {}, 'Objects'), table([{text: 'Kind'}, {text: 'Acquired', n: true}, {text: 'Released', n: true}, {text: 'Live', n: true}, {text: 'Bytes', n: true}],
    run.live.map((row) => [row.kind, row.acquired, row.released, row.live, row.bytes]))];
}

function runBody(run) {
  const totals = run.totals;
  return h('section', {},
    run.sequence && run.sequence.calls.length > 0 && strip(run),
    growth(run), meters(run), live(run),
    h('h2', {}, MODES[run.mode] || 'Report'),
    h('div', {class: 'facts'},
      h('span', {class: 'tag ' + outcomeClass(run.outcome), title: titleOf('outcome', run.outcome)}, spoken(run.outcome)), driverTag(run.driver),
      totals.calls > 0 && h('span', {}, plural(totals.calls, 'call') + ' at ' + plural(totals.sites, 'place')),
      totals.trials > 0 && h('span', {}, plural(totals.trials, 'trial') + ', ' + totals.fired + ' fired'),
      run.coverage && h('span', {}, run.coverage.percent + ' % of ' + plural(run.coverage.reachable, 'way') + ' to fail reached'),
      run.driver.runtime && h('span', {}, run.driver.runtime)),
    run.message && h('p', {class: 'soft'}, run.message),
    h('p', {}, h('code', {}, run.command)),
    tally('Verdicts of the trials', totals.verdicts), tally('Left out', totals.skipped), tally('Pruned as equal', totals.pruned),
    coverage(run), notes(run));
}

function casePage(number) {
  const one = data.cases[number];
  const mine = data.defects.filter((defect) => defect.caseNumber === number);
  return h('div', {},
    h('h1', {}, one.name || 'The program'),
    one.tags.length > 0 && h('div', {class: 'counts'}, one.tags.map((tag) => h('span', {class: 'tag'}, tag))),
    one.not_run && h('p', {class: 'warn'}, one.not_run),
    mine.length > 0 && [h('h2', {}, plural(mine.length, 'defect')), caseDefects(mine)],
    one.runs.map((run) => runBody(data.runs[run])));
}

function caseDefects(mine) {
  const list = h('ol', {class: 'defects'});
  view.order = mine.slice().sort(SORTS.first[1]);
  view.shown = lazily(list, view.order, defectRow);
  return [list, view.shown.sentinel];
}
