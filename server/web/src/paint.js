// What a chart draws on uPlot's canvas: colours of the theme, kinds of series, bands, marks and labels.

import { h } from './dom.js';
import uPlot from './uplot-1.6.32.esm.js';

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

/** drawn returns uPlot's description of a series. */
export function drawn(s, stroke, negative) {
  const { bars, stepped, linear } = uPlot.paths;
  switch (s.kind) {
    case 'bars':
      return { stroke, fill: stroke, width: 0, paths: bars({ size: [0.72, 22, 1] }), points: { show: false } };
    case 'step':
      return { stroke, width: s.width ?? 1.5, dash: s.dash, paths: stepped({ align: 1 }), points: { show: s.values.length < 2 }, spanGaps: false };
    case 'points':
      return { stroke, fill: stroke, paths: () => null, points: { show: true, size: 10, fill: stroke } };
    case 'ribbon': // which ribbon draws
    case 'none': // in the tooltip and the table only
      return { show: false };
    case 'area': {
      const split = (alpha) => (u) => bySign(u, faded(stroke, alpha), faded(negative, alpha));
      return { stroke: split(1), fill: split(0.16), width: 2, fillTo: 0, points: { show: false } };
    }
    default:
      return { stroke, width: s.width ?? 2, dash: s.dash, paths: linear(), spanGaps: !s.gaps, points: { show: s.dots ?? s.values.length < 2, size: 7, fill: stroke } };
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

/** zeroLine draws a line at zero, if zero is in sight. */
export function zeroLine(u, stroke) {
  const y = Math.round(u.valToPos(0, 'y', true));
  if (!(y > u.bbox.top && y < u.bbox.top + u.bbox.height)) return;
  u.ctx.fillStyle = stroke;
  u.ctx.fillRect(u.bbox.left, y, u.bbox.width, Math.max(1, Math.round(devicePixelRatio)));
}

/** shade draws bands below everything else. The legend names them. */
export function shade(u, bands) {
  const { left, top, width, height } = u.bbox;
  for (const band of bands) {
    if (band.values) {
      ribbon(u, band);
      continue;
    }
    const [x0, x1] = [band.from, band.to].map((x) => Math.min(left + width, Math.max(left, u.valToPos(x, 'x', true))));
    u.ctx.fillStyle = faded(color(band.color), 0.13);
    u.ctx.fillRect(x0, top, x1 - x0, height);
  }
}

/** ribbon shades between the low and the high of neighbouring points, below everything else. It breaks at an unknown value. */
export function ribbon(u, { values, color: name, xs = u.data[0] }) {
  const { ctx, bbox } = u;
  const corner = (i, end) => [u.valToPos(xs[i], 'x', true), u.valToPos(values[i][end], 'y', true)];
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.beginPath(); // of all parts, so that no seam is seen between them
  for (let i = 1; i < xs.length; i++) {
    if (!values[i - 1] || !values[i]) continue;
    ctx.moveTo(...corner(i - 1, 0));
    ctx.lineTo(...corner(i, 0));
    ctx.lineTo(...corner(i, 1));
    ctx.lineTo(...corner(i - 1, 1));
  }
  ctx.fillStyle = faded(color(name), 0.16);
  ctx.fill();
  ctx.restore();
}

/** annotate draws a line for each mark up to its label above the plot. */
export function annotate(u, marks) {
  const { ctx, bbox } = u;
  const scale = devicePixelRatio;
  ctx.save();
  ctx.font = `600 ${11.5 * scale}px system-ui, sans-serif`;
  ctx.textBaseline = 'middle';
  ctx.textAlign = 'left'; // uPlot has set another for its last axis
  ctx.lineWidth = 1.5 * scale;
  ctx.setLineDash([4 * scale, 3 * scale]);
  const seen = marks.map((mark) => ({ ...mark, x: u.valToPos(mark.x, 'x', true), width: ctx.measureText(mark.label).width + 8 * scale }))
    .filter(({ x }) => x >= bbox.left && x <= bbox.left + bbox.width).sort((a, b) => a.x - b.x);
  for (const mark of layOut(seen, ctx.canvas.width)) {
    const y = bbox.top - (mark.row + 0.5) * labelHeight * scale - 5 * scale; // above the highest number of the y axis
    ctx.strokeStyle = ctx.fillStyle = color(mark.color);
    ctx.beginPath();
    ctx.moveTo(mark.x, y + labelHeight / 2 * scale * (crosses(mark, mark) ? 1 : -1));
    ctx.lineTo(mark.x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillText(mark.label, mark.left + 4 * scale, y);
  }
  ctx.restore();
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
