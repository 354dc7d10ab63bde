// Package cboe fetches and decodes the delayed documents of Cboe. Its decoders serve every source, because simulated and
// replayed documents have the same formats.
//
// The documents, as recorded in August to October 2026:
//
// Option chains, options/_SPX.json, and quotes, quotes/XLK.json. Indices have a leading underscore, funds and stocks
// none. SPXW has no file of its own: its rows are in _SPX.json.
//
//		{"timestamp": "2026-08-11 20:36:41", "data": {"options": [rows], "symbol": "^SPX", head}, "symbol": "_SPX"}
//
//	  - An SPX chain has about 30,000 rows, 12 to 14 MB, 1.7 MB as gzip. The head comes after the rows. A quote has no options.
//	  - timestamp is when the file was made: UTC, without a zone. It advances after the close while nothing else changes.
//	  - data.last_trade_time is the time of the data: New York time, without a zone, 15 minutes late in the session, and
//	    16:14:59 after the close of an index. data.seqno advances without a new price. Because seqno and timestamp change
//	    without new data, [Quote.Content] leaves out both.
//	  - If data.current_price is null or 0, close is used. In the evening prev_day_close becomes the close of the same day,
//	    so it is not read. price_change_percent still describes the session then.
//	  - A row's option is the root, YYMMDD, C or P, and the strike in thousandths with 8 digits. Every number is a float, even
//	    open_interest and volume: 2960.0. iv is a decimal with 4 digits, 0 where it could not be inverted, and absurd in
//	    some expired or deep rows. last_trade_time is New York time, or null for a contract that never traded.
//	  - Root SPX settles at the open, SPXW at the close; five dates have both. Contracts whose root ends in a digit deliver
//	    something else. Their rows are counted and left out, as are rows with an unknown root or a bad symbol, a second row
//	    of one contract, and rows without a usable open interest. A number that cannot be read is NaN; the others are used.
//	  - open_interest is that of the close before; it changes in the morning. Expired rows stay until the next morning, those
//	    of Friday over the weekend. Their numbers mean nothing.
//
// Daily histories, charts/historical/XLK.json: {"symbol", "data": [{"date", "open", "high", "low", "close", "volume"}]},
// oldest first. Values are numbers or strings; rows from before a listing have 0. See [DecodeHistory].
//
// Settlements of VIX futures, a CSV of Product,Symbol,Expiration Date,Price that also has other products. Weekly futures
// that did not trade have the price of the front month. For a day that is not published yet, the upstream sends a header
// alone, or an earlier day's file, which only the file name in Content-Disposition shows. See [DecodeSettlement].
//
// How the upstream behaves: files are made about once a minute. The CDN redirects to another host with 307. A 403 means an
// unknown symbol, or a brief refusal: the same request succeeds seconds later. More than 45 requests a minute are refused
// with 429 (420 from some networks), and further requests prolong this. A 200 may be an HTML page. See [Client].
package cboe

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"strikecache/compute"
)

// Quote is a decoded quote document, or the head of a chain document.
type Quote struct {
	compute.Underlying
	// Content is the 64-bit xxHash, in hex, of the document without its two clocks, timestamp and data.seqno, which advance
	// without new data. Two documents of one name with equal Content have the same data. It guards against no forger.
	Content string
	// BadNumbers is how many of its numbers count as absent because they are outside the range of their kind.
	BadNumbers int
}

// ErrNoClock is the error of a well-formed document that does not say its time.
var ErrNoClock = errors.New("document has no usable timestamp")

// DecodeQuote decodes a quote document. It keeps no reference to body.
func DecodeQuote(body []byte) (*Quote, error) {
	d := decoder{scanner: scanner{buf: body}}
	q, err := d.document()
	if err != nil {
		return nil, fmt.Errorf("decode quote: %w", err)
	}
	return q, nil
}

// DecodeChain decodes an option chain document, in any order of keys, and validates its rows. It keeps no reference to body.
// content is as in [Quote]. The error of a chain without rows is [compute.ErrEmptyChain].
func DecodeChain(body []byte) (chain *compute.Chain, content string, err error) {
	return decodeChain(scanner{buf: body}, len(body))
}

// readWindow is how many bytes of a document [ReadChain] has in memory. maxRow is how many bytes a row may have for it.
const (
	readWindow = 512 << 10
	maxRow     = 64 << 10
)

// ReadChain is [DecodeChain] for a document of about size bytes that is read while it is decoded. After a success, it has read
// all. It fails also on some documents that DecodeChain accepts: those with a row of over 64 KB, or 64 KB without a row. Its
// error then means nothing.
func ReadChain(from io.Reader, size int) (chain *compute.Chain, content string, err error) {
	return decodeChain(scanner{from: from, buf: make([]byte, 0, readWindow)}, size)
}

