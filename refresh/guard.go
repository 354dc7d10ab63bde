package refresh

import (
	"errors"
	"fmt"
	"math"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

const (
	// documentsToAgree is how many refused documents in a row must agree before the last of them is accepted.
	documentsToAgree = 3
	// maxJump is the largest change of a price between two documents, as a part of the price before.
	maxJump = 0.20
	// maxAhead is how far ahead of the market's clock a document may be.
	maxAhead = 10 * time.Minute
	// maxExpirations and maxStrikeRows bound a chain that is served. A strike row is a root, an expiration and a strike. SPX
	// lists 55 expirations and 15,500 strike rows. A chain of 5,000 expirations took 62 seconds and 1.2 GB to compute.
	maxExpirations = 128
	maxStrikeRows  = 40_000
)

// guard compares each new chain or quote of one symbol with the accepted document of that symbol. It refuses a document
// that
//
//   - has an older timestamp (clock_backwards),
//   - is a chain with less than half of the readable rows (shrunk),
//   - has a price that differs by more than 20 % (price_jump),
//   - is a chain with less than a quarter of the two-sided quotes (quotes_missing).
//
// After a restart, the accepted document is the archived one of the stored answer. If three refused documents in a row
// agree, the accepted document was wrong, and the guard lets the third one pass. Two documents agree when neither has less
// than half of the rows of the other, their prices differ by at most 20 %, and the later one does not have the older
// timestamp. The same document fetched twice counts once. A document refused as quotes_missing counts only if it is newer
// than the refused one before.
//
// A document that passes is not yet accepted: a later step may fail. [Refresher.accept] decides. Only the job that fetches
// the symbol calls the guard.
type guard struct {
	refused mark // the last refused document
	agree   int  // how many refused documents in a row agree, the last one included
}

// mark is the part of a chain or a quote that the guard compares.
type mark struct {
	captured time.Time // the document's timestamp
	content  string    // digest of the document without its timestamps
	rows     int       // of a chain: listed and not skipped
	price    float64   // of the underlying
	quotes   int       // of a chain: two-sided quotes with T > 0
}

// check compares a new document with the accepted document, which is nil before the first. It returns nil when the document
// passes, else a refusal.
func (g *guard) check(m mark, accepted *document) error {
	if accepted == nil {
		return nil
	}
	why := m.against(accepted.mark)
	if why == nil {
		g.agree = 0
		return nil
	}
	again := m.captured.Equal(g.refused.captured) && (m.content == g.refused.content || why.reason == upstream.QuotesMissing)
	switch {
	case g.agree > 0 && again:
	case g.agree > 0 && !m.captured.Before(g.refused.captured) && !halved(m.rows, g.refused.rows) && !halved(g.refused.rows, m.rows) &&
		!jumped(m.price, g.refused.price):
		g.agree++
	default:
		g.agree = 1
	}
	g.refused = m
	if g.agree >= documentsToAgree {
		return nil
	}
	return why
}

// against returns why the document cannot follow an accepted one, or nil if it can.
func (m mark) against(accepted mark) *refusal {
	switch {
	case m.captured.Before(accepted.captured):
		return &refusal{upstream.Backwards, fmt.Errorf("timestamp %s is before %s of the accepted document",
			m.captured.Format(time.RFC3339), accepted.captured.Format(time.RFC3339))}
	case halved(m.rows, accepted.rows):
		return &refusal{upstream.Shrunk, fmt.Errorf("%d readable rows, under half of the %d of the accepted document", m.rows, accepted.rows)}
	case jumped(m.price, accepted.price):
		return &refusal{upstream.PriceJump, fmt.Errorf("price %v differs by over 20 %% from %v of the accepted document", m.price, accepted.price)}
	case 4*m.quotes < accepted.quotes:
		return &refusal{upstream.QuotesMissing, fmt.Errorf("%d two-sided quotes, under a quarter of the %d of the accepted document", m.quotes, accepted.quotes)}
	}
	return nil
}

func halved(rows, before int) bool { return 2*rows < before }

func jumped(price, before float64) bool {
	return price > 0 && before > 0 && math.Abs(price-before) > maxJump*before
}

// measure completes the mark of a decoded document.
func (r *Refresher) measure(d *document) {
	switch {
	case d.chain != nil:
		d.mark.price, d.mark.quotes = d.chain.Spot, compute.TwoSidedQuotes(d.chain, r.cal)
	case d.quote != nil:
		d.mark.price = d.quote.Spot
	}
}

// believe checks a decoded document before anything else sees it. It returns a refusal, or [upstream.ErrNotModified] for a
// document that repeats the accepted one.
func (r *Refresher) believe(d *document) error {
	name, now := upstream.Name(d.Name), r.cfg.Clock.Now()
	if what, at := d.latest(); at.After(now.Add(maxAhead)) {
		return &refusal{upstream.ClockAhead, fmt.Errorf("%s %s is ahead of the clock, which shows %s",
			what, at.UTC().Format(time.RFC3339), now.Format(time.RFC3339))}
	}
	g := r.guards[name]
	if g == nil {
		return nil // neither a chain nor the quote of a fund
	}
	r.measure(d)
	accepted := r.acceptedDocument(name)
	if !r.cfg.Clock.standsStill() { // when the clock stands still, each name has one document for ever
		if err := g.check(d.mark, accepted); err != nil {
			return err
		}
	}
	if accepted == nil || !r.repeats(d, accepted) {
		return nil
	}
	if d.chain != nil {
		d.standFor(accepted)
	}
	return r.notModified(d, accepted)
}

// repeats says whether a document has the content of the accepted one: they differ only in their own timestamps, and these
// change neither the date nor the state of the open interest.
func (r *Refresher) repeats(d, accepted *document) bool {
	date, state := compute.OpenInterestDate(d.captured, r.cal)
	before, stateBefore := compute.OpenInterestDate(accepted.captured, r.cal)
	return d.content == accepted.content && (d.chain == nil || date == before && state == stateBefore)
}

// notModified returns [upstream.ErrNotModified] for a document that repeats the accepted one. The next conditional request
// then names the new document. It returns nil, and the products are computed, if the accepted document comes from the
// archive or dates were filled in since: answers may change without a new document.
func (r *Refresher) notModified(d, accepted *document) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if accepted.origin == nil {
		return nil
	}
	accepted.origin, accepted.mark = d.origin, d.mark
	return upstream.ErrNotModified
}

