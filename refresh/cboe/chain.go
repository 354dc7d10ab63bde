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
//	    16:14:59 after the close of an index. data.seqno advances without a new price.
//	  - If data.current_price is null or 0, close is used. In the evening prev_day_close becomes the close of the same day,
//	    so it is not read. price_change still describes the session then, price_change_percent in percent of the new close.
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
// How the upstream behaves: files are made about once a minute. The CDN redirects with 307 to the same path of another host,
// which [Client] then asks directly. A 403 means an unknown symbol, or a brief refusal: the same request succeeds
// seconds later. More than 45 requests a minute are refused with 429 (420 from some networks), and further requests prolong
// this. A 200 may be an HTML page. See [Client].
package cboe

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
)

// Quote is a decoded quote document, or the head of a chain document.
type Quote struct {
	compute.UnderlyingQuote
	// BadNumbers is how many of its numbers count as absent because they are outside the range of their kind.
	BadNumbers int
}

// ErrNoClock is the error of a well-formed document that does not say its time.
var ErrNoClock = errors.New("document has no usable timestamp")

// chainDocument is a chain document without its rows. A quote document has the same members but options.
type chainDocument struct {
	Timestamp string `json:"timestamp"`
	Symbol    string `json:"symbol"`
	Data      struct {
		Options   json.RawMessage `json:"options"` // [cutRows] if there are rows
		Symbol    string          `json:"symbol"`
		Security  string          `json:"security_type"`
		Current   number          `json:"current_price"`
		Close     number          `json:"close"`
		Change    number          `json:"price_change"`
		ChangePct number          `json:"price_change_percent"`
		LastTrade string          `json:"last_trade_time"`
	} `json:"data"`
}

// chainRow is an element of options. An absent number is NaN. An element that is not an object is a row without a symbol.
type chainRow struct {
	Option       string  `json:"option"`
	Bid          float64 `json:"bid"`
	Ask          float64 `json:"ask"`
	IV           float64 `json:"iv"`
	OpenInterest float64 `json:"open_interest"`
	Volume       float64 `json:"volume"`
	Delta        float64 `json:"delta"`
	Gamma        float64 `json:"gamma"`
	Last         float64 `json:"last_trade_price"`
	LastTrade    string  `json:"last_trade_time"`
}

// DecodeQuote decodes a quote document. It keeps no reference to body.
func DecodeQuote(body []byte) (*Quote, error) {
	q, err := decodeDocument(body, func(*chainRow) {})
	if err != nil {
		return nil, fmt.Errorf("decode quote: %w", err)
	}
	return q, nil
}

// DecodeChain decodes an option chain document, in any order of keys, and validates its rows. It keeps no reference to body.
// The error of a chain without rows is [compute.ErrEmptyChain].
func DecodeChain(body []byte) (*compute.Chain, error) {
	const rowBytes = 390 // of a usual row
	var b compute.ChainBuilder
	b.Grow(min(len(body)/rowBytes, compute.MaxRows))
	q, err := decodeDocument(body, func(r *chainRow) { b.Add([]byte(r.Option), r.quote()) })
	if err != nil {
		return nil, fmt.Errorf("decode chain: %w", err)
	}
	chain, err := b.Build(q.UnderlyingQuote)
	if err != nil {
		return nil, fmt.Errorf("decode chain: %w", err)
	}
	chain.BadNumbers += q.BadNumbers
	return chain, nil
}

// rowsBegin matches the beginning of the array of rows. cutRows is the array once its rows are cut out.
var (
	rowsBegin = regexp.MustCompile(`"options"\s*:\s*\[`)
	cutRows   = []byte("[0]")
)

const space = " \t\r\n"

