package feed

import (
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
	// MaxAhead is how far ahead of the market's clock a document may be.
	MaxAhead = 10 * time.Minute
)

// guard compares each new chain or quote of one symbol, or history of a fund, with the accepted document of that name. It refuses a
// document that
//
//   - has an older timestamp, or is a history that ends earlier (clock_backwards),
//   - is a chain or a history with less than half of the readable rows (shrunk),
//   - has a price that differs by more than 20 % (price_jump),
//   - is a chain with less than a quarter of the usable quotes (quotes_missing),
//   - is a chain in which open interest is left to at most a tenth of the calls, or of the puts, that had some (open_interest_missing).
//
// If three refused documents in a row agree, the accepted document was wrong, and the guard lets the third one pass. Two documents
// agree when neither has less than half of the rows of the other, their prices differ by at most 20 %, and the later one does not
// have the older timestamp. A document that is fetched again does not count again, but a history does in each hour. A document
// that is refused for one of the last two counts only if it is newer than the refused one before.
type guard struct {
	refused mark // the last refused document
	agree   int  // how many refused documents in a row agree, the last one included
}

// mark is the part of a document that the guard compares.
type mark struct {
	captured time.Time // the document's timestamp, or the last date of a history
	sha256   string    // of the document; of a history, the hour in which it was received
	rows     int       // of a chain: listed and not skipped; of a history: usable
	price    float64   // of the underlying
	quotes   int       // of a chain: usable quotes with T > 0
	held     [2]int    // of a chain: contracts with T > 0 and open interest, by right
}

// maxHistoryAge is for how long a history that arrives again counts as the same one.
const maxHistoryAge = time.Hour

// markOf returns the mark of a decoded document.
func markOf(d *Document, cal *compute.Calendar) mark {
	m := mark{captured: d.captured(), sha256: d.SHA256, price: d.Underlying.Spot}
	switch {
	case d.Chain != nil:
		n := compute.Unsettled(d.Chain, cal)
		m.rows, m.quotes, m.held = d.Chain.Listed-d.Chain.Skipped.Total(), n.TwoSided, n.Held
	case d.Closes != nil:
		m.rows = len(d.Closes)
		m.sha256 = d.Received.Truncate(maxHistoryAge).String() // the same one counts again each hour: a history changes once a day
	}
	return m
}

// check compares a new document with the accepted document, which is nil before the first. It returns nil when the document
// passes, else a refusal.
func (g *guard) check(m mark, accepted *Document) error {
	if accepted == nil {
		return nil
	}
	why := m.against(accepted.mark)
	if why == nil {
		g.agree = 0
		return nil
	}
	again := m.captured.Equal(g.refused.captured) && (m.sha256 == g.refused.sha256 || why.Reason == upstream.QuotesMissing || why.Reason == upstream.OIMissing)
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
func (m mark) against(accepted mark) *upstream.Error {
	switch {
	case m.captured.Before(accepted.captured):
		return upstream.Refuse(upstream.Backwards, "timestamp %s is before %s of the accepted document",
			m.captured.Format(time.RFC3339), accepted.captured.Format(time.RFC3339))
	case halved(m.rows, accepted.rows):
		return upstream.Refuse(upstream.Shrunk, "%d readable rows, under half of the %d of the accepted document", m.rows, accepted.rows)
	case jumped(m.price, accepted.price):
		return upstream.Refuse(upstream.PriceJump, "price %v differs by over 20 %% from %v of the accepted document", m.price, accepted.price)
	case 4*m.quotes < accepted.quotes:
		return upstream.Refuse(upstream.QuotesMissing, "%d two-sided quotes, under a quarter of the %d of the accepted document", m.quotes, accepted.quotes)
	}
	for right, before := range accepted.held {
		if now := m.held[right]; before > 0 && 10*now <= before {
			return upstream.Refuse(upstream.OIMissing, "%d %ss with open interest, at most a tenth of the %d of the accepted document", now, compute.Right(right), before)
		}
	}
	return nil
}

func halved(rows, before int) bool { return 2*rows < before }

func jumped(price, before float64) bool {
	return price > 0 && before > 0 && math.Abs(price-before) > maxJump*before
}

// latest returns the latest time in the document, and the name of that time.
func (d *Document) latest(cal *compute.Calendar) (what string, at time.Time) {
	switch u := &d.Underlying; {
	case d.Settlement != nil:
		if at = cal.FuturesSettlement(d.Settlement.Date); d.Generated.After(at) {
			return "Last-Modified", d.Generated
		}
		return "settlement of", at
	case d.Closes != nil:
		return "close of", d.Closes[len(d.Closes)-1].Date.At(0, 0, 0, compute.NewYork)
	case u.AsOf.After(u.CapturedAt):
		return "last_trade_time", u.AsOf
	default:
		return "timestamp", u.CapturedAt
	}
}