func decodeChain(s scanner, size int) (chain *compute.Chain, content string, err error) {
	rows := &compute.ChainBuilder{}
	rows.Grow(size / 390) // bytes of a row
	d := decoder{scanner: s, rows: rows}
	d.fill()
	q, err := d.document()
	if err != nil {
		return nil, "", fmt.Errorf("decode chain: %w", err)
	}
	if chain, err = rows.Build(q.Underlying); err != nil {
		return nil, "", fmt.Errorf("decode chain: %w", err)
	}
	chain.BadNumbers += q.BadNumbers
	return chain, q.Content, nil
}

// decoder reads one document of the shape {"timestamp", "data": {…, "options": […]}, "symbol"}.
type decoder struct {
	scanner
	rows *compute.ChainBuilder // nil for a quote, whose options are ignored

	symbolRaw []byte        // of the current row
	quote     compute.Quote // of the current row
	layout    []rowKey      // the keys of the row before
	content   xxhash.Digest // as in [Quote], of the document before digested
	digested  int
	broken    bool      // the document could not be read to its end; from stays set, so that it is refused
	days      tradeDays // of the trades that were read

	timestamp, symbol          []byte // top level
	dataSymbol, lastTrade      []byte
	current, closed, changePct float64
	seenData, seenOptions      bool
}

func (d *decoder) document() (*Quote, error) {
	d.current, d.closed, d.changePct = math.NaN(), math.NaN(), math.NaN()
	d.content.Reset()
	if err := d.whole(d.topMember); err != nil {
		return nil, err
	}
	d.digest()
	u, bad := compute.Underlying{Symbol: d.symbolName()}, 0
	price := PriceKind(u.Symbol)
	usable := func(kind compute.NumberKind, x float64) float64 {
		y := kind.Usable(x)
		if math.IsNaN(y) && !math.IsNaN(x) && x != 0 { // 0 stands for an absent price
			bad++
		}
		return y
	}
	closed := usable(price, d.closed)
	u.Spot, u.PriceChangePercent = usable(price, d.current), usable(compute.Percentage, d.changePct)
	if math.IsNaN(u.Spot) {
		u.Spot = closed
	}
	if math.IsNaN(u.Spot) {
		return nil, compute.ErrNoSpot
	}
	var okCaptured, okAsOf bool
	u.CapturedAt, okCaptured = parseClock(d.timestamp, time.UTC)
	u.AsOf, okAsOf = parseClock(d.lastTrade, compute.NewYork)
	if !okCaptured || !okAsOf {
		return nil, ErrNoClock
	}
	return &Quote{Underlying: u, Content: hex.EncodeToString(d.content.Sum(nil)), BadNumbers: bad}, nil
}

// PriceKind returns the kind of the prices of a symbol without its prefix, such as VIX or XLK.
func PriceKind(symbol string) compute.NumberKind {
	if strings.HasPrefix(symbol, "VIX") {
		return compute.VolatilityPrice
	}
	return compute.Price
}

// symbolName returns the symbol without the prefix of indices: ^SPX and _SPX are SPX.
func (d *decoder) symbolName() string {
	name := d.dataSymbol
	if len(name) == 0 {
		name = d.symbol
	}
	return strings.TrimLeft(string(name), "^_")
}

func (d *decoder) topMember(key []byte) (ok bool) {
	switch string(key) {
	case "timestamp":
		return d.clock(&d.timestamp)
	case "symbol":
		d.symbol, ok = d.kept()
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
		d.dataSymbol, ok = d.kept()
	case "current_price":
		d.current, ok = d.float()
	case "close":
		d.closed, ok = d.float()
	case "price_change_percent":
		d.changePct, ok = d.float()
	case "last_trade_time":
		d.lastTrade, ok = d.kept()
	case "seqno":
		var ignored []byte
		return d.clock(&ignored)
	default:
		return d.skip(maxDepth)
	}
	return ok
}

// kept is str for a text that is used when the whole document is read.
func (d *decoder) kept() (raw []byte, ok bool) {
	raw, ok = d.str()
	return bytes.Clone(raw), ok
}

// clock takes the value of a clock, and leaves it out of the digest of the content.
func (d *decoder) clock(raw *[]byte) (ok bool) {
	d.skipSpace()
	d.digest()
	*raw, ok = d.kept()
	d.digested = d.pos
	return ok
}

// digest adds what was taken since the last call to the digest of the content. The digest is for comparison alone, so it is a
// cheap one: SHA-256 took 8 % of the time of a refresh.
func (d *decoder) digest() {
	_, _ = d.content.Write(d.buf[d.digested:d.pos])
	d.digested = d.pos
}

