// Net gamma by strike through a session: the bars of a moment, and all moments as a map behind the price.

import { dollars, level, nearest, unknown } from './format.js';
import { longest, records } from './track.js';

const keeps = 35 * 60e3; // a strike that rows between lack keeps its colour, at most so long
const width = 5 * 60e3; // of the last column, and of one before a gap
const most = 2 / 3; // of the rows have a strike of the map
const clipAt = 0.98; // the share of the cells that the colours tell apart

/** read returns the rows of gex/{u}/strikes. */
export const read = (through) => records(through).map((row) => ({ at: Date.parse(row.as_of), spot: row.effective_spot, strikes: row.strikes, values: row.net_gex_dollars }));

/** barsAt returns the bars at a moment, as those of an answer of gex/{u}, or null. */
export function barsAt(through, at) {
  const rows = read(through);
  const row = rows.findLast((r) => r.at <= at);
  return row && at - row.at <= longest(rows.map((r) => r.at)) ? { at: row.at, by_strike: row.strikes.map((strike, i) => ({ strike, net_gex_dollars: row.values[i] })) } : null;
}

/** mapped returns rows with the same strikes. The answer has those nearest to the spot of each row, so strikes at the edges come and go: they are left out. */
export function mapped(rows) {
  const count = new Map();
  for (const k of rows.flatMap((r) => r.strikes)) count.set(k, (count.get(k) ?? 0) + 1);
  const strikes = [...count.keys()].filter((k) => count.get(k) >= most * rows.length).sort((a, b) => a - b);
  return rows.map((r) => ({ ...r, strikes, values: strikes.map((k) => r.values[r.strikes.indexOf(k)] ?? null) }));
}

/** rowsAt returns the row of the map at each point that has a spot, else null. */
export function rowsAt(rows, xs, spots) {
  const most = longest(rows.map((r) => r.at));
  return xs.map((x, i) => (spots[i] === null ? null : rows.findLast((r) => r.at <= x && x - r.at <= most) ?? null));
}

/** figure writes the figure of the strike that is nearest to a price, or to the spot. */
export function figure(row, y = row?.spot) {
  if (!row?.strikes.length) return unknown;
  const j = nearest(row.strikes, y);
  return `${dollars(row.values[j])} at ${level(row.strikes[j])}`;
}

/** endsOf returns the figures [low, high] at which the colours of the map end. */
export function endsOf(through) {
  const sizes = mapped(read(through)).flatMap((r) => r.values).filter((v) => v !== null).map(Math.abs).sort((a, b) => a - b);
  const most = sizes[Math.ceil(clipAt * sizes.length) - 1] || 1;
  return [-most, most];
}

/** cellsOf returns the cells of the map up to a moment: [from, to, low, high, share], where share is −1 to 1 of the figure at which the colours end. end is that of the last column. */
export function cellsOf(through, until = Infinity, end = Infinity) {
  const rows = mapped(read(through));
  const { strikes } = rows[0] ?? { strikes: [] };
  if (strikes.length < 2) return [];
  const [, clip] = endsOf(through);
  const most = longest(rows.map((r) => r.at));
  const middle = (i) => (strikes[i] + strikes[i + 1]) / 2;
  const edges = [2 * strikes[0] - middle(0), ...strikes.slice(1).map((_, i) => middle(i)), 2 * strikes.at(-1) - middle(strikes.length - 2)];
  const next = []; // when the next row has the strike
  return rows.toReversed().flatMap(({ at, values }, k, all) => {
    const last = !(all[k - 1]?.at - at <= most); // of the session, or before a gap
    if (last) next.length = 0;
    return values.flatMap((v, i) => {
      if (v === null) return [];
      const to = last ? Math.min(at + width, end) : Math.min(next[i] ?? all[k - 1].at, at + keeps);
      next[i] = at;
      return at <= until ? [[at, to, edges[i], edges[i + 1], Math.max(-1, Math.min(1, v / clip))]] : [];
    });
  });
}
