// The picker of the underlying, the strip of all of them, and the table that compares them.

import { h, ordered, say, scroller, sortable } from './dom.js';
import { closes, date, dollars, level, number, percent, title, unknown, words } from './format.js';
import { day, follow, Panel } from './panel.js';
import { marketNow, observe } from './poll.js';
import { addressWith, choicesOf, choose, onChoice, recall, remember, underlying } from './state.js';
import { refill } from './terms.js';

const names = {
  spx: 'S&P 500 index', xsp: 'Mini S&P 500 index', ndx: 'Nasdaq-100 index', rut: 'Russell 2000 index', spy: 'S&P 500 fund', qqq: 'Nasdaq-100 fund', iwm: 'Russell 2000 fund',
  dia: 'Dow Jones fund', xlb: 'Materials sector', xlc: 'Communication sector', xle: 'Energy sector', xlf: 'Financial sector', xli: 'Industrial sector', xlk: 'Technology sector',
  xlp: 'Consumer staples sector', xlre: 'Real estate sector', xlu: 'Utilities sector', xlv: 'Health care sector', xly: 'Consumer discretionary sector', aapl: 'Apple', amzn: 'Amazon',
  amd: 'Advanced Micro Devices', avgo: 'Broadcom', googl: 'Alphabet', meta: 'Meta Platforms', msft: 'Microsoft', nflx: 'Netflix', nvda: 'Nvidia', tsla: 'Tesla',
};
const kept = 8; // recent underlyings

const recent = () => (recall('underlyings') ?? '').split(' ').filter(Boolean);
/** pathOf returns a symbol as paths have it: brkb of BRK.B. */
const pathOf = (symbol) => symbol.toLowerCase().replace('.', '');

/** moved says that the chosen date is not stored for the underlying that was opened last, and what is shown. */
export let moved = '';
onChoice(() => { moved = ''; });

let asked = ''; // the symbol that was opened last

/** open shows an underlying: of the chosen date, or of the nearest that is stored for it. It does nothing if another one or date is chosen before the answer. */
export async function open(symbol) {
  const wanted = day();
  asked = symbol;
  const { data } = wanted ? await fetch(`/api/v1/gex/${symbol}/series`).then((r) => r.json()).catch(() => ({})) : {};
  if (asked !== symbol || day() !== wanted) return;
  const away = (d) => Math.abs(Date.parse(d) - Date.parse(wanted));
  const nearest = data?.rows.map((row) => row[data.columns.indexOf('date')]).sort((a, b) => away(a) - away(b))[0] ?? '';
  choose({ ...choicesOf(symbol), date: data ? nearest : wanted }, true);
  if (data && nearest !== wanted) moved = `${symbol.toUpperCase()} has no snapshot of ${date(wanted)}: ${nearest ? `${date(nearest)}, the nearest stored,` : 'now'} is shown.`;
}

/** found returns the symbols that a text finds: those that begin with it, then those with a word of their name that does. */
export function found(text, symbols) {
  const t = text.trim().toLowerCase();
  const rank = (s) => (s === t ? 0 : s.startsWith(t) ? 1 : ` ${(names[s] ?? '').toLowerCase()}`.includes(` ${t}`) ? 2 : 3);
  return symbols.filter((s) => rank(s) < 3).sort((a, b) => rank(a) - rank(b));
}

