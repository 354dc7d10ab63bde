// A panel shows one resource: a heading, controls, the content or why there is none, and the age of the content.

import { h, say } from './dom.js';
import * as format from './format.js';
import { Feed } from './poll.js';
import { marketNow, observe } from './clock.js';

/** The panels of the page. */
export const panels = [];

/** Panel follows an address and calls render with every new answer's data and meta. */
export class Panel {
  document = null;
  feed = null;

  constructor({ id, heading, about, controls = [], what = 'Quotes', render, onFailure }) {
    Object.assign(this, { id, heading, what, render, onFailure });
    this.problem = h('span', { role: 'status' });
    this.again = h('span', { 'aria-hidden': 'true' }); // it changes every second, so screen readers skip it
    this.notice = h('p', { class: 'notice', hidden: true }, this.problem, this.again);
    this.body = h('div', { class: 'body' });
    this.ages = h('p', { class: 'ages' });
    this.source = h('a', { class: 'source' });
    this.element = h('section', { id, class: 'panel', 'aria-labelledby': `${id}-heading`, 'aria-busy': 'true' },
      h('header', null, h('div', null, h('h2', { id: `${id}-heading` }, heading), h('p', { class: 'about' }, about)), h('div', { class: 'controls' }, controls)),
      this.notice, this.body, h('footer', null, this.ages, this.source));
    panels.push(this);
  }

  /** follow changes the address. The last answer stays until the new address has answered. */
  follow(url) {
    this.feed?.stop();
    this.element.setAttribute('aria-busy', 'true');
    this.source.textContent = url;
    this.source.href = url;
    this.feed = new Feed(url, (feed, fresh) => { if (feed === this.feed) this.#changed(feed, fresh); }).start();
  }

  #changed(feed, fresh) {
    this.element.setAttribute('aria-busy', 'false');
    if (fresh) {
      this.document = feed.document;
      observe(this.document.meta);
      this.render(this.document.data, this.document.meta);
    }
    if (feed.failure) this.onFailure?.(feed.failure);
    this.tick();
    dispatchEvent(new Event('panelchange'));
  }

  /** tick updates the texts that depend on the time. */
  tick() {
    const { failure, checked, nextAt } = this.feed ?? {};
    this.notice.hidden = !failure || failure.code === 'unreachable' && !!this.document;
    say(this.problem, failure ? `${sentence(failure.message)}${nearest(failure.error)}` : '');
    say(this.again, failure ? ` ${retry(nextAt)}` : '');
    const meta = this.document?.meta;
    if (!meta) {
      say(this.ages, failure ? 'No answer received yet.' : 'Loading …');
      return;
    }
    const now = marketNow(meta.source);
    const ages = [`${this.what} of ${format.instant(meta.as_of)}, ${format.age(now - Date.parse(meta.as_of))} old`];
    if (meta.captured_at) ages.push(`captured ${format.age(now - Date.parse(meta.captured_at))} ago`);
    ages.push(checked ? `checked ${format.age(Date.now() - checked)} ago` : 'not checked yet');
    say(this.ages, ages.join(' · '));
    this.ages.title = `as_of ${meta.as_of}, captured_at ${meta.captured_at}, computed_at ${meta.computed_at}`;
  }
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

/** nearest names the stored dates before and after a date that is not stored. */
function nearest(error) {
  const dates = [error?.nearest?.earlier, error?.nearest?.later].filter(Boolean).map(format.date);
  return dates.length ? ` The nearest stored dates are ${dates.join(' and ')}.` : '';
}

