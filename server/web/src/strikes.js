// Gamma, open interest and volume by strike, the profile of net gamma over hypothetical spots, and the figures by expiration.

import { Chart } from './chart.js';
import { floating, h, say, scroller, table } from './dom.js';
import { axisDollars, axisShort, date, dollars, level, number, percent, short, spotName, title } from './format.js';
import { day, follow, Panel, sentence } from './panel.js';
import { choices, onChoice } from './state.js';
import { refill, term } from './terms.js';

export const current = '/api/v1/gex/{u}';
export const past = `${current}/historical`;
const matrix = `${current}/matrix`;
const partReach = 0.1; // the strikes of its parts are within this share of the spot
const parts = { '0dte': 'zero_dte', week: 'this_week' }; // of the expirations, by choice

const below = (x) => (x === null ? null : -x); // puts are drawn downwards

export const figures = {
  gamma: { name: 'gamma', call: (r) => r.call_gex_dollars, put: (r) => r.put_gex_dollars, write: dollars, yName: 'Gamma, $ per 1 % move', yFormat: axisDollars },
  oi: { name: 'open interest', call: (r) => r.call_open_interest, put: (r) => below(r.put_open_interest), write: (x) => short(Math.abs(x)), yName: 'Contracts', yFormat: axisShort },
  volume: { name: 'volume', call: (r) => r.call_volume, put: (r) => below(r.put_volume), write: (x) => short(Math.abs(x)), yName: 'Contracts today', yFormat: axisShort },
};

/** strikesPanel returns the panel. */
export function strikesPanel() {
  const figure = choices('figure', 'Figure by strike', [['gamma', 'Gamma'], ['oi', 'Open interest'], ['volume', 'Volume']]);
  const expiring = choices('expiring', 'Expirations by strike', [['all', 'All expirations'], ['0dte', '0DTE'], ['week', 'This week']]);
  const range = choices('strikes', 'Strikes shown', [['levels', 'Levels'], ['3', '±3 %'], ['7', '±7 %'], ['15', '±15 %']]);
  const strikes = new Chart('By strike', 340);
  const profile = new Chart('Gamma profile', 340);
  const words = h('p', { class: 'about' }, 'Marked are the ', term('spot', 'spot'), ', the ', term('flip', 'flip'), ' with its ', term('flip_band', 'band'), ', the ',
    term('call_wall', 'call wall'), ', the ', term('put_wall', 'put wall'), ', the ', term('vol_trigger', 'vol trigger'), ' and the ', term('expected_move', 'expected move'), '.');
  const partWords = h('p', { class: 'about' }, 'Marked are the ', term('spot', 'spot'), ' and the ', term('expected_move', 'expected move'), ' only: the other levels, the gamma profile and the tables below are of all expirations.');
  const why = h('p', { class: 'about why', role: 'status' });
  const more = h('div', { class: 'tables' });
  let data = null;
  let grid = null; // the matrix
  const panel = new Panel({
    id: 'strikes', controls: [figure.element, expiring.element, range.element],
    render(d) {
      data = d;
      show();
      drawProfile(profile, d);
      refill(more, ...comparisons(d));
    },
  });
  const show = () => {
    if (!data) return;
    const name = parts[expiring.picked()];
    const part = grid?.parts?.find((p) => p.name === name);
    words.hidden = !!name;
    partWords.hidden = !name;
    say(why, day() ? 'A stored date has sums over all expirations only.'
      : !name ? 'Sums over all expirations. Calls are drawn upwards, puts downwards.'
        : `Sums over contracts ${part ? during(part) : 'of these expirations'}, within ±10 % of the spot.${failure ? ` ${sentence(failure.message)}` : ''}`);
    if (!name || part) drawSides(strikes, data, part, figures[figure.picked()], reach(data, range.picked()), `${day()} ${name} ${range.picked()}`);
    else strikes.clear('The figures of these expirations have not come yet.');
  };
  const choose = () => {
    expiring.allow(...(day() ? ['all'] : []));
    show();
  };
  let failure = null; // of the matrix, which is asked for while a part of the expirations is shown
  follow(() => (expiring.picked() === 'all' || day() ? '' : matrix), (f) => { grid = f.document?.data ?? null; failure = f.failure; show(); });
  onChoice(choose);
  panel.body.append(h('div', { class: 'split wide-left' }, strikes.element, profile.element), why, words, partWords,
    h('details', { class: 'more', open: innerWidth >= 2200 }, h('summary', null, 'Other conventions and scenarios'), more)); // a wide window has room
  panel.followDay(current, past);
  choose();
  return panel;
}

/** reach returns the share of spot to show. Levels: as far as the flip and the walls, at least 3 %, at most 15 %. */
function reach(d, picked) {
  if (picked !== 'levels') return Number(picked) / 100;
  const away = [d.zero_gamma_flip, d.call_wall, d.put_wall].filter((x) => x !== null).map((x) => Math.abs(x / d.effective_spot - 1));
  return Math.min(0.15, Math.max(0.03, 1.05 * Math.max(0, ...away)));
}

function marks(d) {
  return [
    { x: d.effective_spot, label: `${spotName(d)} ${level(d.effective_spot)}`, color: '--ink' },
    { x: d.zero_gamma_flip, label: `Flip ${level(d.zero_gamma_flip)}`, color: '--flip' },
    { x: d.call_wall, label: `Call wall ${level(d.call_wall)}`, color: '--positive' },
    { x: d.put_wall, label: `Put wall ${level(d.put_wall)}`, color: '--negative' },
    { x: d.vol_trigger, label: `Vol trigger ${level(d.vol_trigger)}`, color: '--part-4' },
  ];
}

