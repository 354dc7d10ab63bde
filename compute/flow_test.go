package compute_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"strikecache/compute"
)

// trade is a contract that last traded ago seconds before noon, without a published volatility or delta.
func trade(bid, ask, last, volume, openInterest, ago float64) compute.Quote {
	q := quoted(bid, ask, openInterest)
	q.Last, q.Volume, q.LastTrade = last, volume, at(noon).Unix()-int64(ago)
	return q
}

// placed is a trade whose option has hardly moved since. So only the age of the trade lowers the trust.
func placed(bid, ask, last, volume, openInterest, ago float64) compute.Quote {
	q := trade(bid, ask, last, volume, openInterest, ago)
	q.Delta, q.IV = 0.001, 0.2
	return q
}

func flowOf(t testing.TB, u compute.UnderlyingQuote, before *compute.Chain, rows ...row) compute.ChainFlow {
	t.Helper()
	return compute.UnusualFlow(compute.FlowInput{Chain: build(t, u, rows...), Calendar: cal, Before: before})
}

// only returns the single item of a flow.
func only(t *testing.T, f compute.ChainFlow) compute.FlowItem {
	t.Helper()
	if len(f.Items) != 1 || f.Eligible != 1 {
		t.Fatalf("%d items, %d eligible, rejected %+v", len(f.Items), f.Eligible, f.Rejected)
	}
	return f.Items[0]
}

// one scores a single call of XLK with a spread of 10 %, which costs no quality.
func one(t *testing.T, q compute.Quote) compute.FlowItem {
	t.Helper()
	return only(t, flowOf(t, of("XLK", 150), nil, row{"XLK260821C00157500", q}))
}

// An item that is written and read again is the same.
func TestFlowJSON(t *testing.T) {
	var right compute.Right
	for _, s := range []string{`"calls"`, `1`, `""`} {
		if err := right.UnmarshalJSON([]byte(s)); err == nil {
			t.Errorf("%s is accepted as a right", s)
		}
	}
	if err := right.UnmarshalJSON([]byte(`"put"`)); err != nil || right != compute.Put {
		t.Errorf("a put is read as %v: %v", right, err)
	}
	nulls := trade(math.NaN(), math.NaN(), 2, 1000, 0, 60)
	for _, q := range []compute.Quote{placed(1.9, 2.1, 2.1, 1000, 400, 90), nulls} {
		once := marshal(t, one(t, q))
		var back compute.FlowItem
		must(t, json.Unmarshal(once, &back))
		equal(t, "read and written again", string(marshal(t, back)), string(once))
	}
}

// A reason has a fixed number of decimals, and a change of volatility its sign.
func TestReasons(t *testing.T) {
	q := trade(1.9, 2.1, 2.1, 1000, 400, 90)
	q.IV, q.Delta = 0.25, 0.31
	before := build(t, of("XLK", 150), row{"XLK260821C00157500", placed(1.9, 2.1, 2.1, 1000, 400, 90)}) // of IV 0.2
	it := only(t, flowOf(t, of("XLK", 150), before, row{"XLK260821C00157500", q}))
	equal(t, "reasons", fmt.Sprint(it.Reasons), "[VOL_OI 2.5x PREMIUM 200K AT_ASK L=1.00 IV +5.0]")
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
	equal(t, "a slow rise from the lowest point", contract(19.37, 19.11, 19.11, 19.15, 19.23, 19.31, 19.38, 19.44).Shape, "trough")
	in := evening("2026-10-05", prices(17, 18)...)
	in.VIX, in.VIX3M = new(18.34), new(20.0)
	ratio, _ := curve(t, in)
	text(t, "VIX over VIX3M of 0.917", ratio.CashRegime, "flattening")
	equal(t, "opening with a volume of the open interest", one(t, trade(1.9, 2.1, 2, 1000, 1000, 60)).OpeningLikely, false)
	equal(t, "side at f = 0.5", one(t, placed(1.9, 2.1, 2.1, 3000, 1e6, 450)).Side, "ask")
	f := flowOf(t, of("XLK", 150), nil, row{"XLK260821C00157500", trade(.01, .19, .1, 2500, 0, 0)})
	equal(t, "premium of 25,000", f.Rejected, compute.FlowRejected{})
	item := one(t, trade(1.9, 2.1, 2, 3000, 1e6, 0)) // a spread of 10 % is not wide
	equal(t, "quality", item.Quality, 1)
	for _, reason := range item.Reasons {
		if len(reason) > 4 && reason[:4] == "WIDE" {
			t.Errorf("a spread of 10 %% is called %s", reason)
		}
	}
}
