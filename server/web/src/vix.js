// VIX: the curve of its futures, the volatility indices, and what both were on the stored dates.

import { Chart } from './chart.js';
import { h } from './dom.js';
import { date, instant, month, number, percent, points, shortDate, title, unknown, words } from './format.js';
import { ahead, dated } from './history.js';
import { follow, Panel } from './panel.js';
import { onChoice } from './state.js';
import { fact, refill } from './terms.js';
import { records } from './track.js';

const path = '/api/public/vix-term-structure';

/** vixPanel builds the panel. */
export function vixPanel() {
  const facts = h('dl', { class: 'facts' }, list({}));
  const curve = new Chart('Term structure', 150);
  const indices = new Chart('Volatility indices', 150);
  const history = new Chart('First two futures', 150);
  let rows = [];
  const panel = new Panel({
    id: 'vix', what: 'Settlements',
    render(data) {
      refill(facts, ...list(data));
      draw(curve, data);
      drawIndices(indices, data.cash ?? {});
    },
  });
  panel.body.append(facts, h('div', { class: 'split' }, curve.element, indices.element, history.element));
  panel.followDay(path, path);
  const show = () => drawHistory(history, rows);
  follow(`${path}/series`, ({ document }, fresh) => { if (fresh) { rows = records(document?.data); show(); } });
  onChoice(show);
}

const price = (x) => (Number.isFinite(x) ? `${number(x, 2, true)}\u00a0pts` : unknown);

/** list returns the figures. The official close of VIX and its delayed quote have different names and times. */
function list(d) {
  const official = d.settlement_date ? `official, ${shortDate(d.settlement_date)}` : '';
  const quote = (key, name) => fact(key, name, number(d.cash?.[key]?.value, 2, true), percent(d.cash?.[key]?.change_pct));
  return [
    fact('contango', 'Regime', title(d.regime), d.shape && `${words(d.shape)}${d.regime_basis === 'm2_m3' ? ', M2 to M3' : ''}`),
    fact('contango', 'Contango M1–M2', percent(d.contango_m1_m2_pct), official),
    fact('contango', 'Contango M4–M7', percent(d.contango_m4_m7_pct)),
    fact('cm30', 'Future, 30 days', price(d.cm30), d.cm30_extrapolated ? 'extrapolated' : ''),
    fact('roll_yield', 'Roll yield', percent(d.roll_yield_annualized_pct, 1), 'a year'),
    fact('vix', 'VIX, close', price(d.vix), official),
    fact('vix', 'VIX, delayed', price(d.cash?.vix?.value), d.cash?.vix ? instant(d.cash.vix.as_of).replace(/:\d\d ET/, '') : ''),
    fact('vix3m', 'VIX/VIX3M, close', number(d.vix_vix3m_ratio, 3, true), d.cash_regime && words(d.cash_regime)),
    quote('vvix', 'VVIX'), quote('skew', 'SKEW'), quote('vxn', 'VXN'), quote('rvx', 'RVX'),
  ];
}

