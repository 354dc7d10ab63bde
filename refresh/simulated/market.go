// Package simulated is a market that makes upstream documents: option chains, quotes, daily histories and futures settlement files, in the
// format of the real ones, so that everything runs without a network.
//
// A document is a function of the seed, the calendar and an instant. The market can therefore be asked for any past instant, in any order,
// and two markets with one seed agree. (Bytes are the same on one GOARCH; another may fuse multiplications.) Nothing is random: every
// number comes from a tree of hashes, at a path such as market/date or options/root/expiration/strike (noise.go).
//
// A chain is made in the order of the files clock (what the upstream shows at an instant), prices, instruments, listing (series and
// strikes), surface (volatilities and quotes), contracts (open interest and trades) and chain (the bytes).
//
// It has the indices SPX, NDX and RUT, the VIX with its ladder (VIX9D, VIX3M, VIX6M, VIX1Y, VVIX, SKEW), the funds SPY, QQQ and IWM, the 11
// sector funds and 6 stocks. All but the VIX and its ladder have options. The VIX is the VIX formula over the SPX surface.
//
// The simulated market is simpler than a real one: dividends and splits do not exist, American options are priced as European ones, strikes
// are listed around the trend of a price, a contract trades evenly over the session, an index stands still from 16:00 to 16:15 while its
// clock runs on and its options still trade, a settlement file has monthly futures of the VIX alone, and members of documents that no
// decoder reads are constant. Quotes move in the hours that the methods page has.
package simulated

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

// Config says which market is simulated, and its clock.
type Config struct {
	Seed     uint64
	Now      func() time.Time  // the simulated clock; needed by [Market.Fetch] alone
	Calendar *compute.Calendar // must not be nil
	// Gzip says that documents have gzip alone, as those of the real upstream: the 12 MB of a chain are never in memory at once.
	Gzip bool
	// Every says that a chain has only every nth strike. 0 means 1: all strikes.
	Every int
}

// Market is a simulated market. It implements [upstream.Source] and is safe for concurrent use. Documents depend on the seed, the calendar
// and the instant alone.
type Market struct {
	now         func() time.Time
	calendar    *compute.Calendar
	key         noise
	every       int32                  // see Config
	instruments map[string]*instrument // by symbol

	mu      sync.Mutex   // guards the fields below
	factors *factors     // grow with the latest instant that was asked for
	zip     *gzip.Writer // nil: documents are plain
}

// New returns a market.
func New(cfg Config) *Market {
	key := noise(cfg.Seed).named("strikecache")
	m := &Market{
		now: cfg.Now, calendar: cfg.Calendar, key: key, every: int32(max(cfg.Every, 1)), instruments: map[string]*instrument{},
		factors: newFactors(key.named("factors"), cfg.Calendar),
	}
	for i := range instruments {
		m.instruments[instruments[i].symbol] = &instruments[i]
	}
	if cfg.Gzip {
		m.zip, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // a known level
	}
	return m
}

// Offers implements [upstream.Source].
func (m *Market) Offers(name upstream.Name) bool {
	kind, key := name.Split()
	in := m.instruments[key]
	switch kind {
	case upstream.OptionsKind:
		return in != nil && in.chain != nil
	case upstream.QuotesKind, upstream.HistoryKind:
		return in != nil
	case upstream.SettlementKind:
		_, err := compute.ParseDate(key)
		return err == nil
	}
	return false
}

// Fetch implements [upstream.Source]. It returns the document of [Market.At] at the simulated time.
func (m *Market) Fetch(ctx context.Context, name upstream.Name, since *upstream.Document) (*upstream.Document, error) {
	if err := ctx.Err(); err != nil {
		return nil, &upstream.Error{Name: name, Reason: upstream.TimedOut, Err: err}
	}
	return m.at(name, m.now(), since)
}

// At returns the document that the upstream would have at an instant. Every error is an [*upstream.Error].
func (m *Market) At(name upstream.Name, at time.Time) (*upstream.Document, error) {
	return m.at(name, at, nil)
}

// at is At. It returns [upstream.ErrNotModified] if the document is since.
func (m *Market) at(name upstream.Name, at time.Time, since *upstream.Document) (*upstream.Document, error) {
	kind, key := name.Split()
	switch {
	case !m.Offers(name):
		return nil, &upstream.Error{Name: name, Reason: upstream.Refused, Err: errors.New("status 403")}
	case compute.DateOf(at.In(compute.NewYork)) <= epoch+7 || kind == upstream.SettlementKind && key <= epoch.String():
		return nil, &upstream.Error{Name: name, Reason: upstream.Missing, Err: fmt.Errorf("the simulated market begins on %s", epoch)}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f, in := m.frame(at), m.instruments[key]
	doc := &upstream.Document{Name: name, Received: at.UTC(), Generated: f.generated}
	var write func(io.Writer)
	switch kind {
	case upstream.OptionsKind, upstream.QuotesKind:
		write = func(w io.Writer) {
			path := m.factors.path(in, f.session)
			price := path.at(f.progress(f.asOf))
			fmt.Fprintf(w, `{"timestamp":"%s","data":{`, f.generated.Format(time.DateTime))
			if kind == upstream.OptionsKind {
				m.chain(w, in, &f, path, price)
			}
			m.writeUnderlying(w, in, &f, price)
		}
	case upstream.HistoryKind:
		last := m.morning(at, historyHour)
		doc.Generated = m.factors.dates[last].At(historyHour, 0, 0, compute.NewYork).UTC()
		write = func(w io.Writer) { m.history(w, in, last) }
	default:
		date := m.settlementDate(key, at)
		doc.Generated, doc.FileDate = earlier(settlementTime(date), at).UTC(), date.String()
		write = func(w io.Writer) { m.settlement(w, date) }
	}
	doc.LastModified = doc.Generated.Format(http.TimeFormat)
	doc.ETag = fmt.Sprintf(`"%x"`, doc.Generated.Unix()) // a document changes with the time at which it was made, and only then
	if since != nil && since.ETag == doc.ETag {
		return nil, upstream.ErrNotModified
	}
	var body bytes.Buffer
	if m.zip == nil {
		write(&body)
		doc.Body = body.Bytes()
		return doc, nil
	}
	m.zip.Reset(&body)
	write(m.zip)
	_ = m.zip.Close()                    // a buffer takes all
	doc.Gzip = bytes.Clone(body.Bytes()) // in memory of its size
	return doc, nil
}
