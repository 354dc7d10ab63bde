// The page: its panels, the banners above them, and the theme.

import { h, say } from './dom.js';
import { age, awaited, reason } from './format.js';
import { panels, retry, sentence, shared } from './panel.js';
import { later } from './panels.js';
import { beat, marketNow, tryAgain } from './poll.js';
import { onChoice, underlying } from './state.js';
import { todayPanel } from './today.js';

const top = document.getElementById('banners'); // the source: written by the server
const status = document.getElementById('status'); // a strip at the foot of the window, so that the page never moves

async function start() {
  addEventListener('panelchange', tell);
  setInterval(tick, 1000);
  setInterval(beat, 5e3);
  const shown = underlying();
  for (const link of document.querySelectorAll('.underlyings a')) if (link.textContent === shown) link.setAttribute('aria-current', 'page');
  onChoice(() => underlying() === shown || location.reload()); // the back button
  const first = todayPanel();
  tick();
  await first; // the network is for the first chart until then
  tellRole();
  setInterval(tellRole, 60e3);
  const near = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      later.get(target.id)(); // only now does the panel ask for its data
    }
  }, { rootMargin: '50% 0px' });
  for (const section of document.querySelectorAll('section:not(#today)')) near.observe(section);
}

function tick() {
  if (document.hidden) return;
  for (const panel of panels) panel.tick();
  tell();
}

/** tell updates the banners. Each states one fact. A banner stays as it is while its fact does not change. */
function tell() {
  put(top, source());
  put(status, [...outage(), ...market()]);
  const last = 'Not investment advice.';
  const notices = new Set(panels.filter((p) => p.document).flatMap((p) => p.document.meta.notice.split('; ').map(sentence)));
  say(document.getElementById('notices'), [...notices].filter((n) => n !== last).concat(notices.has(last) ? last : []).join(' '));
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
        h('b', null, ''), h('span', null, ''), h('span', { 'aria-hidden': 'true' }, ''), w.kind === 'down' ? h('button', { type: 'button', click: tryAgain }, 'Try now') : null);
      place.append(banner);
    }
    say(banner.children[0], w.head);
    say(banner.children[1], ` ${w.text}`);
    say(banner.children[2], w.ticking ? ` ${w.ticking} ` : '');
  }
}

/** tellRole says which role this server has in its fleet. The page of a server outside a fleet has no place for it. */
async function tellRole() {
  const place = document.querySelector('#role strong');
  if (!place || document.hidden) return;
  try {
    const { role } = await (await fetch('/readyz', { cache: 'no-store' })).json();
    say(place, role ?? 'member');
  } catch { /* the banner says that the server does not answer */ }
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
  const down = failed.some((p) => p.failure.code === 'unreachable');
  if (!down) {
    const why = new Set(failed.map((p) => p.failure.error.reason).filter(Boolean).map((code) => sentence(reason(code))));
    return [{ key: 'waiting', kind: 'stale', head: 'The server has no answers yet.', text: why.size ? [...why].join(' ') : 'It has just started.', ticking }];
  }
  const checked = Math.max(...panels.map((p) => p.checked));
  const seen = checked ? `Last answer ${age(Date.now() - checked)} ago. ` : '';
  return [{ key: 'down', kind: 'down', head: 'The server does not answer.', text: checked ? 'The page shows the last answers that it received.' : 'No answer has been received yet.', ticking: seen + ticking }];
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
  const soon = awaited(marketNow(closed[0].source), closed[0].delay_minutes);
  const why = [...new Set(closed.map((m) => m.freshness.reason))].filter((code) => !soon || code !== 'outside_session').map((code) => sentence(reason(code)));
  out.push({ key: 'closed', kind: 'closed', head: soon ? 'The last session is shown.' : 'Market closed.', text: [...why, soon].join(' ') });
  return out;
}

/** theme applies the system's theme until the user chooses another. */
function theme() {
  const button = document.getElementById('theme');
  const names = ['auto', 'light', 'dark'];
  const set = (name) => {
    document.documentElement.dataset.theme = name;
    button.textContent = `Theme: ${name}`;
    dispatchEvent(new Event('themechange'));
  };
  let stored = null;
  try { stored = localStorage.getItem('theme'); } catch { /* no storage: the choice lasts for this visit only */ }
  set(names.includes(stored) ? stored : 'auto');
  button.addEventListener('click', () => {
    const next = names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length];
    set(next);
    try { localStorage.setItem('theme', next); } catch { /* as above */ }
  });
}

theme();
start();
