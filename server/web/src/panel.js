// A panel shows one resource: a heading, controls, the content or why there is none, and the age of the content.

import { h, say } from './dom.js';
import * as format from './format.js';
import { marketNow, observe, unwatch, watch } from './poll.js';
import { choose, chosen, here, onChoice, underlying } from './state.js';

/** The panels of the page that have been loaded. */
export const panels = [];

/** day returns the date that the user has chosen, and '' for now. */
export const day = () => chosen('date', '', (text) => /^\d{4}-\d\d-\d\d$/.test(text) && Date.parse(text) > 0);

const nothing = { document: null, failure: null, checked: 0, nextAt: 0 };

/**
 * follow watches the address that a path has now, as here writes it, and its address after each choice. An empty address is not
 * watched. changed(feed, fresh) is as that of watch. turned(feed, other) is called when the address changes; other says that the
 * underlying is another. Unless told, changed is then called with a feed without an answer, so that nothing of the other stays; also
 * when no address is watched any more.
 * The result has the feed, and look, for a path that depends on more than choices.
 */
export function follow(path, changed, turned = (feed, other) => { if (other || !feed) changed(nothing, true); }) {
  let of = underlying();
  const followed = {
    feed: null,
    look() {
      const url = here(path);
      if (url === (followed.feed?.url ?? '')) return;
      unwatch(followed.feed, changed);
      followed.feed = url ? watch(url, changed) : null;
      const other = of !== underlying();
      of = underlying();
      turned(followed.feed, other);
    },
  };
  onChoice(followed.look);
  followed.look();
  return followed;
}

/**
 * Panel fills the section of index.html with this id. The section says how wide the panel is, and has its heading and the
 * line below it, so that both are there at the first paint. render(data, meta) is called with every new answer. The button i of the
 * panel shows what else it has to say: that line, summaries, tables, the age and the address. A screen reader has the texts always.
 *
 * Put everything that body will ever hold into it at once, with fixed heights, and change its texts in render: then nothing
 * moves when an answer comes. app.css reserves the height of the section (--tall) until the module has been loaded.
 */
export class Panel {
  document = null;
  feed = null;
  shown = null; // the address of the document
  checked = 0; // when an address last gave or confirmed an answer

  constructor({ id, controls = [], what = 'Quotes', render, onFailure }) {
    Object.assign(this, { id, what, render, onFailure });
    this.element = document.getElementById(id);
    this.heading = this.element.querySelector('h2').textContent;
    this.problem = h('span', { role: 'status' });
    this.again = h('span', { 'aria-hidden': 'true' }); // it changes every second, so screen readers skip it
    this.near = h('span');
    this.notice = h('p', { class: 'notice', hidden: true }, this.problem, this.near, this.again);
    this.body = h('div', { class: 'body' });
    this.ages = h('p', { class: 'ages' });
    this.source = h('a', { class: 'source' });
    const tell = h('button', { type: 'button', class: 'tell', 'aria-expanded': 'false', 'aria-label': `About ${this.heading}: what it shows, and its tables`, title: 'What it shows, and its tables',
      click: () => tell.setAttribute('aria-expanded', String(this.element.classList.toggle('told'))) }, 'i');
    this.element.querySelector('header').append(h('div', { class: 'controls' }, controls), tell);
    this.foot = h('footer', null, this.notice, this.ages, this.source);
    this.element.append(this.body, this.foot);
    panels.push(this);
  }

