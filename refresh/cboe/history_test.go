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

// A history has the range of its kind. A bad close does not replace a good one of its date. The number of rows is bounded.
func TestHistoryBounds(t *testing.T) {
	body := []byte(`{"data":[{"date":"2026-10-01","close":17.5},{"date":"2026-10-01","close":5000},{"date":"2026-10-02","close":0.5}]}`)
	got, bad, err := DecodeHistory(body, compute.VolatilityPrice)
	if err != nil || bad != 2 || len(got) != 1 || got[0].Price != 17.5 {
		t.Errorf("history of VIX: %v, %d bad, %v", got, bad, err)
	}
	body = []byte(`{"data":[` + strings.Repeat(`{},`, maxHistoryRows) + `{}]}`)
	if _, _, err := DecodeHistory(body, compute.Price); !errors.Is(err, ErrMalformed) {
		t.Errorf("%d rows: %v", maxHistoryRows+1, err)
	}
}

// FuzzDecodeHistory: the rows are those that encoding/json reads, rising, the last of each date, and as many are bad.
func FuzzDecodeHistory(f *testing.F) {
	for _, s := range []string{
		`{"data":[{"date":"2026-10-02","close":"187.25"},{"date":"2026-10-01","close":186.5},{"date":"2026-10-05","close":null},` +
			`{"date":"x","close":1},{"close":2},7,{"date":"2026-10-02","close":187.5}]}`,
		`{"data":[{"date":"2026-10-01","close":0}]}`, `{"data":[{"date":"2026-10-01","close":1}`, `{}`, ``,
		`{"symbol":"XLK","data":[{"date":"2026-10-02","close":"187.25"}]}`, `{"data":[{"date":"2026-10-02","close":1},{"date":"2026-10-01","close":"2"},{"date":"2026-10-02","close":3}],"data":[{"date":"1998-12-22","close":0.0},7,{}]}`,
		`{"data":null,"data":[{"date":"2026-02-30","date":"2026-02-28","date":"x","close":1,"close":"1e3"},{"date":"2026-01-01","close":"Inf"},{"date":"2026-01-01","close":"-1"}]}`, `<html>`, `{"data":[]}`, `[]`, `{"data":[{"date":"2026-01-01","close":0},{"date":"2026-01-02","close":"1"},{"date":"2026-01-03","close":"-0"},{"date":"2026-01-04","close":"nan"},{"date":"2026-01-05","close":{}}]}`, `{"data":[{"date":"2026-10-02"}]} x`,
	} {
		f.Add([]byte(s))
	}
	for _, close := range []string{ // of a row after the listing
		`187.5`, `null`, `-5`, `"-12"`, strings.Repeat("9", 401), `"1e999"`, `1e-9`, `1e7`, `"nan"`, `""`, `true`, `[]`, `0`, `"0.0"`,
		`7,"close":null`, `null,"close":-7`,
	} {
		f.Add([]byte(`{"data":[{"date":"1998-12-22","close":0},{"date":"2026-10-01","close":186.5},{"date":"2026-10-02","close":` +
			close + `},{"close":-1},{"date":"x","close":-1}]}`))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, bad, err := DecodeHistory(body, compute.Price)
		if outOfScope(body, "data") {
			return
		}
		want, wantBad, wantErr := plainHistory(body)
		if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) || !slices.Equal(got, want) || bad != wantBad {
			t.Errorf("%v, %d bad, %v, want %v, %d bad, %v", got, bad, err, want, wantBad, wantErr)
		}
	})
}

func plainHistory(body []byte) ([]compute.Close, int, error) {
	if text := bytes.TrimLeft(body, " \t\r\n"); len(text) > 0 && text[0] == '<' {
		return nil, 0, ErrHTML
	}
	top, ok := plain(body).([]member)
	if !ok {
		return nil, 0, ErrMalformed
	}
	last := map[string]float64{} // prices by date
	var dropped []compute.Close  // rows with a close other than null that is not usable
	for _, m := range top {
		rows, _ := m.value.([]any)
		for _, row := range rows {
			date, price, given := "", math.NaN(), false
			members, _ := row.([]member)
			for _, f := range members {
				text, isText := f.value.(string)
				if f.key == "date" && isText {
					date = text
				}
				if f.key == "close" {
					given = f.value != nil
					if price = plainFloat(f.value); isText {
						if x, err := strconv.ParseFloat(text, 64); err == nil {
							price = x
						}
					}
				}
			}
			if _, err := time.Parse(time.DateOnly, date); m.key != "data" || err != nil || len(date) != 10 || !given {
				continue
			}
			if price >= 1e-6 && price <= 1e6 {
				last[date] = price
			} else {
				d, _ := time.Parse(time.DateOnly, date)
				dropped = append(dropped, compute.Close{Date: compute.DateOf(d), Price: price})
			}
		}
	}
	var closes []compute.Close
	for date, price := range last {
		d, _ := time.Parse(time.DateOnly, date)
		closes = append(closes, compute.Close{Date: compute.DateOf(d), Price: price})
	}
	if len(closes) == 0 {
		return nil, 0, ErrNoRows
	}
	slices.SortFunc(closes, func(a, b compute.Close) int { return cmp.Compare(a.Date, b.Date) })
	bad := 0
	for _, c := range dropped {
		if c.Price != 0 || c.Date > closes[0].Date {
			bad++
		}
	}
	return closes, bad, nil
}
