// Max pain: what all options of an expiration would pay at each settlement price, and where their open interest is.

import { Chart } from './chart.js';
import { h, options, picker, say } from './dom.js';
import { axisDollars, axisShort, date, dollars, level, month, number, percent, short, shortDate, unknown } from './format.js';
import { ahead } from './history.js';
import { day, Panel } from './panel.js';
import { choose, chosen, onChoice, underlying } from './state.js';
import { fact, refill } from './terms.js';

const path = '/api/public/{u}-max-pain';

const fewStrikes = 12;
const settlements = { am: 'AM', pm: 'PM', mixed: 'AM+PM' };

const on = (day, from) => (day.slice(0, 4) === from?.slice(0, 4) ? shortDate : date)(day); // the year, where it is another than that of the first
const picked = () => chosen('expiration', '', (v) => /^\d{4}-\d\d-\d\d$/.test(v));

/** maxPainPanel builds the panel. */
export function maxPainPanel() {
  let gone = {}; // an expiration that was asked for and has settled
  const expirations = picker('Expiration', (e) => {
    gone = {};
    choose({ expiration: e });
  });
  options(expirations.select, [['', 'Nearest']]);
  const payout = new Chart('Payout at settlement', 160, { sync: 'strike' });
  const interest = new Chart('Open interest', 160, { sync: 'strike' });
  const dates = new Chart('Max pain by expiration', 150);
  const facts = h('dl', { class: 'facts' }, list(null));
  const why = h('p', { class: 'about keep', role: 'status' });
  const panel = new Panel({
    id: 'max-pain', controls: [expirations.element],
    render(data) {
      offer(expirations.select, data.expirations);
      say(why, gone.of === underlying() ? `${date(gone.date)} has settled, so the nearest expiration is shown.` : '');
      refill(facts, ...list(data));
      draw(payout, interest, data);
      drawDates(dates, data);
    },
    onFailure({ code }) { // the expiration has settled while it was shown, or since the link was made
      if (code !== 'expiration_not_found') return;
      gone = { of: underlying(), date: picked() };
      choose({ expiration: '' });
    },
  });
  onChoice(() => { expirations.select.value = picked(); });
  panel.body.append(why, facts, h('div', { class: 'split' }, payout.element, interest.element, dates.element));
  panel.follow(() => {
    const query = new URLSearchParams(Object.entries({ expiration: picked(), date: day() }).filter(([, value]) => value)).toString();
    return query ? `${path}?${query}` : path;
  });
}

/** offer fills the menu: the expirations by month, each with its max pain and its open interest. */
function offer(select, expirations) {
  const text = (x) => `${on(x.expiration, expirations[0].expiration)} · ${settlements[x.settlement]} · max pain ${level(x.max_pain)} · ${short(x.open_interest)} open`;
  const months = [...Map.groupBy(expirations, (x) => x.expiration.slice(0, 7))];
  options(select, [['', 'Nearest'], ...months.map(([m, list]) => [month(m), list.map((x) => [x.expiration, text(x)])])]);
  select.value = picked();
}

function list(d) {
  const days = d?.days_to_expiration;
  const sides = ['am', 'pm'].filter((s) => d?.settlement === 'mixed' && d.by_settlement[s]).map((s) => `${s.toUpperCase()} ${level(d.by_settlement[s].max_pain)}`);
  const known = d?.call_open_interest !== null && d?.put_open_interest !== null;
  return [
    fact('am', 'Expiration', d ? on(d.expiration, d.expirations[0]?.expiration) : unknown, d && `${days === 0 ? 'today' : `in ${days} ${days === 1 ? 'day' : 'days'}`}, ${settlements[d.settlement]}`),
    fact('max_pain', 'Max pain', level(d?.max_pain), !d ? '' : !known ? 'the document lacks open interest' : d.max_pain === null ? 'no open interest' : sides.join(', ')),
    fact('', 'From spot', percent(d?.distance_pct), d && `spot ${level(d.spot)}`),
    fact('', 'Payout there', dollars(d?.payout_at_max_pain_dollars)),
    fact('', 'At most 1 % higher', d?.flatness ? `${level(d.flatness.low)}–${level(d.flatness.high)}` : unknown),
    fact('put_call', 'Put/call', number(d?.put_call_oi_ratio, 2, true), 'open interest'),
  ];
}

