// Elements are built from text and attributes only, so data can never become markup.

/** h builds an element. An attribute that is null or false is left out; a function becomes an event listener. */
export function h(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** svg builds an SVG element. */
export function svg(name, attributes, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** say sets the text of an element only if it differs, because screen readers announce every change. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** table builds a data table. A column is {head, number}; a row is a list of texts or elements, first its head. */
export function table(caption, columns, rows) {
  return h('table', null,
    h('caption', { class: 'unseen' }, caption),
    h('thead', null, h('tr', null, columns.map((c) => h('th', { scope: 'col', class: c.number && 'number' }, c.head)))),
    h('tbody', null, rows.map((row) => h('tr', null, row.map((cell, i) => (i === 0
      ? h('th', { scope: 'row', class: columns[i].number && 'number' }, cell)
      : h('td', { class: columns[i].number && 'number' }, cell)))))));
}

/** scroller wraps content that may be larger than its place, and can scroll it by mouse and by keyboard. */
export function scroller(label, ...children) {
  return h('div', { class: 'scroller', tabindex: '0', role: 'region', 'aria-label': label }, children);
}

let numbered = 0;

/** picker builds a labelled select. onPick gets the value. */
export function picker(label, onPick) {
  const id = `pick-${++numbered}`;
  const select = h('select', { id, change: () => onPick(select.value) });
  return { element: h('span', { class: 'picker' }, h('label', { for: id }, label), select), select };
}

/** options replaces the options of a select with [value, text] pairs if they differ, and keeps the picked value. */
export function options(select, pairs) {
  const key = JSON.stringify(pairs);
  if (select.dataset.key === key) return;
  const picked = select.value;
  select.dataset.key = key;
  select.replaceChildren(...pairs.map(([value, text]) => h('option', { value }, text)));
  if (pairs.some(([value]) => value === picked)) select.value = picked;
}

/** floating builds a bar from one figure to another, on an axis from low to high. Its colour has the sign of the difference. */
export function floating(from, to, low, high) {
  const at = (x) => ((x - low) / (high - low || 1)) * 100;
  const bar = h('i', { class: to < from ? 'negative' : 'positive' });
  bar.style.left = `${at(Math.min(from, to))}%`;
  bar.style.width = `${at(Math.max(from, to)) - at(Math.min(from, to))}%`;
  const zero = h('u');
  zero.style.left = `${at(0)}%`;
  return h('span', { class: 'floating', 'aria-hidden': 'true' }, low <= 0 && high >= 0 ? zero : null, bar);
}
