// The VIX futures curve with its regime.

import { Chart } from './chart.js';
import { h } from './dom.js';
import { date, month, number, percent, points, title, unknown, words } from './format.js';
import { Panel } from './panel.js';
import { refill, term } from './terms.js';

/** vixPanel builds the panel. */
export function vixPanel() {
  const facts = h('dl', { class: 'facts' });
  const reading = h('p', { class: 'reading' });
  const curve = new Chart('Term structure', 250);
  const panel = new Panel({
    id: 'vix', what: 'Settlements',
    render(data) {
      reading.textContent = read(data);
      refill(facts, ...list(data));
      draw(curve, data);
    },
  });
  panel.body.append(reading, curve.element, facts);
  panel.follow('/api/public/vix-term-structure');
}

const price = (x) => (x === null ? unknown : `${number(x, 2, true)}\u00a0pts`);

function read(d) {
  const stale = d.stale_sessions > 0 ? `, ${d.stale_sessions} ${d.stale_sessions === 1 ? 'session' : 'sessions'} ago` : '';
  const regime = d.regime ? `${title(d.regime)} (${d.regime_basis === 'm2_m3' ? 'M2 to M3' : 'M1 to M2'}), ${words(d.shape)} curve.` : 'The regime is unknown.';
  return `${regime} Settlements of ${date(d.settlement_date)}${stale}.`;
}

function list(d) {
  const fact = (word, name, value, note) => h('div', null, h('dt', null, term(word, name)), h('dd', null, value, note ? h('small', null, note) : null));
  return [
    fact('contango', 'Contango M1 to M2', percent(d.contango_m1_m2_pct)),
    fact('contango', 'Contango M4 to M7', percent(d.contango_m4_m7_pct)),
    fact('cm30', '30-day constant maturity', price(d.cm30), d.cm30_extrapolated ? 'extrapolated' : null),
    fact('vix', 'VIX', price(d.vix), d.vol_level && words(d.vol_level)),
    fact('vix3m', 'VIX / VIX3M', number(d.vix_vix3m_ratio, 3, true), d.cash_regime && words(d.cash_regime)),
    fact('roll_yield', 'Roll yield', percent(d.roll_yield_annualized_pct, 1), 'a year'),
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
      return m ? `${m.days_to_expiration} days, M${m.rank} ${month(m.month)}` : number(x);
    },
    series: [
      { name: 'Futures', values: months.map((m) => m?.settlement ?? null), labels: months.map((m) => m && `M${m.rank}`), format: price, kind: 'line', color: '--accent', dots: true },
      { name: 'Cash index', values: spots.map((s) => s?.[1] ?? null), labels: spots.map((s) => s && s[2]), under: spots.map((s) => s && s[1] < near(s[0])), format: price, kind: 'points', color: '--flip' },
      { name: 'Change', values: months.map((m) => m?.change ?? null), format: (x) => points(x), kind: 'none', color: '--muted' },
    ],
    yName: 'Settlement, points', yFormat: (y) => number(y, 1, true), start: d.curve[0]?.days_to_expiration,
    summary: d.curve.length ? `Futures from ${end(d.curve[0])} to ${end(d.curve.at(-1))}; ${cash.map(([, value, name]) => `${name} ${price(value)}`).join(', ') || 'no cash index'}.` : 'No monthly contract is listed.',
  });
}
