// Gamma exposure, now or on a stored date: levels, exposure by strike, the profile over hypothetical spots, and the
// numbers under other conventions.

import { Chart } from './chart.js';
import { choice, h, options, picker, table } from './dom.js';
import { axisDollars, date, dollars, level, number, percent, title } from './format.js';
import { Panel } from './panel.js';
import { refill, term } from './terms.js';

const current = '/api/v1/gex/spx';
const views = { near: () => 0.03, wide: () => 0.07, all: () => 0.15, fit };

/** spotOf returns the spot of the figures. Imported dates and those of older methods have only the published level. */
const spotOf = (d) => d.effective_spot ?? d.spot;

/** fit returns the share of spot within which all levels lie: at least 3 %, at most 15 %. */
function fit(d) {
  const away = [d.zero_gamma_flip, d.call_wall, d.put_wall].filter((x) => x !== null).map((x) => Math.abs(x / spotOf(d) - 1));
  return Math.min(0.15, Math.max(0.03, 1.05 * Math.max(0, ...away)));
}

/** gammaPanel returns the panel, and a function that gives it the stored dates. */
export function gammaPanel() {
  const dates = picker('Date', (d) => panel.follow(d ? `${current}/historical?date=${d}` : current));
  options(dates.select, [['', 'Now']]);
  let view = 'fit';
  let last = null;
  const zoom = choice('Strikes shown', [['fit', 'Levels'], ['near', '±3 %'], ['wide', '±7 %'], ['all', '±15 %']], (v) => { view = v; if (last) byStrike(last); });
  const levels = h('dl', { class: 'levels' });
  const regime = h('p', { class: 'reading' });
  const strikes = new Chart('Gamma by strike', 330);
  const profile = new Chart('Gamma profile', 330);
  const more = h('div', { class: 'tables' });
  const panel = new Panel({
    id: 'gamma', heading: 'Gamma exposure', controls: [dates.element, zoom],
    about: 'Modelled dealer hedging of SPX options, in dollars per 1 % move of the index',
    render(data) {
      last = data;
      levels.replaceChildren(...levelTiles(data));
      regime.textContent = reading(data);
      byStrike(data);
      drawProfile(profile, data);
      refill(more, ...comparisons(data));
    },
  });
  const byStrike = (data) => drawStrikes(strikes, data, views[view](data));
  panel.body.append(levels, regime, h('div', { class: 'split wide-left' }, strikes.element, profile.element),
    h('details', { class: 'more' }, h('summary', null, 'Other conventions and scenarios'), more));
  const offer = (stored) => options(dates.select, [['', 'Now'], ...stored.toReversed().map((d) => [d, date(d)])]);
  return { panel, offer };
}

function tile(name, value, note, kind) {
  return h('div', { class: kind && `tile ${kind}` || 'tile' }, h('dt', null, name), h('dd', null, value, h('small', null, note)));
}

function levelTiles(d) {
  const sign = d.gamma_regime === 'positive' || d.gamma_regime === 'negative' ? d.gamma_regime : '';
  return [
    tile('Spot', level(d.spot), spotNote(d)),
    tile('Net gamma', dollars(d.net_gex_dollars), 'per 1 % move', sign),
    tile('Zero-gamma flip', level(d.zero_gamma_flip), flipNote(d)),
    tile('Call wall', level(d.call_wall), 'largest call gamma above'),
    tile('Put wall', level(d.put_wall), 'largest put gamma below'),
    tile('Expiring the same day', percent(d.zero_dte?.gross_share_pct, 1).replace('+', ''),
      d.zero_dte?.settled ? 'settled at the close' : `of gross; net ${dollars(d.zero_dte?.net_gex_dollars)}`),
  ];
}

function spotNote(d) {
  const move = d.expected_move_1d === null ? 'expected move unknown' : `one standard deviation is ±${number(d.expected_move_1d, 0)} in a day`;
  return d.spot_source === 'implied' ? `options imply ${level(d.effective_spot)}; ${move}` : move;
}

function flipNote(d) {
  if (d.zero_gamma_flip === null) return title(d.flip_status);
  return d.flip_band ? `band ${number(d.flip_band.low, 0)} to ${number(d.flip_band.high, 0)}` : 'no band';
}

