// Gamma exposure, now or on a stored date: levels, exposure by strike, the profile over hypothetical spots, and the
// numbers under other conventions.

import { Chart } from './chart.js';
import { choice, h, table } from './dom.js';
import { axisDollars, dollars, level, number, title } from './format.js';
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

/** gammaPanel builds the panel. */
export function gammaPanel() {
  let view = 'fit';
  let last = null;
  const zoom = choice('Strikes shown', [['fit', 'Levels'], ['near', '±3 %'], ['wide', '±7 %'], ['all', '±15 %']], (v) => { view = v; if (last) byStrike(last); });
  const strikes = new Chart('Gamma by strike', 330);
  const profile = new Chart('Gamma profile', 330);
  const more = h('div', { class: 'tables' });
  const panel = new Panel({
    id: 'gamma', controls: [zoom],
    render(data) {
      last = data;
      byStrike(data);
      drawProfile(profile, data);
      refill(more, ...comparisons(data));
    },
  });
  const byStrike = (data) => drawStrikes(strikes, data, views[view](data));
  panel.body.append(h('div', { class: 'split wide-left' }, strikes.element, profile.element),
    h('details', { class: 'more' }, h('summary', null, 'Other conventions and scenarios'), more));
  panel.followDay(current, `${current}/historical`);
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
