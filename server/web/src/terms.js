// The words of the field, explained where they stand. /methods defines them in full.

import { h } from './dom.js';

const words = {
  // levels of gamma exposure
  gamma: 'Gamma is how much the delta of an option changes with the index. Here: the dollars of the index that modelled dealers must trade after a move of 1 %.',
  net: 'Call gamma less put gamma. Positive: modelled dealers trade against moves of the index. Negative: they trade with them.',
  gross: 'Call gamma plus put gamma, without signs. “Of gross” is a share of this sum.',
  flip: 'The level of the index, nearest the spot, at which modelled net gamma would be zero. Below it net gamma is usually negative.',
  flip_band: 'The lowest and the highest flip of the model and its scenarios. A wide band: the flip is uncertain.',
  regime: 'Positive or negative, the sign of net gamma. Neutral: net gamma is under 1 % of gross, or has the other sign with volatilities a tenth lower or higher, or without the contracts that expire today. The sign near zero is the weakest statement of the model.',
  pin: 'The strike with the most gamma of what expires on the day, calls and puts added up: where most is hedged within the day. Outside the expected move, the price hardly comes there.',
  call_wall: 'The strike with the most positive net gamma, above the spot or below.',
  put_wall: 'The strike with the most negative net gamma, above the spot or below.',
  zero_dte: 'Options that expire on the day of the session: zero days to expiration.',
  expected_move: 'One standard deviation of a day’s move, from option prices. About one day in three moves further.',
  spot: 'The level of the index. It stands still outside the session. If “implied”, the figures use the level that option prices imply.',
  open_interest: 'Open contracts. The number is settled once a day, so it does not contain today’s trades.',
  am: 'AM options settle at the opening prices of their last day, PM options at its close. MIXED: the date has both.',
  // exposures
  delta: 'The amount of the index that would gain and lose like these options.',
  vanna: 'How much delta changes when implied volatility rises by one point, as from 15 % to 16 %.',
  charm: 'How much delta changes when one calendar day passes and nothing else changes.',
  // parts of the change since the last session
  expired: 'Contracts that have settled since then are taken out.',
  part_spot: 'The index moves to where it is now, and forwards move with it.',
  part_time: 'Time passes. Volatility and forwards stay.',
  part_volatility: 'Volatility and forwards become those of now.',
  part_open_interest: 'Open interest becomes that of now.',
  listed: 'Contracts that only one of the two snapshots has come in or go out.',
  // scenarios and conventions
  vol_down_10: 'All volatilities are a tenth lower.',
  vol_up_10: 'All volatilities are a tenth higher.',
  no_carry: 'All forwards are equal to the spot: no interest and no dividends.',
  ex_nearest_expiration: 'Without the nearest expiration.',
  within_90_days: 'Only expirations in the next 90 days.',
  model: 'The figures of this page: volatility and forwards from option prices, calls held and puts written by dealers.',
  published_gamma: 'With the gamma that the upstream publishes, to 4 decimals. It allows no flip.',
  perfiliev: 'A widely copied public recipe: published volatility, no interest, and a year of 262 weekdays.',
  volume_weighted: 'With the volume of the session in place of open interest. Settled contracts are left out.',
  // volatility
  atm: 'The volatility that options imply at the strike equal to the forward price, in percent a year.',
  model_free: 'The volatility that options of all strikes imply together, by the formula of VIX. Dear puts raise it.',
  risk_reversal: 'The volatility of a call less that of a put with the same delta. Negative: puts are dearer.',
  term_slope: 'At-the-money volatility of about 90 days less that of 30 days. Negative: the near months are dearer.',
  realised: 'The volatility that the closes of the last sessions had, in percent a year.',
  rank: 'Where at-the-money volatility of 30 days lies between its lowest and its highest value of the last 252 sessions, or of those that are stored: 60 at least.',
  percentile: 'The share of these sessions whose at-the-money volatility of 30 days was lower.',
  vvix: 'The volatility that options on VIX imply for VIX itself.',
  skew: 'How dear far puts on SPX are, as an index of Cboe: 100 is no extra price for a fall.',
  vxn: 'As VIX, of the Nasdaq-100: the volatility of 30 days that options on NDX imply.',
  rvx: 'As VIX, of the Russell 2000: the volatility of 30 days that options on RUT imply.',
  // max pain, flow, VIX, sectors
  max_pain: 'The settlement price at which all options of an expiration together pay their holders least.',
  put_call: 'Puts divided by calls. Above 1: more puts than calls.',
  score: '0 to 100: how unusual the activity of a contract is. The sum of five parts, lowered when the quote is poor.',
  premium: 'Volume × price × 100: about what the contracts traded today cost.',
  direction: 'Inferred: where the last price lies in the quote. Calls at the ask and puts at the bid count as bullish, the reverse as bearish. Nobody outside sees who bought.',
  contango: 'How much more the later future costs. Positive is contango, as on calm days. Negative is backwardation, as in times of stress.',
  vix: 'The volatility that SPX options imply for the next 30 days, in percent a year.',
  vix3m: 'The implied volatility of 30 days divided by that of three months. Above 1: the market expects the stress to pass.',
  roll_yield: 'What a future would gain or lose in a year if its price moved along an unchanged curve.',
  cm30: 'The price of a future with exactly 30 days left, between the two months around it.',
  rotation: 'Relative strength against SPY and its momentum, 100 is the average of 63 sessions. Leading: both above. Weakening: strength only. Lagging: neither. Improving: momentum only.',
};

