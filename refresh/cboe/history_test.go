package cboe

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
)

func TestDecodeHistory(t *testing.T) {
	body := `{"symbol":"XLK","data":[{"date":"1998-12-22","open":0.0,"high":0.0,"low":0.0,"close":0.0,"volume":0},` +
		`{"date":"2026-10-02","open":"1","high":"1","low":"1","close":"187.25","volume":"10"},` +
		`{"date":"2026-10-01","close":186.5},{"date":"2026-10-05","close":null},{"date":"x","close":1},{"close":2},7,` +
		`{"date":"2026-10-02","close":187.5}]}`
	got, err := DecodeHistory([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	want := []compute.Close{{Date: compute.NewDate(2026, 10, 1), Price: 186.5}, {Date: compute.NewDate(2026, 10, 2), Price: 187.5}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
	for text, want := range map[string]error{
		`<html>`: ErrHTML, `{"data":[]}`: ErrNoRows, `{}`: ErrNoRows, `{"data":[{"date":"2026-10-01","close":0}]}`: ErrNoRows,
		body[:len(body)-3]: ErrMalformed, ``: ErrMalformed,
		`{"data":[` + strings.Repeat(`{},`, maxHistoryRows) + `{}]}`: ErrMalformed,
	} {
		if _, err := DecodeHistory([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%.40s: %v, want %v", text, err, want)
		}
	}
}

// FuzzDecodeHistory: the rows are those that encoding/json reads, rising, the last of each date.
func FuzzDecodeHistory(f *testing.F) {
	for _, s := range []string{
		`{"symbol":"XLK","data":[{"date":"2026-10-02","close":"187.25"}]}`, `{"data":[{"date":"2026-10-02","close":1},{"date":"2026-10-01","close":"2"},{"date":"2026-10-02","close":3}],"data":[{"date":"1998-12-22","close":0.0},7,{}]}`,
		`{"data":null,"data":[{"date":"2026-02-30","date":"2026-02-28","date":"x","close":1,"close":"1e3"},{"date":"2026-01-01","close":"Inf"},{"date":"2026-01-01","close":"-1"}]}`, `<html>`, `{"data":[]}`, `[]`, `{"data":[{"date":"2026-10-02"}]} x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := DecodeHistory(body)
		value, depth, _ := plain(body)
		if outOfScope(body) || depth > maxDepth-4 {
			return
		}
		want, wantErr := plainHistory(body, value)
		if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) || !slices.Equal(got, want) {
			t.Errorf("%v %v, want %v %v", got, err, want, wantErr)
		}
	})
}

func plainHistory(body []byte, value any) ([]compute.Close, error) {
	if text := bytes.TrimLeft(body, " \t\r\n"); len(text) > 0 && text[0] == '<' {
		return nil, ErrHTML
	}
	top, ok := value.([]member)
	if !ok {
		return nil, ErrMalformed
	}
	last := map[string]float64{} // prices by date
	for _, m := range top {
		rows, _ := m.value.([]any)
		for _, row := range rows {
			date, price := "", math.NaN()
			members, _ := row.([]member)
			for _, f := range members {
				text, isText := f.value.(string)
				if _, err := time.Parse(time.DateOnly, text); f.key == "date" && err == nil && len(text) == 10 {
					date = text
				}
				if f.key == "close" {
					if price = plainFloat(f.value); isText {
						if x, err := strconv.ParseFloat(text, 64); err == nil {
							price = x
						}
					}
				}
			}
			if m.key == "data" && date != "" && date != "1970-01-01" && price > 0 && price <= math.MaxFloat64 {
				last[date] = price
			}
		}
	}
	var closes []compute.Close
	for date, price := range last {
		d, _ := time.Parse(time.DateOnly, date)
		closes = append(closes, compute.Close{Date: compute.DateOf(d), Price: price})
	}
	if len(closes) == 0 {
		return nil, ErrNoRows
	}
	slices.SortFunc(closes, func(a, b compute.Close) int { return cmp.Compare(a.Date, b.Date) })
	return closes, nil
}
