// Unusual options activity: a table that the user sorts and filters, with the parts of each score.

import { choice, h, options, picker, say, scroller } from './dom.js';
import { date, dollars, instant, number, percent, shortDate, title, words } from './format.js';
import { Panel } from './panel.js';
import { choose, chosen, onChoice } from './state.js';
import { term } from './terms.js';

// The page asks for every row, because a filter must see them all. They are 11 KB on the wire, and 20 rows are 4 KB.
const path = '/api/v1/options/flow/unusual?limit=100';
const marked = 60e3; // how long a new row is marked, in milliseconds: an answer of the session lasts 10 s, less than a look away
const parts = [['volume_oi', 'Volume against open interest', 30], ['premium', 'Premium', 25], ['size_surprise', 'Volume against similar contracts', 20],
  ['quote_location', 'Last price in the quote', 15], ['iv_change', 'Change of implied volatility', 10]];

const signs = { bullish: 1, bearish: -1, neutral: 0 };
const share = (x) => (x === null ? '–' : `${number(x * 100, 1, true)}\u00a0%`);

// The columns: by is the value that sorts, and null comes last. The first sort of a column falls, unless it has rises.
const columns = [
  { key: 'score', name: 'Score', by: (x) => x.score, cell: (x, tip) => score(x, tip) },
  { key: 'contract', name: 'Contract', rises: true, by: (x) => `${x.symbol} ${String(x.strike * 1000).padStart(12, '0')}`, cell: (x) => [h('b', null, x.symbol), ` ${number(x.strike, 2)} ${x.option_type}`] },
  { key: 'days', name: 'Expiration', rises: true, by: (x) => x.days_to_expiration, cell: (x) => [x.days_to_expiration < 300 ? shortDate(x.expiration) : date(x.expiration), h('small', null, `${number(x.days_to_expiration)} d`)] },
  { key: 'direction', name: 'Direction', by: (x) => (x.direction in signs ? signs[x.direction] * (1 + x.direction_confidence) : null), cell: directed },
  { key: 'premium', name: 'Premium', number: true, by: (x) => x.premium, cell: (x) => dollars(x.premium) },
  { key: 'side', name: 'Side', rises: true, by: (x) => (x.side === 'unknown' ? null : x.side), cell: (x) => (x.side === 'unknown' ? '–' : title(x.side)) },
  { key: 'volume', name: 'Volume', number: true, by: (x) => x.volume, cell: (x) => number(x.volume) },
  { key: 'oi', name: 'Open interest', number: true, by: (x) => x.open_interest, cell: (x) => number(x.open_interest) },
  { key: 'ratio', name: 'Vol./OI', number: true, by: (x) => x.volume_oi_ratio, cell: (x) => (x.volume_oi_ratio === null ? '–' : `${number(x.volume_oi_ratio, x.volume_oi_ratio < 1 ? 2 : 1, true)}×`) },
  { key: 'iv', name: 'IV', number: true, by: (x) => x.implied_volatility, cell: (x) => share(x.implied_volatility) },
  { key: 'spot', name: 'From spot', number: true, by: (x) => x.moneyness_pct, cell: (x) => percent(x.moneyness_pct, 1) },
  { key: 'time', name: 'Last trade', number: true, by: (x) => Date.parse(x.observed_at), cell: (x) => instant(x.observed_at).replace(/^\d+ \S+ /, '') },
];
const column = (key) => columns.find((c) => c.key === key);

// The choices of the user, by the names that the address has for them.
const premiums = ['50000', '100000', '250000', '500000', '1000000', '5000000', '10000000'];
const whole = /^\d{1,9}$/;
const filters = {
  'flow-symbol': /^[A-Z.]{1,8}$/, 'flow-type': /^(call|put)$/, 'flow-direction': /^(bullish|bearish|neutral|unknown)$/,
  'flow-from': whole, 'flow-to': whole, 'flow-premium': whole,
};
const filter = (name) => chosen(`flow-${name}`, '', (v) => filters[`flow-${name}`].test(v));
const sorted = () => chosen('flow-sort', 'score.desc', (v) => /^[a-z]+\.(asc|desc)$/.test(v) && !!column(v.split('.')[0])).split('.');
const choices = () => [...new URLSearchParams(location.search)].filter(([name]) => name.startsWith('flow-')).join('&');
const rowsShown = () => Number(chosen('flow-rows', '20', (v) => ['50', '100'].includes(v)));