function draw(chart, d) {
  const cash = [[0, d.vix, 'VIX'], [93, d.vix3m, 'VIX3M']].filter(([, value]) => value !== null);
  const xs = [...new Set([...d.curve.map((m) => m.days_to_expiration), ...cash.map(([x]) => x)])].sort((a, b) => a - b);
  const months = xs.map((x) => d.curve.find((m) => m.days_to_expiration === x) ?? null);
  const spots = xs.map((x) => cash.find(([y]) => y === x) ?? null);
  const all = [...d.curve.map((m) => m.settlement), ...cash.map(([, value]) => value)];
  const middle = (Math.min(...all) + Math.max(...all)) / 2;
  const half = Math.max(1, (Math.max(...all) - Math.min(...all)) * 0.65); // a flat curve looks flat
  const end = (m) => `M${m.rank} ${month(m.month)} at ${price(m.settlement)}`;
  const near = (x) => d.curve.toSorted((a, b) => Math.abs(a.days_to_expiration - x) - Math.abs(b.days_to_expiration - x))[0]?.settlement;
  chart.draw({
    xs, xName: 'Days to expiration', range: [-12, xs.at(-1) + 14], yRange: [middle - half, middle + half],
    xFormat: (x, exact) => {
      const m = exact && d.curve.find((c) => c.days_to_expiration === x);
      return m ? `${m.days_to_expiration} days, M${m.rank} ${month(m.month)}` : `${number(x)} d`;
    },
    series: [
      { name: 'Futures, settlement', values: months.map((m) => m?.settlement ?? null), labels: months.map((m) => m && `M${m.rank}`), format: price, kind: 'line', color: '--accent', dots: true },
      { name: 'Index, official close', values: spots.map((s) => s?.[1] ?? null), labels: spots.map((s) => s && s[2]), under: spots.map((s) => s && s[1] < near(s[0])), format: price, kind: 'points', color: '--flip' },
      { name: 'Change', values: months.map((m) => m?.change ?? null), format: (x) => points(x), kind: 'none', color: '--muted' },
    ],
    yFormat: (y) => number(y, 1, true), start: d.curve[0]?.days_to_expiration,
    summary: d.curve.length ? `Official settlements of ${date(d.settlement_date)}. Futures from ${end(d.curve[0])} to ${end(d.curve.at(-1))}; ${cash.map(([, value, name]) => `${name} ${price(value)}`).join(', ') || 'no cash index'}.` : 'No monthly contract is listed.',
  });
}

const rungs = [['vix1d', 'VIX1D', 1], ['vix9d', 'VIX9D', 9], ['vix', 'VIX', 30], ['vix3m', 'VIX3M', 93], ['vix6m', 'VIX6M', 182], ['vix1y', 'VIX1Y', 365]];

/** drawIndices draws the volatility indices by the days that they look ahead, on the scale of a root. */
function drawIndices(chart, cash) {
  const known = rungs.filter(([key]) => cash[key]?.value);
  if (known.length < 2) return chart.clear('The source has no quotes of these indices.');
  const values = known.map(([key]) => cash[key].value);
  const before = known.map(([key]) => (cash[key].change_pct === null ? null : cash[key].value / (1 + cash[key].change_pct / 100)));
  const axis = ahead(known.map(([, , days]) => days));
  const rise = values.at(-1) - values[0];
  chart.draw({
    ...axis, splits: axis.xs, xFormat: (x, exact) => { const [, name, days] = known[axis.xs.indexOf(x)]; return exact ? `${days}, ${name}` : name.slice(3) || name; }, xName: 'Days ahead',
    series: [
      { name: 'Delayed quote', values, format: price, kind: 'line', color: '--flip', dots: true },
      { name: 'Previous close', values: before, format: price, kind: 'line', color: '--muted', width: 1.5, dash: [4, 3] },
      { name: 'Change', values: known.map(([key]) => cash[key].change_pct), format: (x) => percent(x), kind: 'none' },
    ],
    yFormat: (y) => number(y, 1, true),
    summary: `${known.map(([key, name]) => `${name} ${price(cash[key].value)}`).join(', ')}: from ${known[0][1]} to ${known.at(-1)[1]} it ${rise > 0 ? 'rises' : rise < 0 ? 'falls' : 'is level'}. Quotes of ${instant(cash[known[0][0]].as_of)}.`,
  });
}

function drawHistory(chart, rows) {
  if (rows.length < 2) return chart.clear('One settlement date is stored. The first two futures of each date will be here.');
  const line = (name, key, color, more) => ({ name, values: rows.map((r) => r[key]), format: price, kind: 'line', color, ...more });
  const low = rows.filter((r) => r.contango_m1_m2_pct < 0).length;
  chart.draw({
    ...dated(rows),
    series: [line('M1', 'm1', '--accent'), line('M2', 'm2', '--flip'), line('Contango M1 to M2', 'contango_m1_m2_pct', '', { kind: 'none', format: percent }), line('Regime', 'regime', '', { kind: 'none', format: words })],
    yFormat: (y) => number(y, 1, true),
    summary: `${rows.length} settlement dates. The first future was above the second on ${low} of them.`,
  });
}
