// The track of a session: one row of levels for each snapshot. Where there is none, the levels at each close.

import { closes, newYorkTime, number, time } from './format.js';
import { day, follow, sentence } from './panel.js';

const path = '/api/v1/gex/{u}';
const saidOnce = ['unreachable', 'not_ready', 'unknown_underlying']; // a banner says it
const least = 4; // strikes in sight on both sides of the spot
export const late = 20 * 60e3; // milliseconds: quotes come up to 15 minutes late, and rows of a session join that are so far apart
const tries = 5; // sessions whose track is asked for while that of now is thin

/** records returns the rows of an answer with columns, each as an object. Without an answer there is none. */
export const records = (data) => (data?.rows ?? []).map((row) => Object.fromEntries(data.columns.map((name, i) => [name, row[i]])));

/**
 * followTrack calls onTrack with the track of the chosen date, or with null and the reason. While the track of now has not two rows,
 * that is the track of the last stored session that has: of its own, if the server began after it, or of one before.
 */
export function followTrack(onTrack) {
  let live = null; // of now or of the chosen date
  let why = '';
  let answered = false;
  let stored = ''; // the newest sessions, while the track of now is thin
  let dates = null; // those whose tracks may be shown, newest first
  const thin = () => answered && !day() && !(live?.data.rows.length > 1);
  follow(() => `${path}/intraday${day() ? `?date=${day()}` : ''}`, ({ document, failure }, fresh) => {
    answered = document !== null || failure !== null && failure.code !== 'unreachable';
    live = document;
    why = failure?.code === 'snapshot_not_found' ? 'No track is stored for this date.' : !failure || saidOnce.includes(failure.code) ? '' : sentence(failure.message);
    if (!thin()) dates = null;
    if (document ? fresh && !thin() : !dates?.length) onTrack(live, why);
    series.look();
    earlier.look();
  });
  const series = follow(() => (thin() ? `${path}/series` : ''), ({ document }) => {
    if (!document) return;
    const newest = records(document.data).map((row) => row.date).filter((d) => d <= (live?.data.session_date ?? '9')).slice(-tries).reverse();
    if (dates && newest.join() === stored) return;
    stored = newest.join(); // a new server stores one session after another
    dates = newest;
    next();
  });
  const earlier = follow(() => (thin() && dates?.length ? `${path}/intraday?date=${dates[0]}` : ''), ({ document, failure }, fresh) => {
    if (document?.data.rows.length > 1) {
      if (fresh) onTrack(document, '');
    } else if (document || failure?.final) {
      dates.shift();
      next();
    }
  });
  const next = () => {
    if (dates.length === 0) onTrack(live, why);
    earlier.look();
  };
}

/**
 * longest returns the longest time, in milliseconds, that rows at some times may be apart without a gap between them. The rows of a
 * session that was played before a server began are 5 or 15 minutes apart, and those of the server follow them.
 */
export function longest(at) {
  const steps = at.slice(1).map((t, i) => t - at[i]).sort((a, b) => a - b);
  return Math.max(3 * (steps[(steps.length - 1) >> 1] ?? 0), late);
}

/** points returns the columns of an answer with rows of a session by name. In a gap it has a point without values. What the last row has, after the close, is so from the close on. */
export function points(track) {
  const rows = records(track);
  const at = rows.map((row) => Date.parse(row.as_of));
  const [end, last] = [closes(track.session_date), at.length - 1];
  if (at[last - 1] < end && end < at[last]) for (const [list, one] of [[rows, rows[last]], [at, end]]) list.splice(last, 0, one);
  const most = longest(at);
  const order = at.flatMap((t, i) => (i > 0 && t - at[i - 1] > most ? [-1, i] : [i]));
  const xs = order.map((i, j) => (i < 0 ? (at[order[j - 1]] + at[order[j + 1]]) / 2 : at[i]));
  const column = (name) => order.map((i) => rows[i]?.[name] ?? null); // an earlier version has stored fewer columns
  const name = (x) => {
    const j = xs.indexOf(x);
    return order[j] < 0 ? `${time(xs[j - 1])} to ${time(xs[j + 1])}, no snapshot` : time(x);
  };
  return { xs, column, name, gaps: order.filter((i) => i < 0).length };
}

/** clock returns an axis of New York time. name names a point. */
export const clock = (name) => ({ xName: 'New York time', ticks: [1, 2, 5, 10, 15, 30, 60, 120, 180].map((m) => m * 60e3), xFormat: (x, exact) => (exact ? name(x) : time(x, true)) });

/** whole returns a track with the levels d of the last quotes of its session, if they came after its end: a server that was down has no row of them. */
export function whole(track, d, asOf) {
  if (!track || d?.session_date !== track.session_date || !(asOf >= closes(track.session_date) - 60e3 && asOf > Date.parse(track.rows.at(-1)?.[0]))) return track;
  const last = { ...d, as_of: new Date(asOf).toISOString(), flip_low: d.flip_band?.low, flip_high: d.flip_band?.high };
  return { ...track, rows: [...track.rows, track.columns.map((name) => last[name] ?? null)] };
}

/** shown returns the part of the time axis that the user has chosen. */
export function shown(track, span, xs) {
  const [first, last] = [xs[0], xs.at(-1)];
  switch (span) {
    case 'so-far': return [first, Math.max(last, first + 60e3)];
    case 'hour': return [last - 3600e3, last];
    default: return [Math.min(first, newYorkTime(track.session_date, '09:30:00')), Math.max(last, closes(track.session_date)) + 15 * 60e3];
  }
}

