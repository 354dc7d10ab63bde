// Polls an address with conditional requests: at most once per max-age of the answer, not in a hidden tab, and
// less and less often while the server does not answer.

const timeout = 15e3;
const firstRetry = 3e3;
const slowestRetry = 60e3;
const longest = 86400e3; // an answer with a longer max-age is not requested again

const feeds = new Map(); // by address
const jitter = (ms) => ms * (1 + Math.random() / 10);

/** The server's clock minus this machine's, in milliseconds. */
let clockOffset = 0;

/**
 * watch follows an address until unwatch. onChange(feed, fresh) is called after every attempt; fresh says that the document
 * is new to this watcher. All watchers of one address share its requests.
 */
export function watch(url, onChange) {
  let feed = feeds.get(url);
  if (!feed) {
    feed = new Feed(url);
    feeds.set(url, feed);
    feed.look();
  }
  feed.watchers.add(onChange);
  if (feed.document || feed.failure) {
    queueMicrotask(() => { if (feed.watchers.has(onChange)) onChange(feed, feed.document !== null); });
  }
  return feed;
}

/** unwatch ends a watch. The last one to leave ends the requests. */
export function unwatch(feed, onChange) {
  if (!feed) return;
  feed.watchers.delete(onChange);
  if (feed.watchers.size === 0) feed.stop();
}

/** Feed keeps the newest answer of one address, or the reason why there is none. */
class Feed {
  document = null; // the envelope of the last good answer
  failure = null; // {code, message, status, error} since the last good answer
  checked = 0; // when the server last sent or confirmed the document, by this machine's clock
  nextAt = 0;
  watchers = new Set();
  #etag = null;
  #failures = 0;
  #timer = 0;
  #running = null;

  constructor(url) {
    this.url = url;
  }

  /** past says that the address names a date. Such an answer describes its date, not the present. */
  get past() {
    return /[?&]date=/.test(this.url);
  }

  stop() {
    feeds.delete(this.url);
    clearTimeout(this.#timer);
    this.#running?.abort();
  }

  /** look polls if nextAt has come. With now, it also polls at once after a failure. */
  look(now = false) {
    if (feeds.get(this.url) !== this || this.#running || document.hidden) return;
    if (now && this.failure) this.nextAt = 0;
    clearTimeout(this.#timer);
    if (Date.now() >= this.nextAt) this.#poll();
    else if (this.nextAt !== Infinity) this.#timer = setTimeout(() => this.look(), this.nextAt - Date.now());
  }

  /** again polls at once. */
  again() {
    this.nextAt = 0;
    this.look();
  }

  /** follows says that another answer of the same underlying is newer: the server refreshes all at once, and the page shows no two moments. */
  #follows({ document: d, past }) {
    return !past && !this.past && d.data?.symbol && this.document?.data.symbol === d.data.symbol && this.document.meta.as_of < d.meta.as_of;
  }

  async #poll() {
    const running = new AbortController();
    this.#running = running;
    let fresh = false;
    let wait;
    try {
      [fresh, wait] = await this.#ask(AbortSignal.any([running.signal, AbortSignal.timeout(timeout)]));
      const recovered = this.failure?.code === 'unreachable';
      this.failure = null;
      this.#failures = 0;
      this.checked = Date.now();
      if (recovered) for (const other of feeds.values()) other.look(true);
      if (fresh) for (const other of feeds.values()) if (other.#follows(this)) other.again();
    } catch (error) {
      if (running.signal.aborted) return;
      this.#failures++;
      this.failure = error instanceof Refusal ? error
        : error instanceof SyntaxError ? new Refusal('unreadable', 'the answer cannot be read')
          : new Refusal('unreachable', 'the server does not answer');
      const told = Math.min(this.failure.retryAfter ?? 0, this.failure.code === 'not_ready' ? slowestRetry : Infinity); // the documents may come soon
      wait = this.failure.final ? this.failure.again : Math.max(told, Math.min(slowestRetry, firstRetry * 2 ** (this.#failures - 1)));
    }
    this.#running = null;
    this.nextAt = wait > longest ? Infinity : Date.now() + jitter(wait);
    for (const onChange of [...this.watchers]) {
      try {
        onChange(this, fresh);
      } catch (error) { // the other watchers and the next attempt do not depend on this one
        reportError(error);
      }
    }
    this.look();
  }

  async #ask(signal) {
    const headers = this.#etag ? { 'If-None-Match': this.#etag } : {};
    // With another cache or credentials mode the browser would not use what index.html preloads.
    const response = await fetch(this.url, { headers, signal, cache: 'no-store' });
    const sent = Date.parse(response.headers.get('Date'));
    if (Number.isFinite(sent)) clockOffset = sent - Date.now();
    if (response.status === 304) return [false, freshFor(response)];
    const answer = await response.json();
    if (!response.ok || !answer.success) {
      const retry = Number(response.headers.get('Retry-After')) * 1000;
      throw new Refusal(answer.error?.code ?? `status ${response.status}`, answer.error?.message ?? 'no reason is given', retry, answer.error);
    }
    this.#etag = response.headers.get('ETag');
    this.document = answer;
    return [true, freshFor(response)];
  }
}

/** Refusal says why an attempt gave no document: the server sent an error, or no answer came. */
class Refusal extends Error {
  constructor(code, message, retryAfter, error) {
    super(message);
    const final = ['snapshot_not_found', 'invalid_parameter'].includes(code); // another attempt soon will not find it
    const again = code === 'snapshot_not_found' && !error?.nearest?.later ? slowestRetry : Infinity; // the newest date may come
    Object.assign(this, { code, retryAfter, error, final, again });
  }
}

/** freshFor returns how long an answer may still be used, in milliseconds: max-age less its age in a cache. */
function freshFor(response) {
  const maxAge = /max-age=(\d+)/.exec(response.headers.get('Cache-Control') ?? '');
  const left = (maxAge ? Number(maxAge[1]) : 30) - Number(response.headers.get('Age') ?? 0);
  return Math.max(left, 1) * 1000;
}

/** tryAgain asks for every address now. */
export function tryAgain() {
  for (const feed of feeds.values()) feed.again();
}

/**
 * beat asks whether the server answers at all, every few seconds, because an answer may last half a minute. When that changes,
 * every address is asked for at once, so that the page says it.
 */
let answers = true;
export async function beat() {
  if (document.hidden) return;
  const before = answers;
  answers = await fetch('/healthz', { cache: 'no-store', signal: AbortSignal.timeout(5e3) }).then(() => true, () => false);
  if (answers !== before) tryAgain();
}

document.addEventListener('visibilitychange', () => { for (const feed of feeds.values()) feed.look(); });
addEventListener('online', () => { for (const feed of feeds.values()) feed.look(true); });

// The market's clock. For real data it is the server's clock. A simulated market has its own clock, for which the newest
// computed_at is a lower bound. The clock of recorded documents stands still.

let anchor = null; // the newest computed_at, and when this page first saw it

/** observe updates the anchor from the meta of an answer. */
export function observe(meta) {
  const t = Date.parse(meta.computed_at);
  if (Number.isFinite(t) && (!anchor || t > anchor.market)) anchor = { market: t, seen: Date.now() };
}

/** marketNow returns the market's time, in milliseconds since 1970. */
export function marketNow(source) {
  if (source === 'replay' && anchor) return anchor.market;
  if (source === 'simulated' && anchor) return anchor.market + Date.now() - anchor.seen;
  return Date.now() + clockOffset;
}
