package feed

import (
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Intake decodes documents, and decides which ones are valid. It holds the documents that were accepted last. One goroutine
// at a time uses it.
type Intake struct {
	Clock    Clock
	Calendar *compute.Calendar
	Log      *slog.Logger

	guards   map[upstream.Name]*guard
	accepted map[upstream.Name]*Document // by [Document.Key]
}

// NewIntake returns an intake without documents.
func NewIntake(clock Clock, cal *compute.Calendar, log *slog.Logger) *Intake {
	return &Intake{clock, cal, log, map[upstream.Name]*guard{}, map[upstream.Name]*Document{}}
}

// guardOf returns the guard of a chain or of a document of a fund, nil for other documents.
func (i *Intake) guardOf(name upstream.Name) *guard {
	if kind, symbol := name.Split(); kind != upstream.OptionsKind && !slices.Contains(compute.FundSymbols(), symbol) {
		return nil
	}
	if i.guards[name] == nil {
		i.guards[name] = &guard{}
	}
	return i.guards[name]
}

// Document returns the document that was accepted last under a name, nil before the first. It may still have to be opened.
func (i *Intake) Document(name upstream.Name) *Document { return i.accepted[name] }

// Since returns the document with which the next request for a name compares, nil if the upstream must send it whole. A file of another name,
// as the settlements of an earlier date, has no validators.
func (i *Intake) Since(name upstream.Name) *upstream.Document {
	d := i.accepted[keyOf(name)]
	if d == nil || d.Failed || d.origin == nil {
		return nil
	}
	since := *d.origin
	if since.Name != name {
		since.ETag, since.LastModified = "", ""
	}
	return &since
}

// Take decodes a document that has arrived. The error says why it is not valid. Take refuses a chain that is too large, a document of the future, one that the guard
// refuses, a history whose dates are a day off, and a chain without a contract to compute with.
func (i *Intake) Take(doc *upstream.Document) (*Document, error) {
	d, err := New(doc)
	if err != nil {
		return nil, err
	}
	return d, i.validate(d)
}

func (i *Intake) validate(d *Document) error {
	if d.Chain != nil {
		if err := checkSize(d.Chain); err != nil {
			return err
		}
	}
	now := i.Clock.Now()
	if what, at := d.latest(i.Calendar); at.After(now.Add(MaxAhead)) {
		return upstream.Refuse(upstream.ClockAhead, "%s %s is ahead of the clock, which shows %s",
			what, at.UTC().Format(time.RFC3339), now.Format(time.RFC3339))
	}
	if g := i.guardOf(upstream.Name(d.Name)); g != nil {
		d.mark = markOf(d, i.Calendar)
		if !i.Clock.StandsStill() { // else each name has one document for ever
			if err := g.check(d.mark, i.measured(d.Key())); err != nil {
				return err
			}
		}
	}
	switch c := d.Chain; {
	case d.Closes != nil:
		if without, missing, is := compute.Misdated(d.Closes, i.Calendar); is {
			return upstream.Refuse(upstream.Malformed, "%d of the latest closes have a date without a session, and %d sessions have none: the dates are a day off", without, missing)
		}
	case c == nil:
	case len(c.Unread) > len(c.Contracts):
		return upstream.Refuse(upstream.OIMissing, "the open interest of %d of %d contracts cannot be read", len(c.Unread), len(c.Unread)+len(c.Contracts))
	case compute.Unsettled(c, i.Calendar).Contracts == 0:
		if why := compute.UnderlyingOf(c.Symbol).Unusable; why != "" {
			return upstream.Refuse(upstream.Empty, "%s cannot be an underlying: %s", c.Symbol, why)
		}
		left := struct {
			compute.Skipped
			Settled int `json:"settled"`
		}{c.Skipped, len(c.Contracts)}
		return upstream.Refuse(upstream.Empty, "no contract of the chain can be used: %s", Counts(left))
	}
	return nil
}

// measured returns the accepted document of a name with its mark: one that a stored answer names is opened for it. A document that
// cannot be opened is dropped.
func (i *Intake) measured(name upstream.Name) *Document {
	d := i.accepted[name]
	if d == nil || d.mark.sha256 != "" {
		return d
	}
	if err := d.Open(); err != nil {
		i.Log.Error("stored document not readable", "document", name, "err", err)
		delete(i.accepted, name)
		return nil
	}
	d.mark = markOf(d, i.Calendar)
	d.Release()
	return d
}

// Accept makes documents the accepted ones.
func (i *Intake) Accept(documents map[upstream.Name]*Document) {
	maps.Copy(i.accepted, documents)
}

// Adopt makes an input of a stored answer the accepted document of its name, unless one is known that arrived later. about says what the
// answer says of the underlying of a chain. load reads the bytes when they are needed.
func (i *Intake) Adopt(in snapshots.StoredInput, about compute.UnderlyingQuote, load func(sha256 string) ([]byte, error)) {
	d := Stored(in, load)
	if other := i.accepted[d.Key()]; d.Newest() && (other == nil || other.Received.Before(d.Received)) {
		d.Underlying = about
		i.accepted[d.Key()] = d
	}
}

const (
	// documentsToAgree is how many refused documents in a row must agree before the last of them is accepted.
	documentsToAgree = 3
	// maxJump is the largest change of a price between two documents, as a part of the price before.
	maxJump = 0.20
	// leastHeld is how many calls or puts of a root and expiration have open interest that is not gone by trades within a session.
	leastHeld = 5
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
//   - is a chain in which open interest is left to at most a tenth of the calls, or of the puts, that had some, of all or of a root and expiration
//     with at least leastHeld of them that has not settled, also where it has no row any more (open_interest_missing).
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
	captured time.Time                             // the document's timestamp, or the last date of a history
	sha256   string                                // of the document; of a history, the hour in which it was received
	rows     int                                   // of a chain: listed and not skipped; of a history: usable
	price    float64                               // of the underlying
	quotes   int                                   // of a chain: usable quotes with T > 0
	held     [2]int                                // of a chain: contracts with T > 0 and open interest, by right
	heldOf   map[compute.Series]compute.SeriesHeld // the same of each root and expiration
}

// maxHistoryAge is for how long a history that arrives again counts as the same one.
const maxHistoryAge = time.Hour

// markOf returns the mark of a decoded document.
func markOf(d *Document, cal *compute.Calendar) mark {
	m := mark{captured: d.captured(), sha256: d.SHA256, price: d.Underlying.Spot}
	switch {
	case d.Chain != nil:
		n := compute.Unsettled(d.Chain, cal)
		m.rows, m.quotes, m.held, m.heldOf = d.Chain.Listed-d.Chain.Skipped.Total(), n.TwoSided, n.Held, n.HeldOf
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
		if now := m.held[right]; vanished(now, before) {
			return upstream.Refuse(upstream.OIMissing, "%d %ss with open interest, at most a tenth of the %d of the accepted document", now, compute.Right(right), before)
		}
	}
	for series, had := range accepted.heldOf {
		now, listed := m.heldOf[series]
		if !listed && !m.captured.Before(had.Settles) {
			continue
		}
		for right, before := range had.Held {
			if before >= leastHeld && vanished(now.Held[right], before) {
				return upstream.Refuse(upstream.OIMissing, "%d %ss of %s %s with open interest, at most a tenth of the %d of the accepted document",
					now.Held[right], compute.Right(right), series.Root, series.Expiration, before)
			}
		}
	}
	return nil
}

func vanished(now, before int) bool { return before > 0 && 10*now <= before }

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
