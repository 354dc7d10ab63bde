package compute_test

import (
	"testing"

	"strikecache/compute"
)

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
