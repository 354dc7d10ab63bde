// Net gamma by strike through a session as a heat map of all strikes that are stored, with the price over it.

import { Chart } from './chart.js';
import { axisDollars, date, level, number, time } from './format.js';
import { cellsOf, endsOf, figure, mapped, nearest, read, rowsAt } from './heat.js';
import { Panel } from './panel.js';
import { clock, followTrack, points } from './track.js';

const reach = 0.03; // of the strikes in sight from the spot
const few = 15; // strikes near the spot make no picture: NVDA has 2

/** heatPanel returns the panel of all strikes that are stored. */
export function heatPanel() {
  const chart = new Chart('Net gamma by strike', 380, { untitled: true, right: true, pad: [20, 14] });
  let track = null; // the hero follows it, too
  const show = () => { if (panel.document) draw(chart, panel.document.data, track); };
  const panel = new Panel({ id: 'heat', dated: 'track', render: show });
  panel.body.append(chart.element);
  panel.followDay('/api/v1/gex/{u}/strikes', '/api/v1/gex/{u}/strikes');
  followTrack((document) => {
    track = document?.data ?? null;
    show();
  });
  return panel;
}

function draw(chart, d, track) {
  const rows = mapped(read(d));
  if (rows.length < 2) return chart.clear(`The session of ${date(d.session_date)} has ${rows.length ? `one row, of ${time(rows[0].at, true)}` : 'no row'}: the map begins with the second.`);
  const { xs, column, name } = points(track?.session_date === d.session_date ? track : d); // the lines are those of the hero, with the same gaps
  const at = rowsAt(rows, xs, column('effective_spot'));
  const [low, high] = seen(rows);
  const line = (name, key, color, kind) => ({ name, values: column(key), format: level, kind, color, width: 2, gaps: true });
  chart.draw({
    view: d.session_date, xs, ...clock(name),
    yName: 'Strike', yFormat: (y) => number(y), yRange: [low, high],
    cells: cellsOf(d, Infinity, xs.at(-1)), scale: endsOf(d).map(axisDollars),
    walk: (i, y, by) => at[i]?.strikes[Math.min(at[i].strikes.length - 1, Math.max(0, nearest(at[i], y) + by))],
    series: [
      { name: 'Net gamma', values: at, format: figure, kind: 'cells', color: '--positive', negative: '--negative' },
      line('Spot', 'effective_spot', '--ink', 'line'),
      line('Flip', 'zero_gamma_flip', '--flip', 'line'), line('Call wall', 'call_wall', '--positive', 'step'), line('Put wall', 'put_wall', '--negative', 'step'),
    ],
    summary: `Session of ${date(d.session_date)}: ${number(rows.length)} ${rows.length === 1 ? 'row' : 'rows'}, from ${time(rows[0].at, true)} to ${time(rows.at(-1).at, true)} in New York, of strikes from ${level(low)} to ${level(high)}. ` +
      'The colours grow with the root of the size. A strike that some rows lack keeps its colour, at most 35 minutes. Hatched is what is not known.',
  });
}

/** seen returns the lowest and the highest strike in sight: near the spot, if enough are. */
function seen(rows) {
  const spots = rows.map((r) => r.spot);
  const [from, to] = [Math.min(...spots) * (1 - reach), Math.max(...spots) * (1 + reach)];
  const all = rows[0].strikes;
  const near = all.filter((k) => from <= k && k <= to);
  const shown = near.length < few ? all : near;
  const half = (shown[1] - shown[0]) / 2; // of a cell
  return [shown[0] - half, shown.at(-1) + half];
}
