// Net gamma by strike and expiration, as a heat map and as a table.

import { h, say, scroller, table } from './dom.js';
import { date, dollars, level, number, short, shortDate } from './format.js';
import { color } from './paint.js';
import { day, Panel } from './panel.js';
import { choices, choose, onChoice } from './state.js';
import { term } from './terms.js';

const fewStrikes = 20; // fewer make no picture: SPX has 70 to 90 within 3 %, XLF 4

/** series names a column: its date and its settlement. */
const series = (e, write = date) => `${write(e.expiration)} ${e.settlement.toUpperCase()}`;

/** matrixPanel returns the panel. */
export function matrixPanel() {
  let data = null;
  let first = '3'; // the range before the user chooses one
  const range = choices('matrix', 'Strikes of the matrix', [['3', '±3 %'], ['5', '±5 %'], ['10', '±10 %']], () => first);
  const map = new HeatMap();
  const summary = h('p', { class: 'summary' });
  const now = h('p', { class: 'now', hidden: true }, 'The matrix is of now only: no date of it is stored. ', h('button', { type: 'button', click: () => choose({ date: '' }, true) }, 'Show now'));
  const details = h('details', { class: 'data', toggle: () => fillTable() }, h('summary', null, 'Show as table'));
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
    const view = cut(data, Number(range.picked()) / 100);
    map.draw(view);
    say(summary, sentence(view));
    fillTable(view);
  };
  const fillTable = (view = map.view) => {
    if (!details.open || !view) return;
    const grid = scroller('Net gamma by strike and expiration: table', asTable(view));
    if (details.children[1]) details.children[1].replaceWith(grid);
    else details.append(grid);
  };
  onChoice(show);
  panel.body.append(now, map.element, summary, details);
  show();
  panel.follow('/api/v1/gex/{u}/matrix');
  return panel;
}

const within = (d, share) => d.strikes.filter((s) => Math.abs(s.strike / d.effective_spot - 1) <= share);

/** cut returns the strikes within a share of the spot, highest first, and the largest size, at which the colours end. */
function cut(d, share) {
  const rows = within(d, share).map((s) => ({ ...s, cells: d.net_gex_dollars?.[d.strikes.indexOf(s)] ?? d.expirations.map(() => null) })).reverse();
  const sizes = rows.flatMap((r) => r.cells).filter((x) => x !== null).map(Math.abs);
  return { rows, share, columns: d.expirations, spot: d.effective_spot, most: Math.max(...sizes, 0), count: sizes.length };
}

function sentence(v) {
  if (v.count === 0) return 'No cell in this range has a figure.';
  const cells = v.rows.flatMap((r) => r.cells.map((x, i) => ({ x, strike: r.strike, e: v.columns[i] }))).filter((c) => c.x !== null);
  const name = (c) => `${level(c.strike)} on ${series(c.e)} with ${dollars(c.x)}`;
  const by = cells.toSorted((a, b) => b.x - a.x);
  return `${number(v.count)} cells of ${number(v.rows.length)} strikes. Largest: ${name(by[0])}; smallest: ${name(by.at(-1))}. ` +
    'The colours grow with the root of the size. ' +
    'The sums by strike and by expiration are over all expirations and all strikes, also those not shown.';
}

function asTable(v) {
  const number = true;
  return table(`Net gamma by strike and expiration, within ${v.share * 100} % of spot`,
    [{ head: 'Strike', number }, { head: 'All expirations', number }, ...v.columns.map((e) => ({ head: series(e), number }))],
    [['All strikes', '', ...v.columns.map((e) => dollars(e.net_gex_dollars))],
      ...v.rows.map((r) => [level(r.strike), dollars(r.net_gex_dollars), ...r.cells.map((x) => dollars(x))])]);
}

const maps = new Set();
const redraw = () => { for (const map of maps) map.render(); };
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
addEventListener('themechange', redraw);

/** HeatMap draws a view. Its column −1 has the sums by strike. */
class HeatMap {
  view = null;
  #row = -1;
  #column = 0;

