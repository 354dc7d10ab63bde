// The page: its panels, the banners above them, and the theme.

import { h, say } from './dom.js';
import { watchEvents } from './events.js';
import { age, awaited, closes, date, early, reason } from './format.js';
import { watchKeys } from './keys.js';
import { day, panels, retry, sentence, shared } from './panel.js';
import { later } from './panels.js';
import { beat, marketNow, tryAgain } from './poll.js';
import { recall, remember, underlying } from './state.js';
import { todayPanel } from './today.js';
import { moved, underlyingPicker, watchStrip } from './underlyings.js';

const top = document.getElementById('banners'); // the source: written by the server
const phone = matchMedia('(max-width: 640px)'); // as in app.css
const status = document.getElementById('status'); // in a line at the foot of the window, so that the page never moves
const ages = document.getElementById('ages');

async function start() {
  addEventListener('panelchange', tell);
  setInterval(tick, 1000);
  setInterval(beat, 5e3);
  underlyingPicker();
  watchKeys();
  const first = todayPanel();
  const folds = new Map([...later].map(([id, load]) => [id, fold(document.getElementById(id), load)]));
  tick();
  await first; // the network is for the first chart until then
  watchStrip();
  watchEvents();
  tellReadiness();
  setInterval(tellReadiness, 60e3);
  const near = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting || phone.matches && target.id !== 'levels') continue;
      near.unobserve(target);
      folds.get(target.id)(true);
    }
  }, { rootMargin: '50% 0px' });
  const look = () => {
    for (const id of folds.keys()) {
      const section = document.getElementById(id);
      near.unobserve(section);
      if (section.matches('.folded')) near.observe(section);
    }
  };
  const unfold = () => {
    const id = location.hash.slice(1);
    folds.get(id)?.(true);
    if (phone.matches) document.getElementById(id)?.scrollIntoView(); // the page was too short for it
  };
  phone.addEventListener('change', look);
  addEventListener('hashchange', unfold);
  look();
  if (phone.matches) unfold();
}

/**
 * fold gives a panel the button that shows it on a phone, where the page would else be 15 screens long. The function that it returns
 * shows or hides the panel. The panel asks for its data when it is shown first; in a wider window it is not hidden.
 */
function fold(section, load) {
  section.classList.add('folded');
  const set = (open) => {
    section.classList.toggle('folded', !open);
    button.setAttribute('aria-expanded', String(open));
    if (open) load?.();
    load = null;
  };
  const button = h('button', { type: 'button', class: 'fold', 'aria-labelledby': `${section.id}-heading`, 'aria-expanded': 'false', click: () => set(section.matches('.folded')) });
  section.querySelector('header').append(button);
  return set;
}

function tick() {
  if (document.hidden) return;
  for (const panel of panels) panel.tick();
  tell();
}

/** tell updates the banners. Each states one fact. A banner stays as it is while its fact does not change. */
function tell() {
  put(top, source());
  put(status, [...outage(), ...replayed(), ...market(), ...moved ? [{ key: moved, kind: 'stale', head: moved, text: '' }] : []]);
  const { as_of: asOf, session_date: session } = panels[0]?.document?.meta ?? {};
  say(ages, document.body.dataset.moment ? '' : [session && !day() && Date.parse(asOf) < closes(session) && early(session) && `Closes ${early(session)}`, phone.matches ? panels[0]?.ages.textContent.split(' · ')[0] : panels[0]?.ages.textContent, history].filter(Boolean).join(' · '));
  const last = 'Not investment advice.';
  const notices = new Set(panels.filter((p) => p.document).flatMap((p) => p.document.meta.notice.split('; ').map(sentence)));
  const repeated = (n) => n === last || [...notices].some((m) => m !== n && m.startsWith(n.slice(0, -1)));
  say(document.getElementById('notices'), [...notices].filter((n) => !repeated(n)).concat(notices.has(last) ? last : []).join(' '));
}

function put(place, wanted) {
  for (const old of [...place.children]) {
    if (!wanted.some((w) => w.key === old.dataset.key)) old.remove();
  }
  for (const w of wanted) {
    let banner = [...place.children].find((b) => b.dataset.key === w.key);
    if (banner && banner.children.length < 3) continue; // the server wrote it
    if (!banner) {
      banner = h('p', { class: `banner ${w.kind}`, 'data-key': w.key, role: w.kind === 'down' ? 'alert' : 'status' },
        h('b', null, ''), h('span', null, ''), h('span', { 'aria-hidden': 'true' }, ''), h('span', { class: 'long' }, ''), w.kind === 'down' ? h('button', { type: 'button', click: tryAgain }, 'Try now') : w.link ? h('a', { href: '/' }, w.link) : null);
      place.append(banner);
    }
    say(banner.children[0], w.head);
    say(banner.children[1], ` ${w.text}`);
    say(banner.children[2], w.ticking ? ` ${w.ticking} ` : '');
    say(banner.children[3], w.more ?? '');
  }
}

