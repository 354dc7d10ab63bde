// Zero days to expiration: net gamma, flip, walls and strikes of what expires on the day of the session, and its track. When nothing of it is open, those of the next date.

import { Chart } from './chart.js';
import { h, say } from './dom.js';
import { axisDollars, date, dollars, level, number, percent, rough, share, shortDate, time, title, unknown, weekday } from './format.js';
import { dated } from './history.js';
import { outside, wallName } from './levels.js';
import { day, follow, Panel } from './panel.js';
import { Replay } from './replay.js';
import { choices, onChoice } from './state.js';
import { current, figures, following, past } from './strikes.js';
import { fact, refill } from './terms.js';
import { clock, followTrack, points, records } from './track.js';
import { current as volatility } from './volatility.js';

if (location.hash === '#0dte') location.replace('#zero-dte');

/** zeroDtePanel builds the panel. A narrow card has room for one chart: the strikes, or the session. Where that has nothing to draw, the next expirations follow. */
export function zeroDtePanel() {
  let alone = false; // no strikes are known
  const figure = choices('zero-figure', 'Figure of 0DTE', [['gamma', 'Gamma'], ['oi', 'Open interest'], ['volume', 'Volume'], ['session', 'Session']], () => (alone ? 'session' : 'gamma'));
  const facts = h('dl', { class: 'facts' }, list({ d: { zero_dte: {} }, z: {}, expiring: [] })); // it has its height before the answer
  const strikes = new Chart('0DTE by strike', 120, { sync: 'strike', top: 40 });
  const net = new Chart('0DTE net gamma', 120, { top: 12 });
  const ahead = new Chart('Net gamma of the next expirations', 120, { top: 12 });
  const charts = h('div', { class: 'split', 'data-shown': 'strikes' }, strikes.element, net.element, ahead.element);
  let track = null;
  let why = ''; // why there is no track
  const others = {}; // what gex/{u} lacks: the strikes of the day, and the straddle of its end
  const show = () => {
    const d = panel.document?.data;
    if (!d) return;
    const of = (name) => (others[name]?.session_date === d.session_date ? others[name] : null);
    const expiring = d.by_expiration.filter((e) => e.expiration === d.session_date);
    const next = expiring.length || day() ? null : following(d, of('matrix'));
    const option = of('volatility')?.expirations.findLast((e) => e.expiration === (next?.on ?? d.session_date)) ?? null;
    const today = { d, expiring, next, option, track: track?.session_date === d.session_date ? track : null,
      z: next ? { ...next, remaining_move: option?.expected_move ?? null } : d.zero_dte,
      rows: next?.rows ?? of('matrix')?.parts.find((p) => p.name === 'zero_dte')?.by_strike ?? null };
    const name = next ? `Next: ${weekday(next.on)}` : '0DTE by strike';
    say(strikes.element.querySelector('h3'), name);
    strikes.canvas.ariaLabel = strikes.canvas.ariaLabel.replace(/^.*(?=: chart)/, name);
    alone = !!day() || !expiring.length && !next;
    const at = alone && Replay.levels?.at || Infinity; // of a replay
    panel.element.classList.toggle('then', at < Infinity);
    const line = track ? drawTrack(net, track, at) : net.clear(why);
    figure.allow(...(alone ? [line ? 'session' : 'none'] : next ? ['gamma', 'session'] : [])); // the matrix has net gamma only
    refill(facts, ...list({ ...today, at }));
    const bars = drawStrikes(strikes, today, figures[figure.picked()] ?? figures.gamma);
    const [noRows, noTrack] = [!today.rows && !day(), !track && !why];
    for (const [chart, waits] of [[strikes, noRows], [net, noTrack]]) chart.element.classList.toggle('pending', waits); // it keeps its place
    const session = figure.picked() === 'session' && (line || !alone); // else the strikes say why there is nothing
    charts.dataset.shown = `${session ? 'session' : 'strikes'}${(session ? line || noTrack : bars || noRows) ? '' : ' ahead'}`;
    drawAhead(ahead, d);
  };
  const panel = new Panel({ id: 'zero-dte', controls: [figure.element], render: show });
  panel.body.append(facts, charts);
  for (const [name, path] of Object.entries({ matrix: `${current}/matrix`, volatility })) {
    follow(() => (day() ? '' : path), (f) => { others[name] = f.document?.data; show(); });
  }
  onChoice(show);
  addEventListener('moment', () => { if (alone) show(); });
  followTrack((document, reason) => {
    track = document?.data ?? null;
    why = reason;
    show();
  });
  panel.followDay(current, past);
}

