// What changed since the last session, part by part, and the exposures beside gamma.

import { floating, h, say, scroller, table } from './dom.js';
import { closes, date, dollars, instant, level, number } from './format.js';
import { Panel } from './panel.js';
import { current, past } from './strikes.js';
import { fact, refill, term } from './terms.js';

/** Each part: its field, its word, its name, and its name in a sentence. */
const parts = [['expired', 'expired', 'Expired', 'expired contracts'], ['spot', 'part_spot', 'Spot', 'the move of the underlying'], ['time', 'part_time', 'Time', 'the passing of time'],
  ['volatility', 'part_volatility', 'Volatility', 'the change of volatility'], ['open_interest', 'part_open_interest', 'Open interest', 'the change of open interest'],
  ['listed', 'listed', 'Listed', 'newly listed contracts']];

const signed = (x) => (x > 0 ? `+${dollars(x)}` : dollars(x));

/** changesPanel returns the panel. */
export function changesPanel() {
  const reading = h('p');
  const waterfall = scroller('Change of net gamma by part');
  const contracts = scroller('Largest changes of open interest');
  const exposures = h('dl', { class: 'facts' });
  const panel = new Panel({
    id: 'changes',
    render(d, meta) {
      say(reading, read(d.changes, meta.quality));
      reading.className = d.changes?.net_gex_dollars ? 'summary' : 'about keep';
      refill(waterfall, ...steps(d.changes));
      refill(contracts, ...interest(d.open_interest_changes));
      refill(exposures, ...figures(d, meta));
    },
  });
  panel.body.append(reading, h('div', { class: 'split' },
    h('div', { class: 'waterfall' }, h('h3', null, term('net', 'Net gamma'), ', part by part'), waterfall),
    h('div', { class: 'contracts' }, h('h3', null, 'Largest changes of ', term('open_interest', 'open interest')), contracts),
    h('div', { class: 'exposures' }, h('h3', null, 'Exposures, and what dealers must trade'), exposures)));
  panel.followDay(current, past);
  return panel;
}

const reasons = {
  no_reference: 'no snapshot of the last session is stored',
  split: 'the shares were split since the last session',
  net_unknown: 'net gamma is unknown now',
  reference_net_unknown: 'net gamma of the last session is unknown',
};

function read(c, quality) {
  if (!c?.net_gex_dollars) return `There is no comparison with the last session: ${reasons[quality?.changes_reason] ?? 'this answer does not have one'}.`;
  const net = c.net_gex_dollars;
  const largest = parts.toSorted((a, b) => Math.abs(net[b[0]]) - Math.abs(net[a[0]])).slice(0, 2)
    .filter((part) => net[part[0]] !== 0).map((part) => `${part[3]}, ${signed(net[part[0]])}`);
  const change = net.to - net.from;
  const flip = c.flip.from === null || c.flip.to === null ? `${c.flip.from === null ? 'There was no flip' : `The flip was ${level(c.flip.from)}`}, and ${c.flip.to === null ? 'there is none' : `it is ${level(c.flip.to)}`} now.`
    : `The flip moved from ${level(c.flip.from)} to ${level(c.flip.to)}.`;
  return `Since ${instant(c.reference_as_of)}, net gamma ${change < 0 ? 'fell' : 'rose'} by ${dollars(Math.abs(change))}. ` +
    (largest.length ? `The largest parts are ${largest.join(', and ')}. ` : '') + flip;
}

/** steps returns the waterfall: each part begins where the one before it ended. */
function steps(c) {
  if (!c?.net_gex_dollars) return [];
  const net = c.net_gex_dollars;
  const rows = [['Last session', 0, net.from, dollars(net.from)]];
  let at = net.from;
  for (const [key, word, name] of parts) {
    rows.push([term(word, name), at, at + net[key], signed(net[key])]);
    at += net[key];
  }
  rows.push(['Now', 0, net.to, dollars(net.to)]);
  const ends = rows.flatMap(([, from, to]) => [from, to]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  return [table('Net gamma of the last session, its changes by part, and net gamma now', [{ head: 'Part' }, { head: '' }, { head: '$ per 1 %', number: true }],
    rows.map(([name, from, to, text]) => [name, floating(from, to, low, high), text]))];
}

function interest(list) {
  if (!list?.length) return [h('p', { class: 'empty' }, list ? 'No open interest has changed.' : 'Not known.')];
  const count = (x) => (x > 0 ? `+${number(x)}` : number(x));
  return [table('The largest changes of open interest', [{ head: 'Contract' }, { head: 'Contracts', number: true }, { head: 'Change', number: true }],
    list.map((r) => [h('span', null, `${level(r.strike)} ${r.option_type} `, h('small', null, date(r.expiration))), number(r.to), count(r.to - r.from)]))];
}

/** figures returns each exposure with what it makes modelled dealers do. Dealers trade against the change of their options. */
function figures(d, meta) {
  const e = d.exposures ?? {};
  const trade = (x) => `${x > 0 ? 'sell' : 'buy'} ${dollars(Math.abs(x))}`;
  const without = e.charm_ex_zero_dte_dollars_per_day;
  const expiring = e.charm_dollars_per_day - without; // a rate of a day, and they have hours
  const left = Math.max(0, closes(d.session_date) - Date.parse(meta.as_of)) / 86400e3;
  const one = (word, name, x, note) => fact(word, name, dollars(x), Number.isFinite(x) ? note(x) : 'not known');
  return [
    one('gamma', 'Gamma', d.net_gex_dollars, (x) => `+1 %: ${trade(x)}`),
    one('delta', 'Delta', e.delta_dollars, (x) => `hedge: ${x < 0 ? 'hold' : 'be short'} as much`),
    one('vanna', 'Vanna', e.vanna_dollars_per_vol_point, (x) => `vol. +1 point: ${trade(x)}`),
    expiring ? one('charm', 'Charm without 0DTE', without, (x) => `a day later: ${trade(x)}${left ? `; 0DTE, by the close: ${trade(expiring * left)}` : ''}`) : one('charm', 'Charm', e.charm_dollars_per_day, (x) => `a day later: ${trade(x)}`),
  ];
}
