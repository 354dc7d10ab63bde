// What happened: the flip crossed, a wall moved, the regime changed, a large trade. Found in what is served: the track, the rows of
// all underlyings, and flow. It is shown as marks, in a list, in the title, and as notifications for those who want them.

import { h, say } from './dom.js';
import { notable, sided } from './flow.js';
import { dollars, level, number, shortDate, time, words } from './format.js';
import { day, follow } from './panel.js';
import { Replay } from './replay.js';
import { choose, recall, remember, underlying } from './state.js';
import { records } from './track.js';

/** kinds are the sign, the colour and the name of each kind of event. The kind that counts most is first. */
const kinds = { flip: ['◆', '--flip', 'Crossed'], regime: ['●', '--muted', 'Regime'], wall: ['■', '--accent', 'Wall'], flow: ['★', '--part-4', 'Flow'] };

const regimes = { positive: '--positive', negative: '--negative' };

/**
 * marks are the events of the underlying that is shown, oldest first: [{at, kind, price, text}]. at is in milliseconds since 1970, and
 * text is a phrase. When they change, the window gets the event marks.
 */
export const marks = [];

// Each rule: a kind, the value that changes, the price, and the words. An unknown value changes nothing.
const rules = [
  ['flip', (r) => (r.flip === null ? null : Math.sign(r.spot - r.flip) || null), (r) => r.flip, (r, to) => `Spot crossed the flip, ${level(r.flip)}, ${to > 0 ? 'upwards' : 'downwards'}`],
  ['regime', (r) => r.regime, (r) => r.spot, (r, to, from) => `Regime ${words(to)}, was ${words(from)}`],
  ['wall', (r) => r.call, (r) => r.call, (r, to, from) => `Call wall ${level(to)}, was ${level(from)}`],
  ['wall', (r) => r.put, (r) => r.put, (r, to, from) => `Put wall ${level(to)}, was ${level(from)}`],
];

/**
 * changes returns a function that takes row after row, and returns the events of each. A change counts when two rows in a row have it,
 * or when one has it that is so many milliseconds after the row before.
 */
export function changes(slow = Infinity) {
  const states = rules.map(() => ({}));
  let last = NaN;
  const one = (row, alone) => rules.flatMap(([kind, value, price, text], i) => {
    const state = states[i];
    const v = value(row) ?? state.now;
    if (v === state.now || state.now === undefined) {
      states[i] = { now: v };
      return [];
    }
    if (v !== state.next) {
      Object.assign(state, { next: v, at: row.at, price: price(row) });
      if (!alone) return [];
    }
    states[i] = { now: v };
    return [{ at: state.at, kind, price: state.price, text: text(row, v, state.now), ...(kind === 'regime' && regimes[v] && { color: regimes[v] }) }];
  });
  return (row) => {
    const alone = row.at - last >= slow;
    last = row.at;
    return one(row, alone);
  };
}

/** ruled returns what the rules know of a row. */
const ruled = (row) => ({ at: Date.parse(row.as_of), spot: row.effective_spot, flip: row.zero_gamma_flip, call: row.call_wall, put: row.put_wall, regime: row.gamma_regime });

/** tracked returns the events of a track. */
export const tracked = (track) => records(track).map(ruled).flatMap(changes(4 * 60e3));

/** large returns the events of flow, largest first, of the notable contracts with the highest scores. Each is one event, at its last trade. */
export const large = (items, most = few) => notable(items).toSorted((a, b) => b.score - a.score).slice(0, most).map((x) => ({
  at: Date.parse(x.observed_at), kind: 'flow', id: x.id, side: x.side, price: x.strike, size: x.score, text: `${dollars(x.premium)} in ${number(x.strike, 2)} ${x.option_type}s of ${shortDate(x.expiration)}, score ${number(x.score)}`,
}));

/**
 * log adds the events of an answer of flow to those that this browser has seen in the session, and returns all as it first saw them: a
 * later trade tells less. Who has seen none, as who comes after the close, gets more of the answer.
 */
export function log(items, session) {
  const name = `log ${underlying()}`;
  const old = JSON.parse(recall(name) ?? '{}');
  const seen = old.session === session ? old.seen : {};
  for (const e of large(items, Object.keys(seen).length ? few : listed)) seen[e.id] ??= e;
  remember(name, JSON.stringify({ session, seen }));
  return sided(Object.values(seen)).slice(-most);
}

/**
 * placed returns the glyphs of the events of a session up to a moment, as paint.js draws them, and a text for each point of xs, which
 * has the spot of the same index. An event stands at its price, or at the spot if its price is out of sight. Flow has no sign there,
 * and its sign stays at the time of its trade while points come.
 */
export function placed(events, xs, spots, [low, high], until) {
  const texts = xs.map(() => '');
  const order = (e) => Object.keys(kinds).indexOf(e.kind);
  const glyphs = [];
  for (const e of events.toSorted((a, b) => order(a) - order(b) || (b.size ?? b.at) - (a.size ?? a.at))) {
    const i = xs.findLastIndex((x, k) => x <= e.at && spots[k] !== null);
    if (i < 0 || e.at > until || e.at > xs.at(-1) + late) continue;
    const [glyph, color] = kinds[e.kind];
    const inside = low < e.price && e.price < high;
    texts[i] += `${texts[i] && '\n'}${glyph} ${e.text}`;
    if (e.kind !== 'flow') glyphs.push({ x: xs[i], y: inside ? e.price : spots[i], glyph, color: e.color ?? color });
    else if (inside) glyphs.push({ x: e.at, y: e.price, glyph, color });
  }
  return { glyphs, texts };
}

