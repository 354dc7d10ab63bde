// Gamma, open interest and volume by strike, the profile of net gamma over hypothetical spots, and the figures by expiration.

import { floating, h, say, scroller, table } from './dom.js';
import { axisDollars, axisShort, date, dollars, level, number, share, short, shortDate, title } from './format.js';
import { Panel } from './panel.js';
import { refill, term } from './terms.js';

export const current = '/api/v1/gex/{u}';
export const past = `${current}/historical`;
export const matrix = `${current}/matrix`;

const below = (x) => (x === null ? null : -x); // puts are drawn to the other side

export const figures = {
  net: { text: 'Net', name: 'net gamma', net: (r) => r.net_gex_dollars, call: (r) => r.call_gex_dollars, put: (r) => r.put_gex_dollars, write: dollars, yFormat: axisDollars },
  gamma: { text: 'Calls, puts', name: 'gamma', call: (r) => r.call_gex_dollars, put: (r) => r.put_gex_dollars, write: dollars, yFormat: axisDollars },
  oi: { text: 'OI', name: 'open interest', call: (r) => r.call_open_interest, put: (r) => below(r.put_open_interest), write: (x) => short(Math.abs(x)), yFormat: axisShort },
  volume: { text: 'Volume', name: 'volume', call: (r) => r.call_volume, put: (r) => below(r.put_volume), write: (x) => short(Math.abs(x)), yFormat: axisShort },
};

/** during says when the contracts of a part expire. */
const during = (part) => (part.from === part.to ? `expiring on ${date(part.to)}` : `expiring from ${date(part.from)} to ${date(part.to)}`);

/** barsOf returns the points and the series of a figure by strike, in words for the strikes in sight: of a part of the expirations, or else of all. before is the answer of the close before, for net gamma. */
export function barsOf(d, part, f, before, [low, high], faint) {
  const rows = ((part ?? d).by_strike ?? []).filter((r) => (f.net ? f.net(r) !== null : f.call(r) !== null && f.put(r) !== null));
  const seen = rows.filter((r) => low <= r.strike && r.strike <= high);
  const most = (of) => seen.reduce((best, r) => (Math.abs(of(r)) > Math.abs(of(best)) ? r : best), seen[0]);
  const said = (of) => `${f.write(of(most(of)))} at ${level(most(of).strike)}`;
  const then = new Map((!part && before?.by_strike || []).map((r) => [r.strike, f.net?.(r) ?? null]));
  const series = (name, of, more) => ({ name, values: rows.map(of), format: f.write, kind: 'bars', faint, ...more });
  const side = f.net ? { kind: 'none' } : {};
  return {
    xs: rows.map((r) => r.strike), xName: 'Strike', xFormat: (x) => level(x), yFormat: f.yFormat,
    series: [
      ...(f.net && then.size ? [series(`Close of ${shortDate(before.session_date)}`, (r) => then.get(r.strike) ?? null, { kind: 'ghost', color: '--muted' })] : []),
      ...(f.net ? [series('Net', f.net, { color: '--positive', negative: '--negative' })] : []),
      ...(rows.some((r) => f.call(r) !== undefined) ? [series('Calls', f.call, { color: '--positive', ...side }), series('Puts', f.put, { color: '--negative', ...side })] : []), // a past moment has their sums only
    ],
    summary: seen.length === 0 ? none(d, part)
      : `${number(seen.length)} strikes from ${level(seen[0].strike)} to ${level(seen.at(-1).strike)}, ${part ? `of contracts ${during(part)}` : 'of all expirations'}. ` +
        `Largest ${f.name}: ${f.net ? said(f.net) : `calls ${said(f.call)}, puts ${said(f.put)}`}.`,
  };
}

/** none says why there is no strike. */
function none(d, part) {
  if (!part) return 'No strike with open interest lies in this range.';
  const settled = d.zero_dte.settled && part.to <= d.session_date;
  return settled ? `The contracts ${during(part)} have settled.` : `No unsettled contract ${during(part)} has open interest in this range.`;
}

