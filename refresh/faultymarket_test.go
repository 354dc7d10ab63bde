package refresh_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"time"

	"strikecache/compute"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

// fault is a way in which an upstream fails.
type fault uint8

// The faults of documents. One that alters documents does not change a document that it does not apply to. The tests of package cboe have the faults
// of connections.
const (
	noFault              fault = iota
	faultStall                 // no answer until the context ends: TimedOut
	faultHTMLPage              // a page instead of the document
	faultEmptyOptions          // no rows: an empty options or data array, a settlement file of a header alone
	faultStaleSettlement       // the settlement file of the session before, whose FileDate says so
	faultBackwardClock         // a chain or quote with a top-level timestamp an hour older
	faultShrink                // the first tenth of the rows
	faultGarbagePrice          // a chain or quote whose underlying has garbage for prices
	faultAbsurdPrice           // the same, with a price that no market has
	faultClockAhead            // a chain or quote with a top-level timestamp a week ahead; a settlement file dated a week ahead
	faultPriceJump             // a chain or quote whose underlying has 1.3 times its price
	faultQuotesMissing         // a chain without bids
)

// faultyMarket is a simulated market whose documents can be made to fail. It is safe for concurrent use. Its chains have
// the first tenth of the rows: with whole chains, a test takes ten times as long.
type faultyMarket struct {
	*simulated.Market
	cfg simulated.Config

	mu     sync.Mutex
	asked  map[upstream.Name]int // requests since the test cleared it
	faults map[upstream.Name]*dueFault
}

// dueFault is a fault that was set for a name.
type dueFault struct {
	fault fault
	times int // how many fetches fail; negative: all
}

func newFaultyMarket(cfg simulated.Config) *faultyMarket {
	return &faultyMarket{Market: simulated.New(cfg), cfg: cfg, asked: map[upstream.Name]int{}, faults: map[upstream.Name]*dueFault{}}
}

// askedFor returns the number of requests for documents of a kind.
func (m *faultyMarket) askedFor(kind upstream.Kind) (n int) {
	for name, times := range m.asked {
		if k, _ := name.Split(); k == kind {
			n += times
		}
	}
	return n
}

// Fail makes the next fetches of a document fail: as many as times says, or all if it is negative. It replaces an
// earlier fault of the name. The name "" stands for all documents that have no fault of their own.
func (m *faultyMarket) Fail(name upstream.Name, f fault, times int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults[name] = &dueFault{f, times}
}

func (m *faultyMarket) ClearFaults() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.faults)
}

// due returns the fault of this fetch and counts it.
func (m *faultyMarket) due(name upstream.Name) fault {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[name]++
	f, own := m.faults[name]
	if !own {
		f = m.faults[""]
	}
	if f == nil || f.times == 0 {
		return noFault
	}
	f.times--
	return f.fault
}

func (m *faultyMarket) Fetch(ctx context.Context, name upstream.Name, since *upstream.Document) (*upstream.Document, error) {
	f := m.due(name)
	if ctx.Err() != nil {
		return m.Market.Fetch(ctx, name, nil)
	}
	doc, err := m.document(name, m.cfg.Now())
	if err != nil {
		return nil, err
	}
	if doc, err = m.spoil(ctx, doc, f); err != nil {
		return nil, err
	}
	if since != nil && since.ETag == doc.ETag {
		return nil, upstream.ErrNotModified
	}
	return asSent(doc), nil
}

// asSent returns a document as the real upstream sends it, with its gzip.
func asSent(doc *upstream.Document) *upstream.Document {
	sent := *doc
	sent.Gzip = pack(doc.Body)
	return &sent
}

func (m *faultyMarket) At(name upstream.Name, at time.Time) (*upstream.Document, error) {
	m.mu.Lock()
	m.asked[name]++
	m.mu.Unlock()
	return m.document(name, at)
}

// made is a chain or history that was made: nothing else decides its bytes.
type made struct {
	seed     uint64
	calendar *compute.Calendar
	name     upstream.Name
	version  string
	every    int
}

// known has a [upstream.Document] for each [made]: many tests ask for the same ones, and to make one takes longer than to refresh with
// it.
var known sync.Map

// document returns the document that the market has at an instant. Of a chain it has the first tenth of the rows. The body must not be changed.
func (m *faultyMarket) document(name upstream.Name, at time.Time) (*upstream.Document, error) {
	kind, symbol := name.Split()
	key := made{seed: m.cfg.Seed, calendar: m.cfg.Calendar, name: name, every: m.cfg.Every}
	switch kind {
	case upstream.OptionsKind:
		quote, err := m.Market.At(upstream.Quotes(symbol), at) // made at the same time as the chain
		if err != nil {
			return nil, err
		}
		key.version = quote.ETag
	case upstream.HistoryKind:
		key.version = at.Truncate(time.Hour).String() // a history changes at a full hour
	default:
		return m.Market.At(name, at)
	}
	if stored, ok := known.Load(key); ok {
		doc := stored.(upstream.Document)
		doc.Received = at.UTC()
		return &doc, nil
	}
	doc, err := m.Market.At(name, at)
	if err != nil {
		return nil, err
	}
	if kind == upstream.OptionsKind {
		doc = firstTenth(doc)
	}
	known.Store(key, *doc)
	return doc, nil
}

