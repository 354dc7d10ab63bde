package cboe

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"strikecache/compute"
)

// maxHistoryRows bounds a price history; 50 years have 12,600 sessions.
const maxHistoryRows = 50_000

// DecodeHistory decodes a daily price history: {"data": [{"date", …, "close", …}]}, oldest first, values numbers
// or strings. Rows without a date or a close above 0, such as those before a listing, are left out; of two rows
// of one date the later stays. It keeps no reference to body.
func DecodeHistory(body []byte) ([]compute.Close, error) {
	s := scanner{buf: body}
	if s.next() == '<' {
		return nil, fmt.Errorf("decode history: %w", ErrHTML)
	}
	var closes []compute.Close
	rows := 0
	row := func() bool {
		rows++
		c, ok := s.historyRow()
		if ok && c.Price > 0 && !math.IsInf(c.Price, 1) && c.Date != 0 {
			closes = append(closes, c)
		}
		return ok && rows <= maxHistoryRows
	}
	member := func(key []byte) bool {
		if string(key) == "data" && s.next() == '[' {
			return s.array(maxDepth, row)
		}
		return s.skip(maxDepth)
	}
	if !s.object(maxDepth, member) || s.next() != 0 || s.pos < len(s.buf) {
		return nil, fmt.Errorf("decode history: %w near byte %d of %d", ErrMalformed, s.pos, len(s.buf))
	}
	if len(closes) == 0 {
		return nil, fmt.Errorf("decode history: %w", ErrNoRows)
	}
	slices.SortStableFunc(closes, func(a, b compute.Close) int { return cmp.Compare(a.Date, b.Date) })
	kept := closes[:0]
	for i, c := range closes {
		if i+1 == len(closes) || closes[i+1].Date != c.Date {
			kept = append(kept, c)
		}
	}
	return kept, nil
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

// numberOrText takes any value and returns it when it is a number or a string that holds one, else NaN.
func (s *scanner) numberOrText() (x float64, ok bool) {
	if s.next() != '"' {
		return s.float()
	}
	raw, ok := s.rawString()
	x, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		x = math.NaN()
	}
	return x, ok
}
