// History: one row of levels for each stored date.

import { Chart } from './chart.js';
import { h } from './dom.js';
import { axisDollars, date, dollars, level, number, ranged, shortDate } from './format.js';
import { Panel } from './panel.js';
import { choose, underlying } from './state.js';

/** historyPanel builds the panel. */
export function historyPanel() {
  const levels = new Chart('Flip, walls and spot', 240, { sync: 'history' });
  const net = new Chart('Net gamma', 240, { sync: 'history' });
  const panel = new Panel({
    id: 'history',
    render(data) {
      const column = (name) => data.rows.map((row) => row[data.columns.indexOf(name)]);
      const dates = column('date');
      draw(levels, net, dates, column);
    },
  });
  panel.body.append(h('div', { class: 'split' }, levels.element, net.element));
  panel.follow('/api/v1/gex/{u}/series');
}

/** open shows a date in all panels that have it. */
function open(picked) {
  choose({ date: picked }, true);
  document.getElementById('today').scrollIntoView();
}

function draw(levels, net, dates, column) {
  const axis = {
    onPick: (i) => open(dates[i]),
    xs: dates.map((_, i) => i), xName: 'Date', ticks: [1, 2, 5, 10, 20, 50, 100], range: [-0.6, Math.max(dates.length - 0.4, 0.6)],
    xFormat: (i, exact) => (dates[i] ? (exact ? date : shortDate)(dates[i]) : ''),
  };
  const [split, method] = [column('split'), column('method')];
  axis.marks = dates.flatMap((_, i) => (split[i] ? [{ x: i, label: 'Split', color: '--muted' }]
    : i > 0 && method[i] !== method[i - 1] ? [{ x: i, label: method[i] ?? '', color: '--muted' }] : []));
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
    yName: underlying().toUpperCase(), yFormat: (y) => number(y),
    summary: dates.length === 0 ? 'No date is stored yet.'
      : `${dates.length === 1 ? `1 date, ${date(dates[0])}.` : `${dates.length} dates, from ${date(dates[0])} to ${date(dates.at(-1))}.`} ` +
        (flips.length ? ranged('The flip', flips, level) : 'There was no flip.'),
  });
  const values = column('net_gex_dollars');
  net.draw({
    ...axis,
    series: [{ name: 'Net', values, format: dollars, kind: 'bars', color: '--positive', negative: '--negative' }],
    yName: '$ per 1 % move', yFormat: axisDollars,
    summary: `Net gamma was positive on ${values.filter((v) => v > 0).length} of ${dates.length} dates.`,
  });
}