const flipBand = (d) => (d.flip_band ? [{ from: d.flip_band.low, to: d.flip_band.high, color: '--flip' }] : []);

function bands(d) {
  const move = d.expected_move_1d;
  return [...(move ? [{ from: d.effective_spot - move, to: d.effective_spot + move, color: '--accent', label: `Exp. move ±${number(move)}` }] : []), ...flipBand(d)];
}

/** during says when the contracts of a part expire. */
const during = (part) => (part.from === part.to ? `expiring on ${date(part.to)}` : `expiring from ${date(part.from)} to ${date(part.to)}`);

/** drawSides draws calls and puts by strike: of a part of the expirations, or else of all. */
function drawSides(chart, d, part, f, wanted, view) {
  const spot = d.effective_spot;
  const share = part ? Math.min(partReach, wanted) : wanted;
  const rows = ((part ?? d).by_strike ?? []).filter((r) => f.call(r) !== null && f.put(r) !== null && Math.abs(r.strike / spot - 1) <= share);
  const most = (of) => rows.reduce((best, r) => (Math.abs(of(r)) > Math.abs(of(best)) ? r : best), rows[0]);
  const [call, put] = [most(f.call), most(f.put)];
  const net = f === figures.gamma ? [{ name: 'Net', values: rows.map((r) => r.net_gex_dollars), format: dollars, kind: 'none', color: '--ink' }] : [];
  chart.draw({
    view, xs: rows.map((r) => r.strike), xName: 'Strike', xFormat: (x) => level(x), range: [spot * (1 - share), spot * (1 + share)], start: spot, yName: f.yName, yFormat: f.yFormat,
    marks: part ? marks(d).slice(0, 1) : marks(d), bands: part ? bands({ ...d, flip_band: null }) : bands(d), // the other levels are of all expirations
    series: [
      { name: 'Calls', values: rows.map(f.call), format: f.write, kind: 'bars', color: '--positive' },
      { name: 'Puts', values: rows.map(f.put), format: f.write, kind: 'bars', color: '--negative' },
      ...net,
    ],
    summary: rows.length === 0 ? none(d, part)
      : `${number(rows.length)} strikes within ${number(share * 100, 1)}\u00a0% of spot. Largest ${f.name}: calls ${f.write(f.call(call))} at ${level(call.strike)}, ` +
        `puts ${f.write(f.put(put))} at ${level(put.strike)}.`,
  });
}

/** none says why there is no strike. */
function none(d, part) {
  if (!part) return 'No strike with open interest lies in this range.';
  const settled = d.zero_dte.settled && part.to <= d.session_date;
  return settled ? `The contracts ${during(part)} have settled.` : `No unsettled contract ${during(part)} has open interest in this range.`;
}

function drawProfile(chart, d) {
  const points = d.profile;
  const xs = points.map((p) => p.spot);
  const values = points.map((p) => p.net_gex_dollars);
  chart.draw({
    xs, xName: 'Hypothetical spot', xFormat: (x, exact) => number(x, exact ? 2 : 0),
    series: [{ name: 'Net', values, format: dollars, kind: 'area', color: '--positive', negative: '--negative' }],
    yName: 'Net gamma, $ per 1 % move', yFormat: axisDollars, start: d.effective_spot,
    marks: marks(d).slice(0, 2), bands: flipBand(d),
    summary: xs.length === 0 ? 'No contract can be repriced.' : `Net gamma would be ${dollars(values[0])} at ${number(xs[0])} and ${dollars(values.at(-1))} at ${number(xs.at(-1))}. ` +
      (d.zero_gamma_flip === null ? 'There is no flip.' : `The flip is at ${level(d.zero_gamma_flip)}.`),
  });
}

function comparisons(d) {
  const columns = () => [{ head: 'Name' }, { head: 'Net, $ per 1 %', number: true }, { head: term('flip', 'Flip'), number: true }];
  const row = (c) => [term(c.name, title(c.name)), dollars(c.net_gex_dollars), level(c.zero_gamma_flip)];
  return [
    h('div', null, h('h3', null, 'Conventions'), table('Net gamma and flip under other conventions', columns(), (d.conventions ?? []).map(row))),
    h('div', null, h('h3', null, 'Scenarios'), table('Net gamma and flip in scenarios', columns(), (d.scenarios ?? []).map(row))),
  ];
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
        : `${number(rows.length)} expirations. The largest share of gross gamma, ${share(most)}, expires on ${date(most.expiration)}.`);
    },
  });
  place.classList.add('rows');
  panel.body.append(h('p', { class: 'about sideways' }, 'The table is wider than the window: move it sideways for share of gross, delta, vanna and charm.'), place, summary);
  panel.followDay(current, past);
  return panel;
}

const share = (e) => percent(e.gross_share_pct, 1).replace('+', '');

function byExpiration(rows, session) {
  const most = Math.max(...rows.map((e) => Math.abs(e.net_gex_dollars ?? 0)), 1);
  const columns = [{ head: 'Expiration' }, { head: term('net', 'Net gamma'), number: true }, { head: '' }, { head: term('gross', 'Of gross'), number: true },
    ...['delta', 'vanna', 'charm'].map((name) => ({ head: term(name, title(name)), number: true }))];
  return table('Figures by expiration, in dollars', columns, rows.map((e) => [
    h('span', null, date(e.expiration), ' ', h('small', null, e.settlement.toUpperCase()), e.expiration === session ? h('small', { class: 'today' }, term('zero_dte', '0DTE')) : null),
    dollars(e.net_gex_dollars), floating(0, e.net_gex_dollars, -most, most), share(e),
    dollars(e.delta_dollars), dollars(e.vanna_dollars_per_vol_point), dollars(e.charm_dollars_per_day)]));
}