/** span returns the prices worth showing: near the spot, as far as max pain and a few strikes, and further for later dates, up to 10 %. */
function span(d) {
  const away = d.open_interest.map((r) => Math.abs(r.strike / d.spot - 1)).sort((a, b) => a - b);
  const reach = Math.min(0.1, Math.max(0.01 * Math.sqrt(d.days_to_expiration + 1), 1.2 * Math.abs((d.max_pain ?? d.spot) / d.spot - 1), away[fewStrikes] ?? 0.1));
  return [d.spot * (1 - reach), d.spot * (1 + reach)];
}

function draw(payout, interest, d) {
  const range = span(d);
  const inside = (x) => x >= range[0] && x <= range[1];
  const marks = [
    { x: d.spot, label: `Spot ${level(d.spot)}`, color: '--ink' },
    { x: d.max_pain, label: `Max pain ${level(d.max_pain)}`, color: '--flip' },
  ];
  const bands = d.flatness ? [{ from: d.flatness.low, to: d.flatness.high, color: '--flip' }] : [];
  const curve = d.payout_curve.filter((p) => inside(p.settlement_price));
  const line = (name, key, color, more) => ({ name, values: curve.map((p) => p[key]), format: dollars, kind: 'line', color, dots: false, ...more });
  payout.draw({
    xs: curve.map((p) => p.settlement_price), xName: 'Settlement price', xFormat: (x) => level(x), range, start: d.max_pain ?? d.spot, marks, bands,
    series: [
      line('Total', 'total_payout_dollars', '--ink', { width: 2.5 }),
      line('Calls', 'call_payout_dollars', '--positive', { width: 1.5 }),
      line('Puts', 'put_payout_dollars', '--negative', { width: 1.5 }),
    ],
    yFormat: axisDollars,
    summary: d.max_pain === null ? 'There are no open contracts.'
      : `The smallest total payout is ${dollars(d.payout_at_max_pain_dollars)}, at ${level(d.max_pain)}. In the shaded band the total is at most 1 % higher.`,
  });
  const rows = d.open_interest.filter((r) => inside(r.strike));
  const most = rows.toSorted((a, b) => b.call + b.put - a.call - a.put)[0];
  interest.draw({
    xs: rows.map((r) => r.strike), xName: 'Strike', xFormat: (x) => level(x), range, start: d.max_pain ?? d.spot, marks,
    series: [
      { name: 'Calls', values: rows.map((r) => r.call), format: short, kind: 'bars', color: '--positive' },
      { name: 'Puts', values: rows.map((r) => -r.put), format: (v) => short(Math.abs(v)), kind: 'bars', color: '--negative', negative: '--negative' },
    ],
    yFormat: axisShort,
    summary: most ? `${short(d.call_open_interest)} calls and ${short(d.put_open_interest)} puts. Most contracts: strike ${level(most.strike)}. Calls are drawn upwards, puts downwards.` : 'No open interest.',
  });
}

/** drawDates draws the max pain of every expiration. A click shows an expiration. */
function drawDates(chart, d) {
  const rows = d.expirations.filter((x) => x.max_pain !== null);
  if (rows.length < 2) return chart.clear('One expiration has a known max pain.');
  const days = rows.map((x) => (Date.parse(x.expiration) - Date.parse(d.expirations[0].expiration)) / 86400e3);
  const values = rows.map((x) => x.max_pain);
  const [low, high] = [Math.min(...values, d.spot), Math.max(...values, d.spot)];
  chart.draw({
    onPick: (i) => choose({ expiration: rows[i].expiration }), view: d.symbol,
    ...ahead(days, (i) => date(rows[i].expiration)), xName: 'Days from the first', marks: [],
    series: [
      { name: 'Max pain', values, format: level, kind: 'step', color: '--flip' },
      { name: 'Spot', values: values.map(() => d.spot), format: level, kind: 'line', color: '--ink', width: 1.5, dash: [4, 3], dots: false },
      { name: 'From spot', values: rows.map((x) => x.distance_pct), format: percent, kind: 'none' },
      { name: 'Open contracts', values: rows.map((x) => x.open_interest), format: short, kind: 'none' },
    ],
    yFormat: (y) => number(y), yRange: [low - (high - low) * 0.1 - 1, high + (high - low) * 0.1 + 1],
    summary: `${rows.length} expirations: max pain from ${level(Math.min(...values))} to ${level(Math.max(...values))}. A click shows an expiration.`,
  });
}
