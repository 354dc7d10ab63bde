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

// DecodeHistory decodes a daily price history: {"data": [{"date", …, "close", …}]}. Values are numbers or strings. Rows
// without a date or a close above 0, such as those before a listing, are left out. Of two rows of one date the later counts.
// The closes are returned oldest first. DecodeHistory keeps no reference to body.
func DecodeHistory(body []byte) ([]compute.Close, error) {
	s := scanner{buf: body}
	closes := map[compute.Date]float64{}
	rows := 0
	row := func() bool {
		rows++
		c, ok := s.historyRow()
		if ok && c.Price > 0 && !math.IsInf(c.Price, 1) && c.Date != 0 {
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
		return nil, fmt.Errorf("decode history: %w", err)
	}
	if len(closes) == 0 {
		return nil, fmt.Errorf("decode history: %w", ErrNoRows)
	}
	rising := make([]compute.Close, 0, len(closes))
	for _, date := range slices.Sorted(maps.Keys(closes)) {
		rising = append(rising, compute.Close{Date: date, Price: closes[date]})
	}
	return rising, nil
}

func (s *scanner) historyRow() (c compute.Close, ok bool) {
	if s.next() != '{' {
		return c, s.skip(maxDepth)
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
			c.Price, ok = s.numberOrText()
			return ok
		}
		return s.skip(maxDepth)
	})
	return c, ok
}

// numberOrText takes any value and returns it if it is a number or a string that holds one, otherwise NaN.
func (s *scanner) numberOrText() (x float64, ok bool) {
	if s.next() != '"' {
		return s.float()
	}
	raw, ok := s.rawString()
	return parseFloat(raw), ok
}
