// The session as it unfolds: the levels now, and their track through the day. Of a stored date: its last levels, and its track.

import { Chart } from './chart.js';
import { h, options, picker, say } from './dom.js';
import { axisDollars, closes, date, dollars, level, newYorkDay, newYorkTime, number, percent, ranged, shortDate, spotName, time, title, unknown, weekday, words } from './format.js';
import { Panel, day, follow, sentence } from './panel.js';
import { marketNow } from './poll.js';
import { choices, choose, here, onChoice, underlying } from './state.js';
import { refill, term } from './terms.js';

const path = '/api/v1/gex/{u}';
const saidOnce = ['unreachable', 'not_ready', 'unknown_underlying']; // a banner says it
const noon = '12:00:00'; // until then, most of an axis of the whole session would be empty
const spans = [['session', 'Session'], ['so-far', 'So far'], ['hour', 'Last hour']];

/** todayPanel builds the panel. The promise is kept when the first chart is drawn, or when there is nothing to draw. */
export function todayPanel() {
  const dates = picker('Date', (d) => choose({ date: d }, true));
  let track = null;
  const span = choices('span', 'Time shown', spans, () => (track && lastOf(track) < newYorkTime(track.session_date, noon) ? 'so-far' : 'session'));
  const heading = document.getElementById('today-heading');
  const levels = h('dl', { class: 'levels' }, levelTiles(null));
  const regime = h('p', { class: 'reading' });
  const lines = new Chart('Spot, flip and walls', 340, { sync: 'today', gutter: 72 });
  const net = new Chart('Net gamma', 220, { sync: 'today', gutter: 72 });
  let drawn = '';
  const draw = () => {
    span.allow(); // marks the time shown, which may be another since the last answer
    drawn = span.picked();
    if (track) drawTrack(lines, net, track, drawn);
  };
  const texts = () => {
    const data = panel.document?.data ?? null;
    refill(levels, ...levelTiles(data, track));
    if (data) refill(regime, ...reading(data));
  };
  const panel = new Panel({
    id: 'today', controls: [span.element],
    render: () => { name(); texts(); },
  });
  const head = document.getElementById('head');
  document.querySelector('.pick').append(dates.element);
  head.append(levels, regime);
  panel.body.append(h('div', { class: 'stack' }, lines.element, net.element));
  const name = () => say(heading, day() ? date(day()) : panel.document && panel.shown === here(path) ? sessionName(panel.document.meta) : 'Today');
  onChoice(() => {
    name();
    if (span.picked() !== drawn) draw();
  });

  const first = new Promise((done) => {
    followTrack((document, why) => {
      track = document?.data ?? null;
      if (track) draw();
      else for (const chart of [lines, net]) chart.clear(why);
      texts();
      done();
    });
  });
  panel.followDay(path, `${path}/historical`);
  first.then(() => offerDates(dates.select));
  return first;
}

/** followTrack calls onTrack with the track of the chosen date, or with null and the reason. */
export function followTrack(onTrack) {
  follow(() => (day() ? `${path}/intraday?date=${day()}` : `${path}/intraday`), ({ document, failure }, fresh) => {
    if (fresh && document) onTrack(document);
    else if (!document) onTrack(null, failure?.code === 'snapshot_not_found' ? 'No track is stored for this date.' : !failure || saidOnce.includes(failure.code) ? '' : sentence(failure.message));
  });
}

/** offerDates keeps the stored dates in the picker, newest first, and the chosen one picked. */
function offerDates(select) {
  let stored = [];
  const show = () => {
    const all = day() && !stored.includes(day()) ? [...stored, day()].sort() : stored;
    options(select, [['', 'Now'], ...all.toReversed().map((d) => [d, date(d)])]);
    select.value = day();
  };
  follow(`${path}/series`, (feed, fresh) => {
    if (!fresh) return;
    const { columns, rows } = feed.document?.data ?? { columns: [], rows: [] };
    stored = rows.map((row) => row[columns.indexOf('date')]);
    show();
  });
  onChoice(show);
  show();
}

/** sessionName names the session of an answer of now, which on a Saturday is that of Friday. */
const sessionName = (meta) => (meta.session_date === newYorkDay(marketNow(meta.source)) ? 'Today' : weekday(meta.session_date));

const lastOf = (track) => Date.parse(track.rows.at(-1)?.[track.columns.indexOf('as_of')]);

const levelNames = [['spot', 'Spot'], ['net', 'Net gamma'], ['flip', 'Zero-gamma flip'], ['call_wall', 'Call wall'], ['put_wall', 'Put wall'], ['zero_dte', 'Expiring the same day']];