/** reading says in a sentence what the regime means. */
function reading(d) {
  if (d.flip_status === 'spot_mismatch') return 'The options and the index are more than 10 % apart: the document contradicts itself, so no figure is shown.';
  const where = d.zero_gamma_flip === null ? 'There is no flip within 15 % of spot.'
    : `Spot is ${percent(Math.abs(d.flip_distance_pct)).replace('+', '')} ${d.flip_distance_pct >= 0 ? 'above' : 'below'} the flip.`;
  const what = {
    positive: 'Positive regime: modelled dealers trade against moves.',
    negative: 'Negative regime: modelled dealers trade with moves.',
    neutral: 'Neutral regime: the model cannot tell the sign of net gamma.',
  }[d.gamma_regime] ?? 'The regime is unknown.';
  return `${what} ${where}`;
}

function marks(d) {
  return [
    { x: spotOf(d), label: `Spot ${level(spotOf(d))}`, color: '--ink' },
    { x: d.zero_gamma_flip, label: `Flip ${level(d.zero_gamma_flip)}`, color: '--flip' },
    { x: d.call_wall, label: `Call wall ${level(d.call_wall)}`, color: '--positive' },
    { x: d.put_wall, label: `Put wall ${level(d.put_wall)}`, color: '--negative' },
  ];
}

const band = (d) => (d.flip_band ? [{ from: d.flip_band.low, to: d.flip_band.high, color: '--flip' }] : []);

function drawStrikes(chart, d, share) {
  const rows = d.by_strike.filter((r) => r.net_gex_dollars !== null && Math.abs(r.strike / spotOf(d) - 1) <= share);
  const best = rows.toSorted((a, b) => b.net_gex_dollars - a.net_gex_dollars);
  chart.draw({
    xs: rows.map((r) => r.strike), xName: 'Strike', xFormat: (x) => level(x),
    series: [
      { name: 'Net', values: rows.map((r) => r.net_gex_dollars), format: dollars, kind: 'bars', color: '--positive', negative: '--negative' },
      { name: 'Calls', values: rows.map((r) => r.call_gex_dollars), format: dollars, kind: 'none', color: '--positive' },
      { name: 'Puts', values: rows.map((r) => r.put_gex_dollars), format: dollars, kind: 'none', color: '--negative' },
    ],
    yName: 'Net gamma, $ per 1 % move', yFormat: axisDollars,
    range: [spotOf(d) * (1 - share), spotOf(d) * (1 + share)], start: spotOf(d), marks: marks(d), bands: band(d),
    summary: rows.length === 0 ? 'No strike with open interest lies in this range.'
      : `${number(rows.length)} strikes within ${number(share * 100, 1)}\u00a0% of spot. Largest positive: ${level(best[0].strike)} with ` +
        `${dollars(best[0].net_gex_dollars)}; largest negative: ${level(best.at(-1).strike)} with ${dollars(best.at(-1).net_gex_dollars)}. ` +
        `The shaded band is the range of the flip in the model and its scenarios.`,
  });
}

function drawProfile(chart, d) {
  const xs = d.profile.map((p) => p.spot);
  const values = d.profile.map((p) => p.net_gex_dollars);
  chart.draw({
    xs, xName: 'Hypothetical spot', xFormat: (x, exact) => number(x, exact ? 2 : 0),
    series: [{ name: 'Net', values, format: dollars, kind: 'area', color: '--positive', negative: '--negative' }],
    yName: 'Net gamma, $ per 1 % move', yFormat: axisDollars, start: spotOf(d),
    marks: marks(d).slice(0, 2), bands: band(d),
    summary: xs.length === 0 ? 'No contract can be repriced.' : `Net gamma would be ${dollars(values[0])} at ${number(xs[0])} and ${dollars(values.at(-1))} at ${number(xs.at(-1))}. ` +
      (d.zero_gamma_flip === null ? 'There is no flip.' : `The flip is at ${level(d.zero_gamma_flip)}.`),
  });
}

function comparisons(d) {
  const columns = [{ head: 'Name' }, { head: 'Net, $ per 1 %', number: true }, { head: 'Flip', number: true }];
  const row = (c) => [term(c.name, title(c.name)), dollars(c.net_gex_dollars), level(c.zero_gamma_flip)];
  return [
    h('div', null, h('h3', null, 'Conventions'), table('Net gamma and flip under other conventions', columns, d.conventions.map(row))),
    h('div', null, h('h3', null, 'Scenarios'), table('Net gamma and flip in scenarios', columns, d.scenarios.map(row))),
  ];
}
