// The ladder: every level from the highest price to the lowest, with the spot in its place. A click copies a price. A button shows the
// lines and files that chart programs take.

import { h, say, scroller, table } from './dom.js';
import { level, month, number, percent, points, shortDate, spotName } from './format.js';
import { day, follow, Panel } from './panel.js';
import { Replay } from './replay.js';
import { here } from './state.js';
import { current, past } from './strikes.js';
import { refill } from './terms.js';

const path = `${current}/levels`;
const painPath = '/api/public/{u}-max-pain';

/** outside says that a price is further from the spot than what expires today is expected to move. */
export const outside = (x, d) => d.zero_dte?.remaining_move > 0 && Math.abs(x - d.effective_spot) > d.zero_dte.remaining_move;

/** wallName names a wall of some expirations. On the other side of the spot it is no wall, but the strike with the most net gamma of its sign. */
export const wallName = (kind, strike, spot) => ((kind === 'call') === (strike >= spot) ? `${kind} wall` : `largest ${kind === 'call' ? '+' : '\u2212'}γ`);

/** contract names a future with its month. */
const contract = (f) => `${f.symbol} ${month(f.month)}`;

/**
 * rungs returns the levels of a gamma answer, of now or of a date, and of the nearest max pain: {price, names, kind}, highest price first.
 * Levels of one price share a rung. The kind of the first gives the colour, unless call walls and put walls meet.
 */
export function rungs(d, maxPain) {
  const found = new Map();
  const add = (kind, name, price) => {
    if (!Number.isFinite(price)) return;
    const rung = found.get(price) ?? found.set(price, { price, names: [], kind }).get(price);
    if (!rung.names.includes(name)) rung.names.push(name);
    if (['call put', 'put call'].includes(`${rung.kind} ${kind}`)) rung.kind = 'both';
  };
  add('call', 'Call wall', d.call_wall);
  add('put', 'Put wall', d.put_wall);
  add('flip', 'Flip', d.zero_gamma_flip);
  add('trigger', 'Vol trigger', d.vol_trigger);
  for (const [key, name] of [['gross', 'by gross'], ['open_interest', 'by open interest']]) {
    const walls = d.walls?.[key] ?? {};
    if (walls.call !== d.call_wall) add('call', `Call wall ${name}`, walls.call);
    if (walls.put !== d.put_wall) add('put', `Put wall ${name}`, walls.put);
  }
  add('gross', 'Largest gamma', d.abs_gamma_strike);
  add('pain', 'Max pain', maxPain);
  for (const kind of ['call', 'put']) {
    (d.zero_dte?.[`${kind}_walls`] ?? []).forEach((w, i) => add(kind, `0DTE ${wallName(kind, w.strike, d.effective_spot)}${i ? ` ${i + 1}` : ''}`, w.strike));
  }
  const pin = d.zero_dte?.pin_strike;
  add(...outside(pin, d) ? ['far', '0DTE pin, outside'] : ['pin', '0DTE pin'], pin);
  const band = d.zero_gamma_flip === null ? 'Flip in a scenario' : 'Flip band';
  add('flip', `${band}, high`, d.flip_band?.high);
  add('flip', `${band}, low`, d.flip_band?.low);
  for (const [until, by] of [['to close', d.zero_dte?.remaining_move], ['1 day', d.expected_move_1d]]) {
    if (by) for (const sign of [1, -1]) add('move', `Exp. ${sign > 0 ? 'high' : 'low'}, ${until}`, d.effective_spot + sign * by);
  }
  return [...found.values()].sort((a, b) => b.price - a.price);
}

