// Package simulated is a market that makes upstream documents: option chains, quotes, daily histories and futures settlement files, in the
// format of the real ones, so that everything runs without a network.
//
// A document is a function of the seed, the calendar and an instant. The market can therefore be asked for any past instant, in any order,
// and two markets with one seed agree. (Bytes are the same on one GOARCH; another may fuse multiplications.) Nothing is random: every
// number comes from a tree of hashes, at a path such as market/date or options/root/expiration/strike.
//
// A chain is made in the order of the files market (what the upstream shows at an instant), prices, instruments (with their listed series
// and strikes), options (volatilities and quotes, open interest and trades) and documents (the bytes).
//
// It has the indices SPX, NDX and RUT, the VIX with its other volatility indices (VIX1D, VIX9D, VIX3M, VIX6M, VIX1Y, VVIX, SKEW, VXN, RVX), the funds SPY, QQQ and IWM, the 11
// sector funds and 6 stocks. All but the volatility indices have options. The VIX is the VIX formula over the SPX surface.
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
	"strings"
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
	key         noise
	every       int32                  // see Config
	instruments map[string]*instrument // by symbol

	mu      sync.Mutex   // guards the fields below
	factors              // grow with the latest instant that was asked for
	zip     *gzip.Writer // nil: documents are plain
}

// New returns a market.
func New(cfg Config) *Market {
	key := noise(cfg.Seed).named("strikecache")
	m := &Market{now: cfg.Now, key: key, every: int32(max(cfg.Every, 1)), instruments: map[string]*instrument{}, factors: factors{
		tree: key.named("factors"), calendar: cfg.Calendar, dates: []compute.Date{epoch}, closes: []point{{market: trend(epoch), vol: volMean}},
		own: map[*instrument][]float64{},
	}}
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
	if kind == upstream.SettlementKind {
		_, err := compute.ParseDate(key)
		return err == nil
	}
	in := m.instruments[key]
	return in != nil && (kind != upstream.OptionsKind || in.chain != nil)
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
	doc, in := &upstream.Document{Name: name, Received: at.UTC()}, m.instruments[key]
	var write func(io.Writer)
	switch kind {
	case upstream.SettlementKind:
		date := m.settlementDate(key, at)
		doc.Generated, doc.FileDate = compute.Earlier(settlementTime(date), at).UTC(), date.String()
		write = func(w io.Writer) { m.settlement(w, date) }
	case upstream.HistoryKind:
		last := m.morning(at, historyHour)
		doc.Generated = m.dates[last].At(historyHour, 0, 0, compute.NewYork).UTC()
		write = func(w io.Writer) { m.history(w, in, last) }
	default:
		f := m.frame(in, at)
		doc.Generated = f.generated
		write = func(w io.Writer) { f.document(w, kind == upstream.OptionsKind) }
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

const (
	beat      = 15 * time.Second // between two generations of a file
	beatPhase = 11 * time.Second // from the full minute to the first generation

	lag       = 15*time.Minute + 4*time.Second // from the instant of the quotes to the generation
	indexTail = 15*time.Minute - time.Second   // after the close, when an index is still published and its options trade

	// At chainHour, New York, a chain gets the listing and the open interest of the day; at historyHour a history gets its row.
	chainHour   = 7
	historyHour = 18
)

// nightShare is the part of a session's variance that accrues between the close before and the open. It is the same after a weekend,
// because variance accrues in trading time.
const nightShare = 0.2

// moment is an instant in the calendar and in trading time.
type moment struct {
	time     time.Time
	sessions float64 // trading time since the epoch: session i ends at i + 1
}

func (f *factors) opening(i int) moment {
	return moment{f.calendar.Open(f.dates[i]), float64(i) + nightShare}
}

func (f *factors) closing(i int) moment { return moment{f.calendar.Close(f.dates[i]), float64(i + 1)} }

// frame is one instant as the files of an instrument show it: when they were generated, and of which instant and session their data is.
type frame struct {
	*Market
	in        *instrument
	generated time.Time // UTC
	asOf      time.Time // the delayed instant, not past the end of the index's session
	session   int       // of asOf
	date      compute.Date
	open      time.Time
	close     time.Time
	listed    compute.Date // the session whose listing and open interest the files have
	path      *path        // of the session
	days      []day        // the session, the one before it, and so on, as far back as needed
}

// frame returns what the upstream says of an instrument at an instant.
func (m *Market) frame(in *instrument, at time.Time) *frame {
	f := &frame{Market: m, in: in, generated: at.UTC().Add(-beatPhase).Truncate(beat).Add(beatPhase)}
	delayed := f.generated.Add(-lag)
	f.session = m.index(compute.DateOf(delayed.In(compute.NewYork)))
	if delayed.Before(m.calendar.Open(m.dates[f.session])) {
		f.session--
	}
	f.date = m.dates[f.session]
	f.open, f.close = m.calendar.Open(f.date), m.calendar.Close(f.date)
	f.asOf = compute.Earlier(delayed, f.close.Add(indexTail))
	f.listed = m.dates[m.morning(f.generated, chainHour)]
	return f
}

// quoted returns the moment of the quotes of the options. They stand still outside the hours of [compute.Chain.QuoteInstant]. At night,
// trading time goes on evenly from the first hours after the session to the last before the next.
func (f *frame) quoted() moment {
	u := compute.UnderlyingOf(strings.TrimPrefix(f.in.symbol, "_"))
	head := compute.Chain{UnderlyingQuote: compute.UnderlyingQuote{Symbol: u.Symbol, AsOf: compute.Earlier(f.asOf, f.close), CapturedAt: f.generated}}
	q := head.QuoteInstant(f.calendar)
	if !q.After(f.close.Add(indexTail + time.Second)) {
		return f.moment(compute.Earlier(q, f.asOf))
	}
	d := f.date + 1
	start, _, night := u.Night(d, f.calendar)
	for ; !night; start, _, night = u.Night(d, f.calendar) {
		d++
	}
	_, end, _ := u.Night(f.calendar.Next(f.date), f.calendar)
	return moment{q, float64(f.session+1) + nightShare*float64(q.Sub(start))/float64(end.Sub(start))}
}

// morning returns today's session if the hour in New York has come, otherwise the session before.
func (f *factors) morning(now time.Time, hour int) int {
	today := compute.DateOf(now.In(compute.NewYork))
	i := f.index(today)
	if f.dates[i] == today && now.Before(today.At(hour, 0, 0, compute.NewYork)) {
		i--
	}
	return i
}

// progress returns the share of the session that has passed at an instant of it, 0 to 1.
func (f *frame) progress(at time.Time) float64 {
	return min(float64(at.Sub(f.open))/float64(f.close.Sub(f.open)), 1)
}

// moment returns the moment of an instant in the session or after it.
func (f *frame) moment(at time.Time) moment {
	return moment{at, float64(f.session) + nightShare + (1-nightShare)*f.progress(at)}
}