// latest returns the latest time in the document, and the name of that time.
func (d *document) latest() (what string, at time.Time) {
	switch {
	case d.chain != nil:
		return latestOf(&d.chain.Underlying)
	case d.quote != nil:
		return latestOf(&d.quote.Underlying)
	case d.settlement != nil:
		if at = d.settlement.date.At(16, 0, 0, compute.NewYork); d.Generated.After(at) {
			return "Last-Modified", d.Generated
		}
		return "settlement of", at
	case len(d.closes) > 0:
		return "close of", d.closes[len(d.closes)-1].Date.At(0, 0, 0, compute.NewYork)
	}
	return "", time.Time{}
}

func latestOf(u *compute.Underlying) (what string, at time.Time) {
	if u.AsOf.After(u.CapturedAt) {
		return "last_trade_time", u.AsOf
	}
	return "timestamp", u.CapturedAt
}

// errTooMany is the error of a chain that has more expirations or strikes than are served.
var errTooMany = errors.New("chain is too large to serve")

// checkSize returns errTooMany for a chain beyond [maxExpirations] or [maxStrikeRows]. It takes one pass.
func checkSize(chain *compute.Chain) error {
	expirations, rows := map[compute.Date]bool{}, 0
	var last *compute.Contract
	for i := range chain.Contracts {
		c := &chain.Contracts[i]
		if last == nil || c.Expiration != last.Expiration || c.Root != last.Root {
			expirations[c.Expiration] = true
			rows++
		} else if c.Strike != last.Strike {
			rows++
		}
		last = c
	}
	if len(expirations) > maxExpirations || rows > maxStrikeRows {
		return fmt.Errorf("%w: %d expirations and %d strike rows, at most %d and %d are served",
			errTooMany, len(expirations), rows, maxExpirations, maxStrikeRows)
	}
	return nil
}
