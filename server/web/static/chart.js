// One chart: uPlot draws, and everything around it makes the chart readable without seeing it: a summary in words,
// values that the arrow keys walk through, and the same data as a table.

import { h, say, scroller, table } from './dom.js';

const { uPlot } = window;
const labelHeight = 17;

/** color resolves a custom property to a colour that the canvas understands. */
function color(name) {
  const probe = document.documentElement.appendChild(h('i'));
  probe.style.color = `var(${name})`;
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** faded makes a colour more transparent. */
const faded = (rgb, alpha) => rgb.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`);

const charts = new Set();
const redraw = () => { for (const chart of charts) chart.render(); };
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
addEventListener('themechange', redraw);
const resized = new ResizeObserver((entries) => { for (const { target } of entries) target.chart.resize(); });

/**
 * Chart draws what draw is given:
 *   xs, xName, xFormat    the points
 *   series                [{name, values, format, kind, color, negative, width, dash, labels, under}]
 *                         kind is line, step, bars, area, points, or none: in legend and table only
 *   yName, yFormat        of the axis
 *   range, yRange         [from, to], the visible part of the axis; optional
 *   ticks                 the steps allowed between x ticks; optional
 *   marks, bands          vertical [{x, label, color}] and [{from, to, color}]
 *   start                 the x at which the keyboard begins
 *   summary               the chart in words
 */
export class Chart {
  #plot = null;
  #spec = null;
  #index = null;

  constructor(title, height, { sync } = {}) {
    this.title = title;
    this.height = height;
    this.sync = sync;
    this.legend = h('p', { class: 'legend', 'aria-hidden': 'true' });
    this.canvas = h('div', {
      class: 'plot', tabindex: '0', role: 'slider', 'aria-label': `${title}: chart; the arrow keys walk through its points`,
      'aria-valuemin': '0', 'aria-valuemax': '0', 'aria-valuenow': '0', keydown: (event) => this.#key(event),
    });
    this.canvas.style.height = `${height}px`;
    this.canvas.chart = this;
    this.summary = h('p', { class: 'summary' });
    this.data = h('details', { class: 'data', toggle: () => this.#fillTable() }, h('summary', null, 'Show as table'));
    this.element = h('figure', { class: 'chart' }, h('figcaption', null, h('h3', null, title), this.legend), this.canvas, this.summary, this.data);
    resized.observe(this.canvas);
    charts.add(this);
  }

  draw(spec) {
    this.#spec = spec;
    this.#index = Math.max(0, spec.start === undefined ? spec.xs.length - 1 : spec.xs.findIndex((x) => x >= spec.start));
    say(this.summary, spec.summary);
    this.#legend();
    this.render();
    this.#fillTable();
    this.canvas.setAttribute('aria-valuemax', Math.max(0, spec.xs.length - 1));
    this.canvas.dataset.points = spec.xs.length;
    this.#tell(this.#index);
  }

  /** render draws the last spec again, after new data or in another theme. */
  render() {
    if (!this.#spec) return;
    this.#plot?.destroy();
    this.#plot = null;
    this.element.classList.toggle('blank', !this.#spec.series.some((s) => s.kind !== 'none' && s.values.some(Number.isFinite)));
    if (this.canvas.clientWidth === 0) return; // hidden, or nothing to draw
    const { opts, data } = this.#options(this.#spec);
    this.#plot = new uPlot(opts, data, this.canvas);
  }

  resize() {
    const width = this.canvas.clientWidth;
    if (!this.#plot) this.render();
    else if (width > 0 && width !== this.#plot.width) this.#plot.setSize({ width, height: this.height });
  }

  #options(spec) {
    const ink = { text: color('--muted'), grid: color('--grid'), line: color('--axis'), surface: color('--surface') };
    const data = [spec.xs];
    const series = [{}];
    for (const s of spec.series) {
      if (s.kind === 'bars') { // one series for each sign, so that each has its colour
        data.push(s.values.map((v) => (v >= 0 ? v : null)), s.values.map((v) => (v < 0 ? v : null)));
        series.push(drawn(s, color(s.color)), drawn(s, color(s.negative ?? s.color)));
      } else {
        data.push(s.values);
        series.push(drawn(s, color(s.color), s.negative && color(s.negative)));
      }
    }
    const axis = { stroke: ink.text, font: '12px system-ui, sans-serif', labelFont: '12px system-ui, sans-serif', labelGap: 2,
      grid: { stroke: ink.grid, width: 1 }, ticks: { stroke: ink.grid, width: 1, size: 4 } };
    const marks = (spec.marks ?? []).filter((m) => m.x !== null && m.x !== undefined);
    return { data, opts: {
      width: this.canvas.clientWidth,
      height: this.height,
      padding: [marks.length ? labelHeight * marks.length + 6 : 16, 20, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { size: 7 }, y: false, sync: this.sync && { key: this.sync } },
      scales: {
        x: { time: false, range: spec.range ?? ((_, a, b) => (a === b ? [a - 1, b + 1] : [a, b])) },
        y: { range: spec.yRange ?? ((_, a, b) => uPlot.rangeNum(a ?? 0, b ?? 1, 0.08, true)) },
      },
      axes: [
        { ...axis, label: spec.xName, size: 28, labelSize: 18, space: 64, incrs: spec.ticks, grid: { show: false },
          values: (_, splits) => splits.map((x) => spec.xFormat(x)) },
        { ...axis, label: spec.yName, labelSize: 18, space: 28, values: (_, splits) => splits.map((y) => spec.yFormat(y)),
          size: (_, values) => 16 + 6.6 * Math.max(3, ...(values ?? []).map((v) => v.length)) },
      ],
      series,
      hooks: {
        drawClear: [(u) => { shade(u, spec.bands ?? []); zeroLine(u, ink.line); }],
        draw: [(u) => { annotate(u, marks, ink.surface); nameValues(u, spec.series, ink.text); }],
        setCursor: [(u) => { if (u.cursor.idx !== null && u.cursor.idx !== undefined) this.#tell(u.cursor.idx); }],
      },
    } };
  }

  #key(event) {
    const last = this.#spec ? this.#spec.xs.length - 1 : -1;
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || last < 0) return;
    event.preventDefault();
    const i = Math.min(last, Math.max(0, (this.#index ?? 0) + step));
    if (this.#plot) this.#plot.setCursor({ left: this.#plot.valToPos(this.#spec.xs[i], 'x'), top: 1 });
    this.#tell(i);
  }

  /** tell says the values of a point in the legend and to screen readers. */
  #tell(i) {
    const spec = this.#spec;
    this.#index = i;
    if (spec.xs.length === 0) return;
    const at = spec.xFormat(spec.xs[i], true);
    say(this.legend.firstChild, at);
    const values = spec.series.map((s) => `${s.name} ${s.format(s.values[i])}`);
    spec.series.forEach((s, j) => say(this.legend.children[j + 1].lastChild, s.format(s.values[i])));
    this.canvas.setAttribute('aria-valuenow', i);
    this.canvas.setAttribute('aria-valuetext', `${spec.xName} ${at}: ${values.join(', ')}`);
  }

  #legend() {
    const entries = this.#spec.series.map((s) => {
      if (s.kind === 'none') return h('span', null, `${s.name} `, h('b', null, ''));
      const swatch = h('i', { class: s.kind === 'bars' || s.kind === 'area' ? 'swatch block' : 'swatch' });
      swatch.style.setProperty('--from', `var(${s.color})`);
      swatch.style.setProperty('--to', `var(${s.negative ?? s.color})`);
      return h('span', null, swatch, `${s.name} `, h('b', null, ''));
    });
    this.legend.replaceChildren(h('span', { class: 'at' }, ''), ...entries);
  }

  #fillTable() {
    const spec = this.#spec;
    if (!this.data.open || !spec) return;
    const columns = [{ head: spec.xName, number: true }, ...spec.series.map((s) => ({ head: s.name, number: true }))];
    const rows = spec.xs.map((x, i) => [spec.xFormat(x, true), ...spec.series.map((s) => s.format(s.values[i]))]);
    const place = scroller(`${this.title}: table`, table(this.title, columns, rows));
    const old = this.data.children[1];
    if (old) old.replaceWith(place);
    else this.data.append(place);
  }
}

/** drawn returns uPlot's description of a series. */
function drawn(s, stroke, negative) {
  const { bars, stepped, linear } = uPlot.paths;
  switch (s.kind) {
    case 'bars':
      return { stroke, fill: stroke, width: 0, paths: bars({ size: [0.72, 22, 1] }), points: { show: false } };
    case 'step':
      return { stroke, width: s.width ?? 1.5, dash: s.dash, paths: stepped({ align: 1 }), points: { show: s.values.length < 2 }, spanGaps: false };
    case 'points':
      return { stroke, fill: stroke, paths: () => null, points: { show: true, size: 10, fill: stroke } };
    case 'none': // in the legend and the table only
      return { show: false };
    case 'area': {
      const split = (alpha) => (u) => bySign(u, faded(stroke, alpha), faded(negative, alpha));
      return { stroke: split(1), fill: split(0.16), width: 2, fillTo: 0, points: { show: false } };
    }
    default:
      return { stroke, width: s.width ?? 2, dash: s.dash, paths: linear(), spanGaps: true, points: { show: s.dots ?? s.values.length < 2, size: 7, fill: stroke } };
  }
}

/** bySign returns a fill of one colour above zero and another below. */
function bySign(u, above, below) {
  const { top, height } = u.bbox;
  const zero = (u.valToPos(0, 'y', true) - top) / height;
  if (!Number.isFinite(zero)) return above;
  const gradient = u.ctx.createLinearGradient(0, top, 0, top + height);
  const stop = Math.min(1, Math.max(0, zero));
  gradient.addColorStop(0, above);
  gradient.addColorStop(stop, above);
  gradient.addColorStop(stop, below);
  gradient.addColorStop(1, below);
  return gradient;
}

function zeroLine(u, stroke) {
  const y = Math.round(u.valToPos(0, 'y', true));
  if (!(y > u.bbox.top && y < u.bbox.top + u.bbox.height)) return;
  u.ctx.fillStyle = stroke;
  u.ctx.fillRect(u.bbox.left, y, u.bbox.width, Math.max(1, Math.round(devicePixelRatio)));
}

function shade(u, bands) {
  for (const { from, to, color: name } of bands) {
    const left = Math.max(u.bbox.left, u.valToPos(from, 'x', true));
    const right = Math.min(u.bbox.left + u.bbox.width, u.valToPos(to, 'x', true));
    if (!(right > left)) continue;
    u.ctx.fillStyle = faded(color(name), 0.13);
    u.ctx.fillRect(left, u.bbox.top, right - left, u.bbox.height);
  }
}

/** annotate draws a line for each mark, and its label in the lowest row above the plot that has room. */
function annotate(u, marks, surface) {
  const { ctx, bbox } = u;
  const scale = devicePixelRatio;
  const rows = marks.map(() => -Infinity); // one per mark, so a row always has room
  ctx.save();
  ctx.font = `600 ${11.5 * scale}px system-ui, sans-serif`;
  ctx.textBaseline = 'middle';
  ctx.textAlign = 'left'; // uPlot has set another for its last axis
  const placed = [];
  for (const mark of marks.toSorted((a, b) => a.x - b.x)) {
    const x = u.valToPos(mark.x, 'x', true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    const width = ctx.measureText(mark.label).width + 8 * scale;
    const left = Math.min(Math.max(x - width / 2, 2 * scale), u.ctx.canvas.width - width - 2 * scale);
    const row = rows.findIndex((end) => end <= left);
    rows[row] = left + width + 10 * scale;
    placed.push({ ...mark, x, left, width, y: bbox.top - (row + 0.5) * labelHeight * scale - 2 * scale });
  }
  for (const { x, y, color: name } of placed) {
    ctx.strokeStyle = color(name);
    ctx.lineWidth = 1.5 * scale;
    ctx.setLineDash([4 * scale, 3 * scale]);
    ctx.beginPath();
    ctx.moveTo(x, y);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  for (const { left, width, y, label, color: name } of placed) {
    ctx.fillStyle = surface;
    ctx.fillRect(left, y - (labelHeight / 2) * scale, width, labelHeight * scale);
    ctx.fillStyle = color(name);
    ctx.fillText(label, left + 4 * scale, y);
  }
  ctx.restore();
}

/** nameValues writes the labels of points above or below them. It leaves out labels without room. */
function nameValues(u, series, fillStyle) {
  const { ctx } = u;
  ctx.save();
  ctx.font = `${11.5 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = 'center';
  ctx.textBaseline = 'alphabetic';
  ctx.fillStyle = fillStyle;
  for (const s of series) {
    let end = -Infinity;
    s.labels?.forEach((label, i) => {
      if (!label || s.values[i] === null) return;
      const x = u.valToPos(u.data[0][i], 'x', true);
      const half = ctx.measureText(label).width / 2 + 3;
      if (x - half < end) return;
      end = x + half;
      const below = s.under?.[i] ? 19 : -10;
      ctx.fillText(label, x, u.valToPos(s.values[i], 'y', true) + below * devicePixelRatio);
    });
  }
  ctx.restore();
}
