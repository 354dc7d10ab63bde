package compute_test

import (
	"testing"

	"strikecache/compute"
)

// The solver recovers a volatility also where a step lands on it exactly.
func TestImpliedWhereAStepIsExact(t *testing.T) {
	p := compute.BlackValue(compute.Call, 7728.2, 7314.626520414114, 0.5)
	v, ok := compute.ImpliedTotalVolatility(compute.Call, p, 7728.2, 7314.626520414114)
	if !ok {
		t.Fatal("no volatility")
	}
	nearly(t, "v", v, 0.5, 1e-12)
	if v, ok := compute.ImpliedTotalVolatility(compute.Call, 9, 9, 0.1); ok {
		t.Errorf("a call worth its forward has volatility %v", v)
	}
}

// What ties with a threshold on paper ties here: labels agree with the rounded number beside them.
func TestLabelsAtDecimalBoundaries(t *testing.T) {
	contract := func(values ...float64) compute.VIXCurve {
		c, _ := curve(t, evening("2026-10-05", prices(values...)...))
		return c
	}
	text(t, "contango of 1.5 %", contract(16, 16.24, 30).Regime, "contango")
	text(t, "contango of -8 %", contract(25, 23, 30).Regime, "steep_backwardation")
	equal(t, "differences of 0.10", contract(20, 20.1, 20.05).Shape, "flat")
	equal(t, "one contract", contract(20).Shape, "flat")
	equal(t, "side at L = 0.5", one(t, trade(1.9, 2.1, 2.05, 3000, 1e6, 0)).Side, "ask")
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

// Sums are exact in thousandths, so that a flat minimum is found at strikes in tenths too.
func TestMaxPainAtStrikesInTenths(t *testing.T) {
	p := pains(t, 100.2, noon, painRows("SPXW260821", oi{100, 0, 2}, oi{100.1, 2, 2}, oi{100.2, 0, 0}, oi{100.3, 0, 2}, oi{100.4, 0, 0})...)[0]
	near(t, "max pain", p.MaxPain, 100.2, 0)
	equal(t, "range", *p.Range, [2]compute.Level{100.1, 100.3})
}

// Absurd numbers are absent ones: they must not lose the document.
func TestAbsurdNumbers(t *testing.T) {
	absurd := func(change func(*compute.Quote)) compute.Quote {
		q := quoted(10, 11, 100)
		q.IV, q.Volume = 0.2, 10
		change(&q)
		return q
	}
	for name, q := range map[string]compute.Quote{
		"iv":            absurd(func(q *compute.Quote) { q.IV, q.Bid, q.Ask = 1e200, 0, 0 }),
		"open interest": absurd(func(q *compute.Quote) { q.OpenInterest = 1e308 }),
		"bid and ask":   absurd(func(q *compute.Quote) { q.Bid, q.Ask = 1e-308, 1e-308 }),
		"volume":        absurd(func(q *compute.Quote) { q.Volume = 1e306 }),
		"gamma":         absurd(func(q *compute.Quote) { q.Gamma = 1e300 }),
	} {
		var rows []row
		for _, k := range []float64{6900, 7000, 7100} {
			for _, right := range []string{"C", "P"} {
				rows = append(rows, row{symbolOf("SPXW260821"+right, k), q})
			}
		}
		rows = append(rows, row{symbolOf("SPXW260821C", 7050), blank(5)})
		u := index(7000, noon)
		r := exposure(t, u, rows...)
		marshal(t, r.Data)
		marshal(t, r.Quality)
		for _, p := range pains(t, 7000, noon, rows...) {
			marshal(t, p)
		}
		marshal(t, compute.MergeFlow([]compute.ChainFlow{flowOf(t, u, nil, rows...)}))
		if r.Quality.Contracts.Listed != len(rows) {
			t.Errorf("%s: %+v", name, r.Quality.Contracts)
		}
	}
	var b compute.ChainBuilder
	b.Add([]byte("SPXW260821C07000000"), blank(5))
	u := index(1e17, noon)
	if _, err := b.Build(u); err == nil {
		t.Error("a spot of 1e17 is accepted")
	}
}

// A symbol counts once on the curve, and a year has 1, 2 or 4 digits.
func TestSettlementRowsCountOnce(t *testing.T) {
	c, q := curve(t, evening("2026-10-05", future("VX/V6", "2026-10-21", 17), future("VX/V6", "2026-10-21", 17), future("VX/X026", "2026-11-18", 18)))
	equal(t, "months", len(c.Curve), 1)
	equal(t, "bad rows", q.BadRows, 1)
	equal(t, "weekly", q.Weekly, 1)
}

// Without the benchmark the sectors are served all the same.
func TestRotationWithoutBenchmark(t *testing.T) {
	funds := market()
	delete(funds, compute.Benchmark)
	r := rotation(t, funds)
	equal(t, "sectors", len(r.Sectors), 11)
	equal(t, "missing", r.Missing[0], compute.Benchmark)
	isNull(t, "price", r.Benchmark.Price)
	isNull(t, "relative", r.Sectors[0].Relative.Day)
	isNull(t, "above benchmark", r.Breadth.AboveBenchmark)
	if r.Sectors[0].Rank.Day == nil || r.Tone == nil {
		t.Error("ranks and tone do not rest on the benchmark")
	}
}