const wall = (kind, strike, d) => title(Number.isFinite(strike) ? wallName(kind, strike, d.effective_spot) : `${kind} wall`);
const away = (x, d) => (Number.isFinite(x) ? percent((x / d.effective_spot - 1) * 100) : '');

/** settled returns the last row of a track, up to a moment, in which what expired on its day was open, with names, or undefined. */
const settled = (track, at) => records(track).findLast((row) => row.zero_dte_gross_share_pct > 0 && !(Date.parse(row.as_of) > at));

/** list returns the figures. Of contracts that have settled, the last that the track has. */
function list({ d, z, expiring, next, option, track, at }) {
  const last = d.zero_dte.settled ? settled(track, at) : undefined;
  const then = last ? `at ${time(Date.parse(last.as_of), true)}` : '';
  if (last && !next) {
    return [fact('net', 'Net gamma', dollars(last.zero_dte_net_gex_dollars), then),
      fact('gross', 'Of gross', share(last.zero_dte_gross_share_pct), then), fact('', at < Infinity ? 'Expires' : 'Settled', shortDate(d.session_date), at < Infinity ? 'at its close' : 'none is open')];
  }
  const far = (name, x) => (outside(x, d) ? [`${name}, outside`, 'outside'] : [name]); // of the move that is expected until the close
  const [[flipName, flipKind], [pinName, pinKind]] = [far('Flip', z.zero_gamma_flip), far('Pin', z.pin_strike)];
  const [flip, call, put] = [expiring.length ? z.zero_gamma_flip : null, z.call_walls?.[0]?.strike, z.put_walls?.[0]?.strike];
  const open = next || expiring.length;
  const sign = open && z.net_gex_dollars ? (z.net_gex_dollars > 0 ? 'positive' : 'negative') : '';
  return [
    fact('net', 'Net gamma', open ? dollars(z.net_gex_dollars) : unknown, open ? `${share(z.gross_share_pct)} of gross` : '', sign),
    next ? fact('', 'Next', shortDate(next.on), d.zero_dte.settled ? 'last quotes' : 'none today') : fact('flip', flipName, level(flip), open && flip === null ? 'none in 15\u00a0%' : away(flip, d), flipKind),
    fact('call_wall', wall('call', call, d), level(call), away(call, d)),
    fact('put_wall', wall('put', put, d), level(put), away(put, d)),
    next ? fact('zero_dte', d.zero_dte.settled ? '0DTE, settled' : '0DTE', dollars(last?.zero_dte_net_gex_dollars), then) : fact('pin', pinName, level(z.pin_strike), away(z.pin_strike, d), pinKind),
    fact('expected_move', next ? 'To its close' : 'To close', z.remaining_move ? `±${rough(z.remaining_move)}` : unknown, option?.atm_straddle ? `straddle ${rough(option.atm_straddle)}` : ''),
  ];
}

/** none says in a sentence why nothing that expires on the day of the session is open. */
function none({ d }) {
  const on = date(d.session_date);
  return `No contract of ${d.symbol} ${d.zero_dte.settled ? `that expires on ${on} is open` : `expires on ${on}`}.`;
}