  constructor() {
    const on = (column) => ({
      pointermove: (event) => this.#point(event, column), pointerdown: (event) => this.#point(event, column), pointerleave: (event) => { if (event.pointerType === 'mouse') this.#leave(); }, // a finger leaves when it is lifted
    });
    this.strikes = h('canvas', { width: 0, height: 0, class: 'strikes', ...on(-1) });
    this.cells = h('canvas', { width: 0, height: 0, ...on(0) });
    this.mark = h('i', { class: 'mark', hidden: true });
    this.tip = h('p', { class: 'word figure', popover: 'manual', 'aria-hidden': 'true' });
    this.said = h('output', { class: 'unseen' });
    this.heads = h('div', { class: 'heads' });
    this.scroller = h('div', {
      class: 'heat-map', tabindex: '0', role: 'application', 'aria-roledescription': 'heat map',
      'aria-label': 'Net gamma by strike and expiration; the arrow keys walk through its cells',
      keydown: (event) => this.#key(event), blur: () => this.#leave(), scroll: () => { if (!this.scroller.matches(':focus-visible')) this.tip.hidePopover(); }, // the arrow keys scroll, too
    }, h('div', { class: 'corner' }, h('span', null, 'Strike'), h('span', null, 'All')), this.heads, this.strikes, this.cells, this.mark);
    this.legend = h('p', { class: 'legend' });
    this.element = h('div', { class: 'matrix' }, this.legend, this.scroller, this.tip, this.said);
    new ResizeObserver(() => this.render()).observe(this.scroller);
    maps.add(this);
  }

  draw(view) {
    const first = !this.view || this.view.share !== view.share;
    const at = this.view?.rows[this.#row]?.strike; // the same strike stays picked
    this.view = view;
    this.#row = view.rows.findIndex((r) => r.strike <= (at ?? view.spot));
    this.#column = Math.min(this.#column, view.columns.length - 1);
    const swatch = (name) => h('i', { class: name, 'aria-hidden': 'true' });
    this.legend.replaceChildren(term('net', 'Net gamma'), h('span', { class: 'ramp' }, dollars(-view.most), swatch('scale'), dollars(view.most)),
      h('span', null, swatch('swatch block none'), 'no open contract'), h('span', null, swatch('swatch dashes'), `spot ${level(view.spot)}`));
    this.render();
    if (first) this.scroller.scrollTop = this.#spotAt() - this.scroller.clientHeight / 2;
  }

  /** render draws the view again, in another width or theme. */
  render() {
    const { view, scroller } = this;
    if (!view || scroller.clientWidth === 0) return;
    const narrow = scroller.clientWidth < 600;
    this.left = narrow ? 92 : 128;
    this.width = Math.max(70, Math.floor((scroller.clientWidth - this.left) / Math.max(1, view.columns.length)));
    const before = this.height;
    const room = scroller.clientHeight - this.cells.offsetTop - 4;
    this.height = Math.max(innerWidth < 1100 ? 5 : innerWidth < 2200 ? 13 : 17, Math.min(26, Math.floor(room / Math.max(1, view.rows.length)))); // as in app.css: from 1100 on each cell has its figure
    scroller.style.setProperty('--left', `${this.left}px`);
    scroller.style.setProperty('--cell', `${this.width}px`);
    this.heads.replaceChildren(...view.columns.map((e) => h('span', { title: series(e) }, `${shortDate(e.expiration)} `, h('small', null, e.settlement.toUpperCase()), h('b', null, e.net_gex_dollars ? brief(e.net_gex_dollars) : level(e.net_gex_dollars)))));
    const ink = Object.fromEntries(['ink', 'muted', 'surface', 'positive', 'negative', 'line', 'axis'].map((name) => [name, color(`--${name}`)]));
    this.#drawCells(ink);
    this.#drawStrikes(ink);
    this.#place();
    if (this.height !== before) scroller.scrollTop = this.#spotAt() - scroller.clientHeight / 2;
  }

  #context(canvas, width) {
    const height = this.height * this.view.rows.length;
    canvas.width = width * devicePixelRatio;
    canvas.height = height * devicePixelRatio;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const ctx = canvas.getContext('2d');
    ctx.scale(devicePixelRatio, devicePixelRatio);
    return ctx;
  }

