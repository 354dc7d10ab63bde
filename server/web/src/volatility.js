// Implied volatility: by expiration now and at the previous close, its skew, its place in the year, and what the price has done.

import { Chart } from './chart.js';
import { h } from './dom.js';
import { date, instant, newYorkTime, number, points, shortDate, unknown, words } from './format.js';
import { follow, Panel } from './panel.js';
import { choose } from './state.js';
import { refill, term } from './terms.js';

export const current = '/api/v1/volatility/{u}';
const past = `${current}/historical`;

/** volatilityPanel builds the panel. */
export function volatilityPanel() {
  const reading = h('p', { class: 'reading' });
  const gauges = h('dl', { class: 'gauges' }, places({ rank_1y: null, percentile_1y: null }, {})); // it has its height before the answer
  const facts = h('dl', { class: 'facts' });
  const curve = new Chart('At the money, by expiration', 250, { sync: 'volatility', gutter: 56 });
  const skew = new Chart('Skew, by expiration', 250, { sync: 'volatility', gutter: 56 });
  const history = new Chart('Implied and realised', 250);
  let rows = []; // of the stored dates
  const show = () => {
    const { data, meta } = panel.document ?? {};
    if (!data) return;
    const earlier = before.feed?.document ?? null;
    const missing = meta.quality.unknown ?? {};
    refill(reading, ...read(data, earlier));
    refill(gauges, ...places(data, missing));
    refill(facts, ...list(data, missing));
    drawTerms(curve, skew, data, meta, earlier);
  };
  const panel = new Panel({
    id: 'volatility',
    render() {
      before.look();
      show();
    },
  });
  panel.body.append(reading, gauges, h('div', { class: 'split' }, curve.element, skew.element, history.element), facts);
  panel.followDay(current, past);
  const before = follow(() => { // the session before
    const session = rows.findLast((row) => row.date < panel.document?.data.session_date)?.date;
    return session && `${past}?date=${session}`;
  }, show);
  follow(`${current}/series`, (feed, fresh) => {
    if (!fresh) return;
    const { columns, rows: values } = feed.document?.data ?? { columns: [], rows: [] };
    rows = values.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])));
    drawHistory(history, rows);
    before.look();
  });
}

const volatility = (x) => (Number.isFinite(x) ? `${number(x, 2, true)}\u00a0%` : unknown);
const more = (x, above, below) => `${number(Math.abs(x), 2, true)} points ${x < 0 ? below : above}`;

/** read says in sentences what is implied, since when it has changed, and what the skew is. */
function read(d, earlier) {
  if (d.atm_30d === null) return ['The volatility of 30 days is unknown: no expirations around 30 days can be used.'];
  const was = earlier?.data.atm_30d;
  return [term('atm', 'At-the-money volatility'), ` of 30 days is ${volatility(d.atm_30d)}`,
    Number.isFinite(was) ? `, ${more(d.atm_30d - was, 'above', 'below')} the close of ${date(earlier.data.session_date)}. ` : '. ',
    d.risk_reversal_25_30d === null ? '' : `Puts of 25 delta imply ${more(-d.risk_reversal_25_30d, 'more', 'less')} than calls. `,
    d.implied_minus_realised === null ? '' : `Options imply ${more(d.implied_minus_realised, 'more', 'less')} than the last 20 sessions had.`];
}

/** places returns the rank and the percentile, each as words and a bar. */
function places(d, missing) {
  const why = (key) => (missing[key] === 'few_sessions' ? `${number(d.sessions)} ${d.sessions === 1 ? 'session is' : 'sessions are'} known, and 60 are needed.` : missing[key] ? `Unknown: ${words(missing[key])}.` : '\u00a0');
  const place = (word, name, key, text) => {
    const x = d[key];
    const bar = h('i');
    bar.style.width = `${x ?? 0}%`;
    return h('div', null, h('dt', null, term(word, name)), h('dd', null, h('b', null, number(x, 0)), h('span', { class: 'bar', 'aria-hidden': 'true' }, bar),
      h('small', null, x === null ? why(key) : text)));
  };
  return [
    place('rank', 'Rank in a year', 'rank_1y', `Lowest 0, highest 100 of ${number(d.sessions)} sessions.`),
    place('percentile', 'Percentile in a year', 'percentile_1y', `So many percent of ${number(d.sessions)} sessions were lower.`),
  ];
}

function list(d, missing) {
  const fact = (word, name, key, write, note) => h('div', null, h('dt', null, term(word, name)), h('dd', null, write(d[key]), h('small', null, d[key] === null ? words(missing[key]) : note)));
  return [
    fact('atm', 'At the money, 30 days', 'atm_30d', volatility, 'a year'),
    fact('model_free', 'Model-free, 30 days', 'model_free_30d', volatility, 'a year'),
    fact('term_slope', 'Term slope', 'term_slope', points, 'points'),
    fact('realised', 'Realised, 20 sessions', 'realised_20d', volatility, 'a year'),
    fact('realised', 'Realised, 60 sessions', 'realised_60d', volatility, 'a year'),
    fact('realised', 'Implied less realised', 'implied_minus_realised', points, 'points'),
  ];
}

