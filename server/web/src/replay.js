// Replay: a slider that moves the levels through the rows of a track, and plays them.

import { h, say } from './dom.js';
import { nearest, time } from './format.js';

const lasts = 20e3; // a session, in milliseconds, however many rows it has
const step = 125;

/** Replay has the moment that is shown. onMove is called when it changes. */
export class Replay {
  static levels = null; // of the moment that the page replays. When they change, the window gets the event moment
  at = null; // of a row, in milliseconds since 1970; null: the last row, also when another comes
  #rows = [];
  #timer = 0;

  constructor(onMove) {
    this.onMove = onMove;
    this.slider = h('input', { type: 'range', class: 'scrub', 'aria-label': 'Moment of the session', 'aria-keyshortcuts': 'p', step: 'any', disabled: true,
      input: () => this.move(nearest(this.#rows, Number(this.slider.value))), keydown: (event) => this.#key(event) });
    this.said = h('output', { class: 'moment', 'aria-live': 'off' });
    this.button = h('button', { type: 'button', class: 'play', disabled: true, click: () => this.play() });
    addEventListener('keydown', (event) => {
      if (event.key === 'p' && !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest('input:not([type=range]), select, textarea')) this.play();
      else if (event.key === 'Escape' && this.at !== null && !event.defaultPrevented && !document.querySelector(':popover-open, dialog[open]')) this.move(Infinity);
    });
    this.#tell();
  }

  /** set gives the times of the rows, and the part of the axis above the slider. */
  set(rows, [from, to]) {
    this.#rows = rows;
    if (this.index < 0) this.at = null;
    if (rows.length < 2) this.#stop();
    Object.assign(this.slider, { min: from, max: to, disabled: rows.length < 2 });
    this.button.disabled = rows.length < 2;
    this.#tell();
  }

  /** reset shows the last row. */
  reset() {
    this.#stop();
    this.at = null;
  }

  /** index returns the row of the moment. */
  get index() {
    return this.at === null ? this.#rows.length - 1 : this.#rows.indexOf(this.at);
  }

  /** move shows a row. */
  move(i) {
    const last = this.#rows.length - 1;
    const at = i >= last ? null : this.#rows[Math.max(0, i)];
    if (i >= last) this.#stop();
    const other = at !== this.at;
    this.at = at;
    this.#tell();
    if (other) this.onMove();
  }

  /** play begins at the first row after the last has been shown. It pauses while it plays. */
  play() {
    if (this.#timer) this.#stop();
    else if (this.#rows.length > 1) {
      if (this.at === null) this.move(0);
      this.#timer = setTimeout(() => this.#next(), step);
    }
    this.#tell();
  }

  /** next moves on, and again when the page has drawn that. */
  #next() {
    this.move(this.index + Math.ceil(this.#rows.length * step / lasts));
    if (this.#timer) this.#timer = setTimeout(() => this.#next(), step);
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#timer = 0;
  }

  #key(event) {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    this.move(this.index + by);
  }

  #tell() {
    const t = this.#rows[this.index];
    const text = t === undefined ? '' : time(t);
    this.slider.value = t ?? 0;
    this.slider.setAttribute('aria-valuetext', text && `${text} in New York${this.at === null ? ', the last' : ''}`);
    say(this.said, text);
    say(this.button, this.#timer ? '❚❚ Pause' : '▶ Replay');
    this.button.setAttribute('aria-label', this.#timer ? 'Pause the replay' : 'Replay the session');
    this.button.title = 'Key: p';
  }
}