/** levelTiles returns the tiles of an answer. Before the first answer they have their place and no value. */
function levelTiles(d, track) {
  const sameDay = d && expiring(d, track);
  const sign = d?.gamma_regime === 'positive' || d?.gamma_regime === 'negative' ? d.gamma_regime : '';
  const values = d ? [
    [level(d.spot), spotNote(d)],
    [dollars(d.net_gex_dollars), 'per 1 % move', sign],
    [level(d.zero_gamma_flip), flipNote(d)],
    [level(d.call_wall), 'most positive net gamma'],
    [level(d.put_wall), 'most negative net gamma'],
    [share(sameDay.share), sameDay.note],
  ] : levelNames.map(() => [unknown, '\u00a0']);
  return levelNames.map(([key, name], i) => {
    const [value, note, kind] = values[i];
    return h('div', { class: kind ? `tile ${kind}` : 'tile' }, h('dt', null, term(key, name)), h('dd', null, value, h('small', null, note)));
  });
}

const share = (x) => percent(x, 1).replace('+', '');

/** expiring returns the share of what expires the same day. After the close it has settled, and the track says what it was. */
function expiring(d, track) {
  if (!d.zero_dte?.settled) return { share: d.zero_dte?.gross_share_pct, note: `of gross; net ${dollars(d.zero_dte?.net_gex_dollars)}` };
  const column = (name) => track?.columns.indexOf(name) ?? -1;
  const last = track?.session_date === d.session_date ? track.rows.findLast((row) => row[column('zero_dte_net_gex_dollars')] !== null) : null;
  if (!last) return { share: null, note: `nothing of ${shortDate(d.session_date)} is open` };
  return {
    share: last[column('zero_dte_gross_share_pct')],
    note: `of gross at ${time(Date.parse(last[column('as_of')]), true)}; net ${dollars(last[column('zero_dte_net_gex_dollars')])}; settled since`,
  };
}

function spotNote(d) {
  const move = d.expected_move_1d === null ? 'expected move unknown' : `expected move ±${number(d.expected_move_1d, 0)} a day`;
  const change = typeof d.spot_change_pct === 'number' ? `${percent(d.spot_change_pct)}; ` : ''; // days of gex/4 have none
  return `${change}${spotName(d) === 'Spot' ? '' : `${spotName(d).toLowerCase()} of the quotes ${level(d.effective_spot)}; `}${move}`;
}

const noFlip = { none_all_positive: ['positive', -1], none_all_negative: ['negative', 1] };

function flipNote(d) {
  if (d.zero_gamma_flip === null) {
    const [sign, other] = noFlip[d.flip_status] ?? [];
    if (!sign) return title(d.flip_status);
    return d.profile.some((p) => p.net_gex_dollars * other > 0) ? `none: ${sign} but for traces` : `none: all ${sign} within 15\u00a0%`;
  }
  return d.flip_band ? `band ${number(d.flip_band.low, 0)} to ${number(d.flip_band.high, 0)}` : 'no band';
}

const inBand = (d) => d.flip_band && d.flip_band.low <= d.effective_spot && d.effective_spot <= d.flip_band.high;

/** reading says in a sentence what the regime means. The word regime is explained. */
function reading(d) {
  if (d.flip_status === 'spot_mismatch') return ['The options and the index are more than 10 % apart: the document contradicts itself, so no figure is shown.'];
  if (d.flip_status === 'open_interest_missing') return ['The document lacks open interest of some options, so no sum over all of them is known.'];
  const where = d.zero_gamma_flip === null ? 'There is no flip within 15 % of spot.'
    : `${spotName(d)} is ${Math.abs(d.flip_distance_pct) < 0.005 ? 'at the flip' : `${percent(Math.abs(d.flip_distance_pct)).replace('+', '')} ${d.flip_distance_pct > 0 ? 'above' : 'below'} the flip${inBand(d) ? ', inside its band' : ''}`}.`;
  const what = {
    positive: 'modelled dealers trade against moves',
    negative: 'modelled dealers trade with moves',
    neutral: 'the model cannot tell the sign of net gamma',
  }[d.gamma_regime];
  return what ? [term('regime', `${title(d.gamma_regime)} regime`), `: ${what}. ${where}`] : [`The regime is unknown. ${where}`];
}

/**
 * points returns the columns of the track by name. Where rows are missing, it has a point without values. The rows before the
 * first start of a server are 5 minutes apart, so a shorter time without a row is no gap.
 */
export function points(track) {
  const at = track.rows.map((row) => Date.parse(row[track.columns.indexOf('as_of')]));
  const steps = at.slice(1).map((t, i) => t - at[i]).sort((a, b) => a - b);
  const most = Math.max(3 * (steps[Math.floor(steps.length / 2)] ?? 0), 400e3);
  const order = at.flatMap((t, i) => (i > 0 && t - at[i - 1] > most ? [-1, i] : [i]));
  const xs = order.map((i, j) => (i < 0 ? (at[order[j - 1]] + at[order[j + 1]]) / 2 : at[i]));
  const column = (name) => {
    const k = track.columns.indexOf(name);
    return order.map((i) => track.rows[i]?.[k] ?? null); // an earlier version has stored fewer columns
  };
  const name = (x) => {
    const j = xs.indexOf(x);
    return order[j] < 0 ? `${time(xs[j - 1])} to ${time(xs[j + 1])}, no snapshot` : time(x);
  };
  return { xs, column, name, gaps: order.filter((i) => i < 0).length };
}