/** drawTerms draws the figures by expiration. The axis has the root of the time, as volatility scales, so that near dates have room. */
function drawTerms(curve, skew, d, meta, earlier) {
  const rows = d.expirations;
  const settles = (e) => newYorkTime(e.expiration, e.settlement === 'am' ? '09:30:00' : '16:00:00');
  const days = rows.map((e) => Math.max(0, (settles(e) - Date.parse(meta.as_of)) / 86400e3));
  const xs = days.map(Math.sqrt);
  const was = rows.map((e) => earlier?.data.expirations.find((o) => o.expiration === e.expiration && o.settlement === e.settlement));
  const now = (name, key, color, format, width) => ({ name, values: rows.map((e) => e[key]), format, kind: 'line', color, width });
  const then = (name, key, format) => (earlier ? [{ name, values: was.map((e) => e?.[key] ?? null), format, kind: 'line', color: '--muted', width: 1.5, dash: [4, 3] }] : []);
  const none = (format, name, key) => ({ name, values: rows.map((e) => e[key]), format, kind: 'none' });
  const long = rows.filter((_, i) => days[i] >= 1).map((e) => e.atm_volatility).concat(was.map((e) => e?.atm_volatility)).filter(Number.isFinite);
  const [low, high] = [Math.min(...long), Math.max(...long)];
  const [bottom, top] = [low - (high - low) * 0.15, high + (high - low) * 0.15]; // a volatility of hours would flatten the curve
  const axis = {
    view: d.session_date, xs, xName: 'Days to expiration', ticks: [1, 2, 5, 10, 20], start: xs[0], range: xs.length ? [0, xs.at(-1) * 1.02] : undefined,
    xFormat: (x, exact) => {
      const e = exact && rows[xs.indexOf(x)];
      return e ? `${number(x * x, x < 3 ? 1 : 0)}, ${date(e.expiration)} ${e.settlement.toUpperCase()}` : number(x * x);
    },
  };
  const close = earlier ? `Dashed: the previous close, ${instant(earlier.meta.as_of)}.` : 'No answer of the session before is stored.';
  const known = (key) => rows.filter((e) => e[key] !== null);
  const ends = (key, write) => known(key).map((e) => `${write(e[key])} on ${date(e.expiration)}`).filter((_, i, all) => i === 0 || i === all.length - 1).join(' and ');
  curve.draw({
    ...axis,
    series: [now('Now', 'atm_volatility', '--accent', volatility), ...then('Previous close', 'atm_volatility', volatility), none(points, '25-delta butterfly', 'butterfly_25'), none(number, 'Expected move', 'expected_move')],
    yName: '% a year', yFormat: (y) => number(y, 1), yRange: high > low ? [bottom, top] : undefined,
    summary: known('atm_volatility').length ? `${number(rows.length)} expirations: ${ends('atm_volatility', volatility)}.${rows.some((e) => e.atm_volatility > top) ? ' The first lies above the drawing.' : ''} ${close}` : 'No expiration has a known volatility.',
  });
  skew.draw({
    ...axis,
    series: [now('25 delta', 'risk_reversal_25', '--accent', points), now('10 delta', 'risk_reversal_10', '--flip', points, 1.5), ...then('25 delta before', 'risk_reversal_25', points)],
    yName: 'Calls less puts, points', yFormat: (y) => number(y, 1),
    summary: known('risk_reversal_25').length ? `Risk reversals of 25 delta: ${ends('risk_reversal_25', points)}. Below zero, puts imply more than calls.` : 'No expiration has a known risk reversal.',
  });
}

function drawHistory(chart, rows) {
  const line = (name, key, color) => ({ name, values: rows.map((r) => r[key] ?? null), format: volatility, kind: key ? 'line' : 'none', color });
  const both = rows.filter((r) => r.atm_30d !== null && r.realised_20d !== null);
  chart.draw({
    onPick: (i) => choose({ date: rows[i].date }, true),
    xs: rows.map((_, i) => i), xName: 'Date', ticks: [1, 2, 5, 10, 20, 50, 100], range: [-0.6, Math.max(rows.length - 0.4, 0.6)],
    xFormat: (i, exact) => (rows[i] ? (exact ? date : shortDate)(rows[i].date) : ''),
    series: [line('Implied, 30 days', 'atm_30d', '--accent'), line('Realised, 20 sessions', 'realised_20d', '--ink'), { ...line('Model-free', 'model_free_30d'), kind: 'none' }],
    yName: '% a year', yFormat: (y) => number(y, 1),
    summary: both.length ? `Implied was above realised on ${both.filter((r) => r.atm_30d > r.realised_20d).length} of ${both.length} dates. Implied looks 30 days ahead, realised 20 sessions back.`
      : 'Realised volatility needs the closes of 21 sessions.',
  });
}