// takeRows calls add for each row of a document, always with the same one, and returns the rest of the document: a copy of 2 KB, where the
// rows have 12 MB. The rows are cut by their brackets, not copied. cut is false for a document without an array of rows.
func takeRows(text []byte, add func(*chainRow)) (rest []byte, cut bool, err error) {
	at := rowsBegin.FindIndex(text)
	if at == nil {
		return text, false, nil
	}
	rows, row := bytes.TrimLeft(text[at[1]:], space), &chainRow{}
	for n := 0; n > 0 || !bytes.HasPrefix(rows, []byte("]")); n++ {
		length, err := row.take(rows)
		if err != nil {
			return nil, true, err
		}
		if add(row); n >= compute.MaxRows {
			return nil, true, fmt.Errorf("over %d rows", compute.MaxRows)
		}
		rows = bytes.TrimLeft(rows[length:], space)
		if bytes.HasPrefix(rows, []byte("]")) {
			break
		}
		if !bytes.HasPrefix(rows, []byte(",")) {
			return nil, true, fmt.Errorf("no comma behind row %d", n+1)
		}
		rows = bytes.TrimLeft(rows[1:], space)
	}
	return slices.Concat(text[:at[1]-1], cutRows[:2], rows), true, nil
}

// take decodes the row at the beginning of a text, and returns its length. A row ends at the first closing brace, unless that is in a string
// or closes an object in the row.
func (r *chainRow) take(text []byte) (length int, err error) {
	if bytes.HasPrefix(text, []byte("{")) {
		if length = bytes.IndexByte(text, '}') + 1; r.decode(text[:length]) == nil {
			return length, nil
		}
	}
	length = len(text)
	depth := 0
	for i, c := range outside(text) {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth < 0 || depth == 0 && c == ',' {
			length = i
			break
		}
	}
	return length, r.decode(text[:length])
}

var (
	absent    = math.NaN()
	absentRow = chainRow{
		Bid: absent, Ask: absent, IV: absent, OpenInterest: absent, Volume: absent, Delta: absent, Gamma: absent, Last: absent,
	}
	// withoutCopies makes the texts of a row parts of the document.
	withoutCopies = []json.DecodeOptionFunc{json.DecodeNoCopyString()}
)

// decode decodes a row. The error says that it is not JSON.
func (r *chainRow) decode(text []byte) error {
	if *r = absentRow; !bytes.HasPrefix(text, []byte("{")) {
		if !json.Valid(text) {
			return fmt.Errorf("row %.20q is not JSON", text)
		}
		return nil
	}
	err := json.UnmarshalWithOption(text, r, withoutCopies...)
	if err == nil || !isMismatch(err) {
		return err
	}
	numbers := map[string]number{} // one that overflows a float64 is bad, not absent
	_ = json.Unmarshal(text, &numbers)
	for name, x := range map[string]*float64{
		"bid": &r.Bid, "ask": &r.Ask, "iv": &r.IV, "open_interest": &r.OpenInterest, "volume": &r.Volume, "delta": &r.Delta, "gamma": &r.Gamma,
		"last_trade_price": &r.Last,
	} {
		*x = numbers[name].float()
	}
	return nil
}

