// History: one row of levels for each stored date.

import { Chart } from './chart.js';
import { h } from './dom.js';
import { axisDollars, date, dollars, level, number, shortDate } from './format.js';
import { Panel } from './panel.js';

/** historyPanel calls onDates with the stored dates, rising. */
export function historyPanel(onDates) {
  const levels = new Chart('Flip, walls and spot', 240, { sync: 'history' });
  const net = new Chart('Net gamma', 170, { sync: 'history' });
  const panel = new Panel({
    id: 'history', heading: 'History', about: 'The last levels of each stored date',
    render(data) {
      const column = (name) => data.rows.map((row) => row[data.columns.indexOf(name)]);
      const dates = column('date');
      onDates(dates);
      draw(levels, net, dates, column);
    },
  });
  panel.body.append(h('div', { class: 'stack' }, levels.element, net.element));
  return panel;
}

function draw(levels, net, dates, column) {
  const axis = {
    xs: dates.map((_, i) => i), xName: 'Date', ticks: [1, 2, 5, 10, 20, 50, 100], range: [-0.6, Math.max(dates.length - 0.4, 0.6)],
    xFormat: (i, exact) => (dates[i] ? (exact ? date : shortDate)(dates[i]) : ''),
  };
  const line = (name, key, color, more) => ({ name, values: column(key), format: level, kind: 'line', color, ...more });
  const flips = column('zero_gamma_flip').filter((x) => x !== null);
  levels.draw({
    ...axis,
    series: [
      line('Spot', 'spot', '--ink', { width: 2.5 }),
      line('Flip', 'zero_gamma_flip', '--flip'),
      line('Call wall', 'call_wall', '--positive', { kind: 'step' }),
      line('Put wall', 'put_wall', '--negative', { kind: 'step' }),
    ],
    yName: 'SPX, index points', yFormat: (y) => number(y),
    summary: dates.length === 0 ? 'No date is stored yet.'
      : `${dates.length === 1 ? `1 date, ${date(dates[0])}.` : `${dates.length} dates, from ${date(dates[0])} to ${date(dates.at(-1))}.`} ` +
        (flips.length ? `The flip lay between ${level(Math.min(...flips))} and ${level(Math.max(...flips))}.` : 'There was no flip.'),
  });
  const values = column('net_gex_dollars');
  net.draw({
    ...axis,
    series: [{ name: 'Net', values, format: dollars, kind: 'bars', color: '--positive', negative: '--negative' }],
    yName: '$ per 1 % move', yFormat: axisDollars,
    summary: `Net gamma was positive on ${values.filter((v) => v > 0).length} of ${dates.length} dates.`,
  });
}
