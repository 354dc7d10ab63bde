// Buttons whose choice is kept in the page's address.

import { h } from './dom.js';
import { chosen, choose, onChoice } from './state.js';

/**
 * choices builds a row of exclusive buttons from [value, text] pairs. picked returns the value chosen in the address, or the
 * first. allow disables all values that it is not given; without any argument it allows all.
 */
export function choices(name, label, pairs) {
  let allowed = null;
  const buttons = pairs.map(([value, text], i) => h('button', { type: 'button', value, click: () => choose({ [name]: i === 0 ? '' : value }) }, text));
  const valid = (v) => pairs.some(([value]) => value === v) && (!allowed || allowed.includes(v));
  const picked = () => chosen(name, pairs[0][0], valid);
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