/** drawProfile draws net gamma over hypothetical spots, which is of now, with the spot and the flip of now. */
export function drawProfile(chart, d) {
  const xs = d.profile.map((p) => p.spot);
  const values = d.profile.map((p) => p.net_gex_dollars);
  chart.draw({
    xs, xName: 'Hypothetical spot', xFormat: (x, exact, digits) => number(x, exact ? 2 : digits), start: d.effective_spot,
    series: [{ name: 'Net', values, format: dollars, kind: 'area', color: '--positive', negative: '--negative' }],
    yFormat: axisDollars,
    marks: [{ x: d.effective_spot, label: '', color: '--ink' }, { x: d.zero_gamma_flip, label: '', color: '--flip' }],
    bands: d.flip_band && d.zero_gamma_flip !== null ? [{ from: d.flip_band.low, to: d.flip_band.high, color: '--flip' }] : [],
    summary: xs.length === 0 ? 'No contract can be repriced.' : `Net gamma would be ${dollars(values[0])} at ${number(xs[0])} and ${dollars(values.at(-1))} at ${number(xs.at(-1))}. ` +
      (d.zero_gamma_flip === null ? 'There is no flip.' : `The flip is at ${level(d.zero_gamma_flip)}.`),
  });
}

export function comparisons(d) {
  const columns = () => [{ head: 'Name' }, { head: 'Net, $ per 1 %', number: true }, { head: term('flip', 'Flip'), number: true }];
  const row = (c) => [term(c.name, title(c.name)), dollars(c.net_gex_dollars), level(c.zero_gamma_flip)];
  return [
    h('div', null, h('h3', null, 'Conventions'), table('Net gamma and flip under other conventions', columns(), (d.conventions ?? []).map(row))),
    h('div', null, h('h3', null, 'Scenarios'), table('Net gamma and flip in scenarios', columns(), (d.scenarios ?? []).map(row))),
  ];
}

/** following returns what the matrix has of the first date after the session, as zero_dte and rows by strike, or null. Its walls are the strikes with the most net gamma of either sign. */
export function following(d, matrix) {
  const on = d.by_expiration.find((e) => e.expiration > d.session_date)?.expiration;
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const total = (key) => sum(d.by_expiration.filter((e) => e.expiration === on).map((e) => e[key]));
  const rows = (matrix?.net_gex_dollars ?? []).map((cells, i) => [matrix.strikes[i].strike, cells.filter((x, c) => x !== null && matrix.expirations[c].expiration === on)])
    .filter(([, cells]) => cells.length).map(([strike, cells]) => ({ strike, net_gex_dollars: sum(cells) })); // AM and PM
  const by = rows.toSorted((a, b) => b.net_gex_dollars - a.net_gex_dollars);
  return rows.length === 0 ? null : { on, rows, net_gex_dollars: total('net_gex_dollars'), gross_share_pct: total('gross_share_pct'), zero_gamma_flip: null,
    call_walls: by.slice(0, 1).filter((r) => r.net_gex_dollars > 0), put_walls: by.slice(-1).filter((r) => r.net_gex_dollars < 0) };
}

/** expirationsPanel returns the panel of the figures by expiration. */
export function expirationsPanel() {
  const place = scroller('Figures by expiration');
  const summary = h('p', { class: 'summary' });
  const panel = new Panel({
    id: 'expirations',
    render(d) {
      const rows = d.by_expiration;
      refill(place, byExpiration(rows, d.session_date));
      const most = rows.toSorted((a, b) => b.gross_share_pct - a.gross_share_pct)[0];
      say(summary, !(most?.gross_share_pct > 0) ? 'No expiration has gamma.'
        : `${number(rows.length)} expirations. The largest share of gross gamma, ${share(most.gross_share_pct)}, expires on ${date(most.expiration)}.`);
    },
  });
  place.classList.add('rows');
  panel.body.append(h('p', { class: 'about sideways' }, 'The table is wider than the window: move it sideways for share of gross, delta, vanna and charm.'), place, summary);
  panel.followDay(current, past);
  return panel;
}

function byExpiration(rows, session) {
  const most = Math.max(...rows.map((e) => Math.abs(e.net_gex_dollars ?? 0)), 1);
  const columns = [{ head: 'Expiration' }, { head: term('net', 'Net gamma'), number: true }, { head: '' }, { head: term('gross', 'Of gross'), number: true },
    ...['delta', 'vanna', 'charm'].map((name) => ({ head: term(name, title(name)), number: true }))];
  return table('Figures by expiration, in dollars', columns, rows.map((e) => [
    h('span', null, date(e.expiration), ' ', h('small', null, e.settlement.toUpperCase()), ...e.expiration === session ? [' ', h('small', { class: 'today' }, term('zero_dte', '0DTE'))] : []),
    dollars(e.net_gex_dollars), floating(0, e.net_gex_dollars, -most, most), share(e.gross_share_pct),
    dollars(e.delta_dollars), dollars(e.vanna_dollars_per_vol_point), dollars(e.charm_dollars_per_day)]));
}
