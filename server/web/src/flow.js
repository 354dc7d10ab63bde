// Unusual options activity: a table that the user sorts and filters, with the parts of each score.

import { h, options, ordered, picker, say, scroller, sortable } from './dom.js';
import { age, date, dollars, number, percent, shortDate, time, title, unknown, words } from './format.js';
import { day, Panel } from './panel.js';
import { marketNow } from './poll.js';
import { choices, choose, chosen, onChoice } from './state.js';
import { explained, explanation, term } from './terms.js';

// The page asks for every row, because a filter must see them all. They are 11 KB on the wire, and 20 rows are 4 KB. The best of one
// underlying are more than what it has among the best of all.
const path = () => {
  const one = filter('symbol').replace('.', '');
  return `/api/v1/options/flow/${all().includes(one) ? one.toLowerCase() : 'unusual'}?limit=100${day() && `&date=${day()}`}`;
};
const marked = 60e3; // how long a new row is marked, in milliseconds: an answer of the session lasts 10 s, less than a look away
const premiums = [5e4, 1e5, 2.5e5, 5e5, 1e6, 5e6, 1e7];
const parts = [['volume_oi', 'Volume against open interest', 30], ['premium', 'Premium', 25], ['size_surprise', 'Volume against similar contracts', 20],
  ['quote_location', 'Last price in the quote', 15], ['iv_change', 'Change of implied volatility', 10]];

let tip = null; // of all scores
let market = 0; // the market's time when the table was drawn last, in milliseconds since 1970
const signs = { bullish: 1, neutral: 0, bearish: -1 };
const share = (x) => (x === null ? unknown : `${number(x * 100, 1, true)}\u00a0%`);
const all = () => document.getElementById('underlying')?.dataset.all.trim().toUpperCase().split(' ') ?? []; // underlyings of the server
const side = (x) => (x.side === 'unknown' ? null : title(x.side));

// The columns: key, name, the value that sorts, what a cell shows, and the kind. A first click on text puts the smallest value
// first, one on a number the largest. Unknown values are null, and come last.
const columns = [
  ['score', 'Score', (x) => x.score, score, ''],
  ['contract', 'Contract', (x) => `${x.symbol} ${String(x.strike * 1000).padStart(12, '0')}`, (x) => [h('b', null, x.symbol), ` ${number(x.strike, 2)} ${x.option_type}`], 'text'],
  ['days', 'Expires', (x) => x.days_to_expiration, (x) => [(x.days_to_expiration < 300 ? shortDate : date)(x.expiration), h('small', null, `${number(x.days_to_expiration)} d`)], 'text'],
  ['premium', 'Premium', (x) => x.premium, (x) => dollars(x.premium), 'number'],
  ['direction', 'Direction', (x) => signs[x.direction] ?? null, (x) => title(x.direction), ''],
  ['side', 'Side', side, (x) => side(x) ?? unknown, 'text'],
  ['time', 'Last trade', (x) => x.observed_at, (x) => [day() ? null : h('span', { class: 'ago' }, `${age(market - Date.parse(x.observed_at)).replace(/ \d+ s$/, '')} ago`), h('small', null, time(Date.parse(x.observed_at)))], 'number'],
  ['volume', 'Volume', (x) => x.volume, (x) => number(x.volume), 'number'],
  ['oi', 'Open interest', (x) => x.open_interest, (x) => number(x.open_interest), 'number'],
  ['ratio', 'Vol./OI', (x) => x.volume_oi_ratio, ({ volume_oi_ratio: r }) => (r === null ? unknown : `${number(r, r < 1 ? 2 : 1, true)}×`), 'number'],
  ['iv', 'IV', (x) => x.implied_volatility, (x) => share(x.implied_volatility), 'number'],
  ['spot', 'From spot', (x) => x.moneyness_pct, (x) => percent(x.moneyness_pct, 1), 'number'],
];

// The filters: which values the address may have, and which rows match.
const whole = /^\d{1,9}$/;
const filters = {
  symbol: [/^[A-Z.]{1,8}$/, (x, v) => x.symbol.replace('.', '') === v.replace('.', '')],
  type: [/^(call|put)$/, (x, v) => x.option_type === v],
  direction: [/^(bullish|bearish|neutral|unknown)$/, (x, v) => x.direction === v],
  premium: [whole, (x, v) => x.premium >= Number(v)],
  from: [whole, (x, v) => x.days_to_expiration >= Number(v)],
  to: [whole, (x, v) => x.days_to_expiration <= Number(v)],
};
const filter = (name) => chosen(`flow-${name}`, '', (v) => filters[name][0].test(v));
const active = () => Object.keys(filters).filter(filter).map((name) => [name, filter(name)]);
const sorted = () => chosen('flow-sort', 'score.desc', (v) => columns.some(([key]) => v === `${key}.asc` || v === `${key}.desc`)).split('.');
const most = () => Number(chosen('flow-rows', '20', (v) => ['50', '100'].includes(v)));