  /**
   * follow shows what a path has, as the function follow watches it. Call it once. The last answer stays until the new address has
   * answered. That of another underlying goes at once: then document is null, and nobody sees the body until the answer comes.
   */
  follow(path) {
    follow(path, this.#changed, (feed, other) => {
      this.feed = feed;
      if (other) this.document = null;
      this.element.setAttribute('aria-busy', 'true');
      this.source.textContent = feed.url;
      this.source.href = feed.url;
      this.tick();
    });
  }

  /** followDay follows the path current while no date is chosen, and past?date= while one is. */
  followDay(current, past) {
    this.follow(() => (day() ? `${past}?date=${day()}` : current));
  }

  #changed = (feed, fresh) => {
    this.element.setAttribute('aria-busy', 'false');
    if (fresh) {
      this.document = feed.document;
      this.shown = feed.url;
      observe(this.document.meta);
      this.render(this.document.data, this.document.meta);
    }
    this.checked = Math.max(this.checked, feed.checked);
    if (feed.failure) this.onFailure?.(feed.failure);
    this.tick();
    dispatchEvent(new Event('panelchange'));
  };

  /** failure returns why the address has no new answer, or null. */
  get failure() {
    return this.feed?.failure ?? null;
  }

  /** tick updates the texts that depend on the time. What several panels lack is said once, in a banner. */
  tick() {
    const failure = this.failure;
    const { checked, nextAt } = this.feed ?? {};
    const gone = unstored(this); // then the card is one line
    const first = this === panels[0];
    say(this.problem, gone && !first ? 'No snapshot of this date is stored.' : failure ? sentence(failure.message) : '');
    const final = !!failure?.final;
    const other = this.document !== null && this.shown !== this.feed?.url; // the body still shows another date
    const away = this.shown !== null && this.document === null; // the body still has figures of another underlying
    const missing = !!failure && (final || other);
    const place = missing ? this.body : this.foot;
    this.notice.hidden = !failure || shared(failure) && !missing;
    this.element.classList.toggle('missing', missing); // hides the body
    this.element.classList.toggle('gone', gone);
    this.element.classList.toggle('other', other && !failure); // fades it
    this.element.classList.toggle('away', away); // hides the body without a notice in it
    if (this.notice.parentNode !== place) place.prepend(this.notice);
    this.#offer(failure && (first || !unstored(panels[0])) ? [failure.error?.nearest?.earlier, failure.error?.nearest?.later].filter(Boolean) : []);
    say(this.again, failure && !final ? ` ${retry(nextAt)}` : '');
    const meta = this.document?.meta;
    if (!meta || missing) {
      say(this.ages, missing ? '' : failure ? 'No answer received yet.' : 'Loading …');
      return;
    }
    this.ages.title = `as_of ${meta.as_of}, captured_at ${meta.captured_at}, computed_at ${meta.computed_at}`;
    if (this.feed.past) { // an age would say nothing
      say(this.ages, `${this.what} of ${format.instant(meta.as_of)}`);
      return;
    }
    const now = marketNow(meta.source);
    const closed = meta.freshness.state === 'closed'; // then the ages say when it closed
    const ages = [`${this.what} of ${format.instant(meta.as_of)}${closed ? '' : `, ${format.age(now - Date.parse(meta.as_of))} old`}`];
    if (meta.captured_at && !closed) ages.push(`captured ${format.age(now - Date.parse(meta.captured_at))} ago`);
    ages.push(checked ? `checked ${format.age(Date.now() - checked)} ago` : 'not checked yet');
    if (day() && this.id !== 'history') ages.unshift('Of now, not of the chosen date');
    say(this.ages, ages.join(' · '));
  }

  /** offer shows buttons that open the stored dates before and after a date that is not stored. */
  #offer(dates) {
    if (this.near.dataset.dates === dates.join()) return; // a button keeps the focus
    this.near.dataset.dates = dates.join();
    const open = (date) => {
      choose({ date }, true);
      document.getElementById('panels').focus({ preventScroll: true }); // the button goes
    };
    const buttons = dates.map((date) => h('button', { type: 'button', click: () => open(date) }, format.date(date)));
    this.near.replaceChildren(...dates.length ? [' The nearest stored ', dates.length > 1 ? 'dates are ' : 'date is ', buttons[0], ...buttons.slice(1).flatMap((b) => [' and ', b]), '.'] : []);
  }
}

/** unstored says that a panel has no answer of the chosen date. If the first has none, it offers other dates for all. */
const unstored = (panel) => panel.failure?.code === 'snapshot_not_found';

// An answer that comes in an hour at the earliest is one whose documents the source lacks. Then the server is not starting.
const starting = (failure) => failure?.code === 'not_ready' && failure.retryAfter < 3600e3;

/** shared says that a failure is not of one panel: the server does not answer, has no answers yet, or has no such underlying. */
export function shared(failure) {
  return ['unreachable', 'unknown_underlying'].includes(failure.code) || starting(failure) && panels.filter((p) => starting(p.failure)).length > 1;
}

/** retry says when the next attempt comes. */
export function retry(nextAt) {
  const left = nextAt - Date.now();
  return left > 0 ? `Trying again in ${format.age(left + 999)}.` : 'Trying again now.';
}

/** sentence gives a phrase a capital and a full stop. */
export function sentence(text) {
  const t = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(t) ? t : `${t}.`;
}
