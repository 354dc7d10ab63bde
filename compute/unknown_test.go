package compute_test

import (
	"fmt"
	"math"
	"testing"

	"strikecache/compute"
)

// book returns calls and puts of 200 strikes of a date, each with an open interest of 100 and a volume of 10, changed by a function that
// says whether the row stays.
func book(series string, change func(right byte, i int, q *compute.Quote) bool) (rows []row) {
	for i := range 200 {
		for _, right := range []byte("CP") {
			q := published(0.2, 100)
			q.Volume = 10
			if change == nil || change(right, i, &q) {
				rows = append(rows, row{symbolOf(series+string(right), 6500+5*float64(i)), q})
			}
		}
	}
	return rows
}

// A sum is null when more than 1 % of the contracts of a side lack the number, and not at 1 %.
func TestUnknownSums(t *testing.T) {
	unread := func(right byte, n int) func(byte, int, *compute.Quote) bool {
		return func(r byte, i int, q *compute.Quote) bool {
			if r == right && i < n {
				q.OpenInterest = math.NaN()
			}
			return true
		}
	}
	for _, c := range []struct {
		name                                       string
		near                                       func(byte, int, *compute.Quote) bool
		net, call, put, nearDate, farDate, pc, pcv bool // known
		lost                                       string
	}{
		{"all", nil, true, true, true, true, true, true, true, "{0 0}"},
		{"1 % of the puts of a date", unread('P', 2), true, true, true, true, true, true, true, "{0 2}"},
		{"1.5 % of the puts of a date", unread('P', 3), true, true, true, false, true, true, true, "{0 3}"},
		{"1.25 % of all calls", unread('C', 5), false, false, true, false, true, false, true, "{5 0}"},
		{"no put", func(r byte, _ int, _ *compute.Quote) bool { return r == 'C' }, false, true, false, false, true, false, false, "{0 200}"},
		{"no volume of puts", func(r byte, _ int, q *compute.Quote) bool {
			if r == 'P' {
				q.Volume = math.NaN()
			}
			return true
		}, true, true, true, true, true, true, false, "{0 0}"},
	} {
		chain := build(t, index(7000, noon), append(book("SPXW260821", c.near), book("SPXW260918", nil)...)...)
		r := compute.GammaExposure(compute.GammaInput{Chain: chain, Calendar: cal})
		g, v := r.Data, r.Volatility.Data
		pains := compute.MaxPains(chain, cal)
		for name, known := range map[string][2]bool{
			"net": {g.Net != nil, c.net}, "gross": {g.Gross != nil, c.net}, "call": {g.Call != nil, c.call}, "put": {g.Put != nil, c.put},
			"status": {g.FlipStatus != compute.FlipUnknown, c.net}, "delta": {g.Exposures.Delta != nil, c.net}, "profile": {g.Profile[0].Net != nil, c.net},
			"near date": {g.ByExpiration[0].Net != nil, c.nearDate}, "far date": {g.ByExpiration[1].Net != nil, c.farDate},
			"open interest ratio": {v.PutCallOpenInterest != nil, c.pc}, "volume ratio": {v.PutCallVolume != nil, c.pcv},
			"by volume": {g.Conventions[3].Net != nil, c.net && c.pcv}, "column": {r.Matrix.Expirations[0].Net != nil, c.nearDate},
			"max pain": {pains[0].MaxPain != nil, c.nearDate}, "max pain of the far date": {pains[1].MaxPain != nil, c.farDate},
		} {
			if known[0] != known[1] {
				t.Errorf("%s: %s is known: %v, want %v", c.name, name, known[0], known[1])
			}
		}
		equal(t, c.name, fmt.Sprint(r.Quality.Contracts.InterestUnknown), c.lost)
		equal(t, c.name+", counted alone", compute.UnknownInterest(chain, cal), r.Quality.Contracts.InterestUnknown)
	}
}

// Without a contract of today, zero_dte is unknown where one must be listed.
func TestNoContractOfToday(t *testing.T) {
	for _, c := range []struct {
		symbol, today string
		listed        []string
		want          string
	}{
		{"SPX", "2026-08-12", []string{"260813"}, "not_listed"},
		{"SPX", "2019-08-13", []string{"190814", "190816", "190819"}, ""}, // Tuesdays came in 2022
		{"SPX", "2019-08-14", []string{"190821", "190828"}, "not_listed"}, // Wednesdays in 2016
		{"AAPL", "2026-08-12", []string{"260814", "260821"}, ""},
		{"AAPL", "2026-08-14", []string{"260821", "260828"}, "not_listed"},
		{"AAPL", "2026-08-14", []string{"260821", "260918"}, ""},
		{"AAPL", "2026-08-21", []string{"260918"}, "not_listed"}, // a third Friday
		{"NDX", "2019-08-16", []string{"190823", "190830"}, ""},  // NDX settles at the open
	} {
		root := map[string]string{"SPX": "SPXW", "NDX": "NDXP"}[c.symbol]
		if root == "" {
			root = c.symbol
		}
		var rows []row
		for _, date := range c.listed {
			rows = append(rows, bothSides(row{symbolOf(root+date+"C", 7000), published(0.2, 10)})...)
		}
		u := index(7000, c.today+"T15:00:00Z")
		u.Symbol = c.symbol
		r := exposure(t, u, rows...)
		got := ""
		if r.Quality.ZeroDTEReason != nil {
			got = *r.Quality.ZeroDTEReason
		}
		equal(t, fmt.Sprint(c.symbol, c.today, c.listed), got, c.want)
		equal(t, "null", r.Data.ZeroDTE.Net == nil, c.want != "")
	}
}
