package cboe

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-json"

	"strikecache/compute"
)

// Errors of documents that cannot be read.
var (
	ErrHTML      = errors.New("document is an HTML page")
	ErrMalformed = errors.New("document is malformed")
	// ErrNoRows is the error of a well-formed document without a usable row, such as a header alone or an empty history.
	ErrNoRows = errors.New("document has no rows")
)

// The most rows of a price history and of a settlement file. 50 years have 12,600 sessions, and a real file has 55 rows.
const (
	maxHistoryRows    = 50_000
	historyMembers    = 8 // of a row, at most; a real one has 6
	maxSettlementRows = 5_000
)

// textOf returns the text of a document, without the byte order mark that a parser may ignore (RFC 8259, section 8.1). The error is
// [ErrHTML] for a page, and [ErrMalformed] for a document without text or in another compression than gzip.
func textOf(body []byte) ([]byte, error) {
	text := bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case len(text) == 0:
		return nil, fmt.Errorf("%w: the document is empty", ErrMalformed)
	case text[0] == '<':
		return nil, ErrHTML
	case bytes.HasPrefix(text, []byte("\x28\xb5\x2f\xfd")):
		return nil, fmt.Errorf("%w: compressed with zstd; only gzip is read", ErrMalformed)
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return nil, fmt.Errorf("%w: the text is UTF-16; only UTF-8 is read", ErrMalformed)
	}
	return text, nil
}

// decode decodes a document that is one JSON object. unmarshal does it as encoding/json does, but a member of another type than its field
// counts as absent. The error is [ErrHTML] or [ErrMalformed].
func decode(body []byte, unmarshal func(text []byte) error) error {
	text, err := textOf(body)
	if err != nil {
		return err
	}
	if text[0] != '{' {
		return fmt.Errorf("%w: not an object", ErrMalformed)
	}
	if err = unmarshal(text); err == nil || isMismatch(err) {
		return nil
	}
	for i, c := range outside(text) {
		if c == 'N' || c == 'I' { // NaN or Infinity: no word of JSON has these letters
			length := len(text[i:]) - len(bytes.TrimLeftFunc(text[i:], unicode.IsLetter))
			return fmt.Errorf("%w: %.20s at byte %d is not JSON", ErrMalformed, text[i:i+length], len(body)-len(text)+i)
		}
	}
	return fmt.Errorf("%w: %w", ErrMalformed, err)
}

// isMismatch says whether all of a text is JSON, but a value of it is of another type than its field.
func isMismatch(err error) bool {
	_, is := errors.AsType[*json.UnmarshalTypeError](err)
	return is
}

// outside yields the bytes of a JSON text that are not in a string, without the quotation marks that end strings.
func outside(text []byte) iter.Seq2[int, byte] {
	return func(yield func(int, byte) bool) {
		for i := 0; i < len(text); i++ {
			if !yield(i, text[i]) {
				return
			}
			if text[i] == '"' {
				for i++; i < len(text) && text[i] != '"'; i++ {
					if text[i] == '\\' {
						i++
					}
				}
			}
		}
	}
}

// number is a JSON number, or a string that holds one. Any other value but null, which is absent, is NaN.
type number struct {
	value float64 // an infinity if the number overflows a float64
	given bool    // there is a value, and it is not null
}

// UnmarshalJSON implements [json.Unmarshaler]. It accepts any value, so that a bad number does not make the document unreadable.
func (n *number) UnmarshalJSON(raw []byte) error {
	*n = number{parseFloat(bytes.Trim(raw, `"`)), raw[0] != 'n'}
	return nil
}

// float returns the number, NaN if it is absent or none.
func (n number) float() float64 {
	if !n.given {
		return math.NaN()
	}
	return n.value
}

// parseFloat returns NaN for a text that is not a number, and an infinity for a number that overflows.
func parseFloat(raw []byte) float64 {
	x, err := strconv.ParseFloat(string(raw), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return math.NaN()
	}
	return x
}