/** matching returns the rows that have all that is chosen. */
export const matching = (items) => items.filter((x) => active().every(([name, value]) => filters[name][1](x, value)));

/** sided returns the rows of a known side. All, if the user has chosen so, or asks for a direction that only others have. */
export const sided = (items) => (chosen('flow-sides') === 'all' || filter('direction') === 'unknown' ? items : items.filter((x) => x.side !== 'unknown'));

const [unusual, big] = [65, 1e6]; // about one contract in 5,000 of an index has this score

/** notable returns those rows of the table that are events. */
export const notable = (items) => sided(items).filter((x) => x.score >= unusual && x.premium >= big);

/** flowPanel builds the panel. */
export function flowPanel() {
  let items = null; // of the last answer
  let of = ''; // its address
  let drawn = null; // the choices that the panel shows
  let unmark = 0;
  const seen = new Map(); // when each row first came, by its id
  const rows = picker('Rows', (n) => choose({ 'flow-rows': n === '20' ? '' : n }));
  options(rows.select, ['20', '50', '100'].map((n) => [n, `${n} rows`]));
  const fold = h('button', { type: 'button', class: 'unfold', 'aria-expanded': 'false', click: () => fold.setAttribute('aria-expanded', String(controls.element.classList.toggle('open'))) }, 'Filters');
  const controls = filterControls();
  const sides = h('button', { type: 'button', click: () => choose({ 'flow-sides': chosen('flow-sides') === 'all' ? '' : 'all' }) });
  const reset = h('button', {
    type: 'button', hidden: true, click: () => {
      choose(Object.fromEntries(active().map(([name]) => [`flow-${name}`, ''])));
      controls.element.querySelector('select').focus();
    },
  }, 'Reset the filters');
  const count = h('p', { role: 'status' });
  const none = h('p', { class: 'empty', hidden: true, role: 'status' });
  const heads = sortable(columns.map(([key, name, , , kind]) => [key, name, kind]), pick);
  const body = h('tbody');
  const place = scroller('Unusual activity', h('table', { class: 'flow' }, h('caption', { class: 'unseen' }, 'Unusual options activity'), h('thead', null, h('tr', null, heads.cells)), body));
  const panel = new Panel({
    id: 'flow', controls: [rows.element, fold],
    render(data, meta) {
      market = marketNow(meta.source);
      // The rows of the first answer are not new: they may be old.
      const at = of === panel.shown ? Date.now() : 0;
      of = panel.shown;
      for (const { id } of data.items) if (!seen.has(id)) seen.set(id, at);
      items = data.items;
      draw();
    },
  });

  function draw() {
    clearTimeout(unmark);
    drawn = location.search;
    controls.show();
    rows.select.value = String(most());
    reset.hidden = active().length === 0;
    const [key, way] = sorted();
    say(fold, active().length ? `Filters: ${active().length}` : 'Filters');
    heads.mark(key, way === 'desc');
    if (!items) return;
    const every = matching(items);
    const match = sided(every);
    const hidden = every.length - match.length;
    say(sides, hidden ? `${hidden} of unknown side hidden · show` : 'Hide unknown sides');
    sides.hidden = !hidden && chosen('flow-sides') !== 'all';
    const shown = sort(match).slice(0, most());
    const now = Date.now();
    const fresh = shown.filter((x) => now - seen.get(x.id) < marked);
    const focused = body.contains(document.activeElement) && document.activeElement.closest('tr').dataset.id;
    body.replaceChildren(...shown.map((x) => row(x, fresh.includes(x))));
    if (focused) body.querySelector(`tr[data-id="${CSS.escape(focused)}"] button`)?.focus({ preventScroll: true });
    if (fresh.length) unmark = setTimeout(draw, Math.min(...fresh.map((x) => seen.get(x.id))) + marked - now);
    place.hidden = shown.length === 0;
    none.hidden = shown.length > 0;
    say(none, hidden ? 'The side of every row is unknown.' : items.length ? 'None of the rows with the highest scores has all that the filters ask for.' : 'No unusual activity has been found in this session.');
    say(count, items.length ? `${shown.length} of ${match.length} shown${day() ? `, of ${date(day())}` : ''}` : '');
  }
  onChoice(() => { if (location.search !== drawn) draw(); });
  const legend = h('ul', { class: 'key about', 'aria-label': 'Parts of a score' }, parts.map(([key, name, best]) => h('li', { class: key }, `${name} (${best})`)),
    h('li', { class: 'fresh' }, 'New in the last minute'));
  const explained = h('p', { class: 'about' }, 'Each row has a ', term('score', 'score'), ' and a ', term('premium', 'premium'), '. Its ', term('direction', 'direction'),
    ` is inferred from the side of the last trade. A row is an event, ★, from a score of ${unusual} and ${dollars(big, true)} of premium: what services that sell flow call a golden sweep or a whale begins there.`);
  panel.body.append(controls.element, h('div', { class: 'counted' }, count, sides, reset), explained, legend, none, place);
  draw();
  panel.follow(path);
}

