package cboe

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"strikecache/compute"
)

// Digest is a SHA-256.
type Digest [sha256.Size]byte

// Quote is a decoded quote document, or the head of a chain document.
type Quote struct {
	compute.Underlying
	// Content is the digest of the document without its two clocks, the top-level timestamp and data.seqno,
	// which advance while nothing else does: two documents with equal Content say the same.
	Content Digest
}

// Errors of documents that are well-formed but cannot be used.
var (
	ErrHTML      = errors.New("document is HTML, not JSON")
	ErrNoClock   = errors.New("document has no usable timestamp")
	ErrMalformed = errors.New("document is malformed")
)

// DecodeQuote decodes a quote document. It keeps no reference to body.
func DecodeQuote(body []byte) (*Quote, error) {
	d := decoder{scanner: scanner{buf: body}}
	q, err := d.document()
	if err != nil {
		return nil, fmt.Errorf("decode quote: %w", err)
	}
	return q, nil
}

// DecodeChain decodes an option chain document, in any order of keys, and validates its rows. It keeps no
// reference to body. An empty chain is [compute.ErrEmptyChain].
func DecodeChain(body []byte) (*compute.Chain, Digest, error) {
	rows := &compute.ChainBuilder{}
	rows.Grow(len(body) / 390) // bytes a row on the wire
	d := decoder{scanner: scanner{buf: body}, rows: rows}
	q, err := d.document()
	if err != nil {
		return nil, Digest{}, fmt.Errorf("decode chain: %w", err)
	}
	chain, err := rows.Build(q.Underlying)
	if err != nil {
		return nil, Digest{}, fmt.Errorf("decode chain: %w", err)
	}
	return chain, q.Content, nil
}

// decoder reads one document of the shape {"timestamp", "data": {…, "options": […]}, "symbol"}.
type decoder struct {
	scanner
	rows       *compute.ChainBuilder // nil for a quote, whose options are ignored
	lastTrades tradeClock

	symbolRaw []byte        // of the row under way
	quote     compute.Quote // of that row

	timestamp, symbol          []byte // top level
	dataSymbol, lastTrade      []byte
	current, closed, changePct float64
	clocks                     [][2]int // byte ranges of timestamp and seqno
	seenData, seenOptions      bool
}

func (d *decoder) document() (*Quote, error) {
	d.current, d.closed, d.changePct = math.NaN(), math.NaN(), math.NaN()
	if d.next() == '<' {
		return nil, ErrHTML
	}
	if !d.object(maxDepth, d.topMember) || d.next() != 0 || d.pos < len(d.buf) {
		return nil, fmt.Errorf("%w near byte %d of %d", ErrMalformed, d.pos, len(d.buf))
	}
	u := compute.Underlying{Symbol: d.symbolName(), Spot: d.current, PriceChangePercent: d.changePct}
	if !(u.Spot > 0) {
		u.Spot = d.closed
	}
	if !(u.Spot > 0) || math.IsInf(u.Spot, 1) {
		return nil, compute.ErrNoSpot
	}
	var okCaptured, okAsOf bool
	u.CapturedAt, okCaptured = parseClock(d.timestamp, time.UTC)
	u.AsOf, okAsOf = parseClock(d.lastTrade, compute.NewYork)
	if !okCaptured || !okAsOf {
		return nil, ErrNoClock
	}
	return &Quote{Underlying: u, Content: d.content()}, nil
}

// symbolName returns the symbol without the prefix of indices: ^SPX and _SPX are SPX.
func (d *decoder) symbolName() string {
	name := text(d.dataSymbol)
	if name == "" {
		name = text(d.symbol)
	}
	return strings.TrimLeft(name, "^_")
}

func (d *decoder) topMember(key []byte) (ok bool) {
	switch string(key) {
	case "timestamp":
		return d.clock(&d.timestamp)
	case "symbol":
		d.symbol, ok = d.str()
		return ok
	case "data":
		if d.seenData || d.next() != '{' {
			return false
		}
		d.seenData = true
		return d.object(maxDepth, d.dataMember)
	}
	return d.skip(maxDepth)
}

func (d *decoder) dataMember(key []byte) (ok bool) {
	switch string(key) {
	case "options":
		if d.rows == nil || d.next() != '[' {
			return d.skip(maxDepth)
		}
		if d.seenOptions {
			return false
		}
		d.seenOptions = true
		return d.array(maxDepth, d.row)
	case "symbol":
		d.dataSymbol, ok = d.str()
	case "current_price":
		d.current, ok = d.float()
	case "close":
		d.closed, ok = d.float()
	case "price_change_percent":
		d.changePct, ok = d.float()
	case "last_trade_time":
		d.lastTrade, ok = d.str()
	case "seqno":
		var ignored []byte
		return d.clock(&ignored)
	default:
		return d.skip(maxDepth)
	}
	return ok
}