/** underlyingPicker gives the field in index.html its list, recent underlyings first. A server of one underlying has no field. */
export function underlyingPicker() {
  const field = document.getElementById('underlying');
  if (!field) return;
  const list = document.getElementById('underlyings');
  const all = field.dataset.all.trim().split(' ');
  let known = [];
  let shown = '';
  let items = [];
  let at = -1;
  const mark = (i) => {
    at = i;
    [...list.children].forEach((item, j) => item.setAttribute('aria-selected', String(j === i)));
    if (items[i]) {
      field.setAttribute('aria-activedescendant', list.children[i].id);
      list.children[i].scrollIntoView({ block: 'nearest' });
    } else field.removeAttribute('aria-activedescendant');
  };
  const show = (text) => {
    items = found(text, [...new Set([...known, ...all])]);
    list.replaceChildren(...items.map((s) => h('li', { role: 'option', id: `underlying-${s}`, 'aria-selected': 'false', click: () => pick(s) },
      h('b', null, s.toUpperCase()), ` ${names[s] ?? ''}`, known.includes(s) ? h('small', null, s === shown ? 'shown' : 'recent') : null)));
    if (items.length === 0) list.append(h('li', { role: 'option', 'aria-disabled': 'true' }, 'No underlying here has this symbol or name.'));
    list.hidden = false;
    field.setAttribute('aria-expanded', 'true');
    mark(text ? 0 : -1);
  };
  const close = () => {
    list.hidden = true;
    field.setAttribute('aria-expanded', 'false');
    field.removeAttribute('aria-activedescendant');
    field.value = shown.toUpperCase();
  };
  const pick = (symbol) => (symbol === shown ? close() : open(symbol));
  const changed = () => {
    if (shown === underlying()) return;
    shown = underlying();
    known = [...new Set([shown, ...recent()])].filter((s) => all.includes(s)).slice(0, kept);
    remember('underlyings', known.join(' '));
    document.getElementById('underlying-name').textContent = names[shown] ?? '';
    close();
  };
  const keys = {
    ArrowDown: () => (list.hidden ? show('') : mark((at + 1) % items.length)),
    ArrowUp: () => (list.hidden ? show('') : mark((Math.max(at, 0) + items.length - 1) % items.length)),
    Enter: () => { if (!list.hidden && items[at]) pick(items[at]); },
    Escape: () => { close(); field.select(); },
  };
  for (const [name, listen] of Object.entries({
    input: () => show(field.value), click: () => { if (list.hidden) show(''); }, focus: () => field.select(), blur: close,
    keydown: (event) => {
      if (!Object.hasOwn(keys, event.key)) return;
      event.preventDefault();
      keys[event.key]();
    },
  })) field.addEventListener(name, listen);
  list.addEventListener('pointerdown', (event) => event.preventDefault()); // the field keeps the focus
  onChoice(changed);
  changed();
  overview(all.length);
}

// The columns: head, the value that sorts, and the cell. A first click puts the largest number first.
const share = (x) => percent(x, 1).replace('+', '');
const away = (r) => (r.flip_distance_pct === null ? null : -r.flip_distance_pct); // where the flip lies from spot, as in the ladder
const columns = [
  ['Underlying', (r) => r.symbol, (r) => [h('a', { href: addressWith(choicesOf(pathOf(r.symbol))), click: (event) => { if (!plain(event)) return; event.preventDefault(); open(pathOf(r.symbol)); } }, r.symbol), h('small', { class: 'long' }, names[pathOf(r.symbol)] ?? '')]],
  ['Spot', (r) => r.spot, (r) => level(r.spot)],
  ['Change', (r) => r.spot_change_pct, (r) => percent(r.spot_change_pct)],
  ['Net gamma', (r) => r.net_gex_dollars, (r) => dollars(r.net_gex_dollars)],
  ['Regime', (r) => r.gamma_regime, (r) => title(r.gamma_regime)],
  ['Flip', (r) => r.zero_gamma_flip, (r) => level(r.zero_gamma_flip)],
  ['To flip', away, (r) => percent(away(r))],
  ['Call wall', (r) => r.call_wall, (r) => level(r.call_wall)],
  ['Put wall', (r) => r.put_wall, (r) => level(r.put_wall)],
  ['ATM vol. 30 d', (r) => r.atm_30d, (r) => share(r.atm_30d)],
  ['IV rank', (r) => r.rank_1y, (r) => (r.rank_1y === null ? h('small', null, r.atm_30d === null ? 'no volatility' : '< 60 days') : share(r.rank_1y))],
  ['Put/call', (r) => r.put_call_open_interest, (r) => number(r.put_call_open_interest, 2, true)],
];
const isText = (i) => i === 0 || i === 4;

/** plain says that a click asks for no other tab or window. */
const plain = (event) => !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;

/** overview builds the table of all underlyings, which its button opens. */
function overview(count) {
  const section = document.getElementById('overview');
  const button = document.getElementById('compare');
  let rows = [];
  let by = ''; // the name of a column
  let falling = false;
  const heads = sortable(columns.map(([name], i) => [name, name, isText(i) ? null : 'number']), (name) => { falling = by === name ? !falling : !isText(columns.findIndex((c) => c[0] === name)); by = name; draw(); });
  const body = h('tbody');
  const draw = () => {
    heads.mark(by, falling);
    const sorted = ordered(rows, columns.find((c) => c[0] === by)?.[1] ?? (() => 0), falling);
    refill(body, ...sorted.map((r) => h('tr', { 'aria-current': pathOf(r.symbol) === underlying() && 'true', click: (event) => { if (!event.target.closest('a')) open(pathOf(r.symbol)); } },
      columns.map(([, , cell], i) => h(i === 0 ? 'th' : 'td', { scope: i === 0 && 'row', class: isText(i) ? null : 'number' }, cell(r))))));
  };
  let shown = underlying();
  onChoice(() => {
    draw(); // the links keep the choices
    if (shown !== underlying()) section.hidePopover();
    shown = underlying();
  });
  let panel = null;
  button.popoverTargetElement = section;
  section.addEventListener('beforetoggle', () => {
    if (panel) return;
    section.style.setProperty('--tall', `${count * 25 + 75}px`);
    panel = new Panel({ id: 'overview', render: (data) => { rows = data.rows; draw(); } });
    panel.body.append(scroller('All underlyings', h('table', { class: 'underlyings' }, h('caption', { class: 'unseen' }, 'Levels and volatility of all underlyings'), h('thead', null, h('tr', null, heads.cells)), body)));
    panel.follow('/api/v1/underlyings');
  });
}

