package cboe

import (
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
	s := scanner{buf: body}
	closes := map[compute.Date]float64{}
	var zeros []compute.Date
	rows := 0
	row := func() bool {
		rows++
		c, given, ok := s.historyRow()
		switch {
		case c.Date == 0 || !given:
		case c.Price == 0:
			zeros = append(zeros, c.Date)
		case math.IsNaN(kind.Usable(c.Price)):
			bad++
		default:
			closes[c.Date] = c.Price
		}
		return ok && rows <= maxHistoryRows
	}
	member := func(key []byte) bool {
		if string(key) == "data" && s.next() == '[' {
			return s.array(maxDepth, row)
		}
		return s.skip(maxDepth)
	}
	if err := s.whole(member); err != nil {
		return nil, 0, fmt.Errorf("decode history: %w", err)
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

// historyRow takes a row. given says whether the row has a close other than null. A close that is no number is NaN.
func (s *scanner) historyRow() (c compute.Close, given, ok bool) {
	if s.next() != '{' {
		return c, false, s.skip(maxDepth)
	}
	ok = s.object(maxDepth, func(key []byte) (ok bool) {
		switch string(key) {
		case "date":
			var raw []byte
			raw, ok = s.str()
			if d, err := compute.ParseDate(string(raw)); err == nil {
				c.Date = d
			}
			return ok
		case "close":
			given = s.next() != 'n' // of null
			c.Price, ok = s.numberOrText()
			return ok
		}
		return s.skip(maxDepth)
	})
	return c, given, ok
}

// numberOrText takes any value and returns it if it is a number or a string that holds one, otherwise NaN.
func (s *scanner) numberOrText() (x float64, ok bool) {
	if s.next() != '"' {
		return s.float()
	}
	raw, ok := s.rawString()
	return parseFloat(raw), ok
}
