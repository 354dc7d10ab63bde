// One chart: uPlot draws, and all around it makes it readable without sight: a summary, values by arrow keys, a table.

import { h, say, scroller, table } from './dom.js';
import { annotate, beyond, clean, color, covered, decimals, drawable, drawn, faint, glyphs, heat, labelHeight, nameValues, overhang, ribbon, rules, shade, swatch, tags, zeroLine } from './paint.js';
import { underlying } from './state.js';
import uPlot from './uplot-1.6.32.esm.js';

const charts = new Set();
const redraw = () => {
  for (const chart of charts) waiting.add(chart);
  if (!drawing) next();
};
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
addEventListener('themechange', redraw);

// A drawing takes a good part of a frame, so each frame draws one chart. The first does not wait.
const waiting = new Set();
let drawing = false;
let held = false; // the mouse is pressed on a drawing: a new drawing would lose what is dragged
function next() {
  const [chart] = waiting;
  drawing = chart !== undefined && !held;
  if (!drawing) return;
  requestAnimationFrame(() => setTimeout(next)); // also if this drawing fails
  chart.render();
}

/** together draws those of some charts that wait. */
export function together(some) {
  for (const chart of some) if (!held && waiting.has(chart)) chart.render();
}

function release() {
  if (!held) return;
  held = false;
  if (!drawing) next();
}
for (const end of ['mouseup', 'pointercancel', 'dragend', 'blur']) addEventListener(end, release);
addEventListener('pointermove', (event) => { if (!(event.buttons & 1)) release(); }); // the press has ended, and no event said so

const resized = new ResizeObserver((entries) => { for (const { target } of entries) target.chart.resize(); });

/**
 * Chart draws what draw is given:
 *   xs, xName, xFormat    the points
 *   series                [{name, values, format, kind, color, negative, faint, width, dash, labels, under, gaps}]
 *                         kind is line, step, bars, ghost (pale bars behind), area, points, ribbon, or none: in the tooltip and the table only. A line
 *                         connects its points across unknown values, but with gaps it does not. A ribbon shades from the low
 *                         to the high of its values [low, high]. It leaves the scale of y as it is. The format of kind cells has
 *                         the price under the cursor as its second value.
 *   yFormat               the numbers of the axis; yFormat and xFormat are told how many decimals its step has
 *   range, yRange         [from, to], the visible part of the axis; optional
 *   ticks, splits         the steps allowed between x ticks, or their places; optional
 *   marks                 vertical lines [{x, label, color}]; no label covers another, a line or a number of an axis
 *   levels                prices [{at, label, short, beyond, color, from}]: lines from side to side, or from an x on; a price axis at the right has tags
 *   bands                 shades [{from, to, color, label}] from top to bottom, or [{xs, values, color, label}], a ribbon with points of its own; the legend has the label
 *   glyphs                signs of events [{x, y, glyph, color}], over the series
 *   cells                 [from, to, low, high, share]: a map below everything else, in the colours of the share, −1 to 1
 *   scale                 [text, text] of the figures at the ends of the colours of the map, for the legend
 *   beyond                a text about what lies outside of the plot
 *   view                  names what is chosen to be seen; a zoom ends when it changes, and when the underlying does
 *   start                 the x at which the keyboard begins
 *   summary               the chart in words
 *   onPick(i)             called when the user clicks a point or presses Enter on it; optional
 *
 * The pointer and the arrow keys show a tooltip with the values of the nearest point. Dragging zooms, and so do + and -.
 * A double click, Escape and a button show everything again. A finger that moves sideways scrubs; upwards it scrolls the page.
 * Charts with the same sync have the same x axis: their cursors and their zooms move together. Charts with the same along show
 * one cursor, and zoom alone. gutter is the least width of the y axis, so that such charts are in line. right puts this axis at the
 * right. Of a sideways chart x runs upwards, so that its bars lie beside a price axis: lone, it has its own, and tags. A bare chart has no x
 * axis. top and pad are the room above the plot and at its sides. height is in CSS pixels, unless style sheets give the plot
 * another. zoomed(range) is called when the user has zoomed, moved(u) when a cursor of the drawing has moved.
 */
