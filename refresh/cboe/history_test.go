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
	got, bad, err := DecodeHistory([]byte(body), compute.Price)
	if err != nil || bad != 0 {
		t.Fatalf("%d bad numbers, %v", bad, err)
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
		if _, _, err := DecodeHistory([]byte(text), compute.Price); !errors.Is(err, want) {
			t.Errorf("%.40s: %v, want %v", text, err, want)
		}
	}
}

// Every close that costs its row is counted, but for those that are absent or before the listing.
func TestBadClosesAreCounted(t *testing.T) {
	for _, c := range []struct {
		close string // of a row after the listing
		bad   int
	}{
		{`187.5`, 0}, {`null`, 0}, {`-5`, 1}, {`"-12"`, 1}, {strings.Repeat("9", 401), 1}, {`"1e999"`, 1}, {`1e-9`, 1}, {`1e7`, 1}, {`"nan"`, 1}, {`""`, 1},
		{`true`, 1}, {`[]`, 1}, {`0`, 1}, {`"0.0"`, 1}, {`7,"close":null`, 0}, {`null,"close":-7`, 1},
	} {
		body := `{"data":[{"date":"1998-12-22","close":0},{"date":"2026-10-01","close":186.5},{"date":"2026-10-02","close":` + c.close + `},{"close":-1},{"date":"x","close":-1}]}`
		got, bad, err := DecodeHistory([]byte(body), compute.Price)
		want := 1
		if c.close == `187.5` {
			want = 2
		}
		if err != nil || bad != c.bad || len(got) != want {
			t.Errorf("close %.20s: %d bad, %v, %v", c.close, bad, got, err)
		}
	}
	body := []byte(`{"data":[{"date":"2026-10-01","close":17.5},{"date":"2026-10-01","close":5000},{"date":"2026-10-02","close":0.5}]}`)
	got, bad, err := DecodeHistory(body, compute.VolatilityPrice)
	if err != nil || bad != 2 || len(got) != 1 || got[0].Price != 17.5 {
		t.Errorf("history of VIX: %v, %d bad, %v", got, bad, err) // a bad close does not replace a good one of its date
	}
}

// FuzzDecodeHistory: the rows are those that encoding/json reads, rising, the last of each date, and as many are bad.
func FuzzDecodeHistory(f *testing.F) {
	for _, s := range []string{
		`{"symbol":"XLK","data":[{"date":"2026-10-02","close":"187.25"}]}`, `{"data":[{"date":"2026-10-02","close":1},{"date":"2026-10-01","close":"2"},{"date":"2026-10-02","close":3}],"data":[{"date":"1998-12-22","close":0.0},7,{}]}`,
		`{"data":null,"data":[{"date":"2026-02-30","date":"2026-02-28","date":"x","close":1,"close":"1e3"},{"date":"2026-01-01","close":"Inf"},{"date":"2026-01-01","close":"-1"}]}`, `<html>`, `{"data":[]}`, `[]`, `{"data":[{"date":"2026-01-01","close":0},{"date":"2026-01-02","close":"1"},{"date":"2026-01-03","close":"-0"},{"date":"2026-01-04","close":"nan"},{"date":"2026-01-05","close":{}}]}`, `{"data":[{"date":"2026-10-02"}]} x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, bad, err := DecodeHistory(body, compute.Price)
		value, _ := plain(body)
		if outOfScope(body, "data") {
			return
		}
		want, wantBad, wantErr := plainHistory(body, value)
		if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) || !slices.Equal(got, want) || bad != wantBad {
			t.Errorf("%v, %d bad, %v, want %v, %d bad, %v", got, bad, err, want, wantBad, wantErr)
		}
	})
}

func plainHistory(body []byte, value any) ([]compute.Close, int, error) {
	if text := bytes.TrimLeft(body, " \t\r\n"); len(text) > 0 && text[0] == '<' {
		return nil, 0, ErrHTML
	}
	top, ok := value.([]member)
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
			if _, err := time.Parse(time.DateOnly, date); m.key != "data" || err != nil || len(date) != 10 || date == "1970-01-01" || !given {
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
