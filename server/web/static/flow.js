// Unusual options activity, with the parts of each score.

import { h, options, picker, scroller } from './dom.js';
import { date, dollars, instant, number, percent, shortDate, title, words } from './format.js';
import { Panel } from './panel.js';

const path = '/api/v1/options/flow/unusual';
const parts = [['volume_oi', 'Volume against open interest', 30], ['premium', 'Premium', 25], ['size_surprise', 'Volume against similar contracts', 20],
  ['quote_location', 'Last price in the quote', 15], ['iv_change', 'Change of implied volatility', 10]];

/** flowPanel builds the panel. */
export function flowPanel() {
  const rows = picker('Rows', (n) => panel.follow(`${path}?limit=${n}`));
  options(rows.select, [['20', '20'], ['50', '50'], ['100', '100']]);
  const place = scroller('Unusual activity');
  const tip = tooltip();
  const panel = new Panel({
    id: 'flow', controls: [rows.element],
    render(data) {
      const focused = place.contains(document.activeElement) && document.activeElement.closest('tr')?.dataset.id;
      tip.hide();
      place.replaceChildren(data.items.length ? grid(data.items, tip) : h('p', { class: 'empty' }, 'No unusual activity has been found in this session.'));
      if (focused) place.querySelector(`tr[data-id="${CSS.escape(focused)}"] button`)?.focus({ preventScroll: true });
    },
  });
  panel.body.append(h('ul', { class: 'key', 'aria-label': 'Parts of a score' }, parts.map(([key, name, most]) => h('li', { class: key }, `${name} (${most})`))), place, tip.element);
  panel.follow(`${path}?limit=20`);
}

function grid(items, tip) {
  const heads = [['Score'], ['Contract'], ['Expiration'], ['Direction, confidence'], ['Premium', 1], ['Volume', 1], ['Open interest', 1], ['Vol./OI', 1], ['IV', 1], ['From spot', 1], ['Last trade']];
  return h('table', { class: 'flow' },
    h('caption', { class: 'unseen' }, 'Unusual options activity, highest score first'),
    h('thead', null, h('tr', null, heads.map(([name, right]) => h('th', { scope: 'col', class: right && 'number' }, name)))),
    h('tbody', null, items.map((item) => row(item, tip))));
}

function row(item, tip) {
  const cell = (text, right) => h('td', { class: right && 'number' }, text);
  const confidence = item.direction_confidence > 0 ? `${number(item.direction_confidence * 100)}\u00a0%` : '';
  return h('tr', { 'data-id': item.id }, h('td', null, score(item, tip)),
    h('th', { scope: 'row' }, h('b', null, item.symbol), ` ${number(item.strike, 2)} ${item.option_type}`),
    cell([shortDate(item.expiration), h('small', null, `${number(item.days_to_expiration)} d`)]),
    h('td', { class: `direction ${item.direction}` }, title(item.direction), h('small', null, confidence)),
    cell(dollars(item.premium), true), cell(number(item.volume), true), cell(number(item.open_interest), true),
    cell(item.volume_oi_ratio === null ? '–' : `${number(item.volume_oi_ratio, 1, true)}×`, true),
    cell(item.implied_volatility === null ? '–' : `${number(item.implied_volatility * 100, 1, true)}\u00a0%`, true),
    cell(percent(item.moneyness_pct, 1), true), cell(instant(item.observed_at).replace(/^\d+ \S+ /, '')));
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
