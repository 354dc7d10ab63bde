// Max pain: what all options of an expiration would pay at each settlement price, and where their open interest is.

import { Chart } from './chart.js';
import { h, picker } from './dom.js';
import { axisDollars, axisShort, date, dollars, level, number, percent, short, shortDate } from './format.js';
import { Panel } from './panel.js';
import { choose, chosen, onChoice, underlying } from './state.js';
import { refill, term } from './terms.js';

const path = '/api/public/{u}-max-pain';

const monthName = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', month: 'long', year: 'numeric' });
const settlements = { am: 'AM', pm: 'PM', mixed: 'AM+PM' };

const picked = () => chosen('expiration', '', (v) => /^\d{4}-\d\d-\d\d$/.test(v));

/** maxPainPanel builds the panel. */
export function maxPainPanel() {
  let gone = {}; // an expiration that was asked for and has settled
  const expirations = picker('Expiration', (e) => {
    gone = {};
    choose({ expiration: e });
  });
  expirations.select.append(h('option', { value: '' }, 'Nearest'));
  const payout = new Chart('Payout at settlement', 270, { sync: 'pain' });
  const interest = new Chart('Open interest', 270, { sync: 'pain' });
  const reading = h('p', { class: 'reading' });
  const panel = new Panel({
    id: 'max-pain', controls: [expirations.element],
    render(data) {
      offer(expirations.select, data.expirations);
      refill(reading, ...(gone.of === underlying() ? [`${date(gone.date)} has settled, so the nearest expiration is shown. `] : []), ...read(data));
      draw(payout, interest, data);
    },
    onFailure({ code }) { // the expiration has settled while it was shown, or since the link was made
      if (code !== 'expiration_not_found') return;
      gone = { of: underlying(), date: picked() };
      choose({ expiration: '' });
    },
  });
  onChoice(() => { expirations.select.value = picked(); });
  panel.body.append(reading, h('div', { class: 'split' }, payout.element, interest.element));
  panel.follow(() => (picked() ? `${path}?expiration=${picked()}` : path));
}

/** offer fills the menu if its options differ: the expirations by month, each with its max pain and its open interest. */
function offer(select, expirations) {
  const text = (x) => `${shortDate(x.expiration)} · ${settlements[x.settlement]} · max pain ${level(x.max_pain)} · ${short(x.open_interest)} open`;
  const key = JSON.stringify(expirations.map((x) => [x.expiration, text(x)]));
  if (select.dataset.key === key) return;
  select.dataset.key = key;
  const option = (x) => h('option', { value: x.expiration }, text(x));
  const months = Map.groupBy(expirations, (x) => x.expiration.slice(0, 7));
  select.replaceChildren(h('option', { value: '' }, 'Nearest'), ...[...months].map(([m, list]) => h('optgroup', { label: monthName.format(new Date(`${m}-01T00:00:00Z`)) }, list.map(option))));
  select.value = picked();
}

function read(d) {
  const days = d.days_to_expiration;
  const when = `${date(d.expiration)} (${days === 0 ? 'today' : `in ${days} ${days === 1 ? 'day' : 'days'}`}, `;
  const settles = term('am', `${settlements[d.settlement]} settlement`);
  if (d.call_open_interest === null || d.put_open_interest === null) return [when, settles, '): the document lacks open interest, so max pain is not known.'];
  if (d.max_pain === null) return [when, settles, '): no open interest, so no max pain.'];
  const sides = ['am', 'pm'].filter((s) => d.settlement === 'mixed' && d.by_settlement[s])
    .map((s) => `${s.toUpperCase()} ${level(d.by_settlement[s].max_pain)}`);
  return [when, settles, `): max pain ${level(d.max_pain)}, ${percent(d.distance_pct)} from spot${sides.length ? ` (${sides.join(', ')})` : ''}. ` +
    `The payout there is ${dollars(d.payout_at_max_pain_dollars)}. From ${level(d.flatness?.low)} to ${level(d.flatness?.high)} it is at most 1\u00a0% higher. `,
  term('put_call', 'Put/call'), ` open interest ${number(d.put_call_oi_ratio, 2)}.`];
}

/** span returns the prices worth showing: where the middle 70 % of the open interest lies, with spot and max pain. */
function span(d) {
  const total = d.open_interest.reduce((sum, r) => sum + r.call + r.put, 0);
  let sum = 0;
  const inner = d.open_interest.filter((r) => {
    sum += r.call + r.put;
    return sum >= 0.15 * total && sum <= 0.85 * total;
  }).map((r) => r.strike);
  const all = [...inner, d.spot, d.max_pain ?? d.spot];
  const [from, to] = [Math.min(...all), Math.max(...all)];
  const pad = Math.max((to - from) * 0.12, d.spot * 0.015);
  return [from - pad, to + pad];
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
    yName: 'Payout, $', yFormat: axisDollars,
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
    yName: 'Contracts', yFormat: axisShort,
    summary: most ? `${short(d.call_open_interest)} calls and ${short(d.put_open_interest)} puts. Most contracts: strike ${level(most.strike)}. Calls are drawn upwards, puts downwards.` : 'No open interest.',
  });
}