const signs = { positive: '+γ', negative: '−γ', neutral: '±γ' };
const tight = (x, decimals) => percent(x, decimals).replace('\u00a0', '');

/** watchStrip keeps the strip of index.html, which switches the underlying, and the title of the page. */
export function watchStrip() {
  const strip = document.getElementById('strip');
  const links = [...strip?.children ?? []];
  let rows = new Map();
  let old = () => ''; // the age of a row, if it is above 5 minutes after the delay
  const more = h('button', { type: 'button', class: 'more', hidden: true, click: () => strip.scrollBy({ left: 0.8 * strip.clientWidth, behavior: 'smooth' }) });
  const count = () => {
    const right = links.filter((a) => a.offsetLeft + a.offsetWidth / 2 > strip.scrollLeft + strip.clientWidth).length;
    more.hidden = right === 0;
    say(more, `+${right} ›`);
    more.setAttribute('aria-label', `${right} more underlyings`);
  };
  strip?.append(more);
  strip?.addEventListener('scroll', count, { passive: true });
  if (strip) new ResizeObserver(count).observe(strip);
  const show = () => {
    document.body.classList.toggle('past', !!day()); // what is of now says so
    for (const a of links) {
      const symbol = a.dataset.u;
      const r = rows.get(symbol);
      const texts = r ? [tight(r.spot_change_pct), signs[r.gamma_regime] ?? unknown, old(r) || (away(r) === null ? 'no flip' : `flip ${tight(away(r), Math.abs(away(r)) < 9.95 ? 1 : 0)}`)] : ['', '', ''];
      a.href = addressWith(choicesOf(symbol));
      a.title = r ? `${r.symbol} ${names[symbol] ?? ''}: ${level(r.spot)}, ${words(r.gamma_regime)} regime, ${away(r) === null ? 'no flip' : `flip ${percent(away(r))} from spot`}` : '';
      a.classList.toggle('old', !!r && old(r) !== '');
      a.dataset.regime = r?.gamma_regime ?? '';
      texts.forEach((text, i) => say(a.children[i + 1], text));
      a.children[1].className = r?.spot_change_pct > 0 ? 'up' : r?.spot_change_pct < 0 ? 'down' : '';
      if (symbol !== underlying()) a.removeAttribute('aria-current');
      else if (!a.ariaCurrent) {
        a.setAttribute('aria-current', 'true');
        strip.scrollLeft = a.offsetLeft - strip.clientWidth / 2;
      }
    }
    const now = rows.get(underlying());
    document.title = `${underlying().toUpperCase()}${day() ? ` ${date(day())}` : now ? ` ${number(now.spot, now.spot < 1000 ? 2 : 0)} ${now.spot_change_pct < 0 ? '▼' : '▲'} ${signs[now.gamma_regime] ?? ''}` : ''}`;
  };
  for (const a of links) a.addEventListener('click', (event) => { if (plain(event)) { event.preventDefault(); open(a.dataset.u); } });
  onChoice(show);
  show();
  follow('/api/v1/underlyings', (feed, fresh) => {
    if (!fresh || !feed.document) return;
    const { source, delay_minutes: delay, freshness, session_date: session } = feed.document.meta;
    observe(feed.document.meta); // no panel may have an answer
    old = (r) => {
      const minutes = Math.floor((Math.min(marketNow(source), closes(session) + delay * 60e3) - Date.parse(r.as_of)) / 60e3);
      return freshness.state === 'fresh' && minutes > delay + 5 ? `${minutes} min old` : '';
    };
    rows = new Map(feed.document.data.rows.map((r) => [pathOf(r.symbol), r]));
    show();
  });
}