/** flowPanel builds the panel. */
export function flowPanel() {
  let items = null; // of the last answer
  let drawn = null; // the choices that the panel shows
  let unmark = 0;
  const seen = new Map(); // when each row first came, by its id
  const tip = tooltip();
  const head = h('thead', { role: 'rowgroup' });
  const body = h('tbody', { role: 'rowgroup' });
  const table = h('table', { class: 'flow', role: 'table' }, h('caption', { class: 'unseen' }, 'Unusual options activity'), head, body);
  const rows = picker('Rows', (n) => choose({ 'flow-rows': n === '20' ? '' : n }));
  options(rows.select, [['20', '20'], ['50', '50'], ['100', '100']]);
  const controls = filterControls();
  const count = h('p', { class: 'count', role: 'status' });
  const none = h('p', { class: 'empty', hidden: true });
  const place = scroller('Unusual activity', table);
  const panel = new Panel({
    id: 'flow', controls: [rows.element],
    render(data) {
      remember(seen, data.items);
      controls.offer(data.universe);
      items = data.items;
      draw();
    },
  });

  function draw() {
    clearTimeout(unmark);
    drawn = choices();
    controls.show();
    rows.select.value = String(rowsShown());
    heads(head);
    if (!items) return;
    const match = items.filter(matches);
    const shown = sort(match).slice(0, rowsShown());
    const now = Date.now();
    const isNew = (item) => now - seen.get(item.id) < marked;
    const focused = body.contains(document.activeElement) && document.activeElement.closest('tr')?.dataset.id;
    tip.hide();
    body.replaceChildren(...shown.map((item) => row(item, tip, isNew(item))));
    if (focused) body.querySelector(`tr[data-id="${CSS.escape(focused)}"] button`)?.focus({ preventScroll: true });
    const oldest = Math.min(...shown.filter(isNew).map((item) => seen.get(item.id)));
    if (oldest < Infinity) unmark = setTimeout(draw, oldest + marked - now);
    place.hidden = shown.length === 0;
    none.hidden = shown.length > 0;
    say(none, items.length ? 'No row matches the filters.' : 'No unusual activity has been found in this session.');
    say(count, items.length ? counted(shown.length, match.length, items.length) : '');
  }
  onChoice(() => { if (choices() !== drawn) draw(); });
  const legend = h('ul', { class: 'key', 'aria-label': 'Parts of a score' }, parts.map(([k, name, most]) => h('li', { class: k }, `${name} (${most})`)),
    h('li', { class: 'fresh' }, 'New in the last minute'));
  const explained = h('p', null, 'Each row has a ', term('score', 'score'), ' and a ', term('premium', 'premium'), '. Its ', term('direction', 'direction'),
    ' is inferred, with a ', term('confidence', 'confidence'), '.');
  panel.body.append(controls.element, h('div', { class: 'counted' }, count, controls.reset, explained), legend, none, place, tip.element);
  draw();
  panel.follow(path);
}

/** remember notes when each row first came. The rows of the first answer are not new: they may be old. */
function remember(seen, items) {
  const at = seen.size ? Date.now() : 0;
  for (const { id } of items) if (!seen.has(id)) seen.set(id, at);
}

function counted(shown, match, all) {
  return match > shown && match < all ? `${shown} of ${match} matches shown, of ${all} rows` : `${shown} of ${all} shown`;
}

function matches(x) {
  const is = (name, value) => !filter(name) || filter(name) === value;
  return is('symbol', x.symbol) && is('type', x.option_type) && is('direction', x.direction) && x.premium >= Number(filter('premium')) &&
    x.days_to_expiration >= Number(filter('from')) && x.days_to_expiration <= Number(filter('to') || Infinity);
}

/** sort puts rows in the chosen order. Equal rows stay in the order of the answer, highest score first. */
function sort(items) {
  const [key, way] = sorted();
  const { by } = column(key);
  const sign = way === 'asc' ? 1 : -1;
  return items.toSorted((a, b) => {
    const [x, y] = [by(a), by(b)];
    if (x === null || y === null) return (x === null) - (y === null);
    return x < y ? -sign : x > y ? sign : 0;
  });
}

/** heads makes the heads of the columns once, and then says which of them sorts. */
function heads(head) {
  if (!head.children.length) {
    head.append(h('tr', { role: 'row' }, columns.map((c) => h('th', { scope: 'col', role: 'columnheader', class: c.number && 'number', 'data-key': c.key },
      h('button', { type: 'button', class: 'sort', click: () => pick(c) }, c.name)))));
  }
  const [key, way] = sorted();
  for (const th of head.querySelectorAll('th')) {
    if (th.dataset.key === key) th.setAttribute('aria-sort', way === 'asc' ? 'ascending' : 'descending');
    else th.removeAttribute('aria-sort');
  }
}

/** pick sorts by a column, or turns its order round. */
function pick(c) {
  const [key, way] = sorted();
  const next = key === c.key ? (way === 'asc' ? 'desc' : 'asc') : c.rises ? 'asc' : 'desc';
  const sort = `${c.key}.${next}`;
  choose({ 'flow-sort': sort === 'score.desc' ? '' : sort });
}

