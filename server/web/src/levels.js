// The prices that a chart marks, to copy: one price, or the line that chart scripts take.

import { h, say, scroller, table } from './dom.js';
import { level, month, number, percent, shortDate } from './format.js';
import { Panel } from './panel.js';
import { here } from './state.js';
import { refill } from './terms.js';

const path = '/api/v1/gex/{u}/levels';

/** contract names a future with its month. */
const contract = (f) => `${f.symbol} ${month(f.month)}`;

/** levelsPanel builds the panel. */
export function levelsPanel() {
  const place = scroller('Levels');
  const about = h('p', { class: 'summary' });
  const said = h('output', { class: 'copied' });
  const csv = h('a', null, 'CSV');
  const line = h('input', { readonly: true, 'aria-label': 'All levels in one line', focus: () => line.select() });
  const copy = async (text, what) => say(said, await toClipboard(text) ? `${what} copied.` : 'The browser does not allow to copy.');
  const price = (name, x) => h('button', { type: 'button', class: 'copy', 'aria-label': `Copy ${name} ${level(x)}`, click: () => copy(String(x), `${name} ${level(x)}`) }, level(x));
  const panel = new Panel({
    id: 'levels',
    render(d) {
      csv.href = `${here(path)}?format=csv`;
      line.value = `$${d.symbol}: ${d.levels.map((l) => `${l.label}, ${l.price}`).join(', ')}`;
      const columns = [{ head: 'Level' }, { head: d.symbol, number: true }, { head: 'From spot', number: true },
        ...d.futures.map((f) => ({ head: contract(f), number: true }))];
      const rows = d.levels.map((l) => [l.label, price(l.label, l.price), percent(l.distance_pct), ...d.futures.map((f) => {
        const at = f.levels.find((x) => x.name === l.name);
        return at ? price(`${contract(f)} ${l.label}`, at.price) : level(null);
      })]);
      const focused = place.contains(document.activeElement) && document.activeElement.getAttribute('aria-label');
      refill(place, table('The levels, highest price first', columns, rows));
      if (focused) [...place.querySelectorAll('button')].find((b) => b.getAttribute('aria-label') === focused)?.focus({ preventScroll: true });
      say(about, `${d.levels.length ? 'A click on a price copies it.' : 'No level is known.'} ${d.futures.map((f) => `${contract(f)}, until ${shortDate(f.expiration)}: a fair value from option prices, ${number(f.ratio, 4)} × ${d.symbol}.`).join(' ')}`);
    },
  });
  panel.body.append(place, about, h('p', { class: 'line' }, line, h('button', { type: 'button', click: () => copy(line.value, 'The line') }, 'Copy the line'), csv), said);
  panel.follow(path);
}

/** toClipboard copies a text. A page that came without encryption may copy only what is selected. */
async function toClipboard(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const back = document.activeElement;
  const field = h('textarea', { class: 'unseen' });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand('copy');
  field.remove();
  back?.focus();
  return done;
}
