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
	plan       rowPlan
	lastTrades tradeClock

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
	u.CapturedAt, okCaptured = parseUTC(d.timestamp)
	u.AsOf, okAsOf = parseNewYork(d.lastTrade)
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

// rowPlan is the keys of a row as the first one wrote them. The upstream writes all rows alike, so a row's next
// key is recognised by one comparison; any other order or spelling is read all the same.
type rowPlan struct {
	keys   [][]byte // with quotes and colon
	fields []field
}

type field uint8

const (
	fieldOther field = iota
	fieldOption
	fieldBid
	fieldAsk
	fieldIV
	fieldOpenInterest
	fieldVolume
	fieldDelta
	fieldGamma
	fieldLast
	fieldLastTime
)

func fieldOf(key []byte) field {
	switch string(key) {
	case "option":
		return fieldOption
	case "bid":
		return fieldBid
	case "ask":
		return fieldAsk
	case "iv":
		return fieldIV
	case "open_interest":
		return fieldOpenInterest
	case "volume":
		return fieldVolume
	case "delta":
		return fieldDelta
	case "gamma":
		return fieldGamma
	case "last_trade_price":
		return fieldLast
	case "last_trade_time":
		return fieldLastTime
	}
	return fieldOther
}

// row takes one element of the options array. An element that is no object is a row without a symbol.
func (d *decoder) row() (ok bool) {
	nan := math.NaN()
	q := compute.Quote{Bid: nan, Ask: nan, Last: nan, OpenInterest: nan, Volume: nan, IV: nan, Gamma: nan, Delta: nan}
	if d.next() != '{' {
		d.rows.Add(nil, q)
		return d.skip(maxDepth)
	}
	d.pos++
	var symbol []byte
	learn := d.plan.keys == nil
	for i := 0; ; i++ {
		if i == 0 && d.take('}') {
			break
		}
		var f field
		if i < len(d.plan.keys) && bytes.HasPrefix(d.buf[d.pos:], d.plan.keys[i]) && !learn {
			d.pos += len(d.plan.keys[i])
			f = d.plan.fields[i]
		} else if f, ok = d.rowKey(learn); !ok {
			return false
		}
		if !d.rowValue(f, &q, &symbol) {
			return false
		}
		if d.take(',') {
			continue
		}
		if !d.take('}') {
			return false
		}
		break
	}
	d.rows.Add(symbol, q)
	return true
}

func (d *decoder) rowKey(learn bool) (field, bool) {
	d.skipSpace()
	start := d.pos
	key, ok := d.rawString()
	if !ok || !d.take(':') {
		return 0, false
	}
	f := fieldOf(key)
	if learn {
		d.plan.keys = append(d.plan.keys, d.buf[start:d.pos])
		d.plan.fields = append(d.plan.fields, f)
	}
	return f, true
}

func (d *decoder) rowValue(f field, q *compute.Quote, symbol *[]byte) (ok bool) {
	switch f {
	case fieldOption:
		*symbol, ok = d.str()
	case fieldBid:
		q.Bid, ok = d.float()
	case fieldAsk:
		q.Ask, ok = d.float()
	case fieldIV:
		q.IV, ok = d.float()
	case fieldOpenInterest:
		q.OpenInterest, ok = d.float()
	case fieldVolume:
		q.Volume, ok = d.float()
	case fieldDelta:
		q.Delta, ok = d.float()
	case fieldGamma:
		q.Gamma, ok = d.float()
	case fieldLast:
		q.Last, ok = d.float()
	case fieldLastTime:
		var raw []byte
		raw, ok = d.str()
		q.LastTrade = d.lastTrades.unix(raw)
	default:
		return d.skip(maxDepth)
	}
	return ok
}