/** filterControls returns the fields of the filters. offer gives them the symbols, show the choices in the address. */
function filterControls() {
  const set = (name) => (value) => choose({ [`flow-${name}`]: value });
  const symbol = picker('Symbol', set('symbol'));
  const direction = picker('Direction', set('direction'));
  const premium = picker('Premium', set('premium'));
  const types = [['', 'All'], ['call', 'Calls'], ['put', 'Puts']];
  const type = choice('Type', types, set('type'));
  const days = (name, label) => h('input', {
    type: 'number', min: '0', max: '9999', inputmode: 'numeric', 'aria-label': label, input: (event) => set(name)(whole.test(event.target.value) ? String(Number(event.target.value)) : ''),
  });
  const [from, to] = [days('from', 'Days to expiration, from'), days('to', 'Days to expiration, to')];
  options(direction.select, [['', 'All'], ...['bullish', 'bearish', 'neutral', 'unknown'].map((d) => [d, title(d)])]);
  const offer = (symbols) => {
    const all = filter('symbol') && !symbols.includes(filter('symbol')) ? [...symbols, filter('symbol')] : symbols;
    options(symbol.select, [['', 'All'], ...all.toSorted().map((s) => [s, s])]);
  };
  const show = () => {
    if (![...symbol.select.options].some((o) => o.value === filter('symbol'))) offer([]);
    const least = new Set([...premiums, filter('premium')].filter(Boolean));
    options(premium.select, [['', 'All'], ...[...least].sort((a, b) => a - b).map((p) => [p, `${dollars(Number(p), true)} or more`])]);
    symbol.select.value = filter('symbol');
    direction.select.value = filter('direction');
    premium.select.value = filter('premium');
    for (const [i, button] of [...type.children].entries()) button.setAttribute('aria-pressed', String(types[i][0] === filter('type')));
    for (const [field, name] of [[from, 'from'], [to, 'to']]) if (document.activeElement !== field) field.value = filter(name);
    reset.hidden = !Object.keys(filters).some((name) => filter(name.slice(5)));
  };
  const reset = h('button', {
    type: 'button', hidden: true, click: () => {
      choose(Object.fromEntries(Object.keys(filters).map((name) => [name, ''])));
      symbol.select.focus();
    },
  }, 'Reset the filters');
  const element = h('div', { class: 'filters', role: 'group', 'aria-label': 'Filters' }, symbol.element, type, direction.element, premium.element,
    h('span', { class: 'picker days' }, 'Days', from, 'to', to));
  return { element, reset, offer, show };
}

function row(item, tip, isNew) {
  return h('tr', { 'data-id': item.id, role: 'row', class: isNew && 'fresh' }, columns.map((c) => {
    const isHead = c.key === 'contract';
    return h(isHead ? 'th' : 'td', {
      role: isHead ? 'rowheader' : 'cell', scope: isHead && 'row', class: c.key === 'direction' ? `direction ${item.direction}` : c.number && 'number', 'data-key': c.key, 'data-name': c.name,
    }, isHead && isNew ? h('span', { class: 'unseen' }, 'New: ') : null, c.cell(item, tip));
  }));
}

function directed(x) {
  const confidence = x.direction_confidence > 0 ? `${number(x.direction_confidence * 100)}\u00a0%` : '';
  return [title(x.direction), h('small', null, confidence)];
}

/** score builds the button that shows the parts of a score. */
function score(item, tip) {
  const bar = h('span', { class: 'bar', 'aria-hidden': 'true' }, parts.map(([key]) => {
    const part = h('i', { class: key });
    part.style.width = `${item.components[key]}%`;
    return part;
  }));
  const spoken = parts.map(([key, name, most]) => `${name} ${number(item.components[key], 1)} of ${most}`).join(', ');
  const button = h('button', {
    type: 'button', class: 'score', 'aria-label': `Score ${number(item.score, 1, true)}, ${item.band}: ${spoken}; times quote quality ${number(item.quality, 2)}`,
    mouseenter: () => tip.show(button, item), mouseleave: () => tip.hide(),
    focus: () => tip.show(button, item), blur: () => tip.hide(), click: () => tip.show(button, item),
  }, h('b', null, number(item.score, 1, true)), bar);
  return button;
}

/** tooltip is one box for all scores. show places it at a score, and Escape closes it. */
function tooltip() {
  const element = h('div', { class: 'tip', role: 'tooltip', hidden: true });
  let at = null;
  const hide = () => { element.hidden = true; };
  const show = (button, item) => {
    at = button;
    const line = ([key, name, most]) => h('li', { class: key }, h('span', null, name), h('b', null, `${number(item.components[key], 1, true)} of ${most}`));
    element.replaceChildren(
      h('p', null, h('b', null, item.contract), ` · ${words(item.band)} · ${date(item.expiration)}`),
      h('ul', null, parts.map(line), h('li', null, h('span', null, 'Quote quality'), h('b', null, `× ${number(item.quality, 2, true)}`))),
      h('p', { class: 'codes' }, item.reasons.join(' · ')));
    element.hidden = false;
    place();
  };
  const place = () => {
    if (element.hidden) return;
    const box = at.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = element;
    const above = box.bottom + height + 10 > innerHeight;
    element.style.left = `${Math.max(8, Math.min(box.left, document.documentElement.clientWidth - width - 8))}px`;
    element.style.top = `${above ? Math.max(8, box.top - height - 6) : box.bottom + 6}px`;
  };
  addEventListener('keydown', (event) => { if (event.key === 'Escape') hide(); });
  addEventListener('scroll', place, { passive: true, capture: true }); // moving to a score by keyboard scrolls
  return { element, show, hide };
}