/** levelsPanel builds the panel. */
export function levelsPanel() {
  const list = h('ol', { class: 'ladder' });
  const none = h('p', { class: 'empty', hidden: true }, 'No level is known.');
  const said = h('output', { class: 'copied' });
  const copy = async (text, what) => say(said, await toClipboard(text) ? `${what} copied.` : 'The browser does not allow to copy.');
  const price = (name, x) => h('button', { type: 'button', class: 'copy', 'aria-label': `Copy ${name} ${level(x)}`, click: () => copy(String(x), `${name} ${level(x)}`) }, level(x));
  let pain = null; // an answer
  const show = () => {
    const d = panel.document && (Replay.levels ?? panel.document.data); // of a past moment, fewer are known
    if (!d) return;
    const all = rungs(d, !Replay.levels && pain?.meta.session_date === d.session_date ? pain.data.max_pain : null);
    const spot = d.effective_spot;
    const rung = ({ price: x, names, kind }) => h('li', { class: kind }, h('span', { title: names.join(', ') }, names.join(' · ')), price(names.join(', '), x),
      h('small', null, percent((x / spot - 1) * 100)), h('small', null, points(x - spot, Math.abs(x - spot) < 100 ? 2 : 0)));
    const here = h('li', { class: 'spot', 'aria-current': 'true' }, h('span', null, spotName(d)), h('b', null, level(spot)), ...(level(spot) === level(d.spot) ? [percent(d.spot_change_pct), 'day'] : []).map((text) => h('small', null, text))); // the change is that of the published price
    const at = all.findIndex((r) => r.price < spot);
    const focused = list.contains(document.activeElement) && document.activeElement.getAttribute('aria-label');
    const rows = all.map(rung);
    rows.splice(at < 0 ? rows.length : at, 0, here);
    list.replaceChildren(...rows);
    none.hidden = all.length > 0;
    if (focused) [...list.querySelectorAll('button')].find((b) => b.getAttribute('aria-label') === focused)?.focus({ preventScroll: true });
  };
  const formats = copies(copy, price, said);
  const panel = new Panel({ id: 'levels', controls: [formats.button], render: show });
  panel.body.append(formats.element, none, list, said);
  panel.followDay(current, past);
  addEventListener('moment', show);
  follow(() => (day() ? `${painPath}?date=${day()}` : painPath), ({ document }) => { pain = document; show(); });
}

/** copies builds the box with the levels in one line, as CSV, and on the scale of futures, and the button that opens it. */
function copies(copy, price, said) {
  const place = scroller('Levels on the scale of futures');
  const about = h('p', { class: 'about' });
  const csv = h('a', null, 'CSV');
  const line = h('input', { readonly: true, 'aria-label': 'All levels in one line', focus: () => line.select() });
  let followed = null;
  let open = false;
  const toggle = (event) => {
    open = event.newState === 'open';
    (open ? element : element.parentNode).append(said); // what is copied is said where it is seen
    followed ??= follow(() => (open ? path : ''), changed);
    followed.look();
  };
  const element = h('div', { class: 'formats', popover: 'auto', 'aria-label': 'Copy as', toggle }, h('p', { class: 'line' }, line, h('button', { type: 'button', click: () => copy(line.value, 'The line') }, 'Copy the line'), csv), place, about);
  const button = h('button', { type: 'button' }, 'Copy as …');
  button.popoverTargetElement = element;
  const changed = ({ document }, fresh) => {
    const d = document?.data;
    if (!fresh || !d) return;
    csv.href = `${here(path)}?format=csv`;
    line.value = `$${d.symbol}: ${d.levels.map((l) => `${l.label}, ${l.price}`).join(', ')}`;
    const at = (f, l) => f.levels.find((x) => x.name === l.name);
    refill(place, ...d.futures.length ? [table('The levels on the scale of futures', [{ head: 'Level' }, ...d.futures.map((f) => ({ head: contract(f), number: true }))],
      d.levels.map((l) => [l.label, ...d.futures.map((f) => (at(f, l) ? price(`${contract(f)} ${l.label}`, at(f, l).price) : level(null)))]))] : []);
    say(about, [...d.futures.map((f) => `${contract(f)}, until ${shortDate(f.expiration)}: a fair value from option prices, ${number(f.ratio, 4)} × ${d.symbol}.`), ...day() ? ['Of now, not of the chosen date.'] : []].join(' '));
  };
  return { element, button };
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
