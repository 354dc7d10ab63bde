// Sectors: a table of returns, and the rotation scatter.

import { h, heat, say, scroller, svg, table } from './dom.js';
import { number, percent, points, title, unknown, words } from './format.js';
import { Panel } from './panel.js';
import { fact, refill, term } from './terms.js';

const spans = [['day', 'Day'], ['week', 'Week'], ['month', 'Month'], ['quarter', 'Quarter'], ['ytd', 'Year to date']];

/** sectorsPanel builds the panel. */
export function sectorsPanel() {
  const facts = h('dl', { class: 'facts' }, list(null));
  const lacks = h('p', { class: 'about keep' });
  const returns = scroller('Sector returns');
  const rotation = h('figure', { class: 'chart rotation' });
  const panel = new Panel({
    id: 'sectors',
    render(data) {
      refill(facts, ...list(data));
      say(lacks, `${data.missing.length ? `Missing: ${data.missing.join(', ')}. ` : ''}${data.mixed_session ? 'The quotes are of different sessions.' : ''}`);
      returns.replaceChildren(grid(data));
      scatter(rotation, data);
    },
  });
  new ResizeObserver(() => { if (panel.document) scatter(rotation, panel.document.data); }).observe(panel.body);
  panel.body.append(facts, lacks, h('div', { class: 'split wide-left' }, returns, rotation));
  panel.followDay('/api/v1/sectors/rotation', '/api/v1/sectors/rotation');
}

function list(d) {
  const best = (funds) => (funds?.length ? `${funds[0].symbol} ${percent(funds[0].return_pct)}` : unknown);
  const next = (funds) => funds?.slice(1).map((s) => `${s.symbol} ${percent(s.return_pct, 1)}`).join(', ');
  return [
    fact('', 'Cyclical less defensive', d ? `${points(d.cyclical_minus_defensive_pct)} pts` : unknown, d?.tone ? `tone ${words(d.tone)}` : ''),
    fact('', 'Rising', d ? `${d.breadth.advancing} of ${d.sectors.length}` : unknown, d && `${d.breadth.above_benchmark} beat ${d.benchmark.symbol}`),
    fact('', 'Best of the day', best(d?.leaders), next(d?.leaders)),
    fact('', 'Worst', best(d?.laggards), next(d?.laggards)),
  ];
}

/** grid builds the table of the funds, best day first, and of the benchmark. */
function grid(d) {
  const rows = d.sectors.toSorted((a, b) => (a.rank?.day ?? 99) - (b.rank?.day ?? 99));
  const most = Object.fromEntries(spans.map(([key]) => [key, Math.max(...rows.map((s) => Math.abs(s.returns_pct[key] ?? 0)), 1e-9)]));
  const row = (s, name, strength, end) => [[h('b', null, s.symbol), h('span', { class: 'long' }, ` ${name}`)], number(s.price, 2, true),
    ...spans.map(([key]) => heat(percent(s.returns_pct[key]), strength * (s.returns_pct[key] ?? 0) / most[key])), end];
  return table('Returns by sector, best day first', [{ head: 'Fund' }, ...['Price, $', ...spans.map(([, name]) => name)].map((head) => ({ head, number: true })), { head: 'Rotation' }],
    [...rows.map((s) => row(s, s.sector, 0.34, title(s.rrg?.quadrant))), row(d.benchmark, 'benchmark', 0, '')]);
}

const weeks = 3; // of the trail of every fund
const size = { width: 440, height: 320, left: 54, right: 12, top: 8, bottom: 40 };

function scatter(figure, d) {
  size.width = Math.max(300, figure.clientWidth); // a pixel is a pixel
  const funds = d.sectors.filter((s) => s.rrg && s.rrg.rs_ratio !== null && s.rrg.rs_momentum !== null);
  const trail = Map.groupBy(d.trail ?? [], (p) => p.symbol); // answers of sectors/3 have none
  const recent = [...trail.values()].flatMap((ps) => ps.slice(-weeks));
  const reach = Math.max(1, ...[...recent, ...funds.map((s) => s.rrg)].flatMap((p) => [Math.abs(p.rs_ratio - 100), Math.abs(p.rs_momentum - 100)])) * 1.15;
  const x = (v) => size.left + ((v - 100 + reach) / (2 * reach)) * (size.width - size.left - size.right);
  const y = (v) => size.top + ((100 + reach - v) / (2 * reach)) * (size.height - size.top - size.bottom);
  const list = funds.map((s) => `${s.symbol} ${s.rrg.quadrant}`).join(', ');
  const drawing = svg('svg', { viewBox: `0 0 ${size.width} ${size.height}`, role: 'group', 'aria-label': 'Rotation scatter: relative strength across, its momentum upwards' },
    quadrants(x, y, reach), axes(x, y, reach),
    svg('clipPath', { id: 'rotation-plot' }, svg('rect', { x: size.left, y: size.top, width: size.width - size.left - size.right, height: size.height - size.top - size.bottom })), places(funds, x, y, trail));
  refill(figure, h('figcaption', null, h('h3', null, term('rotation', 'Rotation'))), drawing,
    h('p', { class: 'summary' }, funds.length ? `Against ${d.benchmark.symbol}, RRG-style; 100 is the average of 63 sessions, a line the last 3 weeks, and 8 of the fund under the cursor. ${list}.` : 'Too little price history for the rotation.'));
}