// clock takes the value of a clock and remembers where it stands.
func (d *decoder) clock(raw *[]byte) (ok bool) {
	d.skipSpace()
	start := d.pos
	*raw, ok = d.str()
	d.clocks = append(d.clocks, [2]int{start, d.pos})
	return ok
}

// content digests the document without its clocks.
func (d *decoder) content() (sum Digest) {
	slices.SortFunc(d.clocks, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
	h := sha256.New()
	at := 0
	for _, c := range d.clocks {
		h.Write(d.buf[at:c[0]])
		at = c[1]
	}
	h.Write(d.buf[at:])
	h.Sum(sum[:0])
	return sum
}

// row takes one element of the options array. An element that is no object is a row without a symbol.
func (d *decoder) row() bool {
	nan := math.NaN()
	d.symbolRaw, d.quote = nil, compute.Quote{Bid: nan, Ask: nan, Last: nan, OpenInterest: nan, Volume: nan, IV: nan, Gamma: nan, Delta: nan}
	ok := false
	if d.next() == '{' {
		ok = d.object(maxDepth, d.rowMember)
	} else {
		ok = d.skip(maxDepth)
	}
	d.rows.Add(d.symbolRaw, d.quote)
	return ok
}

func (d *decoder) rowMember(key []byte) (ok bool) {
	q := &d.quote
	switch string(key) {
	case "option":
		d.symbolRaw, ok = d.str()
	case "bid":
		q.Bid, ok = d.float()
	case "ask":
		q.Ask, ok = d.float()
	case "iv":
		q.IV, ok = d.float()
	case "open_interest":
		q.OpenInterest, ok = d.float()
	case "volume":
		q.Volume, ok = d.float()
	case "delta":
		q.Delta, ok = d.float()
	case "gamma":
		q.Gamma, ok = d.float()
	case "last_trade_price":
		q.Last, ok = d.float()
	case "last_trade_time":
		var raw []byte
		raw, ok = d.str()
		q.LastTrade = d.lastTrades.unix(raw)
	default:
		return d.skip(maxDepth)
	}
	return ok
}

// parseClock parses YYYY-MM-DD, a space or a T, and HH:MM:SS, a fraction of a second allowed and dropped.
func parseClock(raw []byte, loc *time.Location) (time.Time, bool) {
	date, seconds, ok := splitClock(raw)
	if !ok {
		return time.Time{}, false
	}
	d, err := compute.ParseDate(string(date))
	return d.At(seconds/3600, seconds/60%60, seconds%60, loc).UTC(), err == nil
}

// splitClock returns the date of a clock and the second of its day.
func splitClock(raw []byte) (date []byte, seconds int, ok bool) {
	if len(raw) < 19 || raw[10] != ' ' && raw[10] != 'T' || raw[13] != ':' || raw[16] != ':' || len(raw) > 19 && raw[19] != '.' {
		return nil, 0, false
	}
	h, m, s := twoDigits(raw[11:]), twoDigits(raw[14:]), twoDigits(raw[17:])
	if len(bytes.TrimLeft(raw[19:], ".0123456789")) > 0 {
		return nil, 0, false
	}
	return raw[:10], h*3600 + m*60 + s, h < 24 && m < 60 && s < 60
}

// twoDigits returns the number that two digits say, and a large one for other bytes.
func twoDigits(b []byte) int {
	if !isDigit(b[0]) || !isDigit(b[1]) {
		return 100
	}
	return int(b[0]-'0')*10 + int(b[1]-'0')
}

// tradeClock converts the last trade times of a chain to Unix seconds. Thousands of rows share a few hundred dates, so
// it remembers the midnight of each date on which the clocks do not change.
type tradeClock map[string]int64

// unix returns the Unix seconds of a New York time, 0 for one that is absent or malformed.
func (c *tradeClock) unix(raw []byte) int64 {
	date, seconds, ok := splitClock(raw)
	if !ok {
		return 0
	}
	if midnight, ok := (*c)[string(date)]; ok {
		return midnight + int64(seconds)
	}
	t, ok := parseClock(raw, compute.NewYork)
	if !ok {
		return 0
	}
	d, _ := compute.ParseDate(string(date)) // parseClock parsed it
	midnight := d.At(0, 0, 0, compute.NewYork).Unix()
	if (d+1).At(0, 0, 0, compute.NewYork).Unix()-midnight == 24*3600 && len(*c) < 4096 {
		if *c == nil {
			*c = tradeClock{}
		}
		(*c)[string(date)] = midnight
	}
	return t.Unix()
}
