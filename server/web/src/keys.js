// The keys of the page, and the dialog that lists them. A key with a modifier, or typed into a field, is left alone.

import { h } from './dom.js';
import { day, panels } from './panel.js';
import { underlying } from './state.js';
import { open } from './underlyings.js';

/** watchKeys listens, and builds the help. The keys of the panels are those in the navigation of index.html. */
export function watchKeys() {
  const views = document.getElementById('views');
  const links = [...views.querySelectorAll('a')];
  views.addEventListener('click', (event) => { if (event.target.closest('a') && views.matches(':popover-open')) views.hidePopover(); });
  const goTo = (a) => () => {
    const place = document.querySelector(a.hash);
    const { top, bottom } = place.getBoundingClientRect();
    if (top < 80 || bottom > innerHeight - 24) a.click();
    else history.replaceState(null, '', a.hash); // it is in sight
    place.tabIndex = -1;
    place.focus({ preventScroll: true });
  };
  const click = (id) => () => document.getElementById(id)?.click();
  let now; // the session that now shows
  const rows = (step) => () => {
    const select = document.querySelector('.pick select');
    if (!day()) now = panels[0]?.document?.meta.session_date;
    let next = (select?.selectedIndex ?? -1) + step;
    if (select?.options[next]?.value === now) next += step; // now shows that session
    if (!select?.options[next] || select.selectedIndex < 0) return;
    select.selectedIndex = next;
    select.dispatchEvent(new Event('change'));
  };
  const symbols = (step) => () => {
    const all = [...document.querySelectorAll('#strip a')].map((a) => a.dataset.u);
    const at = all.indexOf(underlying());
    if (all.length) open(all[(at + step + all.length) % all.length]);
  };
  const help = h('dialog', { id: 'help', 'aria-labelledby': 'help-heading', click: (event) => { if (event.target === help) help.close(); } });
  const keys = new Map([
    ['/', ['Type a symbol', () => document.getElementById('underlying')?.focus()]],
    [',', ['The underlying before', symbols(-1)]],
    ['.', ['The underlying after', symbols(1)]],
    ['[', ['The date before', rows(1)]],
    [']', ['The date after', rows(-1)]],
    ...links.map((a) => [a.getAttribute('aria-keyshortcuts'), [a.textContent, goTo(a)]]),
    ['c', ['Compare all underlyings', click('compare')]],
    ['e', ['Events', click('bell')]],
    ['i', ['Explain the panel that has the focus', () => document.activeElement.closest('section')?.querySelector('.tell')?.click()]],
    ['t', ['Theme', click('theme')]],
    ['?', ['These keys', () => (help.open ? help.close() : help.showModal())]],
  ]);
  help.append(h('h2', { id: 'help-heading' }, 'Keys'), h('dl', null, [...keys, ['p', ['Replay the session, or pause']]].map(([key, [text]]) => h('div', null, h('dt', null, h('kbd', null, key)), h('dd', null, text)))),
    h('p', { class: 'about' }, 'On a chart, the arrow keys walk through its points, + and − zoom, and Escape shows everything again. Escape closes what is open, and ends a replay.'),
    h('form', { method: 'dialog' }, h('button', null, 'Close')));
  document.body.append(help);
  document.getElementById('theme').after(h('button', { type: 'button', id: 'keys', 'aria-label': 'Keys', 'aria-keyshortcuts': '?', title: 'Keys: ?', click: () => help.showModal() }, '?'));
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || event.target.closest?.('input, select, textarea')) return;
    const chart = /^Arrow(Left|Right)$/.test(event.key) && event.target.matches?.('main [tabindex="-1"]') && event.target.querySelector('.plot');
    if (chart) { // the panel has the focus, by its key
      chart.focus({ preventScroll: true });
      chart.dispatchEvent(new KeyboardEvent('keydown', { key: event.key, cancelable: true }));
      event.preventDefault();
    }
    const [, act] = keys.get(event.key) ?? [];
    if (!act || help.open && event.key !== '?') return;
    event.preventDefault();
    act();
  });
}
