// Package simulated is a market that makes upstream documents: option chains, quotes, daily histories and futures settlement files, in the
// format of the real ones, so that everything runs without a network.
//
// A document is a function of the seed, the calendar and an instant. The market can therefore be asked for any past instant, in any order,
// and two markets with one seed agree. (Bytes are the same on one GOARCH; another may fuse multiplications.) Nothing is random: every
// number comes from a tree of hashes, at a path such as market/date or options/root/expiration/strike (noise.go).
//
// The path of one chain document, with the file that each step is in:
//
//  1. clock.go: the instant becomes a frame. It says when the file was generated (every 15 seconds), which instant its quotes describe
//     (15 minutes before, not past the end of the session), and which session's listing and open interest are valid then.
//  2. prices.go: the daily closes of the factors: the market, which returns to a trend, its volatility (the VIX), which returns to a mean
//     and jumps at times, and what each instrument adds. A Brownian bridge joins two closes, so a path ends at the official close.
//  3. instruments.go: the price of an instrument, from the market, its beta and its own path; and the rules by which its options are listed.
//  4. listing.go: the series and strikes of a date, from the roles that an expiration can play and the bands of strikes.
//  5. surface.go: the volatility surface at the instant, theoretical values, delta, gamma, bid and ask.
//  6. contracts.go: open interest, and the session's trades so far, with unusual trading in a few contracts.
//  7. chain.go: the bytes of the rows.
//
// The simulated market is simpler than a real one: dividends and splits do not exist, American options are priced as
// European ones, strikes are listed around the trend of a price, a contract trades evenly over the session, the SPX stands
// still from 16:00 to 16:15 while its clock runs on, only quotes of SPX options move at night, and members of documents
// that no decoder reads are constant.
package simulated

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
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
	// OneReader says that one caller alone fetches documents, and nearly always names the one that it has. The market then
	// keeps no documents, whose bodies have 54 MB, and makes a document that is asked for again anew. A document has gzip
	// alone, as one of the upstream: the 12 MB of a chain are never in memory at once.
	OneReader bool
}

// Market is a simulated market. It implements [upstream.Source] and is safe for concurrent use. Documents depend on the seed, the calendar
// and the instant alone. What the market keeps in memory only makes it faster.
type Market struct {
	now         func() time.Time
	calendar    *compute.Calendar
	key         noise
	oneReader   bool
	instruments map[string]*instrument // by symbol

	mu      sync.Mutex // guards the fields below
	factors *factors
	built   map[upstream.Name]*upstream.Document // the last document of each name
	zip     *gzip.Writer
	packed  bytes.Buffer // what zip writes to
}

// New returns a market.
func New(cfg Config) *Market {
	key, all := noise(cfg.Seed).named("strikecache"), newInstruments()
	m := &Market{
		now: cfg.Now, calendar: cfg.Calendar, key: key, oneReader: cfg.OneReader, instruments: map[string]*instrument{},
		factors: newFactors(key.named("factors"), cfg.Calendar, all), built: map[upstream.Name]*upstream.Document{},
	}
	for _, in := range all {
		m.instruments[in.symbol] = in
	}
	m.zip, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // a known level
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
	doc, err := m.at(name, m.now(), since)
	if err == nil && since != nil && since.ETag == doc.ETag {
		return nil, upstream.ErrNotModified
	}
	return doc, err
}

// At returns the document that the upstream would have at an instant. It shares the body, if there is one, with other callers. Every error is an
// [*upstream.Error].
func (m *Market) At(name upstream.Name, at time.Time) (*upstream.Document, error) {
	return m.at(name, at, nil)
}

// at is At. If the document is the one that the caller has, it may have neither body nor gzip.
func (m *Market) at(name upstream.Name, at time.Time, has *upstream.Document) (*upstream.Document, error) {
	if !m.Offers(name) {
		return nil, &upstream.Error{Name: name, Reason: upstream.Refused, Err: errors.New("status 403")}
	}
	if compute.DateOf(at.In(compute.NewYork)) <= epoch+7 {
		err := fmt.Errorf("the simulated market begins on %s", epoch)
		return nil, &upstream.Error{Name: name, Reason: upstream.Missing, Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.frame(at)
	kind, key := name.Split()
	in := m.instruments[key]
	switch kind {
	case upstream.OptionsKind:
		return m.cached(name, at, f.generated, has, func(w io.Writer) { m.chain(w, in, &f) }), nil
	case upstream.QuotesKind:
		return m.cached(name, at, f.generated, has, func(w io.Writer) { put(w, m.quote(in, &f)) }), nil
	case upstream.HistoryKind:
		last := m.morning(at, historyHour)
		published := m.factors.dates[last].At(historyHour, 0, 0, compute.NewYork)
		return m.cached(name, at, published, has, func(w io.Writer) { put(w, m.history(in, last)) }), nil
	}
	return m.settlement(name, key, at)
}

// cached returns the document of a name that was generated at an instant: the last document, or a new one with the bytes that
// write writes.
func (m *Market) cached(name upstream.Name, at, generated time.Time, has *upstream.Document, write func(io.Writer)) *upstream.Document {
	last := m.built[name]
	if last == nil || !last.Generated.Equal(generated) || last.Body == nil && (has == nil || has.ETag != last.ETag) {
		last = m.document(name, generated, write)
		m.built[name] = last
	}
	doc := *last
	doc.Received = at.UTC()
	last.Gzip = nil
	return &doc
}

// document returns a document with the bytes that write writes, and its validators: the time, and the length and CRC-32C of
// the bytes, which the processor computes at memory speed. For one reader, the document has gzip alone.
func (m *Market) document(name upstream.Name, generated time.Time, write func(io.Writer)) *upstream.Document {
	generated = generated.UTC()
	doc := &upstream.Document{Name: name, Generated: generated, LastModified: generated.Format(http.TimeFormat)}
	sum := &summed{}
	if m.oneReader {
		m.packed.Reset()
		m.zip.Reset(&m.packed)
		sum.to = m.zip
		write(sum)
		_ = m.zip.Close() // a buffer takes all
		doc.Gzip = bytes.Clone(m.packed.Bytes())
	} else {
		var body bytes.Buffer
		sum.to = &body
		write(sum)
		doc.Body = body.Bytes()
	}
	doc.ETag = fmt.Sprintf(`"%x-%x"`, sum.n, sum.crc)
	return doc
}

// summed passes what is written on, with its length and its CRC-32C.
type summed struct {
	to  io.Writer
	n   int
	crc uint32
}

func (s *summed) Write(b []byte) (int, error) {
	s.n, s.crc = s.n+len(b), crc32.Update(s.crc, castagnoli, b)
	return s.to.Write(b)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// put writes to a document, which takes all.
func put(w io.Writer, b []byte) { _, _ = w.Write(b) }
