// The market's clock. For real data it is the server's clock. A simulated market has its own clock, for which the
// newest computed_at is a lower bound. The clock of recorded documents stands still.

import { clockOffset } from './poll.js';

let anchor = null; // the newest computed_at, and when this page first saw it

/** observe updates the anchor from the meta of an answer. */
export function observe(meta) {
  const t = Date.parse(meta.computed_at);
  if (Number.isFinite(t) && (!anchor || t > anchor.market)) anchor = { market: t, seen: Date.now() };
}

/** marketNow returns the market's time, in milliseconds since 1970. */
export function marketNow(source) {
  if (source === 'cboe' || !anchor) return Date.now() + clockOffset;
  if (source === 'replay') return anchor.market;
  return anchor.market + Date.now() - anchor.seen;
}