/** cone returns one standard deviation around a price from a time to the end of a session. It grows with the root of the time, to move at the end. */
export function cone(from, end, price, move) {
  const half = (x) => move * Math.sqrt((x - from) / (end - from));
  const range = (x) => (x < from ? null : [price - half(x), price + half(x)]);
  const xs = Array.from({ length: 41 }, (_, k) => from + (end - from) * (k / 40) ** 2); // it opens fast
  return { range, from, end, band: { xs, values: xs.map(range), color: '--accent' } };
}

/** cones returns the expected move of a session from its first snapshot on, and what of it is left at the last, where the price is: as the options of the day imply it, if they are known. */
export function cones({ session_date: date }, xs, column, until, remaining) {
  const [spots, moves, end] = [column('effective_spot'), column('expected_move_1d'), closes(date)];
  const known = xs.flatMap((x, i) => (moves[i] !== null && x <= until && x < end ? [i] : []));
  const of = (i) => moves[i] * Math.sqrt((end - xs[i]) / (end - newYorkTime(date, '09:30:00')));
  return [...new Set([known[0], known.at(-1)])].filter((i) => i !== undefined).map((i, k) => cone(xs[i], end, spots[i], k > 0 && remaining || of(i)));
}

/** outside returns the sums of net gamma below and above a range of strikes, where one is at least a quarter of what is in it. */
export function outside(strikes, net, [low, high]) {
  const sums = [(x) => x < low, (x) => x > high].map((out) => net.reduce((sum, v, i) => (out(strikes[i]) ? sum + v : sum), 0));
  const within = net.reduce((sum, v, i) => (low <= strikes[i] && strikes[i] <= high ? sum + Math.abs(v) : sum), 0);
  return sums.some((sum) => Math.abs(sum) > within / 4) ? sums : [];
}

/** daily returns the levels at the closes up to a date as points does, by their number. */
export function daily(series, to) {
  const rows = records(series).filter((row) => row.date <= to);
  return { xs: rows.map((_, i) => i), column: (name) => rows.map((row) => row[name] ?? null), dates: rows.map((row) => row.date) };
}

/** atRow returns an answer of gex/{u} with the levels of a row of a track. */
export function atRow(d, track, i) {
  const row = records(track)[i];
  const get = (name) => row[name] ?? null;
  const [spot, flip, low] = ['spot', 'zero_gamma_flip', 'flip_low'].map(get);
  const effective = get('effective_spot') ?? spot;
  const before = d?.session_date === track.session_date && typeof d.spot_change_pct === 'number' ? d.spot / (1 + d.spot_change_pct / 100) : null; // the close
  return {
    ...d, session_date: track.session_date, spot, effective_spot: effective, spot_change_pct: before && (spot / before - 1) * 100,
    zero_gamma_flip: flip, flip_status: flip === null ? 'none' : 'found', flip_distance_pct: flip === null ? null : (1 - flip / effective) * 100,
    flip_band: low === null ? null : { low, high: get('flip_high') },
    zero_dte: { net_gex_dollars: get('zero_dte_net_gex_dollars'), gross_share_pct: get('zero_dte_gross_share_pct') },
    walls: null, vol_trigger: null, abs_gamma_strike: null, // which no row has
    ...Object.fromEntries(['net_gex_dollars', 'call_wall', 'put_wall', 'gamma_regime', 'expected_move_1d'].map((name) => [name, get(name)])),
  };
}

/**
 * fit returns the part of the price axis that has spot, flip and the expected move of a part [from, to] of the axis of time, the walls
 * and the band if it is near. A flip or a wall far from the spot would press everything else together, so it stays outside, unless wide.
 */
export function fit({ xs, column }, [from, to], expected, zoomed, m, strikes, wide) {
  const seen = (name) => column(name).filter((v, i) => v !== null && from <= xs[i] && xs[i] <= to);
  const known = (values) => values.filter((v) => typeof v === 'number');
  const spot = m.effective_spot;
  const reach = Math.max(2 * (m.expected_move_1d ?? 0), 0.025 * spot);
  const flips = known([...seen('zero_gamma_flip'), ...(zoomed ? [] : [m.zero_gamma_flip, m.call_wall, m.put_wall])]).filter((x) => Math.abs(x - spot) < reach);
  const move = xs.length || !m.expected_move_1d ? expected.flatMap((c) => c.range(Math.min(to, c.end)) ?? []) : [spot - m.expected_move_1d, spot + m.expected_move_1d];
  const all = known([...seen('spot'), zoomed ? null : spot, ...flips, ...move]);
  if (all.length === 0) all.push(spot);
  let [low, high] = [Math.min(...all), Math.max(...all)];
  const near = 0.3 * (high - low);
  for (const x of known([m.flip_band?.low, m.flip_band?.high, m.call_wall, m.put_wall])) {
    if (x > low - near && x < high + near) [low, high] = [Math.min(low, x), Math.max(high, x)];
  }
  const around = strikes.map((r) => r.strike).filter((x) => !zoomed && Math.abs(x - spot) < 0.1 * spot);
  low = Math.min(low, ...around.filter((x) => x <= spot).slice(-least));
  high = Math.max(high, ...around.filter((x) => x >= spot).slice(0, least));
  if (wide) [low, high] = [Math.min, Math.max].map((f, i) => f([low, high][i], ...known([m.zero_gamma_flip, m.call_wall, m.put_wall]), ...around));
  const pad = 0.08 * (high - low) || 0.01 * spot || 1;
  return [low - pad, high + pad];
}