let history = ''; // how far the simulated past is

/** tellReadiness says which role this server has in its fleet, and how far its simulated past is. */
async function tellReadiness() {
  if (document.hidden) return;
  try {
    const ready = await (await fetch('/readyz', { cache: 'no-store' })).json();
    const [played, all] = ready.history?.split(' of ') ?? [];
    history = played === all ? '' : `History: ${ready.history} sessions`;
    const role = document.querySelector('#role strong');
    if (role) say(role, ready.role ?? 'member');
  } catch { /* the status says that the server does not answer */ }
}

/** source names a source that is not the real market. The banner of the server stays until an answer names another. */
function source() {
  const kind = panels.find((p) => p.document)?.document.meta.source ?? top.firstElementChild?.dataset.key;
  return [
    { key: 'simulated', kind: 'simulated', head: 'The market is simulated:', text: 'no number served here is real.' },
    { key: 'replay', kind: 'simulated', head: 'The market is recorded:', text: 'no number served here is current.' },
  ].filter((b) => b.key === kind);
}

/** outage says once what all panels lack. */
function outage() {
  const failed = panels.filter((p) => p.failure && shared(p.failure));
  if (failed.length === 0) return [];
  const ticking = retry(Math.min(...failed.map((p) => p.feed.nextAt)));
  const any = (code) => failed.some((p) => p.failure.code === code);
  if (!any('unreachable')) {
    if (any('unknown_underlying')) return [{ key: 'unknown', kind: 'stale', head: `This server has no underlying ${underlying().toUpperCase()}.`, text: '', link: 'Show SPX' }];
    const why = new Set(failed.map((p) => p.failure.error.reason).filter(Boolean).map((code) => sentence(reason(code))));
    return [{ key: 'waiting', kind: 'stale', head: 'The server has no answers yet.', text: why.size ? [...why].join(' ') : 'It has just started.', ticking }];
  }
  const checked = Math.max(...panels.map((p) => p.checked));
  const seen = checked ? `Last answer ${age(Date.now() - checked)} ago. ` : '';
  return [{ key: 'down', kind: 'down', head: 'The server does not answer.', text: checked ? 'The page shows the last answers that it received.' : 'No answer has been received yet.', ticking: seen + ticking }];
}

/** replayed says that the replay shows a past moment. */
function replayed() {
  const { moment } = document.body.dataset;
  return moment ? [{ key: 'replay', kind: 'closed', head: 'Replay,', text: '', ticking: `${moment} ET.`, more: `Pale panels show the ${day() ? 'close' : 'last quotes'}.` }] : [];
}

/** market says what is not fresh. An answer about a past date describes that date, so it does not count. */
function market() {
  const metas = panels.filter((p) => p.document && !p.feed.past).map((p) => ({ heading: p.heading, ...p.document.meta }));
  const of = (state) => metas.filter((m) => m.freshness.state === state);
  const out = [];
  for (const [why, list] of Map.groupBy(of('stale'), (m) => reason(m.freshness.reason))) {
    out.push({ key: `stale ${why}`, kind: 'stale', head: `Stale: ${list.map((m) => m.heading).join(', ')}.`, text: `The last good answer is shown: ${why}.` });
  }
  const closed = of('closed');
  if (closed.length === 0) return out;
  const ended = early(closed[0].session_date ?? '');
  const [soon, more] = awaited(marketNow(closed[0].source), closed[0].delay_minutes);
  const why = [...new Set(closed.map((m) => m.freshness.reason))].filter((code) => code !== 'outside_session').map((code) => sentence(reason(code)));
  out.push({ key: 'closed', kind: 'closed', head: ended ? `Closed early, ${ended}.` : 'Market closed.', text: soon, more: [more, ...why.length ? why : [day() ? `${date(day())} is shown.` : 'The last session is shown.']].join(' ') });
  return out;
}

/** theme applies the system's theme. Its button shows the other one, and again the system's. */
function theme() {
  const button = document.getElementById('theme');
  const system = matchMedia('(prefers-color-scheme: dark)');
  const set = (name) => {
    document.documentElement.dataset.theme = name;
    button.textContent = { auto: '◐', light: '☀', dark: '☾' }[name];
    button.setAttribute('aria-label', `Theme: ${name}`);
    button.title = `Theme: ${name}. Key: t`;
    dispatchEvent(new Event('themechange'));
  };
  set(['light', 'dark'].find((name) => name === recall('theme')) ?? 'auto');
  button.addEventListener('click', () => {
    const { theme: now } = document.documentElement.dataset;
    const other = system.matches ? 'light' : 'dark';
    set(now === other ? 'auto' : other);
    remember('theme', now === other ? 'auto' : other);
  });
}

theme();
start();
