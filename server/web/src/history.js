// History: the levels of each stored date, as charts and as a table. A click opens a date.

import { Chart } from './chart.js';
import { h, scroller, table } from './dom.js';
import { axisDollars, date, dollars, level, number, percent, ranged, shortDate, title, weekday } from './format.js';
import { day, Panel } from './panel.js';
import { choose, onChoice } from './state.js';
import { current } from './strikes.js';
import { refill, term } from './terms.js';
import { records } from './track.js';

/** dated returns what a chart of one point for each stored date shares: its axis, the chosen date, and what a click opens. */
export function dated(rows) {
  const chosen = rows.findIndex((r) => r.date === day());
  return {
    onPick: (i) => choose({ date: rows[i].date }, true), view: rows[0]?.date,
    xs: rows.map((_, i) => i), xName: 'Date', ticks: [1, 2, 5, 10, 20, 50, 100], range: [-0.6, Math.max(rows.length - 0.4, 0.6)],
    xFormat: (i, exact) => (rows[i] ? (exact ? date : shortDate)(rows[i].date) : ''),
    marks: chosen < 0 ? [] : [{ x: chosen, label: shortDate(rows[chosen].date), color: '--accent' }],
  };
}

const near = 5; // days that have the same room each

/** ahead returns what charts of days ahead share: an axis with the logarithm of the days, so that near dates have room. name writes a point. */
export function ahead(days, name) {
  const place = (d) => Math.log(d + near);
  const xs = days.map(place);
  return {
    xs, splits: [7, 30, 90, 365, 1095].map(place), range: [place(0), (xs.at(-1) ?? 7) + 0.2], start: xs[0],
    xFormat: (x, exact) => {
      const d = Math.round(Math.exp(x) - near);
      return exact && xs.includes(x) ? name(xs.indexOf(x)) : d < 365 ? `${number(d)} d` : `${number(d / 365)} y`;
    },
  };
}

/** historyPanel builds the panel. */
export function historyPanel() {
  const levels = new Chart('Flip, walls and spot', 160, { sync: 'history' });
  const net = new Chart('Net gamma', 160, { sync: 'history' });
  const place = scroller('Levels of the stored dates');
  let rows = [];
  const show = () => {
    draw(levels, net, rows);
    refill(place, grid(rows));
  };
  const panel = new Panel({ id: 'history', render(data) { rows = records(data); show(); } });
  place.classList.add('fills', 'underlyings');
  panel.body.append(h('div', { class: 'split' }, levels.element, net.element, h('div', { class: 'dates' }, place)));
  onChoice(show);
  panel.follow(`${current}/series`);
}

const columns = [['Date', (r) => h('button', { type: 'button', class: 'term', click: () => choose({ date: r.date }, true) }, weekday(r.date, true))],
  ['Spot', (r) => level(r.spot)], ['Flip', (r) => level(r.zero_gamma_flip), 'flip'], ['To flip', (r) => percent(r.zero_gamma_flip ? (r.zero_gamma_flip / (r.effective_spot ?? r.spot) - 1) * 100 : null)],
  ['Net gamma', (r) => dollars(r.net_gex_dollars), 'net'], ['Regime', (r) => title(r.gamma_regime), 'regime'], ['Call wall', (r) => level(r.call_wall), 'call_wall'], ['Put wall', (r) => level(r.put_wall), 'put_wall']];

/** grid returns the table of the stored dates, newest first. */
function grid(stored) {
  const rows = stored.toReversed();
  return table('Levels of the stored dates, newest first', columns.map(([name, , word], i) => ({ head: term(word, name), number: i > 0 && i !== 5 })), rows.map((r) => columns.map(([, cell]) => cell(r))),
    (n) => ({ 'aria-current': rows[n].date === day() && 'true', click: (event) => { if (!event.target.closest('button')) choose({ date: rows[n].date }, true); } }));
}

function draw(levels, net, rows) {
  const axis = dated(rows);
  axis.marks.push(...rows.flatMap(({ split, method }, i) => (split ? [{ x: i, label: 'Split', color: '--muted' }]
    : i > 0 && method !== rows[i - 1].method ? [{ x: i, label: 'Method', color: '--muted' }] : [])));
  const line = (name, key, color, more) => ({ name, values: rows.map((r) => r[key]), format: level, kind: 'line', color, ...more });
  const flips = rows.map((r) => r.zero_gamma_flip).filter((x) => x !== null);
  levels.draw({
    ...axis,
    series: [
      line('Spot', 'spot', '--ink', { width: 2.5 }),
      line('Flip', 'zero_gamma_flip', '--flip'),
      line('Call wall', 'call_wall', '--positive', { kind: 'step' }),
      line('Put wall', 'put_wall', '--negative', { kind: 'step' }),
    ],
    yFormat: (y) => number(y),
    summary: rows.length === 0 ? 'No date is stored yet.'
      : `${rows.length === 1 ? `1 date, ${date(rows[0].date)}.` : `${rows.length} dates, from ${date(rows[0].date)} to ${date(rows.at(-1).date)}.`} ` +
        (flips.length ? ranged('The flip', flips, level) : 'There was no flip.'),
  });
  const values = rows.map((r) => r.net_gex_dollars);
  net.draw({
    ...axis,
    series: [{ name: 'Net', values, format: dollars, kind: 'bars', color: '--positive', negative: '--negative' }],
    yFormat: axisDollars,
    summary: `Net gamma was positive on ${values.filter((v) => v > 0).length} of ${rows.length} dates.`,
  });
}
