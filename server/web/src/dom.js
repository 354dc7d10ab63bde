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

/** table builds a data table. A column is {head, number}; a row is a list of texts, elements or cells, first its head. each gives the attributes of a row by its index. */
export function table(caption, columns, rows, each = () => null) {
  return h('table', null,
    h('caption', { class: 'unseen' }, caption),
    h('thead', null, h('tr', null, columns.map((c) => h('th', { scope: 'col', class: c.number && 'number' }, c.head)))),
    h('tbody', null, rows.map((row, n) => h('tr', each(n), row.map((cell, i) => (cell?.localName === 'td' ? cell
      : h(i === 0 ? 'th' : 'td', { scope: i === 0 && 'row', class: columns[i].number && 'number' }, cell)))))));
}

/** heat builds a cell whose colour has the sign and the size of a share, which is at most 1. */
export function heat(text, share) {
  const cell = h('td', { class: 'number heat', 'data-sign': share > 0 ? 'up' : share < 0 ? 'down' : null }, text);
  cell.style.setProperty('--strength', `${Math.round(100 * Math.abs(share))}%`);
  return cell;
}

/** sortable builds the heads of a table that its user sorts. A head is [key, name, class]. mark shows by which key, and whether it falls. */
export function sortable(heads, onPick) {
  const cells = heads.map(([key, name, kind]) => h('th', { scope: 'col', class: kind, 'data-key': key }, h('button', { type: 'button', class: 'sort', click: () => onPick(key) }, name)));
  const mark = (by, falling) => { for (const cell of cells) cell.ariaSort = cell.dataset.key !== by ? null : falling ? 'descending' : 'ascending'; };
  return { cells, mark };
}

/** ordered returns rows sorted by a value. Unknown values are null, and come last. Rows of one value stay in their order. */
export const ordered = (rows, value, falling) => rows.toSorted((a, b) => {
  const [x, y] = [value(a), value(b)];
  return x === null || y === null ? (x === null) - (y === null) : ((x > y) - (x < y)) * (falling ? -1 : 1);
});

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

/** options replaces the options of a select with [value, text] pairs if they differ, and keeps the picked value. A pair with a list of pairs is a group. */
export function options(select, pairs) {
  const key = JSON.stringify(pairs);
  if (select.dataset.key === key) return;
  const picked = select.value;
  select.dataset.key = key;
  const option = ([value, text]) => (Array.isArray(text) ? h('optgroup', { label: value }, text.map(option)) : h('option', { value }, text));
  select.replaceChildren(...pairs.map(option));
  if ([...select.options].some(({ value }) => value === picked)) select.value = picked;
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