  #drawCells(ink) {
    const { view, width, height } = this;
    const ctx = this.#context(this.cells, width * view.columns.length);
    const none = hatch(ctx, ink.axis);
    const shade = ramp(ink);
    const gap = height > 8 ? 1 : 0;
    ctx.font = `${height < 15 ? 10 : 11}px system-ui, sans-serif`;
    ctx.textAlign = 'center';
    ctx.textBaseline = 'middle';
    view.rows.forEach((row, r) => row.cells.forEach((x, c) => {
      const color = shade(x / view.most);
      ctx.fillStyle = x === null ? none : color;
      ctx.fillRect(c * width, r * height, width - 1, height - gap);
      if (height < 13 || !x) return;
      ctx.fillStyle = bright(color) === bright(ink.ink) ? ink.surface : ink.ink;
      ctx.fillText(brief(x), (c + 0.5) * width, (r + 0.5) * height);
    }));
    this.#spotLine(ctx, ink, 0, width * view.columns.length);
  }

  #drawStrikes(ink) {
    const { view, left, height } = this;
    const ctx = this.#context(this.strikes, left);
    const most = Math.max(...view.rows.map((r) => Math.abs(r.net_gex_dollars ?? 0)), 1);
    const room = left - 56;
    const middle = 54 + room / 2;
    ctx.fillStyle = ink.surface;
    ctx.fillRect(0, 0, left, height * view.rows.length);
    view.rows.forEach((r, i) => {
      const length = (r.net_gex_dollars ?? 0) / most * room / 2;
      ctx.fillStyle = length >= 0 ? ink.positive : ink.negative;
      ctx.fillRect(Math.min(middle, middle + length), i * height, Math.abs(length), Math.max(1, height - 1));
    });
    ctx.fillStyle = ink.axis;
    ctx.fillRect(middle, 0, 1, height * view.rows.length);
    this.#spotLine(ctx, ink, 50, left); // the legend names it, so that no label covers another
    ctx.font = '12px system-ui, sans-serif';
    ctx.textAlign = 'right';
    ctx.textBaseline = 'middle';
    const step = [25, 50, 100, 250, 500].find((s) => s / (view.rows[0]?.strike - view.rows.at(-1)?.strike) * view.rows.length * height >= 15) ?? 1000;
    ctx.fillStyle = ink.muted;
    view.rows.forEach((r, i) => {
      const y = (i + 0.5) * height;
      if (y >= 7 && (height >= 13 || r.strike % step === 0)) ctx.fillText(level(r.strike), 44, y);
    });
  }

  #spotLine(ctx, ink, from, to) {
    ctx.strokeStyle = ink.ink;
    ctx.lineWidth = 1.5;
    ctx.setLineDash([4, 3]);
    ctx.beginPath();
    ctx.moveTo(from, this.#spotAt());
    ctx.lineTo(to, this.#spotAt());
    ctx.stroke();
  }

  /** spotAt returns the place of the spot: between two rows, so that it covers no figure. */
  #spotAt() {
    const { rows, spot } = this.view;
    const above = rows.filter((r) => r.strike > spot).length;
    return Math.max(1, above * this.height - 0.5);
  }

  #point(event, column) {
    if (!this.view?.rows.length) return;
    const box = event.target.getBoundingClientRect();
    this.#row = Math.min(this.view.rows.length - 1, Math.max(0, Math.floor((event.clientY - box.top) / this.height)));
    this.#column = column < 0 ? -1 : Math.min(this.view.columns.length - 1, Math.max(0, Math.floor((event.clientX - box.left) / this.width)));
    this.#tell(event.clientX, event.clientY);
  }

  #key(event) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -Infinity], End: [0, Infinity] }[event.key];
    if (event.key === 'Escape') this.#leave();
    if (!step || !this.view?.rows.length) return;
    event.preventDefault();
    const inside = (x, from, to) => Math.min(to, Math.max(from, x));
    if (!this.mark.hidden) { // the first key shows the cell, the next ones walk
      this.#row = inside(this.#row + step[0], 0, this.view.rows.length - 1);
      this.#column = inside(this.#column + step[1], -1, this.view.columns.length - 1);
    }
    this.#show();
  }

  /** show scrolls to the picked cell, below the heads and beside the strikes, and tells its figure. */
  #show() {
    const { scroller, left, width, height } = this;
    const top = this.cells.offsetTop;
    const [x, y] = [Math.max(0, this.#column) * width, this.#row * height];
    scroller.scrollTo({
      left: Math.min(x, Math.max(scroller.scrollLeft, x + width + left - scroller.clientWidth)),
      top: Math.min(y, Math.max(scroller.scrollTop, y + height + top - scroller.clientHeight)), behavior: 'instant',
    });
    this.#place(true);
    this.mark.scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: 'instant' }); // in the window
    const box = (this.#column < 0 ? this.strikes : this.cells).getBoundingClientRect();
    this.#tell(box.left + (this.#column < 0 ? left : x + width) - 4, box.top + y + height / 2);
  }

  /** tell shows the figure of the picked cell near a point, and says it to screen readers. */
  #tell(x, y) {
    const row = this.view.rows[this.#row];
    const e = this.view.columns[this.#column];
    const value = e ? row.cells[this.#column] : row.net_gex_dollars;
    const figure = value === null ? 'no open contract' : dollars(value);
    const where = `${level(row.strike)}, ${e ? series(e) : 'all expirations'}`;
    this.tip.replaceChildren(`${where} `, h('b', null, figure));
    say(this.said, `${where}: ${figure}`);
    this.#place(true);
    this.tip.showPopover();
    const { style, offsetWidth, offsetHeight } = this.tip;
    style.left = `${x + 14 + offsetWidth < innerWidth - 8 ? x + 14 : Math.max(8, x - 14 - offsetWidth)}px`;
    style.top = `${Math.max(8, Math.min(y - offsetHeight - 8, innerHeight - offsetHeight - 8))}px`;
  }

  /** place puts the frame on the picked cell. */
  #place(seen = !this.mark.hidden) {
    const { style } = this.mark;
    this.mark.hidden = !seen || this.#row < 0;
    style.left = `${this.#column < 0 ? 0 : this.left + this.#column * this.width}px`;
    style.top = `${this.cells.offsetTop + this.#row * this.height}px`;
    style.width = `${(this.#column < 0 ? this.left : this.width) - 1}px`;
    style.height = `${this.height}px`;
  }

  #leave() {
    this.tip.hidePopover();
    this.mark.hidden = true;
  }
}