// fill drops what was taken and reads on, until the window is full or the document ends. Slices of the window lose their
// meaning.
func (d *decoder) fill() {
	if d.from == nil || d.broken {
		return
	}
	d.digest()
	d.buf = d.buf[:copy(d.buf[:cap(d.buf)], d.buf[d.pos:])]
	d.pos, d.digested = 0, 0
	for len(d.buf) < cap(d.buf) {
		n, err := d.from.Read(d.buf[len(d.buf):cap(d.buf)])
		d.buf = d.buf[:len(d.buf)+n]
		if errors.Is(err, io.EOF) {
			d.from = nil
		}
		if err != nil {
			d.broken = d.from != nil
			return
		}
	}
}

// row takes one element of the options array. An element that is not an object counts as a row without a symbol.
func (d *decoder) row() bool {
	if len(d.buf)-d.pos < maxRow {
		d.fill()
	}
	nan := math.NaN()
	d.symbolRaw, d.quote = nil, compute.Quote{Bid: nan, Ask: nan, Last: nan, OpenInterest: nan, Volume: nan, IV: nan, Gamma: nan, Delta: nan}
	ok := false
	if d.next() == '{' {
		ok = d.rowMembers()
	} else {
		ok = d.skip(maxDepth)
	}
	d.rows.Add(d.symbolRaw, d.quote)
	return ok
}

// rowKey is a key of a row.
type rowKey struct {
	raw  []byte // from its first quote to its colon
	name string // "" if the decoder has no use for it
}

// rowNames holds the keys of a row that the decoder uses.
var rowNames = func() map[string]string {
	names := map[string]string{}
	for _, name := range []string{"option", "bid", "ask", "iv", "open_interest", "volume", "delta", "gamma", "last_trade_price", "last_trade_time"} {
		names[name] = name
	}
	return names
}()

// rowMembers takes a row that is an object, as [scanner.object] does. The rows of a document have the same keys in the same
// order, so a key is first compared with that of the row before.
func (d *decoder) rowMembers() bool {
	d.pos++
	if d.take('}') {
		return true
	}
	for n := 0; ; n++ {
		if d.next(); n == len(d.layout) || !bytes.HasPrefix(d.buf[d.pos:], d.layout[n].raw) {
			start := d.pos
			key, ok := d.rawString()
			if !ok || !d.take(':') {
				return false
			}
			d.layout = append(d.layout[:n], rowKey{bytes.Clone(d.buf[start:d.pos]), rowNames[string(key)]})
		} else {
			d.pos += len(d.layout[n].raw)
		}
		if !d.rowMember(d.layout[n].name) {
			return false
		}
		if d.take('}') {
			return true
		}
		if !d.take(',') {
			return false
		}
	}
}

func (d *decoder) rowMember(name string) (ok bool) {
	q := &d.quote
	switch name {
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
		if at, traded := d.days.instant(raw); traded {
			q.LastTrade = at
		}
	default:
		return d.skip(maxDepth)
	}
	return ok
}

// tradeDays holds dates whose New York clock is not set forward or back, with their midnight in Unix seconds.
type tradeDays map[string]int64

// instant parses a New York clock as parseClock does, into Unix seconds. The trades of a chain are of few dates, so the zone is
// looked up once for each.
func (d *tradeDays) instant(raw []byte) (at int64, ok bool) {
	if len(raw) == len(time.DateTime) && raw[13] == ':' && raw[16] == ':' && (raw[10] == ' ' || raw[10] == 'T') {
		hour, okHour := twoDigits(raw[11:])
		minute, okMinute := twoDigits(raw[14:])
		second, okSecond := twoDigits(raw[17:])
		if midnight, known := (*d)[string(raw[:10])]; known && okHour && okMinute && okSecond && hour < 24 && minute < 60 && second < 60 {
			return midnight + int64(hour*3600+minute*60+second), true
		}
	}
	t, ok := parseClock(raw, compute.NewYork)
	if !ok {
		return 0, false
	}
	y, m, day := t.In(compute.NewYork).Date()
	begin, end := time.Date(y, m, day, 0, 0, 0, 0, compute.NewYork), time.Date(y, m, day+1, 0, 0, 0, 0, compute.NewYork)
	if end.Sub(begin) == 24*time.Hour {
		if *d == nil {
			*d = tradeDays{}
		}
		(*d)[string(raw[:10])] = begin.Unix()
	}
	return t.Unix(), true
}

func twoDigits(b []byte) (n int, ok bool) {
	return int(b[0]-'0')*10 + int(b[1]-'0'), isDigit(b[0]) && isDigit(b[1])
}

// parseClock parses YYYY-MM-DD, a space or a T, and HH:MM:SS. A fraction of a second is allowed and dropped.
func parseClock(raw []byte, loc *time.Location) (time.Time, bool) {
	if len(raw) < len(time.DateTime) || raw[13] != ':' { // package time would accept an hour of one digit
		return time.Time{}, false
	}
	layout := "2006-01-02T15:04:05"
	if raw[10] == ' ' {
		layout = time.DateTime
	}
	t, err := time.ParseInLocation(layout, string(raw), loc)
	return t.UTC().Truncate(time.Second), err == nil
}
