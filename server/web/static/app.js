// The page: its panels, the banners above them, and the theme.

import { h, say } from './dom.js';
import { age, reason } from './format.js';
import { panels, retry, sentence } from './panel.js';
import { gammaPanel } from './gamma.js';
import { historyPanel } from './history.js';
import { maxPainPanel } from './maxpain.js';
import { vixPanel } from './vix.js';
import { sectorsPanel } from './sectors.js';
import { flowPanel } from './flow.js';

const banners = document.getElementById('banners');

function start() {
  const gamma = gammaPanel();
  const history = historyPanel(gamma.offer);
  const vix = vixPanel();
  const sectors = sectorsPanel();
  gamma.panel.follow('/api/v1/gex/spx');
  history.follow('/api/v1/gex/spx/series');
  const pain = maxPainPanel();
  vix.follow('/api/public/vix-term-structure');
  sectors.follow('/api/v1/sectors/rotation');
  const flow = flowPanel();
  const order = [gamma.panel, history, vix, pain, sectors, flow];
  document.getElementById('panels').replaceChildren(...order.map((panel) => panel.element));
  addEventListener('panelchange', tell);
  setInterval(tick, 1000);
  tick();
}

function tick() {
  if (document.hidden) return;
  for (const panel of panels) panel.tick();
  tell();
}

/** tell updates the banners. Each states one fact. A banner stays as it is while its fact does not change. */
function tell() {
  const wanted = [...outage(), ...market()];
  for (const old of [...banners.children]) {
    if (!wanted.some((w) => w.key === old.dataset.key)) old.remove();
  }
  for (const w of wanted) {
    let banner = [...banners.children].find((b) => b.dataset.key === w.key);
    if (!banner || banner.children.length < 3) {
      const made = h('p', { class: `banner ${w.kind}`, 'data-key': w.key, role: w.kind === 'down' ? 'alert' : 'status' },
        h('b', null, ''), h('span', null, ''), h('span', { 'aria-hidden': 'true' }, ''));
      if (banner) banner.replaceWith(made);
      else banners.append(made);
      banner = made;
    }
    say(banner.children[0], w.head);
    say(banner.children[1], ` ${w.text}`);
    say(banner.children[2], w.ticking ? ` ${w.ticking}` : '');
  }
}

function outage() {
  const down = panels.filter((p) => p.feed?.failure?.code === 'unreachable');
  if (down.length === 0) return [];
  const checked = Math.max(...panels.map((p) => p.feed?.checked ?? 0));
  const nextAt = Math.min(...down.map((p) => p.feed.nextAt));
  const seen = checked ? `Last answer ${age(Date.now() - checked)} ago. ` : '';
  return [{ key: 'down', kind: 'down', head: 'The server does not answer.', text: checked ? 'The page shows the last answers that it received.' : 'No answer has been received yet.', ticking: seen + retry(nextAt) }];
}

function market() {
  const metas = panels.filter((p) => p.document).map((p) => ({ heading: p.heading, ...p.document.meta }));
  const out = [];
  // The banner that the server wrote into the page stays until an answer names its source.
  const source = metas[0]?.source ?? banners.querySelector('.simulated')?.dataset.key;
  if (source === 'simulated') out.push({ key: 'simulated', kind: 'simulated', head: 'The market is simulated:', text: 'no number served here is real.' });
  if (source === 'replay') out.push({ key: 'replay', kind: 'simulated', head: 'The market is recorded:', text: 'no number served here is current.' });
  const of = (state) => metas.filter((m) => m.freshness.state === state && !m.endpoint.endsWith('/historical'));
  for (const [why, list] of Map.groupBy(of('stale'), (m) => reason(m.freshness.reason))) {
    out.push({ key: `stale ${why}`, kind: 'stale', head: `Stale: ${list.map((m) => m.heading).join(', ')}.`, text: `The last good answer is shown: ${why}.` });
  }
  const closed = of('closed');
  const why = new Set(closed.map((m) => reason(m.freshness.reason)));
  if (closed.length) out.push({ key: 'closed', kind: 'closed', head: 'Market closed.', text: [...why].map(sentence).join(' ') });
  const last = 'Not investment advice.';
  const notices = new Set(metas.flatMap((m) => m.notice.split('; ').map(sentence)));
  say(document.getElementById('notices'), [...notices].filter((n) => n !== last).concat(notices.has(last) ? last : []).join(' '));
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
