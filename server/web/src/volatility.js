// Implied volatility: by expiration now and at the previous close, its skew, its place in the year, and what the price has done.

import { Chart } from './chart.js';
import { h } from './dom.js';
import { date, instant, newYorkTime, number, points, shortDate, unknown, words } from './format.js';
import { ahead, dated } from './history.js';
import { day, follow, Panel } from './panel.js';
import { fact, refill } from './terms.js';
import { records } from './track.js';

export const current = '/api/v1/volatility/{u}';
const past = `${current}/historical`;

/** volatilityPanel builds the panel. */
export function volatilityPanel() {
  const facts = h('dl', { class: 'facts' });
  const curve = new Chart('At the money, by expiration', 150, { sync: 'volatility' });
  const skew = new Chart('Skew, by expiration', 150, { sync: 'volatility' });
  const history = new Chart('Implied and realised', 150);
  let rows = []; // of the stored dates
  const show = () => {
    const { data, meta } = panel.document ?? {};
    if (!data) return;
    const earlier = before.feed?.document ?? null;
    refill(facts, ...list(data, meta.quality.unknown ?? {}, earlier?.data));
    drawTerms(curve, skew, data, meta, earlier);
  };
  const panel = new Panel({
    id: 'volatility',
    render() {
      before.look();
      show();
    },
  });
  refill(facts, ...list({}, {}, null)); // it has its height before the answer
  panel.body.append(facts, h('div', { class: 'split' }, curve.element, skew.element, history.element));
  panel.followDay(current, past);
  const before = follow(() => { // the session before
    const session = rows.findLast((row) => row.date < panel.document?.data.session_date)?.date;
    return session && `${past}?date=${session}`;
  }, show);
  follow(`${current}/series`, (feed, fresh) => {
    if (!fresh) return;
    rows = records(feed.document?.data);
    drawHistory(history, rows);
    before.look();
  });
}

const volatility = (x) => (Number.isFinite(x) ? `${number(x, 2, true)}\u00a0%` : unknown);

/** list returns the figures. Of an unknown one, its note says why. */
function list(d, missing, earlier) {
  const few = `${number(d.sessions)} of 60 sessions`;
  const why = (key) => (missing[key] === 'few_sessions' ? few : words(missing[key]));
  const of = (word, name, key, write, note) => fact(word, name, write(d[key]), d[key] === null ? words(missing[key]) : note);
  const gauge = (word, name, key) => {
    const known = Number.isFinite(d[key]);
    const bar = h('span', { class: 'gauge', 'aria-hidden': 'true' });
    bar.style.setProperty('--at', known ? `${d[key]}%` : '0%');
    return fact(word, name, [known ? `${number(d[key])}\u00a0%` : unknown, known ? bar : null], known ? `of ${number(d.sessions)} sessions` : d[key] === null ? why(key) : '');
  };
  const change = d.atm_30d - (earlier?.atm_30d ?? NaN);
  return [
    of('atm', 'ATM, 30 days', 'atm_30d', volatility, Number.isFinite(change) ? `${points(change)} since ${shortDate(earlier.session_date)}` : 'a year'),
    gauge('rank', 'IV rank', 'rank_1y'),
    gauge('percentile', 'IV percentile', 'percentile_1y'),
    of('risk_reversal', 'Risk reversal', 'risk_reversal_25_30d', points, d.risk_reversal_25_30d < 0 ? '25 Δ: puts dearer' : '25 Δ: calls dearer'),
    of('model_free', 'Model-free', 'model_free_30d', volatility, '30 days'),
    of('term_slope', 'Term slope', 'term_slope', points, '90 less 30 days'),
    of('realised', 'Realised, 20 d', 'realised_20d', volatility, Number.isFinite(d.realised_60d) ? `60 sessions: ${number(d.realised_60d, 1, true)}` : few),
    of('realised', 'Implied − realised', 'implied_minus_realised', points, 'points'),
  ];
}