// DecodeHistory decodes a daily price history of prices of a kind: {"data": [{"date", …, "close", …}]}. Values are numbers or
// strings. Rows without a date or a usable close are left out. Of two rows of one date the later counts. The closes are
// returned oldest first. bad is how many closes count as absent because they are no number or outside the range of the kind.
// A date may have a time of day after it. A close of null is absent, and a close of 0 on or before the first usable one is that of a day before the listing: neither is
// bad. DecodeHistory keeps no reference to body.
func DecodeHistory(body []byte, kind compute.NumberKind) (rising []compute.Close, bad int, err error) {
	var document struct {
		Data []struct {
			Date  string `json:"date"`
			Close number `json:"close"`
		} `json:"data"`
	}
	err = decode(body, func(text []byte) error {
		if bytes.Count(text, []byte(",")) > historyMembers*maxHistoryRows { // an empty row has 3 bytes in the text and over 40 in memory
			return fmt.Errorf("over %d rows", maxHistoryRows)
		}
		err := json.Unmarshal(text, &document)
		if len(document.Data) > maxHistoryRows {
			return fmt.Errorf("over %d rows", maxHistoryRows)
		}
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("decode history: %w", err)
	}
	closes := map[compute.Date]float64{}
	var zeros []compute.Date
	for _, row := range document.Data {
		day := row.Date
		if len(day) > len(time.DateOnly) && strings.IndexByte("Tt ", day[len(time.DateOnly)]) >= 0 { // pandas writes the date with a time of day
			day = day[:len(time.DateOnly)]
		}
		date, err := compute.ParseDate(day)
		switch {
		case err != nil || !row.Close.given:
		case row.Close.value == 0:
			zeros = append(zeros, date)
		case math.IsNaN(kind.Usable(row.Close.value)):
			bad++
		default:
			closes[date] = row.Close.value
		}
	}
	if len(closes) == 0 {
		return nil, 0, fmt.Errorf("decode history: %w", ErrNoRows)
	}
	rising = make([]compute.Close, 0, len(closes))
	for _, date := range slices.Sorted(maps.Keys(closes)) {
		rising = append(rising, compute.Close{Date: date, Price: closes[date]})
	}
	for _, date := range zeros {
		if date > rising[0].Date {
			bad++
		}
	}
	return rising, bad, nil
}

// DecodeSettlement decodes a daily settlement file, Product,Symbol,Expiration Date,Price, of all products. It accepts a byte
// order mark, and a star after a price. Rows that cannot be read are left out and counted. The error of a file without rows
// is ErrNoRows: the date is a holiday, or its file is not published yet. A file whose last line has no line end was cut off,
// perhaps within a price: it is ErrMalformed.
func DecodeSettlement(body []byte) (rows []compute.FuturesSettlement, bad int, err error) {
	if body, err = textOf(body); err != nil {
		return nil, 0, fmt.Errorf("decode settlement: %w", err)
	}
	if !bytes.HasSuffix(body, []byte("\n")) {
		return nil, 0, fmt.Errorf("decode settlement: %w: cut off", ErrMalformed)
	}
	r := csv.NewReader(bytes.NewReader(body))
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	var unread string
	header, err := r.Read()
	if err != nil || len(header) < 4 || strings.TrimSpace(header[0]) != "Product" || strings.TrimSpace(header[3]) != "Price" {
		return nil, 0, fmt.Errorf("decode settlement: %w: no header", ErrMalformed)
	}
	for record, err := r.Read(); err != io.EOF; record, err = r.Read() {
		if len(rows)+bad >= maxSettlementRows {
			return nil, 0, fmt.Errorf("decode settlement: %w: over %d rows", ErrMalformed, maxSettlementRows)
		}
		if row, ok := settlementRow(record); err == nil && ok {
			rows = append(rows, row)
		} else {
			bad++
			if len(record) >= 4 {
				unread = strings.Join(record, ",")
			}
		}
	}
	switch {
	case len(rows) > 0:
		return rows, bad, nil
	case unread != "": // not a line that says that nothing is published yet
		return nil, 0, fmt.Errorf("decode settlement: %w: none of its rows can be read, the last is %q", ErrMalformed, unread)
	}
	return nil, bad, fmt.Errorf("decode settlement: %w", ErrNoRows)
}

func settlementRow(record []string) (row compute.FuturesSettlement, ok bool) {
	if len(record) < 4 {
		return row, false
	}
	for i := range record {
		record[i] = strings.TrimSpace(record[i])
	}
	date, err := compute.ParseDate(record[2])
	price, err2 := strconv.ParseFloat(strings.TrimSuffix(record[3], "*"), 64)
	kind := compute.Price
	if record[0] == "VX" {
		kind = compute.VolatilityPrice
	}
	row = compute.FuturesSettlement{Product: record[0], Symbol: record[1], Expiration: date, Price: price}
	return row, err == nil && err2 == nil && !math.IsNaN(kind.Usable(price))
}
