// The choices of the user (date, expiration, range, filters) are kept in the query of the page's address, so that a reload
// and a link show the same.

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
