package compute_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"strikecache/compute"
)

// peers returns contracts of one date and delta bucket with the given volumes. Only the first volume is large enough to be
// eligible.
func peers(symbols string, delta float64, volumes ...float64) []row {
	var rows []row
	for i, v := range volumes {
		q := trade(1.9, 2.1, 2, v, 1e6, 3600)
		q.Delta = delta
		rows = append(rows, row{symbolOf(symbols, 150+float64(i)/2), q})
	}
	return rows
}

func surprise(t *testing.T, rows []row) float64 {
	t.Helper()
	f := flowOf(t, fund("XLK", 150), nil, rows...)
	for _, it := range f.Items {
		if it.Contract == rows[0].symbol {
			return float64(it.Components.SizeSurprise)
		}
	}
	t.Fatalf("%s is not eligible: %+v", rows[0].symbol, f.Rejected)
	return 0
}

// Robust z of ln(1 + V). With volumes e^x - 1 for x = 8 and 2, 2.2, 2.4, 2.6, 2.8, 3, 3.2 the median is 2.7 and the
// deviations {5.3, 0.7, 0.5, 0.3, 0.1, 0.1, 0.3, 0.5} have the median 0.4: z = 5.3/(1.4826·0.4).
func TestSizeSurprise(t *testing.T) {
	exp := func(xs ...float64) []float64 {
		for i, x := range xs {
			xs[i] = math.Expm1(x)
		}
		return xs
	}
	spread := exp(8, 2, 2.2, 2.4, 2.6, 2.8, 3, 3.2)
	even := exp(8, 3, 3, 3, 3, 3, 3, 3)
	for _, c := range []struct {
		name    string
		volumes []float64
		want    float64
	}{
		{"MAD", spread, 20 * math.Min((5.3/(1.4826*0.4)-1)/4, 1)},
		{"seven peers are too few", spread[:7], 0},
		{"a contract that did not trade is no peer", append(slices.Clone(spread[:7]), 0), 0},
		{"MAD of 0: 0.25", even, 20}, // z = 5/0.25
		{"floor of 0.25", exp(5.25, 4.75, 4.75, 4.75, 4.75, 4.75, 4.75, 4.75), 20 * (0.5/0.25 - 1) / 4},
		{"floor of 0.25, z under 1", exp(5, 4.8, 4.8, 4.8, 4.8, 4.8, 4.8, 4.8), 0},
		{"nine peers: the middle one", exp(6, 2, 3, 3, 4, 4, 4.5, 5, 5), 20 * (2/(1.4826*1) - 1) / 4},
		{"not the largest", exp(5, 6, 7, 8, 9, 9, 9, 9), 0},
	} {
		nearly(t, c.name, surprise(t, peers("XLK260821C", 0.3, c.volumes...)), c.want, 1e-9)
	}
}

// Peers share underlying, right, bucket of days {0, 1–7, 8–30, 31–90, >90} and of |delta| {<.1, .1–.25, .25–.5, ≥.5}: seven
// peers are not enough, so the eighth contract decides.
func TestSizePeers(t *testing.T) {
	volumes := []float64{3000, 20, 20, 20, 20, 20, 20}
	for _, c := range []struct {
		name, date string
		delta      float64
		eighth     string // its date and right
		itsDelta   float64
		peer       bool
	}{
		{"same", "260821C", 0.3, "260821C", 0.3, true},
		{"another date of the bucket", "260821C", 0.3, "260910C", 0.3, true}, // 10 and 30 days
		{"31 days", "260821C", 0.3, "260911C", 0.3, false},
		{"8 days", "260821C", 0.3, "260819C", 0.3, true},
		{"7 days", "260821C", 0.3, "260818C", 0.3, false},
		{"1 and 7 days", "260812C", 0.3, "260818C", 0.3, true},
		{"0 and 1 days", "260811C", 0.3, "260812C", 0.3, false},
		{"31 and 90 days", "260911C", 0.3, "261109C", 0.3, true},
		{"90 and 91 days", "261109C", 0.3, "261110C", 0.3, false},
		{"91 days and years", "261110C", 0.3, "281215C", 0.3, true},
		{"the other right", "260821C", 0.3, "260821P", 0.3, false},
		{"delta .25 to .5", "260821C", 0.25, "260821C", 0.4999, true},
		{"delta .5", "260821C", 0.25, "260821C", 0.5, false},
		{"delta under .25", "260821C", 0.25, "260821C", 0.2499, false},
		{"delta .1 to .25", "260821C", 0.1, "260821C", 0.2499, true},
		{"delta under .1", "260821C", 0.1, "260821C", 0.0999, false},
		{"delta 0 to .1", "260821C", 0, "260821C", 0.0999, true},
		{"delta .5 to 1", "260821C", 0.5, "260821C", 1, true},
		{"the sign does not matter", "260821P", -0.3, "260821P", 0.3, true},
		{"no delta", "260821C", 0.3, "260821C", math.NaN(), false},
	} {
		rows := peers("XLK"+c.date, c.delta, volumes...)
		eighth := peers("XLK"+c.eighth, c.itsDelta, 20)[0]
		eighth.symbol = strings.Replace(eighth.symbol, "00150000", "00180000", 1)
		rows = append(rows, eighth)
		want := 0.0
		if c.peer {
			want = 20 // all others are equal: the spread is 0.25
		}
		nearly(t, c.name, surprise(t, rows), want, 0)
	}
	// A settled contract is not a peer. A contract without a delta has no peers.
	rows := append(peers("XLK260821C", 0.3, volumes...), peers("XLK260810C", 0.3, 20)...)
	nearly(t, "settled", surprise(t, rows), 0, 0)
	nearly(t, "no delta", surprise(t, peers("XLK260821C", math.NaN(), append(volumes, 20)...)), 0, 0)
}

// A number that equals a threshold as a decimal counts as equal: labels agree with the rounded number beside them.
func TestLabelsAtDecimalBoundaries(t *testing.T) {
	contract := func(values ...float64) compute.VIXCurve {
		c, _ := curve(t, evening("2026-10-05", prices(values...)...))
		return c
	}
	text(t, "contango of 1.5 %", contract(16, 16.24, 30).Regime, "contango")
	text(t, "contango of -8 %", contract(25, 23, 30).Regime, "steep_backwardation")
	equal(t, "differences of 0.10", contract(20, 20.1, 20.05).Shape, "flat")
	equal(t, "one contract", contract(20).Shape, "flat")
	equal(t, "side at L = 0.5", one(t, placed(1.9, 2.1, 2.05, 3000, 1e6, 0)).Side, "ask")
	equal(t, "side at f = 0.5", one(t, placed(1.9, 2.1, 2.1, 3000, 1e6, 450)).Side, "ask")
	f := flowOf(t, fund("XLK", 150), nil, row{"XLK260821C00157500", trade(.01, .19, .1, 2500, 0, 0)})
	equal(t, "premium of 25,000", f.Rejected, compute.FlowRejected{})
	item := one(t, trade(1.9, 2.1, 2, 3000, 1e6, 0)) // a spread of 10 % is not wide
	equal(t, "quality", item.Quality, 1)
	for _, reason := range item.Reasons {
		if len(reason) > 4 && reason[:4] == "WIDE" {
			t.Errorf("a spread of 10 %% is called %s", reason)
		}
	}
}