/** drawStrikes draws calls and puts by strike as far as the walls and one and a half expected moves. */
function drawStrikes(chart, today, f) {
  const { d, z, expiring, next, rows } = today;
  if (expiring.length === 0 && !next) return chart.clear(none(today));
  if (day()) return chart.clear('A stored date has no figures by strike of what expired on it.');
  if (!rows) return chart.clear('The figures of these contracts have not come yet.');
  const spot = d.effective_spot;
  const move = z.remaining_move;
  const [call0, put0] = [z.call_walls?.[0]?.strike, z.put_walls?.[0]?.strike];
  const marks = [[spot, 'Spot', '--ink'], [z.zero_gamma_flip, 'Flip', '--flip'], [call0, wall('call', call0, d), '--positive'], [put0, wall('put', put0, d), '--negative']]
    .map(([x, name, color]) => ({ x, label: `${name} ${level(x)}`, color })).filter((m) => Number.isFinite(m.x));
  const reach = Math.min(0.1, Math.max(0.01, 1.5 * (move ?? 0) / spot, ...[call0, put0].filter(Number.isFinite).map((x) => 1.1 * Math.abs(x / spot - 1))));
  const inside = (x) => Math.abs(x / spot - 1) <= reach;
  const near = rows.filter((r) => (next || f.call(r) !== null && f.put(r) !== null) && inside(r.strike));
  const most = (of) => near.reduce((best, r) => (Math.abs(of(r)) > Math.abs(of(best)) ? r : best), near[0]);
  const [call, put] = [most(f.call), most(f.put)];
  chart.draw({
    view: next?.on ?? d.session_date, xs: near.map((r) => r.strike), xName: 'Strike', xFormat: (x) => level(x), range: [spot * (1 - reach), spot * (1 + reach)], start: spot, yFormat: next ? axisDollars : f.yFormat,
    marks: marks.filter((m) => inside(m.x)), bands: move ? [{ from: spot - move, to: spot + move, color: '--accent', label: `Exp. move ±${rough(move)}` }] : [],
    series: [
      ...(next ? [] : [{ name: 'Calls', values: near.map(f.call), format: f.write, kind: 'bars', color: '--positive' }, { name: 'Puts', values: near.map(f.put), format: f.write, kind: 'bars', color: '--negative' }]),
      { name: 'Net gamma', values: near.map((r) => r.net_gex_dollars), format: dollars, kind: next ? 'bars' : 'none', color: '--positive', negative: '--negative' },
    ],
    summary: near.length === 0 ? 'No strike with open interest lies near spot.'
      : next ? `Net gamma of what expires on ${date(next.on)}, of the last quotes: ${number(near.length)} strikes within ${number(reach * 100, 1)}\u00a0% of spot. Its walls are the strikes with the most net gamma of either sign.`
      : `${number(near.length)} strikes within ${number(reach * 100, 1)}\u00a0% of spot. Largest ${f.name}: calls ${f.write(f.call(call))} at ${level(call.strike)}, puts ${f.write(f.put(put))} at ${level(put.strike)}. ` +
        'Calls are drawn upwards, puts downwards.',
  });
  return near.length > 0;
}

/** drawAhead draws net gamma of the expirations after the session, as bars. */
function drawAhead(chart, d) {
  const next = d.by_expiration.filter((e) => e.expiration > d.session_date && e.net_gex_dollars !== null).slice(0, 12).map((e) => ({ ...e, date: e.expiration }));
  chart.draw({
    ...dated(next), onPick: null, xName: 'Expiration', start: 0,
    series: [
      { name: 'Net', values: next.map((e) => e.net_gex_dollars), format: dollars, kind: 'bars', color: '--positive', negative: '--negative' },
      { name: 'Share of gross', values: next.map((e) => e.gross_share_pct), format: share, kind: 'none' },
    ],
    yFormat: axisDollars, summary: next.length ? `The next ${number(next.length)} expirations, to ${date(next.at(-1).expiration)}.` : 'No later expiration is listed.',
  });
}

/** drawStrikes and drawTrack return true if there is something to draw. */
function drawTrack(chart, track, at) {
  const { xs, column, name } = points(track);
  const [all, shares] = [column('zero_dte_net_gex_dollars'), column('zero_dte_gross_share_pct')];
  const values = all.map((v, i) => (xs[i] > at ? null : v));
  const known = all.filter((v, i) => v !== null && shares[i] > 0);
  if (known.length === 0) return chart.clear(`The track has nothing that expired on ${date(track.session_date)}.`);
  if (known.length === 1) return chart.clear(`The session has one snapshot with net gamma of these contracts: ${dollars(known[0])}.`);
  chart.draw({
    view: track.session_date, xs, ...clock(name),
    series: [
      { name: 'Net', values, format: dollars, kind: 'area', color: '--positive', negative: '--negative' },
      { name: 'Share of gross', values: shares, format: share, kind: 'none' },
    ],
    yFormat: axisDollars,
    summary: `Of ${date(track.session_date)}: net gamma between ${dollars(Math.min(...known))} and ${dollars(Math.max(...known))}, at last ${share(shares.findLast((s) => s !== null))} of gross.`,
  });
  return true;
}
