package cboe

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"

	"strikecache/compute"
)

// maxHistoryRows bounds a price history; 50 years have 12,600 sessions.
const maxHistoryRows = 50_000

// DecodeHistory decodes a daily price history of prices of a kind: {"data": [{"date", …, "close", …}]}. Values are numbers or
// strings. Rows without a date or a usable close are left out. Of two rows of one date the later counts. The closes are
// returned oldest first. bad is how many closes count as absent because they are no number or outside the range of the kind.
// A close of null is absent, and a close of 0 on or before the first usable one is that of a day before the listing: neither is
// bad. DecodeHistory keeps no reference to body.
func DecodeHistory(body []byte, kind compute.NumberKind) (rising []compute.Close, bad int, err error) {
	var document struct {
		Data []historyRow `json:"data"`
	}
	err = decode(body, &document, 2, maxHistoryRows)
	if err == nil && len(document.Data) > maxHistoryRows {
		err = fmt.Errorf("%w: over %d rows", ErrMalformed, maxHistoryRows)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("decode history: %w", err)
	}
	closes := map[compute.Date]float64{}
	var zeros []compute.Date
	for _, row := range document.Data {
		date, err := compute.ParseDate(row.Date)
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

type historyRow struct {
	Date  string       `json:"date"`
	Close numberOrText `json:"close"`
}

// numberOrText is a number or a string that holds one; any other value but null is NaN.
type numberOrText struct {
	value float64
	given bool // and not null
}

// UnmarshalJSON implements [json.Unmarshaler].
func (n *numberOrText) UnmarshalJSON(raw []byte) error {
	*n = numberOrText{parseFloat(bytes.Trim(raw, `"`)), raw[0] != 'n'}
	return nil
}