/** drawTerms draws the figures by expiration. */
function drawTerms(curve, skew, d, meta, earlier) {
  const rows = d.expirations;
  const settles = (e) => newYorkTime(e.expiration, e.settlement === 'am' ? '09:30:00' : '16:00:00');
  const days = rows.map((e) => Math.max(0, (settles(e) - Date.parse(meta.as_of)) / 86400e3));
  const was = rows.map((e) => earlier?.data.expirations.find((o) => o.expiration === e.expiration && o.settlement === e.settlement));
  const now = (name, key, color, format, width) => ({ name, values: rows.map((e) => e[key]), format, kind: 'line', color, width });
  const then = (name, key, format) => (earlier ? [{ name, values: was.map((e) => e?.[key] ?? null), format, kind: 'line', color: '--muted', width: 1.5, dash: [4, 3] }] : []);
  const none = (format, name, key) => ({ name, values: rows.map((e) => e[key]), format, kind: 'none' });
  const long = rows.filter((_, i) => days[i] >= 1).map((e) => e.atm_volatility).concat(was.map((e) => e?.atm_volatility)).filter(Number.isFinite);
  const [low, high] = [Math.min(...long), Math.max(...long)];
  const [bottom, top] = [low - (high - low) * 0.15, high + (high - low) * 0.15]; // a volatility of hours would flatten the curve
  const axis = {
    ...ahead(days, (i) => `${number(days[i], days[i] < 9 ? 1 : 0)}, ${date(rows[i].expiration)} ${rows[i].settlement.toUpperCase()}`), view: d.session_date, xName: 'Days to expiration',
  };
  const close = earlier ? `Dashed: the previous close, ${instant(earlier.meta.as_of)}.` : 'No answer of the session before is stored.';
  const known = (key) => rows.filter((e) => e[key] !== null);
  const ends = (key, write) => known(key).map((e) => `${write(e[key])} on ${date(e.expiration)}`).filter((_, i, all) => i === 0 || i === all.length - 1).join(' and ');
  curve.draw({
    ...axis,
    series: [now(day() ? shortDate(day()) : 'Now', 'atm_volatility', '--accent', volatility), ...then('Previous close', 'atm_volatility', volatility), none(points, '25-delta butterfly', 'butterfly_25'), none(number, 'Expected move', 'expected_move')],
    yFormat: (y) => `${number(y, 1)}\u00a0%`, yRange: high > low ? [bottom, top] : undefined,
    summary: known('atm_volatility').length ? `${number(rows.length)} expirations: ${ends('atm_volatility', volatility)}.${rows.some((e) => e.atm_volatility > top) ? ' The first lies above the drawing.' : ''} ${close}` : 'No expiration has a known volatility.',
  });
  skew.draw({
    ...axis,
    series: [now('25 delta', 'risk_reversal_25', '--accent', points), now('10 delta', 'risk_reversal_10', '--flip', points, 1.5), ...then('25 delta before', 'risk_reversal_25', points)],
    yFormat: (y) => number(y, 1),
    summary: known('risk_reversal_25').length ? `Risk reversals of 25 delta: ${ends('risk_reversal_25', points)}. Below zero, puts imply more than calls.` : 'No expiration has a known risk reversal.',
  });
}

function drawHistory(chart, rows) {
  const line = (name, key, color) => ({ name, values: rows.map((r) => r[key] ?? null), format: volatility, kind: key ? 'line' : 'none', color });
  const both = rows.filter((r) => r.atm_30d !== null && r.realised_20d !== null);
  chart.draw({
    ...dated(rows),
    series: [line('Implied, 30 days', 'atm_30d', '--accent'), line('Realised, 20 sessions', 'realised_20d', '--ink'), { ...line('Model-free', 'model_free_30d'), kind: 'none' }],
    yFormat: (y) => `${number(y, 1)}\u00a0%`,
    summary: both.length ? `Implied was above realised on ${both.filter((r) => r.atm_30d > r.realised_20d).length} of ${both.length} dates. Implied looks 30 days ahead, realised 20 sessions back.`
      : 'Realised volatility needs the closes of 21 sessions.',
  });
}
