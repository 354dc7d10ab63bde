package compute_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"strikecache/compute"
)

// A quote with an ask above 3 times its bid is no price.
func TestUsableQuotes(t *testing.T) {
	for _, c := range []struct {
		bid, ask float64
		want     bool
	}{{1, 1, true}, {0.1, 0.3, true}, {0.05, 0.16, false}, {0.05, 10, false}, {0, 0.05, false}, {2, 1, false}, {math.NaN(), 1, false}, {1, math.NaN(), false}} {
		equal(t, "usable", (&compute.Quote{Bid: c.bid, Ask: c.ask}).TwoSided(), c.want)
	}
}

// Quotes of some strikes are wrong in a market of 16 % with a forward of 7000. The others say which, and every figure is as without them.
func TestQuotesThatContradict(t *testing.T) {
	around := func(q *compute.Quote, price float64) { q.Bid, q.Ask = price*0.99, price*1.01 }
	for name, c := range map[string]struct {
		change func(k float64, call, put *compute.Quote)
		want   int // contradictory strikes
	}{
		"none":                 {func(float64, *compute.Quote, *compute.Quote) {}, 0},
		"a dear call":          {func(k float64, call, _ *compute.Quote) { around(call, cut(k == 7200, 900, call)) }, 1},
		"a dear put":           {func(k float64, _, put *compute.Quote) { around(put, cut(k == 6800, 900, put)) }, 1},
		"a cheap call":         {func(k float64, call, _ *compute.Quote) { around(call, cut(k == 7100, 0.5, call)) }, 1},
		"two neighbours":       {func(k float64, call, _ *compute.Quote) { around(call, cut(k == 7200 || k == 7250, 900, call)) }, 2},
		"at the money":         {func(k float64, call, _ *compute.Quote) { around(call, cut(k == 7000, 400, call)) }, 1},
		"in order, off parity": {func(k float64, call, _ *compute.Quote) { around(call, cut(k == 7150, 72, call)) }, 1}, // 77 and 45 beside it
		"in the money":         {func(k float64, call, _ *compute.Quote) { around(call, cut(k == 6500, 520, call)) }, 1},
		"below intrinsic value": {func(k float64, call, put *compute.Quote) {
			around(call, cut(k < 6900, 6960-k, call))
			around(put, cut(k > 7100, k-7040, put))
		}, 36},
		"one price for all that are far": {func(k float64, call, put *compute.Quote) {
			around(call, cut(k > 7750, 1, call))
			around(put, cut(k > 7750, 1, put))
		}, 5},
		"a tie at the slack of 0.20": {func(k float64, call, put *compute.Quote) {
			if k == 7000 {
				call.Bid, call.Ask, put.Bid, put.Ask = 114.9, 114.9, 114.7, 114.7 // their difference in binary is a little more
			}
		}, 0},
		"swapped": {func(k float64, call, _ *compute.Quote) {
			if other := map[float64]float64{7150: 7250, 7250: 7150}[k]; other > 0 {
				*call, _ = fair(0.01)(other)
			}
		}, 2},
	} {
		var rows []row
		for _, k := range strikes(6000, 8000, 50) {
			call, put := fair(0.01)(k)
			c.change(k, &call, &put)
			rows = append(rows, row{symbolOf("SPXW260904C", k), call}, row{symbolOf("SPXW260904P", k), put})
		}
		v := volatilityOf(build(t, index(7000, vectorTime), rows...), 0)
		equal(t, name+": contradictory strikes", v.Quality.Contradictory, c.want)
		e := v.Data.Expirations[0]
		nearly(t, name+": forward", e.Forward, 7000, 0.2)
		near(t, name+": at the money", e.ATM, 16, 0.1)
		near(t, name+": risk reversal", e.RiskReversal25, 0, 0.1)
		near(t, name+": model-free", e.ModelFree, 16, 0.15)
	}
}

