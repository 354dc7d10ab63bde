// What a chart draws on uPlot's canvas: colours of the theme, kinds of series, bands, marks and labels.

import { h } from './dom.js';
import uPlot from './uplot-1.6.32.esm.js';

/** drawable says whether a drawing would have more than one dot, which says less than the summary. */
export const drawable = ({ xs, series, levels, cells }) => series.some((s) => s.kind !== 'none'
  && s.values.filter(Number.isFinite).length > Number(xs.length === 1 && !levels && !cells && ['line', 'step', 'area'].includes(s.kind)));

export const labelHeight = 17; // of a mark, in CSS pixels

/** color resolves a custom property to a colour that the canvas understands. */
export function color(name) {
  const probe = document.documentElement.appendChild(h('i'));
  probe.style.color = `var(${name})`;
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** faded makes a colour more transparent. */
const faded = (rgb, alpha) => rgb.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`);

/** lonely returns the first of each few points between gaps whose line would be too short to be seen. */
const lonely = (u, i) => u.data[i].flatMap((v, k, all) => {
  const known = (j) => (all[j] ?? null) !== null;
  if (!known(k) || known(k - 1)) return [];
  let end = k;
  while (known(end + 1)) end++;
  return u.valToPos(u.data[0][end], 'x') - u.valToPos(u.data[0][k], 'x') < 5 ? [k] : [];
});

/** treads draws each value from its point to the next. Nothing connects two values, so a wall that jumps and returns is no spike. */
function treads(u, k, from, to) {
  const stroke = new Path2D();
  const [xs, ys] = [u.data[0], u.data[k]];
  const known = (i) => (ys[i] ?? null) !== null;
  for (let i = from; i < to; i++) {
    if (!known(i) || !known(i + 1)) continue;
    const y = u.valToPos(ys[i], 'y', true);
    if (ys[i] !== ys[i - 1]) stroke.moveTo(u.valToPos(xs[i], 'x', true), y);
    stroke.lineTo(u.valToPos(xs[i + 1], 'x', true), y);
  }
  return { stroke };
}

/** drawn returns uPlot's description of a series. */
export function drawn(s, stroke, negative) {
  const { bars, linear } = uPlot.paths;
  switch (s.kind) {
    case 'bars':
      return { stroke, fill: stroke, width: 0, paths: bars({ size: [0.72, 22, 1] }), points: { show: false } };
    case 'ghost':
      return { stroke: faded(stroke, 0.7), fill: faded(stroke, 0.18), width: 1, paths: bars({ size: [0.95, 28, 1] }), points: { show: false } };
    case 'step':
      return { stroke, width: s.width ?? 1.5, paths: treads, points: { size: 5, fill: stroke, filter: lonely } };
    case 'points':
      return { stroke, fill: stroke, paths: () => null, points: { show: true, size: 10, fill: stroke } };
    case 'cells':
    case 'ribbon': // which ribbon draws
    case 'none': // in the tooltip and the table only
      return { show: false };
    case 'area': {
      const split = (alpha) => (u) => bySign(u, faded(stroke, alpha), faded(negative, alpha));
      return { stroke: split(1), fill: split(0.16), width: 2, fillTo: 0, points: { show: false, size: 5, fill: stroke, filter: lonely } };
    }
    default:
      return { stroke, width: s.width ?? 2, dash: s.dash, paths: linear(), spanGaps: !s.gaps, points: { show: !!s.dots, size: s.gaps ? 5 : 7, fill: stroke, filter: s.gaps || s.dots === undefined && s.values.length < 2 ? lonely : undefined } };
  }
}

/** faint returns a colour for what is not of the moment that is shown. */
export const faint = (name) => faded(color(name), 0.4);

/** bySign returns a fill of one colour above zero and another below. */
function bySign(u, above, below) {
  const { top, height } = u.bbox;
  const zero = (u.valToPos(0, 'y', true) - top) / height;
  if (!Number.isFinite(zero)) return above;
  const gradient = u.ctx.createLinearGradient(0, top, 0, top + height);
  const stop = Math.min(1, Math.max(0, zero));
  gradient.addColorStop(stop, above);
  gradient.addColorStop(stop, below);
  return gradient;
}

/** decimals returns how many digits the multiples of a step have after the point. */
export const decimals = (step) => (String(Number(step.toFixed(6))).split('.')[1] ?? '').length;

/** overhang returns the padding with which the numbers below a plot fit at one of its ends. uPlot asks again until its sizes stay. */
export const overhang = (sideways, atEnd, least) => (u) => {
  const { min, max } = u.scales[sideways ? 'y' : 'x'];
  const { _splits: at, _values: texts } = u.axes[Number(sideways)];
  u.ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  const over = (text, i) => (u.ctx.measureText(text).width / 2 - (atEnd ? max - at[i] : at[i] - min) / (max - min) * u.bbox.width) / devicePixelRatio + 2;
  return Math.ceil(Math.max(least, ...(texts ?? []).map(over).filter(Number.isFinite)));
};

/** clean returns what draws, and leaves the settings of the canvas as they were. */
export const clean = (draw) => (u) => {
  u.ctx.save();
  draw(u);
  u.ctx.restore();
};

const across = (u) => u.scales.x.ori === 1; // x runs upwards

/** zeroLine draws a line at zero, if zero is in sight. */
export function zeroLine(u, stroke) {
  const { left, top, width, height } = u.bbox;
  const [at, thick] = [u.valToPos(0, 'y', true), devicePixelRatio].map(Math.round);
  u.ctx.fillStyle = stroke;
  if (across(u) ? left <= at && at <= left + width : top < at && at < top + height) u.ctx.fillRect(...(across(u) ? [at, top, thick, height] : [left, at, width, thick]));
}

/** shade draws bands below everything else. The legend names them. */
export function shade(u, bands) {
  const { left, top, width, height } = u.bbox;
  for (const band of bands) {
    if (band.values) {
      ribbon(u, band);
      continue;
    }
    const [low, size] = across(u) ? [top, height] : [left, width];
    const [a, b] = [band.from, band.to].map((x) => Math.min(low + size, Math.max(low, u.valToPos(x, 'x', true))));
    u.ctx.fillStyle = faded(color(band.color), 0.13);
    if (across(u)) u.ctx.fillRect(left, b, width, a - b);
    else u.ctx.fillRect(a, top, b - a, height);
  }
}

/** heat fills cells of a map, in the colours of the bars. A few cells are far larger than all others, so the colours go by the root. What has no cell is hatched. */
export function heat(u, cells) {
  if (cells.length === 0) return;
  const { ctx, bbox } = u;
  const known = u.data[0].filter((_, k) => u.data[1][k] ?? null); // a replay does not know what follows
  const [first, last] = [known[0], known.at(-1)].map((x) => Math.max(bbox.left, Math.min(bbox.left + bbox.width, u.valToPos(x, 'x', true))));
  ctx.save();
  ctx.beginPath();
  ctx.rect(first, bbox.top, last - first, bbox.height);
  ctx.clip();
  ctx.beginPath();
  for (let x = first - bbox.height; x < last; x += 7 * devicePixelRatio) {
    ctx.moveTo(x, bbox.top + bbox.height);
    ctx.lineTo(x + bbox.height, bbox.top);
  }
  Object.assign(ctx, { strokeStyle: color('--line'), lineWidth: devicePixelRatio });
  ctx.stroke();
  ctx.restore();
  const inks = [color('--negative'), color('--positive')].map((ink) => Array.from({ length: 11 }, (_, i) => faded(ink, i / 14)));
  const place = (v, scale, low, size) => Math.round(Math.max(low, Math.min(low + size, u.valToPos(v, scale, true))));
  for (const [from, to, low, high, share] of cells) {
    const [x0, x1] = [from, to].map((x) => place(x, 'x', bbox.left, bbox.width));
    const [y1, y0] = [low, high].map((y) => place(y, 'y', bbox.top, bbox.height));
    ctx.fillStyle = inks[share < 0 ? 0 : 1][Math.round(Math.sqrt(Math.abs(share)) * 10)];
    if (x1 <= x0 || y1 <= y0) continue;
    ctx.clearRect(x0, y0, x1 - x0, y1 - y0);
    ctx.fillRect(x0, y0, x1 - x0, y1 - y0);
  }
}

/** ribbon shades between the low and the high of neighbouring points, below everything else. It breaks at an unknown value. */
export function ribbon(u, { values, color: name, xs = u.data[0] }) {
  const { ctx, bbox } = u;
  const corner = (i, end) => [u.valToPos(xs[i], 'x', true), u.valToPos(values[i][end], 'y', true)];
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.beginPath(); // of all parts, so that no seam is seen between them
  for (let i = 1; i < xs.length; i++) {
    if (values[i - 1] && !values[i] && !values[i - 2]) ctx.rect(corner(i - 1, 1)[0] - devicePixelRatio, corner(i - 1, 1)[1], 2 * devicePixelRatio, corner(i - 1, 0)[1] - corner(i - 1, 1)[1]); // a point alone
    if (!values[i - 1] || !values[i]) continue;
    ctx.moveTo(...corner(i - 1, 0));
    ctx.lineTo(...corner(i, 0));
    ctx.lineTo(...corner(i, 1));
    ctx.lineTo(...corner(i - 1, 1));
  }
  ctx.fillStyle = faded(color(name), 0.16);
  ctx.fill();
}

/** annotate draws a line for each mark up to its label above the plot. Labels that need more rows than there are have their figures only. */
export function annotate(u, marks) {
  const { ctx, bbox } = u;
  const scale = devicePixelRatio;
  ctx.font = `600 ${11.5 * scale}px system-ui, sans-serif`;
  ctx.textBaseline = 'middle';
  ctx.textAlign = 'left'; // uPlot has set another for its last axis
  ctx.lineWidth = 1.5 * scale;
  ctx.setLineDash([4 * scale, 3 * scale]);
  const named = (name) => layOut(marks.map((mark) => ({ ...mark, label: name(mark.label), x: u.valToPos(mark.x, 'x', true), width: ctx.measureText(name(mark.label)).width + 8 * scale }))
    .filter(({ x }) => x >= bbox.left && x <= bbox.left + bbox.width).sort((a, b) => a.x - b.x), ctx.canvas.width);
  const fits = (all) => all.every((mark) => (mark.row + 1) * labelHeight * scale <= bbox.top);
  const long = named((label) => label);
  for (const mark of fits(long) ? long : named((label) => label.split(' ').at(-1))) {
    const y = bbox.top - (mark.row + 0.5) * labelHeight * scale - 5 * scale; // above the highest number of the y axis
    ctx.strokeStyle = ctx.fillStyle = color(mark.color);
    ctx.beginPath();
    ctx.moveTo(mark.x, y + labelHeight / 2 * scale * (crosses(mark, mark) ? 1 : -1));
    ctx.lineTo(mark.x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillText(mark.label, mark.left + 4 * scale, y);
  }
}

/** crosses says whether the line of a mark, continued upwards, crosses the label of another. */
const crosses = (line, label) => line.x > label.left && line.x < label.left + label.width;

/**
 * layOut gives each mark a row, counted from the plot upwards, and its label a left edge: over the line, or right or left of
 * it. No label covers another, and no line crosses the label of another. It takes as few rows as possible.
 */
export function layOut(marks, end) {
  const apart = (a, b) => (a.row === b.row ? a.left + a.width <= b.left || b.left + b.width <= a.left : a.row > b.row ? !crosses(a, b) : !crosses(b, a));
  const place = (rows, placed) => {
    const mark = marks[placed.length];
    if (!mark) return placed;
    for (let row = 0; row < rows; row++) {
      for (const part of [0.5, 0, 1]) {
        const next = { ...mark, row, left: mark.x - part * mark.width };
        const all = next.left >= 0 && next.left + mark.width <= end && placed.every((p) => apart(p, next)) && place(rows, [...placed, next]);
        if (all) return all;
      }
    }
    return null;
  };
  for (let rows = 1; rows <= marks.length; rows++) {
    const all = place(rows, []);
    if (all) return all;
  }
  return marks.map((mark, row) => ({ ...mark, row, left: Math.max(0, Math.min(mark.x, end - mark.width)) })); // the canvas is too narrow
}

/** nameValues writes the labels of points above or below them. It leaves out labels without room. */
export function nameValues(u, series, fillStyle) {
  const { ctx } = u;
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
}

/** glyphs draws the sign of each event that covers none before it in the list, and no tag of a price out of sight. */
export function glyphs(u, events, tagged = []) {
  const { ctx, bbox } = u;
  const scale = devicePixelRatio;
  Object.assign(ctx, { font: `${15 * scale}px system-ui, sans-serif`, textAlign: 'center', textBaseline: 'middle', strokeStyle: color('--surface'), lineWidth: 3 * scale, lineJoin: 'round' });
  const seen = events.map((e) => ({ ...e, x: u.valToPos(e.x, 'x', true), y: u.valToPos(e.y, 'y', true) })).filter(({ x, y }) => x >= bbox.left && x <= bbox.left + bbox.width && !tagged.some((t) => t.outside && x > t.left - 9 * scale && Math.abs(y - t.y) < 17 * scale));
  for (const { x, y, glyph, color: name } of legible(seen, 13 * scale)) {
    ctx.strokeText(glyph, x, y);
    ctx.fillStyle = color(name);
    ctx.fillText(glyph, x, y);
  }
}

/** beyond writes above a plot, at its right end, what lies outside of it. */
export function beyond({ ctx, bbox }, text) {
  Object.assign(ctx, { font: `${11.5 * devicePixelRatio}px system-ui, sans-serif`, textAlign: 'right', textBaseline: 'bottom', fillStyle: color('--muted') });
  ctx.fillText(text, bbox.left + bbox.width, bbox.top - 3 * devicePixelRatio);
}

/** legible returns the places that are at least gap away from each one before them: where they are, or above or below that. It leaves out what has no room there. */
export const legible = (places, gap) => places.reduce((all, p) => [...all, ...[0, -1, 1, -2, 2].map((k) => ({ ...p, y: p.y + k * gap })).filter((at) => all.every((q) => Math.hypot(at.x - q.x, at.y - q.y) >= gap)).slice(0, 1)], []);

/** rules draws a line at each price: from side to side, or from an x on. */
export function rules(u, levels) {
  const { ctx, bbox } = u;
  for (const { at, color: name, from } of levels) {
    const y = u.valToPos(at, across(u) ? 'x' : 'y', true);
    if (y < bbox.top || y > bbox.top + bbox.height) continue;
    ctx.strokeStyle = color(name);
    ctx.lineWidth = 1.25 * devicePixelRatio;
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(across(u) || from === undefined ? bbox.left : Math.max(bbox.left, u.valToPos(from, 'x', true)), y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  }
}

/**
 * tags names each price at the right of the plot. The tag of a price out of sight stands at the edge, with beyond, the way
 * to it. A tag without room for its label has its short text. It returns the places of the tags.
 */
export function tags(u, levels) {
  const { ctx, bbox } = u;
  const scale = devicePixelRatio;
  const [start, end] = [bbox.left + bbox.width, ctx.canvas.width];
  const height = 17 * scale;
  ctx.font = `600 ${11.5 * scale}px system-ui, sans-serif`;
  ctx.textBaseline = 'middle';
  ctx.textAlign = 'left';
  const measured = levels.map((l) => {
    const at = u.valToPos(l.at, across(u) ? 'x' : 'y', true);
    const outside = at < bbox.top || at > bbox.top + bbox.height;
    const text = outside ? `${l.label} ${at < bbox.top ? '↑' : '↓'}\u00a0${l.beyond}` : ctx.measureText(l.label).width + 18 * scale <= end - start ? l.label : l.short;
    return { ...l, outside, text, at, width: ctx.measureText(text).width + 10 * scale, y: Math.min(bbox.top + bbox.height, Math.max(bbox.top, at)) };
  });
  const surface = color('--surface');
  const placed = apart(measured, height + scale, bbox.top + height / 2, bbox.top + bbox.height - height / 2).map((tag) => ({ ...tag, left: tag.outside ? end - tag.width : start + 5 * scale }));
  for (const { left, ...tag } of placed) {
    ctx.fillStyle = ctx.strokeStyle = color(tag.color);
    if (!tag.outside) {
      ctx.lineWidth = 1.25 * scale;
      ctx.beginPath();
      ctx.moveTo(start, tag.at);
      ctx.lineTo(left, tag.y);
      ctx.stroke();
    }
    ctx.beginPath();
    ctx.roundRect(left, tag.y - height / 2, tag.width, height, 3 * scale);
    ctx.fill();
    ctx.fillStyle = surface;
    ctx.fillText(tag.text, left + 5 * scale, tag.y + 0.5 * scale);
  }
  return placed;
}

/** covered says whether a tag stands where the axis would have a number. Tags of prices out of sight are stacked at the edge. */
export function covered(u, y, levels) {
  const { min, max } = u.scales.y;
  const at = (price) => u.valToPos(price, 'y');
  const stack = (out) => (levels.some(out) ? 18 * levels.filter(out).length + 8 : 0);
  return at(min) - at(y) < stack((l) => l.at < min) || at(y) - at(max) < stack((l) => l.at > max) || levels.some((l) => l.at >= min && l.at <= max && Math.abs(at(l.at) - at(y)) < 17);
}

/** apart moves places y up and down, by as little as it takes, so that they are gap apart and between low and high. */
export function apart(places, gap, low, high) {
  const start = (group) => Math.max(low, Math.min(group.reduce((sum, p) => sum + p.y, 0) / group.length - gap * (group.length - 1) / 2, high - gap * (group.length - 1)));
  const groups = [];
  for (const place of places.toSorted((a, b) => a.y - b.y)) {
    let group = [place];
    while (groups.length && start(groups.at(-1)) + gap * groups.at(-1).length > start(group)) group = [...groups.pop(), ...group];
    groups.push(group);
  }
  return groups.flatMap((group) => group.map((p, i) => ({ ...p, y: start(group) + i * gap })));
}

/** swatch shows the colour of a series. */
export function swatch(s) {
  if (s.kind === 'none') return null;
  const mark = h('i', { class: ['bars', 'ghost', 'area', 'ribbon', 'cells'].includes(s.kind) ? `swatch block ${s.kind}` : 'swatch' });
  mark.style.setProperty('--from', `var(${s.color})`);
  mark.style.setProperty('--to', `var(${s.negative ?? s.color})`);
  return mark;
}