// firstTenth returns a chain with the first tenth of its rows.
func firstTenth(doc *upstream.Document) *upstream.Document {
	from, to, separator := rowsOf(doc.Body, upstream.OptionsKind)
	cut := from + (to-from)/10
	cut += bytes.Index(doc.Body[cut:to], []byte(separator)) + 1 // after a row
	few := *doc
	few.Body = append(bytes.Clone(doc.Body[:cut]), doc.Body[to:]...)
	return &few
}

const htmlPage = "<!DOCTYPE html>\n<html><head><title>Just a moment...</title></head>" +
	"<body>Checking your browser before accessing the site.</body></html>\n"

const week = 7 * 24 * time.Hour

var bids = regexp.MustCompile(`"bid": ?[0-9.eE+-]+`)

// priceMembers are the members from which a reader takes the price of the underlying.
var priceMembers = regexp.MustCompile(`"(current_price|close)": ?[0-9.eE+-]+`)

// spoil returns the document as a fault alters it.
func (m *faultyMarket) spoil(ctx context.Context, doc *upstream.Document, f fault) (*upstream.Document, error) {
	kind, key := doc.Name.Split()
	spoiled := *doc
	spoiled.ETag = `"spoiled ` + doc.ETag[1:]
	switch f {
	case faultStall:
		return nil, &upstream.Error{Name: doc.Name, Reason: upstream.TimedOut, Err: context.DeadlineExceeded}
	case faultHTMLPage:
		spoiled.Body = []byte(htmlPage)
	case faultEmptyOptions:
		spoiled.Body = keepRows(doc.Body, kind, func(int) int { return 0 })
	case faultShrink:
		spoiled.Body = keepRows(doc.Body, kind, func(rows int) int { return (rows + 9) / 10 })
	case faultGarbagePrice:
		spoiled.Body = priceMembers.ReplaceAll(doc.Body, []byte(`"$1":"n/a"`))
	case faultAbsurdPrice:
		spoiled.Body = priceMembers.ReplaceAll(doc.Body, []byte(`"$1":1042857132428570400.0`))
	case faultBackwardClock:
		spoiled.Body = shiftClock(doc.Body, -time.Hour)
	case faultClockAhead:
		spoiled.Body = shiftClock(doc.Body, week)
		if date, err := time.Parse(time.DateOnly, doc.FileDate); err == nil {
			spoiled.FileDate = date.Add(week).Format(time.DateOnly)
		}
	case faultPriceJump:
		spoiled.Body = priceMembers.ReplaceAllFunc(doc.Body, func(member []byte) []byte {
			name, price, _ := bytes.Cut(member, []byte{':'})
			x, _ := strconv.ParseFloat(string(bytes.TrimSpace(price)), 64)
			return fmt.Appendf(nil, "%s:%.4f", name, 1.3*x)
		})
	case faultQuotesMissing:
		spoiled.Body = bids.ReplaceAll(doc.Body, []byte(`"bid":0.0`))
	case faultStaleSettlement:
		date, err := compute.ParseDate(key)
		if err != nil {
			return doc, nil
		}
		stale, err := m.Market.Fetch(ctx, upstream.Settlement(calendar.Previous(date).String()), nil)
		if err == nil {
			stale.Name = doc.Name
		}
		return stale, err
	default:
		return doc, nil
	}
	return &spoiled, nil
}

// rowsOf returns the range of a body that holds its rows, and the separator of the rows: the elements of the options
// or data array, the lines after a header. A quote has none.
func rowsOf(body []byte, kind upstream.Kind) (from, to int, separator string) {
	array := `"options":[`
	switch kind {
	case upstream.SettlementKind:
		return bytes.Index(body, []byte("\r\n")) + 2, len(body), "\r\n"
	case upstream.HistoryKind:
		array = `"data":[`
	}
	at := bytes.Index(body, []byte(array))
	if at < 0 {
		return 0, len(body), ""
	}
	from = at + len(array)
	return from, from + bytes.IndexByte(body[from:], ']'), "},"
}

// keepRows returns a body with its first rows only, as many of them as keep says.
func keepRows(body []byte, kind upstream.Kind, keep func(rows int) int) []byte {
	from, to, separator := rowsOf(body, kind)
	if separator == "" {
		return body
	}
	rows := bytes.SplitAfter(body[from:to], []byte(separator))
	kept := bytes.TrimSuffix(bytes.Join(rows[:keep(len(rows))], nil), []byte(","))
	return bytes.Join([][]byte{body[:from], kept, body[to:]}, nil)
}

// shiftClock returns a body whose timestamp is later by d. Without a timestamp, it returns body.
func shiftClock(body []byte, d time.Duration) []byte {
	const member = `"timestamp":"`
	at := bytes.Index(body, []byte(member)) + len(member)
	if at < len(member) {
		return body
	}
	out := bytes.Clone(body)
	t, err := time.Parse(time.DateTime, string(body[at:at+len(time.DateTime)]))
	if err != nil {
		return body
	}
	t.Add(d).AppendFormat(out[:at], time.DateTime)
	return out
}

func pack(body []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	_, _ = z.Write(body) // writing to a buffer does not fail
	_ = z.Close()
	return b.Bytes()
}