// cut returns a price where a condition holds, else the middle of a quote.
func cut(holds bool, price float64, q *compute.Quote) float64 {
	if holds {
		return price
	}
	return (q.Bid + q.Ask) / 2
}

// A far call has no usable quote, in a market of 16 %. Its published volatility counts if it can be true: the call at 7400 is worth 9.80 at
// 16 %, and that at 7350 is quoted 15.4. Else the volatility of its neighbours counts.
func TestPublishedVolatility(t *testing.T) {
	for _, c := range []struct {
		name         string
		bid, ask, iv float64
		want         int // the step: published or interpolated
	}{
		{"possible", 0, 12, 0.16, 1},
		{"no quote", 0, 0, 0.16, 1},
		{"a little over the ask", 0, 8, 0.16, 1},
		{"over twice the ask", 0, 4, 0.16, 2},
		{"a stub quote", 0.05, 40, 0.16, 1},
		{"in percent", 0, 12, 16, 2},
		{"no quote, in percent", 0, 0, 16, 2},
		{"under half the bid", 3, 40, 0.08, 2},
		{"half of the neighbours", 0, 0, 0.079, 2},
		{"a placeholder", 0, 0, 1e-5, 2},
		{"a crossed quote", 30, 1, 0.16, 1},
		{"an ask alone", math.NaN(), 1, 0.16, 1},
	} {
		var rows []row
		for _, k := range strikes(6700, 7400, 50) {
			call, put := fair(0.01)(k)
			call.OpenInterest, put.OpenInterest = 0, 0
			if k == 7400 {
				call.Bid, call.Ask, call.IV, call.OpenInterest, put.Bid = c.bid, c.ask, c.iv, 10, 0
			}
			rows = append(rows, row{symbolOf("SPXW260904C", k), call}, row{symbolOf("SPXW260904P", k), put})
		}
		r := exposure(t, index(7000, vectorTime), rows...)
		near(t, c.name, r.Quality.Volatility[c.want].OpenInterest, 100, 0)
	}
}

// A quote of 0 × 0 is missing, and not a bid of 0: one in five of them moves the formula of the VIX by less than a tenth of a point. Where
// the quotes end while options are dear, the formula has no figure, and neither have 30 days, whatever other dates have.
func TestModelFreeOfMissingQuotes(t *testing.T) {
	whole := smileMarket()
	for _, r := range whole {
		if after, later := strings.CutPrefix(r.symbol, "SPXW260911"); later { // a later date is no substitute
			whole = append(whole, row{"SPXW260925" + after, r.Quote})
		}
	}
	of := func(keep func(i int, r *row) bool) compute.VolatilityResult {
		var rows []row
		for i, r := range whole {
			if keep(i, &r) {
				rows = append(rows, r)
			}
		}
		return volatilityOf(build(t, index(7000, vectorTime), rows...), 0.04)
	}
	want := float64(*of(func(int, *row) bool { return true }).Data.ModelFree30)
	missing := of(func(i int, r *row) bool {
		if i*7919%100 < 20 {
			r.Bid, r.Ask = 0, 0
		}
		return true
	})
	near(t, "with 20 % missing", missing.Data.ModelFree30, want, 0.1)
	for name, keep := range map[string]func(k float64) bool{
		"puts end":   func(k float64) bool { return k > 6700 },
		"calls end":  func(k float64) bool { return k < 7200 },
		"near alone": func(k float64) bool { return math.Abs(k-7020) < 60 },
	} {
		v := of(func(_ int, r *row) bool {
			k, _ := strconv.ParseFloat(r.symbol[11:], 64)
			return r.symbol[:10] != "SPXW260911" || keep(k/1000)
		})
		isNull(t, name, v.Data.ModelFree30)
		equal(t, name, v.Quality.Unknown["model_free_30d"], "quote_gap")
		equal(t, name, v.Data.Expirations[1].Unknown["model_free_volatility"], "quote_gap")
	}
}
