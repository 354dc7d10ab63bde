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

// faultyMarket is a simulated market whose documents can be made to fail. It is safe for concurrent use. Its chains have
// the first tenth of the rows: with whole chains, a test takes ten times as long.
type faultyMarket struct {
	*simulated.Market
	cfg simulated.Config

	mu     sync.Mutex
	asked  map[upstream.Name]int // requests since the test cleared it
	faults map[upstream.Name]fault
}

func newFaultyMarket(cfg simulated.Config) *faultyMarket {
	return &faultyMarket{Market: simulated.New(cfg), cfg: cfg, asked: map[upstream.Name]int{}, faults: map[upstream.Name]fault{}}
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

// Fail makes the fetches of a document fail from now on, in a way of [faults]. It replaces an earlier fault of the name. The name "" stands for
// all documents that have no fault of their own.
func (m *faultyMarket) Fail(name upstream.Name, how string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults[name] = faults[how]
}

func (m *faultyMarket) ClearFaults() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.faults)
}

// due counts a fetch, and returns its fault, or nil.
func (m *faultyMarket) due(name upstream.Name) fault {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[name]++
	if f := m.faults[name]; f != nil {
		return f
	}
	return m.faults[""]
}

func (m *faultyMarket) Fetch(ctx context.Context, name upstream.Name, since *upstream.Document) (*upstream.Document, error) {
	fails := m.due(name)
	if ctx.Err() != nil {
		return m.Market.Fetch(ctx, name, nil)
	}
	made, err := m.document(name, m.cfg.Now())
	if err != nil {
		return nil, err
	}
	doc := *made
	if fails != nil {
		doc.ETag = `"spoiled ` + doc.ETag[1:]
		if err := fails(m, &doc); err != nil {
			return nil, err
		}
	}
	if since != nil && since.ETag == doc.ETag {
		return nil, upstream.ErrNotModified
	}
	doc.Gzip = pack(doc.Body) // as the real upstream
	return &doc, nil
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

var bids = regexp.MustCompile(`"bid": ?[0-9.eE+-]+`)

// priceMembers are the members from which a reader takes the price of the underlying.
var priceMembers = regexp.MustCompile(`"(current_price|close)": ?[0-9.eE+-]+`)

// fault alters a document, or returns an error in its place. It does not change a document that it does not apply to, nor the bytes of one.
type fault func(*faultyMarket, *upstream.Document) error

// faults are the ways in which an upstream fails, by the words of the scripts, which explain them. The tests of package cboe have the faults of
// connections.
var faults = map[string]fault{
	"silent": func(_ *faultyMarket, d *upstream.Document) error {
		return &upstream.Error{Name: d.Name, Reason: upstream.TimedOut, Err: context.DeadlineExceeded}
	},
	"html":    withBody(func(*upstream.Document) []byte { return []byte(htmlPage) }),
	"empty":   withBody(func(d *upstream.Document) []byte { return keepRows(d, func(int) int { return 0 }) }),
	"tenth":   withBody(func(d *upstream.Document) []byte { return keepRows(d, func(rows int) int { return (rows + 9) / 10 }) }),
	"garbage": withBody(func(d *upstream.Document) []byte { return priceMembers.ReplaceAll(d.Body, []byte(`"$1":"n/a"`)) }),
	"absurd": withBody(func(d *upstream.Document) []byte {
		return priceMembers.ReplaceAll(d.Body, []byte(`"$1":1042857132428570400.0`))
	}),
	"unquoted":  withBody(func(d *upstream.Document) []byte { return bids.ReplaceAll(d.Body, []byte(`"bid":0.0`)) }),
	"backwards": withBody(func(d *upstream.Document) []byte { return shiftClock(d.Body, -time.Hour) }),
	"jump": withBody(func(d *upstream.Document) []byte {
		return priceMembers.ReplaceAllFunc(d.Body, func(member []byte) []byte {
			name, price, _ := bytes.Cut(member, []byte{':'})
			x, _ := strconv.ParseFloat(string(bytes.TrimSpace(price)), 64)
			return fmt.Appendf(nil, "%s:%.4f", name, 1.3*x)
		})
	}),
	"ahead": withBody(func(d *upstream.Document) []byte { return shiftClock(d.Body, 7*24*time.Hour) }),
	"older": func(m *faultyMarket, d *upstream.Document) error {
		_, key := d.Name.Split()
		date, err := compute.ParseDate(key)
		if err != nil {
			return nil
		}
		older, err := m.Market.At(upstream.Settlement(calendar.Previous(date).String()), m.cfg.Now())
		if err == nil {
			older.Name = d.Name
			*d = *older
		}
		return err
	},
}

// withBody is a fault that gives a document another body.
func withBody(of func(*upstream.Document) []byte) fault {
	return func(_ *faultyMarket, d *upstream.Document) error {
		d.Body = of(d)
		return nil
	}
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

// keepRows returns the body of a document with its first rows only, as many of them as keep says.
func keepRows(d *upstream.Document, keep func(rows int) int) []byte {
	body := d.Body
	kind, _ := d.Name.Split()
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