const shown = { word: null, tip: null };
let closing = 0;

/** term returns a button with a text, which explains the word of a key. A key without an explanation gives the plain text. */
export function term(key, text) {
  if (!Object.hasOwn(words, key)) return text;
  const id = `word-${key}`;
  const tip = document.getElementById(id) ?? explanation({ id }, words[key]);
  return explained({ class: 'term', 'aria-describedby': id }, () => tip, text);
}

/** explanation builds what explained shows. It lies above the page, so nothing moves when it opens. */
export const explanation = (attributes, ...content) => document.body.appendChild(h('div', { class: 'word', role: 'tooltip', popover: 'manual', pointerenter: () => clearTimeout(closing), pointerleave: hide, ...attributes }, ...content));

/** explained returns a button which shows an explanation on hover, focus and tap: tip returns it. Escape closes it. */
export function explained(attributes, tip, ...text) {
  const open = () => show(word, tip());
  let before; // whether the explanation was open before this tap
  const word = h('button', {
    type: 'button', ...attributes,
    pointerenter: (event) => { if (event.pointerType === 'mouse') open(); },
    pointerleave: (event) => { if (event.pointerType === 'mouse') closing = setTimeout(hide, 200); },
    pointerdown: () => { before = shown.word === word; },
    focus: () => { if (word.matches(':focus-visible')) open(); },
    blur: hide,
    click: (event) => {
      if (event.pointerType === 'touch' && before) hide();
      else open();
    },
  }, ...text);
  return word;
}

/** fact returns a figure of a definition list: its word, its value, and a note. */
export const fact = (key, name, value, note, kind) => h('div', { class: kind }, h('dt', null, term(key, name)), h('dd', null, value, note ? h('small', null, note) : null));

/** refill replaces the children of a place. The word that has the focus keeps it, and the word that is explained stays explained. */
export function refill(place, ...children) {
  const same = (id) => place.querySelector(`.term[aria-describedby="${id}"]`);
  const { word, tip: open } = place.contains(shown.word) ? shown : {};
  const focused = place.contains(document.activeElement) && document.activeElement.getAttribute('aria-describedby');
  place.replaceChildren(...children);
  if (focused) same(focused)?.focus({ preventScroll: true });
  if (word && same(open.id)) show(same(open.id), open);
}

function show(word, tip) {
  clearTimeout(closing);
  if (shown.word === word) return;
  hide();
  Object.assign(shown, { word, tip });
  shown.tip.showPopover();
  place();
}

/** place puts the shown explanation below its word, or above it where there is no room. */
function place() {
  if (!shown.word) return;
  const at = shown.word.getBoundingClientRect();
  const { style, offsetWidth, offsetHeight } = shown.tip;
  const below = at.bottom + 4 + offsetHeight <= innerHeight;
  style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - offsetWidth - 8))}px`;
  style.top = `${below ? at.bottom + 4 : Math.max(8, at.top - 4 - offsetHeight)}px`;
}

function hide() {
  clearTimeout(closing);
  shown.tip?.hidePopover();
  Object.assign(shown, { word: null, tip: null });
}

addEventListener('keydown', (event) => { if (event.key === 'Escape') hide(); });
addEventListener('pointerdown', (event) => { if (shown.word && !shown.word.contains(event.target) && !shown.tip.contains(event.target)) hide(); });
addEventListener('scroll', place, { capture: true, passive: true });
addEventListener('panelchange', () => { if (shown.word && !shown.word.isConnected) hide(); });
