// The choices of the user (date, expiration, range, filters) are kept in the query of the page's address, so that a reload
// and a link show the same.

import { h } from './dom.js';

/** underlying returns the symbol, in small letters, of the underlying that the page shows. */
export const underlying = () => chosen('u', 'spx', (u) => /^[a-z]{1,6}$/i.test(u)).toLowerCase();

/** here returns the address that a path has now: a text in which {u} is the underlying, or a function that returns such a text. */
export const here = (path) => (typeof path === 'function' ? path() ?? '' : path).replace('{u}', underlying());

/**
 * choicesOf returns the choices that show another underlying. They keep all but the expiration, which the other may not have. Flow
 * shows the other, if it has shown all underlyings or this one.
 */
export const choicesOf = (symbol) => ({
  u: symbol, expiration: '', ...(['', underlying().toUpperCase()].includes(chosen('flow-symbol')) ? { 'flow-symbol': symbol.toUpperCase() } : {}),
});

const unsaved = new Map(); // a browser may have no storage, or no room: then a text lasts for this visit

/** recall returns a text that remember has kept in the browser, or null. */
export function recall(name) {
  try { return unsaved.get(name) ?? localStorage.getItem(name); } catch { return null; }
}

export function remember(name, text) {
  try {
    localStorage.setItem(name, text);
    unsaved.delete(name);
  } catch { unsaved.set(name, text); }
}

const listeners = new Set();
const query = () => new URLSearchParams(location.search);

/** chosen returns a choice. It is otherwise when the address has none, or one that valid refuses. */
export function chosen(name, otherwise = '', valid = () => true) {
  const value = query().get(name);
  return value !== null && valid(value) ? value : otherwise;
}

/** addressWith returns the address of the page with choices by name. An empty value removes one. */
export function addressWith(choices) {
  const next = query();
  for (const [name, value] of Object.entries(choices)) {
    if (value === '' || value === null || value === undefined) next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  return `${location.pathname}${text && `?${text}`}${location.hash}`;
}

/** choose stores choices as addressWith writes them. With push, the browser's back button undoes the change. */
export function choose(choices, push = false) {
  const next = addressWith(choices);
  if (next === addressWith({})) return;
  history[push ? 'pushState' : 'replaceState'](null, '', next);
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