/** shown returns the part of the time axis that the user has chosen. */
function shown(track, span, xs) {
  const [first, last] = [xs[0], xs.at(-1)];
  switch (span) {
    case 'so-far': return [first, Math.max(last, first + 60e3)];
    case 'hour': return [last - 3600e3, last];
    default: return [Math.min(first, newYorkTime(track.session_date, '09:30:00')), Math.max(last, closes(track.session_date)) + 15 * 60e3];
  }
}

/** cone returns one standard deviation from the first snapshot on, which grows with the root of the time: a whole session has the expected move. */
function cone(track, xs, column) {
  const i = column('expected_move_1d').findIndex((move) => move !== null);
  const end = closes(track.session_date);
  if (i < 0 || xs[i] >= end) return null;
  const [spot, move] = [column('effective_spot')[i], column('expected_move_1d')[i]];
  const half = (x) => move * Math.sqrt((x - xs[i]) / (end - newYorkTime(track.session_date, '09:30:00')));
  const range = (x) => (x < xs[i] ? null : [spot - half(x), spot + half(x)]);
  const at = Array.from({ length: 41 }, (_, k) => xs[i] + (end - xs[i]) * (k / 40) ** 2); // it opens fast
  return { range, from: xs[i], band: { xs: at, values: at.map(range), color: '--accent', label: 'Expected move' }, last: range(end) };
}

/** jumps says how often a wall moved, and why it jumps. */
function jumps(side, sign, walls) {
  const known = walls.filter((x) => x !== null);
  const moves = known.filter((x, i) => i > 0 && x !== known[i - 1]).length;
  return moves === 0 ? '' : `The ${side} wall moved ${moves === 1 ? 'once' : `${moves} times`}: it is the strike with the most ${sign} net gamma, so it jumps when another strike has more. `;
}

function drawTrack(lines, net, track, span) {
  if (track.rows.length === 0) {
    for (const chart of [lines, net]) chart.clear('The track of this session has no row yet.');
    return;
  }
  const { xs, column, name, gaps } = points(track);
  const axis = { view: `${track.session_date} ${span}`, xs, xName: 'New York time', range: shown(track, span, xs), ticks: [1, 2, 5, 10, 15, 30, 60, 120].map((m) => m * 60e3), xFormat: (x, exact) => (exact ? name(x) : time(x, true)) };
  const highs = column('flip_high');
  const bands = column('flip_low').map((low, i) => (low === null ? null : [low, highs[i]]));
  const write = (band) => (band ? `${number(band[0])} to ${number(band[1])}` : unknown);
  const last = bands.findLast((band) => band);
  const expected = cone(track, xs, column);
  const line = (label, key, color, more) => ({ name: label, values: column(key), format: level, kind: 'line', color, gaps: true, ...more });
  lines.draw({
    ...axis,
    series: [
      line('Spot', 'spot', '--ink', { width: 2.5 }),
      line('Flip', 'zero_gamma_flip', '--flip'),
      ...(last ? [{ name: 'Flip band', values: bands, format: write, kind: 'ribbon', color: '--flip' }] : []),
      line('Call wall', 'call_wall', '--positive', { kind: 'step' }),
      line('Put wall', 'put_wall', '--negative', { kind: 'step' }),
      ...(column('effective_spot').some((x, i) => x !== null && x !== column('spot')[i]) ? [line('Implied spot', 'effective_spot', '--ink', { kind: 'none' })] : []),
      { name: 'Regime', values: column('gamma_regime'), format: words, kind: 'none' },
      ...(expected ? [{ name: 'Expected', values: xs.map(expected.range), format: write, kind: 'none' }] : []),
    ],
    bands: expected ? [expected.band] : [],
    yName: underlying().toUpperCase(), yFormat: (y) => number(y),
    summary: `Session of ${date(track.session_date)}: ${number(track.rows.length)} ${track.rows.length === 1 ? 'snapshot' : 'snapshots'}, from ${time(xs[0])} to ${time(xs.at(-1))} in New York` +
      `${gaps ? `, with ${gaps} ${gaps === 1 ? 'gap' : 'gaps'}` : ''}. ` +
      jumps('call', 'positive', column('call_wall')) + jumps('put', 'negative', column('put_wall')) +
      (last ? `The flip band is the range of the flip in the model and its scenarios, at last ${write(last)}. ` : '') +
      (expected ? `The cone is one standard deviation from ${time(expected.from, true)}: at the close ${write(expected.last)}.` : ''),
  });
  const values = column('net_gex_dollars');
  const known = values.filter((v) => v !== null);
  net.draw({
    ...axis,
    series: [
      { name: 'Net', values, format: dollars, kind: 'area', color: '--positive', negative: '--negative' },
      { name: 'Expiring the same day, net', values: column('zero_dte_net_gex_dollars'), format: dollars, kind: 'none' },
      { name: 'Their share of gross', values: column('zero_dte_gross_share_pct'), format: share, kind: 'none' },
    ],
    yName: '$ per 1 % move', yFormat: axisDollars,
    summary: known.length ? ranged('Net gamma', known, dollars) : 'Net gamma is unknown.',
  });
}