func decodeDocument(body []byte, add func(*chainRow)) (*Quote, error) {
	var d chainDocument
	cut := false
	err := decode(body, func(text []byte) (err error) {
		if text, cut, err = takeRows(text, add); err != nil {
			return err
		}
		return json.Unmarshal(text, &d)
	})
	if err != nil {
		return nil, err
	}
	if o := d.Data.Options; cut && !bytes.Equal(o, cutRows) || !cut && bytes.HasPrefix(o, cutRows[:1]) {
		return nil, fmt.Errorf("%w: options twice, or spelled in another way", ErrMalformed)
	}
	q := &Quote{}
	q.Symbol = strings.ReplaceAll(strings.TrimLeft(cmp.Or(d.Data.Symbol, d.Symbol), "^_"), "/", ".") // ^SPX and _SPX are SPX, BRK/B is BRK.B
	q.IsIndex = d.Data.Security == "index" || strings.ContainsAny(d.Data.Symbol+d.Symbol, "^_")
	price := PriceKind(q.Symbol)
	closed := q.usable(price, d.Data.Close)
	q.Spot, q.Close, q.PriceChangePercent = q.usable(price, d.Data.Current), closed, q.usable(compute.Percentage, d.Data.ChangePct)
	if math.IsNaN(q.Spot) {
		q.Spot = closed
	} else if change := d.Data.Change.float(); !math.IsNaN(change) {
		before := q.Spot - change
		percent := compute.Percentage.Usable(change / before * 100)
		if math.IsNaN(price.Usable(before)) || math.IsNaN(percent) {
			q.BadNumbers++
		} else {
			q.PriceChangePercent = percent
		}
	}
	if math.IsNaN(q.Spot) {
		return nil, compute.ErrNoSpot
	}
	var okCaptured, okAsOf bool
	q.CapturedAt, okCaptured = parseClock(d.Timestamp, time.UTC)
	q.AsOf, okAsOf = parseClock(d.Data.LastTrade, compute.NewYork)
	if !okCaptured || !okAsOf {
		return nil, fmt.Errorf("%w: timestamp %.40q, last_trade_time %.40q", ErrNoClock, d.Timestamp, d.Data.LastTrade)
	}
	return q, nil
}

// usable returns a number if it is in the range of its kind, otherwise NaN, and counts a bad one. 0 stands for an absent price.
func (q *Quote) usable(kind compute.NumberKind, n number) float64 {
	x := n.float()
	y := kind.Usable(x)
	if math.IsNaN(y) && !math.IsNaN(x) && x != 0 {
		q.BadNumbers++
	}
	return y
}

func (r *chainRow) quote() compute.Quote {
	q := compute.Quote{
		Bid: r.Bid, Ask: r.Ask, Last: r.Last, OpenInterest: r.OpenInterest, Volume: r.Volume, IV: r.IV, Gamma: r.Gamma, Delta: r.Delta,
	}
	if at, traded := parseClock(r.LastTrade, compute.NewYork); traded {
		q.LastTrade = at.Unix()
	}
	return q
}

// PriceKind returns the kind of the prices of a symbol without its prefix, such as VIX or XLK.
func PriceKind(symbol string) compute.NumberKind {
	if strings.HasPrefix(symbol, "VIX") {
		return compute.VolatilityPrice
	}
	return compute.Price
}

// parseClock parses YYYY-MM-DD, a space or a T, HH:MM or HH:MM:SS, and perhaps a zone, also after a space: Z, UTC, GMT, +HH:MM, +HHMM or +HH.
// Without a zone it is a time in loc. A fraction of a second is allowed and dropped. T and Z may be small letters (RFC 3339, section 5.6).
func parseClock(text string, loc *time.Location) (time.Time, bool) {
	const seconds, minutes = "2006-01-02T15:04:05", "2006-01-02T15:04"
	if text = strings.TrimSpace(text); len(text) < len(minutes) || text[13] != ':' { // package time would accept an hour of one digit
		return time.Time{}, false
	}
	if text[10] == ' ' || text[10] == 't' {
		text = text[:10] + "T" + text[11:]
	}
	if t, err := time.ParseInLocation(seconds, text, loc); err == nil {
		return t.UTC().Truncate(time.Second), true
	}
	text = clockForms.Replace(strings.ToUpper(text))
	for _, layout := range [...]string{seconds, minutes} {
		for _, zone := range [...]string{"", "Z07:00", "Z0700", "Z07"} {
			if t, err := time.ParseInLocation(layout+zone, text, loc); err == nil {
				return t.UTC().Truncate(time.Second), true
			}
		}
	}
	return time.Time{}, false
}

var clockForms = strings.NewReplacer(" UTC", "Z", " GMT", "Z", "UTC", "Z", "GMT", "Z", " Z", "Z", " +", "+", " -", "-")