/** brief writes a figure for a cell with at most two digits after its sign, without its unit: 1.2bn, −340m. */
const brief = (x) => {
  const digits = 10 ** Math.max(0, Math.floor(Math.log10(Math.abs(x))) - 1);
  return short(Math.round(x / digits) * digits, true).replace('\u00a0', '');
};

/** bright says whether dark text is easier to read on a colour than light text. */
function bright(rgb) {
  const [r, g, b] = rgb.match(/[\d.]+/g);
  return 0.3 * r + 0.59 * g + 0.11 * b > 118;
}

/** ramp returns a function that gives the colour of a share of the clip: the surface at 0, full colour at ±1. It grows with the root. */
function ramp(ink) {
  const [surface, above, below] = [ink.surface, ink.positive, ink.negative].map((rgb) => rgb.match(/[\d.]+/g).map(Number));
  return (share) => {
    const strength = Math.sqrt(Math.abs(share) || 0); // where all is 0, there are no shares
    return `rgb(${surface.map((from, i) => Math.round(from + ((share > 0 ? above : below)[i] - from) * strength)).join(' ')})`;
  };
}

/** hatch returns the pattern of cells without a figure, so that they differ from 0. */
function hatch(ctx, stroke) {
  const tile = h('canvas', { width: 5, height: 5 });
  const t = tile.getContext('2d');
  t.globalAlpha = 0.55;
  t.strokeStyle = stroke;
  t.beginPath();
  for (const x of [-5, 0, 5]) {
    t.moveTo(x, 5);
    t.lineTo(x + 5, 0);
  }
  t.stroke();
  return ctx.createPattern(tile, 'repeat');
}