function quadrants(x, y, reach) {
  return [['leading', 1, 1, 'end'], ['weakening', 1, -1, 'end'], ['lagging', -1, -1, 'start'], ['improving', -1, 1, 'start']].map(([name, across, up, anchor]) => {
    const [x0, x1] = [x(100), x(100 + across * reach)].sort((a, b) => a - b);
    const [y0, y1] = [y(100), y(100 + up * reach)].sort((a, b) => a - b);
    return svg('g', { class: `quadrant ${name}`, 'aria-hidden': 'true' },
      svg('rect', { x: x0, y: y0, width: x1 - x0, height: y1 - y0 }),
      svg('text', { x: anchor === 'end' ? x1 - 8 : x0 + 8, y: up > 0 ? y0 + 18 : y1 - 9, 'text-anchor': anchor }, title(name)));
  });
}

function axes(x, y, reach) {
  const step = [0.25, 0.5, 1, 2, 5].find((s) => reach / s <= 3.5) ?? 10;
  const at = [];
  for (let v = -Math.floor(reach / step) * step; v <= reach; v += step) at.push(100 + v);
  const decimals = step < 0.5 ? 2 : step < 1 ? 1 : 0;
  return svg('g', { class: 'axes', 'aria-hidden': 'true' },
    svg('line', { x1: x(100 - reach), x2: x(100 + reach), y1: y(100), y2: y(100) }),
    svg('line', { x1: x(100), x2: x(100), y1: y(100 - reach), y2: y(100 + reach) }),
    at.map((v) => svg('text', { x: x(v), y: size.height - 23, 'text-anchor': 'middle' }, number(v, decimals, true))),
    at.map((v) => svg('text', { x: size.left - 6, y: y(v) + 4, 'text-anchor': 'end' }, number(v, decimals, true))),
    svg('text', { x: (size.left + size.width - size.right) / 2, y: size.height - 5, 'text-anchor': 'middle' }, 'Relative strength, index'),
    svg('text', { x: 0, y: 0, 'text-anchor': 'middle', transform: `translate(11 ${(size.height - size.bottom + size.top) / 2}) rotate(-90)` }, 'Momentum, index'));
}

/** places draws a dot, a name and the way of each fund to its dot: of the last weeks, and all of it while it is pointed at. The name covers no other name, dot or line if such a place is found. */
function places(funds, x, y, trail) {
  const way = (name, points) => svg('polyline', { class: name, 'clip-path': 'url(#rotation-plot)', points: points.map((p) => `${x(p.rs_ratio).toFixed(1)},${y(p.rs_momentum).toFixed(1)}`).join(' ') });
  const taken = funds.map((s) => [x(s.rrg.rs_ratio) - 8, y(s.rrg.rs_momentum) - 8, 16, 16]);
  const lines = [[x(100), size.top, 0, size.height], [size.left, y(100), size.width, 0]];
  const meet = ([a, b, w, hh]) => ([c, d, v, g]) => a < c + v && c < a + w && b < d + g && d < b + hh;
  const free = (box) => box[0] > size.left && box[0] + box[2] < size.width - size.right && box[1] > size.top && box[1] + box[3] < size.height - size.bottom && !taken.some(meet(box));
  return funds.map((s) => {
    const [cx, cy] = [x(s.rrg.rs_ratio), y(s.rrg.rs_momentum)];
    const width = s.symbol.length * 9;
    const tries = [[8, -7], [-8 - width, -7], [-width / 2, -22], [-width / 2, 8], [8, -19], [8, 5], [-8 - width, -19], [-8 - width, 5]]
      .map(([dx, dy]) => [cx + dx, cy + dy, width, 14]);
    const box = tries.find((b) => free(b) && !lines.some(meet(b))) ?? tries.find(free) ?? tries[0];
    taken.push(box);
    const label = `${s.symbol} ${s.sector}, ${s.rrg.quadrant}: relative strength ${number(s.rrg.rs_ratio, 2, true)}, momentum ${number(s.rrg.rs_momentum, 2, true)}`;
    return svg('g', { class: `fund ${s.rrg.quadrant}`, tabindex: '0', role: 'img', 'aria-label': label },
      svg('title', null, label), way('recent', (trail.get(s.symbol) ?? []).slice(-weeks)), way('whole', trail.get(s.symbol) ?? []), svg('circle', { cx, cy, r: 5.5 }), svg('text', { x: box[0] + width / 2, y: box[1] + 11.5, 'text-anchor': 'middle' }, s.symbol));
  });
}
