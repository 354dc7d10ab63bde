// The choices of the user (date, expiration, range, filters) are kept in the query of the page's address, so that a reload
// and a link show the same.

import { h } from './dom.js';

/** underlying returns the symbol, in small letters, of the underlying that the page shows. Another one is another load of the page. */
export const underlying = () => chosen('u', 'spx', (u) => /^[a-z]{1,6}$/i.test(u)).toLowerCase();

/** recall returns a text that remember has kept in the browser, or null. A browser may have no storage. */
export function recall(name) {
  try { return localStorage.getItem(name); } catch { return null; }
}

export function remember(name, text) {
  try { localStorage.setItem(name, text); } catch { /* no storage: it lasts for this visit only */ }
}

const listeners = new Set();
const query = () => new URLSearchParams(location.search);

/** chosen returns a choice. It is otherwise when the address has none, or one that valid refuses. */
export function chosen(name, otherwise = '', valid = () => true) {
  const value = query().get(name);
  return value !== null && valid(value) ? value : otherwise;
}

/** choose stores choices by name. An empty value removes one. With push, the browser's back button undoes the change. */
export function choose(choices, push = false) {
  const next = query();
  for (const [name, value] of Object.entries(choices)) {
    if (value === '' || value === null || value === undefined) next.delete(name);
    else next.set(name, value);
  }
  if (next.toString() === query().toString()) return;
  const text = next.toString();
  history[push ? 'pushState' : 'replaceState'](null, '', `${location.pathname}${text && `?${text}`}${location.hash}`);
  tell();
}

/** onChoice calls a listener after each change of a choice, also by the back button. */
export function onChoice(listener) {
  listeners.add(listener);
}

function tell() {
  for (const listener of listeners) listener();
}

addEventListener('popstate', tell);

/**
 * choices builds a row of exclusive buttons from [value, text] pairs. picked returns the value chosen in the address, or that of
 * otherwise, which is the first unless told. allow disables all values that it is not given; without any argument it allows all.
 */
export function choices(name, label, pairs, otherwise = () => pairs[0][0]) {
  let allowed = null;
  const buttons = pairs.map(([value, text]) => h('button', { type: 'button', value, click: () => choose({ [name]: value === otherwise() ? '' : value }) }, text));
  const valid = (v) => pairs.some(([value]) => value === v) && (!allowed || allowed.includes(v));
  const picked = () => chosen(name, otherwise(), valid);
  const mark = () => {
    for (const b of buttons) {
      b.setAttribute('aria-pressed', String(b.value === picked()));
      b.disabled = !valid(b.value);
    }
  };
  const allow = (...values) => {
    allowed = values.length ? values : null;
    mark();
  };
  onChoice(mark);
  mark();
  return { element: h('span', { class: 'choice', role: 'group', 'aria-label': label }, buttons), picked, allow };
}
