// Net gamma by strike and expiration: a table whose cells have the colours of a heat map.

import { floating, h, heat, say, scroller, table } from './dom.js';
import { date, dollars, level, number, short, shortDate } from './format.js';
import { day, Panel } from './panel.js';
import { choices, choose, onChoice } from './state.js';
import { term } from './terms.js';

const fewStrikes = 20; // fewer make no picture: SPX has 70 to 90 within 3 %, XLF 4
const strongest = 0.55; // of a colour: a figure on it can be read

/** series names a column: its date and its settlement. */
const series = (e) => `${date(e.expiration)} ${e.settlement.toUpperCase()}`;

/** matrixPanel returns the panel. */
export function matrixPanel() {
  let data = null;
  let first = '3'; // the range before the user chooses one
  let view = null;
  const range = choices('matrix', 'Strikes of the matrix', [['3', '±3 %'], ['5', '±5 %'], ['10', '±10 %']], () => first);
  const legend = h('p', { class: 'legend' });
  const said = h('output', { class: 'at' });
  const place = scroller('Net gamma by strike and expiration');
  place.addEventListener('pointerover', ({ target }) => say(said, figure(view, target.closest('td, th'))));
  place.addEventListener('pointerleave', () => say(said, ''));
  const summary = h('p', { class: 'summary' });
  const now = h('p', { class: 'now', hidden: true }, 'The matrix is of now only: no date of it is stored. ', h('button', { type: 'button', click: () => choose({ date: '' }, true) }, 'Show now'));
  const panel = new Panel({
    id: 'matrix', controls: [range.element],
    render(d) {
      if (d.symbol !== data?.symbol) first = within(d, 0.03).length < fewStrikes ? '10' : '3';
      data = d;
      range.allow(); // shows the first choice
      show();
    },
  });
  const show = () => {
    now.hidden = !day();
    panel.element.classList.toggle('absent', !!day());
    if (!data || day()) return;
    const before = view;
    view = cut(data, Number(range.picked()) / 100);
    const swatch = (name) => h('i', { class: name, 'aria-hidden': 'true' });
    legend.replaceChildren(term('net', 'Net gamma'), h('span', null, dollars(-view.most), swatch('scale'), dollars(view.most)), h('span', null, swatch('swatch none'), 'no open contract'),
      h('span', null, swatch('swatch dashes'), `spot ${level(view.spot)}`), said);
    place.replaceChildren(grid(view));
    say(summary, sentence(view));
    if (before?.share !== view.share || before.symbol !== view.symbol) place.scrollTop = (place.querySelector('.spot')?.offsetTop ?? 0) - place.clientHeight / 2;
  };
  onChoice(show);
  place.classList.add('matrix');
  panel.body.append(now, legend, place, summary);
  show();
  panel.follow('/api/v1/gex/{u}/matrix');
}

const within = (d, share) => d.strikes.filter((s) => Math.abs(s.strike / d.effective_spot - 1) <= share);

/** cut returns the strikes within a share of the spot, highest first, and the largest size, at which the colours end. */
function cut(d, share) {
  const rows = within(d, share).map((s) => ({ ...s, cells: d.net_gex_dollars?.[d.strikes.indexOf(s)] ?? d.expirations.map(() => null) })).reverse();
  const sizes = rows.flatMap((r) => r.cells).filter((x) => x !== null).map(Math.abs);
  return { rows, share, symbol: d.symbol, columns: d.expirations, spot: d.effective_spot, most: Math.max(...sizes, 0), count: sizes.length };
}

/** grid builds the table. The first row below the spot has a line above it, which crosses no figure. The colours grow with the root. */
function grid({ rows, columns, spot, most }) {
  const sum = Math.max(...rows.map((r) => Math.abs(r.net_gex_dollars ?? 0)));
  const below = rows.findIndex((r) => r.strike <= spot);
  const head = (e) => [`${shortDate(e.expiration)} `, h('small', null, e.settlement.toUpperCase()), h('b', null, brief(e.net_gex_dollars))];
  const cell = (x) => (x === null ? h('td', { class: 'none' }) : heat(x ? brief(x) : '', strongest * Math.sign(x) * Math.sqrt(Math.abs(x) / most)));
  return table('Net gamma by strike and expiration', ['Strike', 'All', ...columns.map(head)].map((text) => ({ head: text })),
    rows.map((r) => [level(r.strike), floating(0, r.net_gex_dollars, -sum, sum), ...r.cells.map(cell)]), (n) => ({ class: n === below && 'spot' }));
}

/** figure says what a cell or a head has. */
function figure(v, cell) {
  const row = cell?.closest('tbody') && v.rows[cell.parentNode.sectionRowIndex];
  const e = v?.columns[cell?.cellIndex - 2];
  if (!row && !e) return '';
  const x = (row && e ? row.cells[cell.cellIndex - 2] : (row || e).net_gex_dollars);
  return `${row ? level(row.strike) : 'All strikes'}, ${e ? series(e) : 'all expirations'}: ${x === null ? 'no open contract' : dollars(x)}`;
}

function sentence(v) {
  if (v.count === 0) return 'No cell in this range has a figure.';
  const cells = v.rows.flatMap((r) => r.cells.map((x, i) => ({ x, strike: r.strike, e: v.columns[i] }))).filter((c) => c.x !== null).sort((a, b) => b.x - a.x);
  const name = (c) => `${level(c.strike)} on ${series(c.e)} with ${dollars(c.x)}`;
  return `${number(v.count)} cells of ${number(v.rows.length)} strikes. Largest: ${name(cells[0])}; smallest: ${name(cells.at(-1))}. The colours grow with the root of the size. ` +
    'The sums by strike and by expiration are over all expirations and all strikes, also those not shown.';
}

/** brief writes a figure for a cell with at most two digits after its sign, without its unit: 1.2bn, −340m. */
const brief = (x) => {
  const digits = 10 ** Math.max(0, Math.floor(Math.log10(Math.abs(x || 1))) - 1);
  return short(x && Math.round(x / digits) * digits, true).replace('\u00a0', '');
};