/** pick sorts by a column, or turns its order round. */
function pick(key) {
  const [by, way] = sorted();
  const kind = columns.find((c) => c[0] === key)[4];
  const next = by === key ? (way === 'asc' ? 'desc' : 'asc') : kind === 'text' ? 'asc' : 'desc';
  choose({ 'flow-sort': key === 'score' && next === 'desc' ? '' : `${key}.${next}` });
}

/** sort puts rows in the chosen order. Equal rows stay in the order of the answer, highest score first. */
export function sort(items) {
  const [key, way] = sorted();
  return ordered(items, columns.find((c) => c[0] === key)[2], way === 'desc');
}

/** filterControls builds the fields of the filters. show gives them the choices in the address. */
function filterControls() {
  const set = (name) => (value) => choose({ [`flow-${name}`]: value });
  const selects = ['symbol', 'direction', 'premium'].map((name) => [name, picker(title(name), set(name))]);
  const days = ['from', 'to'].map((name) => [name, h('input', {
    type: 'number', min: '0', 'aria-label': `Days to expiration, ${name}`, input: (event) => set(name)(whole.test(event.target.value) ? event.target.value : ''),
  })]);
  const show = () => {
    const pairs = {
      symbol: [...new Set([...all(), filter('symbol')])].sort().map((v) => [v, v]),
      direction: ['bullish', 'bearish', 'neutral', 'unknown'].map((v) => [v, title(v)]),
      premium: [...new Set([...premiums, Number(filter('premium'))])].sort((a, b) => a - b).map((v) => [String(v), `${dollars(v, true)} or more`]),
    };
    for (const [name, { select }] of selects) {
      options(select, [['', 'All'], ...pairs[name].filter(([v]) => v && v !== '0')]);
      select.value = filter(name);
    }
    for (const [name, field] of days) if (field !== document.activeElement) field.value = filter(name);
  };
  const [symbol, ...others] = selects.map(([, { element }]) => element);
  const element = h('div', { class: 'filters', role: 'group', 'aria-label': 'Filters' }, symbol,
    choices('flow-type', 'Type', [['', 'All'], ['call', 'Calls'], ['put', 'Puts']]).element, others,
    h('span', { class: 'picker days' }, 'Days', days[0][1], 'to', days[1][1]));
  return { element, show };
}

function row(x, isNew) {
  return h('tr', { 'data-id': x.id, class: isNew && 'fresh' }, columns.map(([key, , , cell, kind]) => {
    const isHead = key === 'contract';
    return h(isHead ? 'th' : 'td', { scope: isHead && 'row', class: key === 'direction' ? `direction ${x.direction}` : kind, 'data-key': key }, isHead && isNew ? h('span', { class: 'unseen' }, 'New: ') : null, cell(x));
  }));
}

/** score builds the button that shows the parts of a score. */
function score(item) {
  const bar = h('span', { class: 'bar', 'aria-hidden': 'true' }, parts.map(([key]) => {
    const part = h('i', { class: key });
    part.style.width = `${item.components[key]}%`;
    return part;
  }));
  const spoken = parts.map(([key, name, most]) => `${name} ${number(item.components[key], 1)} of ${most}`).join(', ');
  const line = (key, name, text) => h('li', { class: key }, h('span', null, name), h('b', null, text));
  return explained({ class: 'score', 'aria-label': `Score ${number(item.score, 1, true)}, ${item.band}: ${spoken}; times quote quality ${number(item.quality, 2)}` }, () => {
    tip ??= explanation({ class: 'word tip' });
    tip.replaceChildren(h('p', null, h('b', null, item.contract), ` · ${words(item.band)} · ${date(item.expiration)}`),
      h('ul', null, parts.map(([key, name, most]) => line(key, name, `${number(item.components[key], 1, true)} of ${most}`)), line('', 'Quote quality', `× ${number(item.quality, 2, true)}`)),
      h('p', { class: 'about' }, item.reasons.join(' · ')));
    return tip;
  }, h('b', null, number(item.score, 1, true)), bar);
}