const few = 5; // contracts of one answer that are events
const late = 15 * 60e3; // the quotes of flow may be newer than the track
const most = 40; // events of flow that are kept
const listed = 20; // of them, so that the others stay in sight
const kept = 50; // events of other underlyings

/** watchEvents keeps the marks, the list, the title and the notifications. */
export function watchEvents() {
  const list = h('ol');
  const count = h('b', { hidden: true });
  const wish = h('button', { type: 'button', click: ask }, '');
  const box = h('div', { id: 'events', popover: 'auto', 'aria-label': 'Events', toggle: (event) => { if (event.newState === 'open') { unread = 0; show(); } } },
    h('h2', null, 'Events'), list, wish);
  const button = h('button', { type: 'button', id: 'bell', popovertarget: 'events', 'aria-label': 'Events', 'aria-keyshortcuts': 'e', title: 'Events. Key: e' }, '⚑', count);
  document.getElementById('theme').before(button);
  document.getElementById('levels').append(box); // below the ladder, where a window has room for both
  const own = { track: [], flow: [] };
  const known = new Set(); // the keys of own events that have been there
  const others = [];
  const machines = new Map(); // of the rows of underlyings, by symbol
  let unread = 0;

  const show = () => {
    const newest = own.flow?.slice(-listed);
    const all = [...marks.filter((e) => e.kind !== 'flow' || newest?.includes(e)).map((e) => ({ ...e, symbol: underlying().toUpperCase() })), ...day() ? [] : others].filter((e) => e.at <= (Replay.levels?.at ?? Infinity)).sort((a, b) => b.at - a.at);
    list.replaceChildren(...all.map((e) => h('li', null, sign(e.kind, e.color), h('time', null, `${e.kind === 'flow' ? '≤\u202f' : ''}${time(e.at, true)}`), h('b', null, e.symbol), ' ', e.kind === 'flow' ? h('a', { href: '#flow', click: () => { choose({ 'flow-symbol': e.symbol }); box.hidePopover(); } }, e.text) : e.text)));
    if (all.length === 0) list.append(h('li', null, day() && !own.track ? 'Events of this date are not stored.' : `No flip crossed, no wall moved, no regime changed${day() ? ' on this date' : ', no large flow yet'}.`));
    count.hidden = unread === 0;
    say(count, String(unread));
    wish.hidden = !('Notification' in window) || Notification.permission === 'denied';
    say(wish, wanted() ? 'Stop notifications' : 'Notify me of new events');
  };
  const tell = (events) => {
    if (!box.matches(':popover-open')) unread += events.length;
    try {
      if (wanted()) for (const e of events) new Notification(`${e.symbol}: ${e.text}`, { tag: key(e) });
    } catch { /* Chrome on a phone has the class, and refuses to make one */ }
  };
  /** owned takes new own events. Those of the first answer of an address have happened before the page looked. */
  const owned = (name, events, isFirst) => {
    own[name] = events;
    marks.splice(0, marks.length, ...own.track ?? [], ...own.flow ?? []);
    marks.sort((a, b) => a.at - b.at);
    const symbol = underlying().toUpperCase();
    const fresh = (events ?? []).map((e) => ({ ...e, symbol })).filter((e) => !known.has(key(e)));
    for (const e of fresh) known.add(key(e));
    if (!isFirst && !day()) tell(fresh);
    dispatchEvent(new Event('marks'));
    show();
  };
  function ask() {
    if (wanted()) remember('notify', 'no');
    else Notification.requestPermission().then((answer) => { remember('notify', answer === 'granted' ? 'yes' : 'no'); show(); });
    show();
  }

  const take = (name, path, events) => {
    let shown = '';
    follow(path, (feed, fresh) => {
      const isFirst = shown !== feed.url;
      if (!fresh && !(isFirst && feed.failure)) return; // no events of another address stay
      shown = feed.document && feed.url;
      owned(name, feed.document && events(feed.document), isFirst);
    });
  };
  take('track', () => `/api/v1/gex/{u}/intraday${day() && `?date=${day()}`}`, ({ data }) => tracked(data));
  take('flow', () => (day() ? '' : '/api/v1/options/flow/{u}'), ({ data, meta }) => log(data.items, meta.session_date));
  follow('/api/v1/underlyings', (feed, fresh) => {
    if (!fresh || !feed.document) return;
    for (const r of feed.document.data.rows) {
      if (!machines.has(r.symbol)) machines.set(r.symbol, changes());
      const events = machines.get(r.symbol)(ruled(r)).map((e) => ({ ...e, symbol: r.symbol }));
      if (r.symbol.toLowerCase().replace('.', '') === underlying()) continue; // its track says it
      others.push(...events);
      tell(events);
    }
    others.splice(0, others.length - kept);
    show();
  });
  addEventListener('moment', show);
  show();
}

/** legend explains the signs of glyphs. */
export const legend = (glyphs) => Object.entries(kinds).filter(([, [sign]]) => glyphs.some((g) => g.glyph === sign)).map(([kind, [mark, , name]]) => h('span', null, [...new Set(glyphs.filter((g) => g.glyph === mark).map((g) => g.color))].map((color) => sign(kind, color)), ` ${name}`));

function sign(kind, own) {
  const [glyph, color] = kinds[kind];
  const i = h('i', null, glyph);
  i.style.color = `var(${own ?? color})`;
  return i;
}

const key = (e) => e.id ?? `${e.symbol} ${e.at} ${e.text}`;
const wanted = () => recall('notify') === 'yes' && 'Notification' in window && Notification.permission === 'granted';