export class Chart {
  #plot = null;
  #spec = null;
  #index = null;
  zoom = null; // [from, to], the part that the user has chosen
  #drawn; // the view of #plot; while a drawing waits, #spec may have another
  #down = null; // where the pointer was pressed on the drawing
  #tagged = []; // the tags of levels

  constructor(title, height, options = {}) {
    Object.assign(this, { title, height, gutter: 0, pad: [20, 0], zoomed() {}, moved() {} }, options);
    this.legend = h('p', { class: 'legend', 'aria-hidden': 'true' });
    this.all = h('button', { type: 'button', class: 'unzoom', hidden: true, click: () => { this.#zoomTo(null); this.canvas.focus(); } }, 'Reset zoom');
    this.hint = h('div', { class: 'hint', 'aria-hidden': 'true', hidden: true });
    this.canvas = h('div', {
      class: 'plot', tabindex: '0', role: 'slider', 'aria-label': `${title}: chart; the arrow keys walk through its points, plus and minus zoom`,
      'aria-valuemin': '0', 'aria-valuemax': '0', 'aria-valuenow': '0', keydown: (event) => this.#key(event),
      blur: () => this.#hide(), pointerleave: () => this.#hide(), pointermove: (event) => this.#scrub(event),
      pointerdown: (event) => this.#press(event), pointerup: (event) => this.#release(event),
    }, this.hint);
    this.canvas.chart = this;
    this.summary = h('p', { class: 'summary' });
    this.data = h('details', { class: 'data', toggle: () => this.#fillTable() }, h('summary', null, 'Show as table'));
    this.element = h('figure', { class: 'chart' }, h('figcaption', null, h('h3', null, title), this.legend, this.all), this.canvas, this.summary, this.data);
    this.element.style.setProperty('--plot', `${height}px`);
    resized.observe(this.canvas);
    charts.add(this);
  }

  draw(spec) {
    spec = { ...spec, view: `${underlying()} ${spec.view}` };
    const at = this.hint.hidden ? null : this.#spec?.xs[this.#index]; // the user is reading this point
    if (!spec.xs.includes(at)) this.#hide();
    if (spec.view !== this.#spec?.view) this.#endZoom();
    this.#spec = spec;
    this.#index = at !== null && spec.xs.includes(at) ? spec.xs.indexOf(at) : Math.max(0, spec.start === undefined ? spec.xs.length - 1 : spec.xs.findIndex((x) => x >= spec.start));
    say(this.summary, spec.summary);
    this.#legend();
    waiting.add(this);
    if (!drawing) next();
    this.#fillTable();
    this.canvas.setAttribute('aria-valuemax', Math.max(0, spec.xs.length - 1));
    this.canvas.dataset.points = spec.xs.length;
    this.canvas.setAttribute('aria-valuetext', spec.summary); // of a chart without points
    this.#tell(this.#index);
  }

  /** clear removes the drawing, keeps its place, and says why. */
  clear(why) {
    waiting.delete(this);
    this.#spec = null;
    this.#index = null;
    this.#hide();
    this.#endZoom();
    this.#plot?.destroy();
    this.#plot = null;
    this.legend.replaceChildren();
    this.element.classList.add('blank');
    this.canvas.dataset.points = 0;
    this.canvas.setAttribute('aria-valuetext', why);
    say(this.summary, why);
  }

  /** render draws the last spec again, after new data or in another theme. */
  render() {
    waiting.delete(this);
    if (!this.#spec) return;
    this.#plot?.destroy();
    this.#plot = null;
    this.element.classList.toggle('blank', !drawable(this.#spec));
    if (this.canvas.clientWidth === 0) return; // hidden, or nothing to draw
    const { opts, data } = this.#options(this.#spec);
    this.#plot = new uPlot(opts, data, this.canvas);
    this.#drawn = this.#spec.view;
    const i = this.#index;
    if (!this.hint.hidden) queueMicrotask(() => { if (this.#plot) this.#point(i); }); // after uPlot has its scales
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!this.#plot) this.render();
    else if (width > 0 && (width !== this.#plot.width || height !== this.#plot.height)) this.#plot.setSize({ width, height });
  }

  #options(spec) {
    const ink = { text: color('--muted'), grid: color('--grid'), line: color('--axis') };
    const [data, series] = [[spec.xs], [{}]];
    for (const s of spec.series) {
      const ink = s.faint ? faint : color;
      if (s.kind === 'bars') { // one series for each sign, so that each has its colour
        data.push(s.values.map((v) => (v >= 0 ? v : null)), s.values.map((v) => (v < 0 ? v : null)));
        series.push(drawn(s, ink(s.color)), drawn(s, ink(s.negative ?? s.color)));
      } else {
        const edge = spec.cells?.length && ['line', 'step'].includes(s.kind) ? [drawn({ ...s, width: (s.width ?? 2) + 3 }, color('--surface'))] : []; // or a line is lost in its colour
        for (const one of [...edge, drawn(s, ink(s.color), s.negative && color(s.negative))]) data.push(s.values) && series.push(one);
      }
    }
    const axis = { stroke: ink.text, font: '12px system-ui, sans-serif',
      grid: { stroke: ink.grid, width: 1 }, ticks: { stroke: ink.grid, width: 1, size: 4 } };
    const filled = spec.series.some((s) => s.kind === 'bars' || s.kind === 'area'); // a fill begins at zero
    const marks = (spec.marks ?? []).filter((m) => m.x !== null && m.x !== undefined);
    const levels = (spec.levels ?? []).filter((l) => l.at !== null && l.at !== undefined);
    const { sideways } = this;
    const key = this.#group;
    return { data, opts: {
      width: this.canvas.clientWidth,
      height: this.canvas.clientHeight,
      padding: [this.top ?? (marks.length ? labelHeight * marks.length + 6 : 16), this.right ? this.pad[0] : overhang(!!sideways, true, this.pad[0]), this.bare ? 6 : 0, sideways ? overhang(true, false, this.pad[1]) : this.pad[1]],
      legend: { show: false },
      cursor: {
        drag: { x: !sideways, y: false, setScale: false, dist: 8 }, points: { size: 7 }, y: false, bind: { dblclick: () => () => this.#zoomTo(null) },
        move: (u, left, top) => onPoint(u, left, top, sideways),
        sync: key && { key, filters: { pub: (type) => type === 'mousemove' || type === 'mouseleave' } },
      },
      scales: {
        x: { time: false, ori: sideways ? 1 : 0, range: (_, a, b) => this.zoom ?? spec.range ?? (a === b ? [a - 1, b + 1] : [a, b]) },
        y: { ori: sideways ? 0 : 1, range: spec.yRange ?? ((_, a, b) => uPlot.rangeNum(filled ? Math.min(a, 0) : a ?? 0, filled ? Math.max(b, 0) : b ?? 1, 0.08, true)) },
      },
      axes: [
        { ...axis, show: !this.bare && (!sideways || this.lone), side: sideways ? 3 : 2, size: sideways ? 54 : 28, space: 64, incrs: spec.ticks, splits: spec.splits && ((u, _, low, high) => spec.splits.filter((x) => low <= x && x <= high)), grid: { show: false },
          values: (_, splits, axis, space, step) => splits.map((x) => spec.xFormat(x, false, decimals(step))) },
        sideways ? { ...axis, side: 2, size: 28, space: 56, values: (_, splits) => splits.map((y) => spec.yFormat(y)) }
          : { ...axis, side: this.right ? 1 : 3, space: (...[, , , , room]) => Math.min(28, room / 2.5), grid: { ...axis.grid, show: !spec.cells }, values: (u, splits, _, space, step) => splits.map((y) => (this.right && covered(u, y, levels) ? '' : spec.yFormat(y, decimals(step)))),
            size: (_, values) => Math.max(this.gutter, 16 + 6.6 * Math.max(3, ...(values ?? []).map((v) => v.length))) },
      ],
      series,
      hooks: {
        drawClear: [
          (u) => heat(u, spec.cells ?? []), (u) => shade(u, spec.bands ?? []),
          ...spec.series.filter((s) => s.kind === 'ribbon').map((s) => (u) => ribbon(u, s)), (u) => zeroLine(u, ink.line),
        ].map(clean),
        draw: [
          (u) => rules(u, levels), (u) => annotate(u, marks), (u) => nameValues(u, spec.series, ink.text), (u) => beyond(u, spec.beyond ?? ''),
          (u) => { this.#tagged = this.right || this.lone ? tags(u, levels) : []; }, (u) => glyphs(u, spec.glyphs ?? [], this.#tagged),
        ].map(clean),
        setCursor: [(u) => { this.moved(u); if (u.cursor.idx !== null && u.cursor.idx !== undefined) this.#tell(u.cursor.idx); }],
        setSelect: [(u) => this.#selected(u)],
        ready: [(u) => u.over.classList.toggle('picks', !!spec.onPick)],
      },
    } };
  }

  #key(event) {
    const last = this.#spec ? this.#spec.xs.length - 1 : -1;
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity }[event.key];
    if (last < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape') {
      if (!this.hint.hidden) this.#hide();
      else if (this.zoom) this.#zoomTo(null);
      else return; // it ends a replay
    } else if (event.key === 'Enter' && this.#spec.onPick) {
      this.#spec.onPick(this.#index);
    } else if ((event.key === '+' || event.key === '-') && !this.sideways) {
      this.#magnify(event.key === '+' ? 0.5 : 2);
    } else if (step !== undefined) {
      this.#point(Math.min(last, Math.max(0, (this.#index ?? 0) + step)));
    } else return;
    event.preventDefault();
  }

  /** point moves the cursor to a point, and shows its values. A point outside the zoomed part ends the zoom. */
  #point(i) {
    const x = this.#spec.xs[i];
    if (this.zoom && (x < this.zoom[0] || x > this.zoom[1])) this.#zoomTo(null);
    for (const chart of charts) { // uPlot itself tells the others of a mouse only
      if (chart === this || this.#group && chart.#group === this.#group) chart.#stand(x);
    }
    this.#tell(i);
    this.#show();
  }

  get #group() { return this.sync ?? this.along; }

  /** stand puts the cursor on the point nearest to x. */
  #stand(x) {
    const { min, max } = this.#plot?.scales.x ?? {};
    if (!(x >= min && x <= max)) return;
    const at = this.#plot.valToPos(x, 'x');
    this.#plot.setCursor(this.sideways ? { left: 1, top: at } : { left: at, top: 1 });
  }

  /** said returns the series that say something at a point, and what: of cells, that under the cursor, unless the keyboard has placed it above all. */
  #said(i) {
    const { top } = this.#plot?.cursor ?? {};
    const price = top > 1 ? this.#plot.posToVal(top, 'y') : undefined;
    return this.#spec.series.map((s) => [s, s.kind === 'cells' ? s.format(s.values[i], price) : s.format(s.values[i])]).filter(([, text]) => text !== '');
  }

  /** scrub follows a finger that moves sideways. uPlot itself follows a mouse, but only when it moves. */
  #scrub(event, pressed = false) {
    const u = this.#plot;
    if (!u || !this.#spec?.xs.length) return;
    const touch = event.pointerType === 'touch';
    if (touch || pressed) {
      const box = u.over.getBoundingClientRect();
      u.setCursor({ left: event.clientX - box.left, top: event.clientY - box.top });
    }
    if (u.cursor.left >= 0 || touch) this.#show();
  }

  #press(event) {
    this.#down = event.target === this.#plot?.over && event.button === 0 ? event.clientX : null;
    held = this.#down !== null && event.pointerType === 'mouse' && !event.ctrlKey;
    if (this.#down !== null || event.pointerType === 'touch') this.#scrub(event, true);
  }

  /** release picks a point, if it was pressed and not dragged. The drawing may be another by now: an answer may have come. */
  #release(event) {
    const { onPick } = this.#spec ?? {};
    if (onPick && this.#drawn === this.#spec.view && this.#down !== null && Math.abs(event.clientX - this.#down) < 8 && this.#index !== null) onPick(this.#index);
    this.#down = null;
  }

  /** selected zooms to the part that the user has dragged over, if the drawing is not still that of another view. */
  #selected(u) {
    const { left, width } = u.select;
    if (width < 8) return;
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    if (this.#drawn === this.#spec?.view) this.#zoomTo([u.posToVal(left, 'x'), u.posToVal(left + width, 'x')]);
  }

  /** magnify zooms around the cursor. */
  #magnify(factor) {
    const { min, max } = this.#plot?.scales.x ?? {};
    if (!(max > min)) return;
    const x = this.#spec.xs[this.#index];
    const [from, end] = this.#spec.range ?? [this.#spec.xs[0], this.#spec.xs.at(-1)];
    const to = [Math.max(from, x - (x - min) * factor), Math.min(end, x + (max - x) * factor)];
    this.#zoomTo(to[0] === from && to[1] === end ? null : to);
  }

  #zoomTo(range) {
    for (const chart of charts) {
      if (chart !== this && !(this.sync && chart.sync === this.sync) || chart.zoom === range) continue;
      chart.zoom = range;
      chart.all.hidden = range === null;
      chart.#plot?.setData(chart.#plot.data); // computes the scales anew
      chart.zoomed(range);
    }
  }

  #endZoom() {
    this.zoom = null;
    this.all.hidden = true;
  }

  /** tell says the values of a point to screen readers. */
  #tell(i) {
    const spec = this.#spec;
    if (!spec || i >= spec.xs.length) return; // the drawing is still that of other data
    this.#index = i;
    const at = spec.xFormat(spec.xs[i], true);
    this.canvas.setAttribute('aria-valuenow', i);
    this.canvas.setAttribute('aria-valuetext', `${spec.xName} ${at}: ${this.#said(i).map(([s, text]) => `${s.name} ${text}`).join(', ')}`);
    if (!this.hint.hidden) this.#show();
  }

  /** show places the tooltip above the chart, or below it: there it hides nothing of the chart, and no finger hides it. */
  #show() {
    const u = this.#plot;
    const spec = this.#spec;
    const i = this.#index;
    if (!u || i === null || !spec?.xs.length) return;
    this.hint.replaceChildren(h('b', null, spec.xFormat(spec.xs[i], true)),
      h('dl', null, this.#said(i).flatMap(([s, text]) => [h('dt', null, swatch(s), s.name), h('dd', { class: text.length > 30 && 'long' }, text)])));
    this.hint.hidden = false;
    if (this.canvas.lastChild !== this.hint) this.canvas.append(this.hint); // above uPlot's own elements
    const { offsetWidth: width, offsetHeight: height } = this.hint;
    const { left, top } = this.canvas.getBoundingClientRect();
    const head = [...document.querySelectorAll('.top, #strip')].at(-1).getBoundingClientRect().bottom;
    const x = Math.max(8 - left, Math.min(u.over.offsetLeft + u.cursor.left - width / 2, innerWidth - width - left - 8));
    const y = top > head + height ? -height - 2 : u.height + 2;
    this.hint.style.transform = `translate(${x}px, ${y}px)`; // a transform moves nothing else
  }

  /** tagged returns where the tags of levels are, in CSS pixels below the top of the plot. */
  get tagged() { return this.#tagged.map((t) => (t.y - this.#plot?.bbox.top) / devicePixelRatio); }

  #hide() { this.hint.hidden = true; }

  #legend() {
    const { series, bands = [], scale } = this.#spec;
    const named = [...series.filter((s) => s.kind !== 'none'), ...bands.filter((b) => b.label).map((b) => ({ kind: 'ribbon', name: b.label, color: b.color }))];
    this.legend.replaceChildren(...named.map((s) => h('span', null, swatch(s), s.name)), ...(scale ? [h('span', { class: 'ends' }, scale[0], h('i'), scale[1])] : []));
  }

  #fillTable() {
    const spec = this.#spec;
    if (!this.data.open || !spec) return;
    const columns = [{ head: spec.xName, number: true }, ...spec.series.map((s) => ({ head: s.name, number: true }))];
    const rows = spec.xs.map((x, i) => [spec.xFormat(x, true), ...spec.series.map((s) => s.format(s.values[i]))]);
    const place = scroller(`${this.title}: table`, table(this.title, columns, rows));
    this.data.replaceChildren(this.data.firstChild, place);
  }
}

/** onPoint moves a cursor to the nearest point, whose values it tells. */
function onPoint(u, left, top, sideways) {
  if (left < 0 || !u.data?.[0]?.length) return [left, top];
  const at = u.valToPos(u.data[0][u.posToIdx(sideways ? top : left)], 'x');
  return !Number.isFinite(at) ? [left, top] : sideways ? [left, at] : [at, top];
}
