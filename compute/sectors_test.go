package compute_test

import (
	"fmt"
	"testing"

	"strikecache/compute"
)

// quoteOf is a fund at a price, with the day's return in percent and a close of 100 on the base days of Tuesday 2026-08-11.
func quoteOf(price, dayReturn float64) compute.Fund {
	f := compute.Fund{Quote: compute.UnderlyingQuote{Spot: price, PriceChangePercent: dayReturn, AsOf: at("2026-08-11T20:00:00Z")}}
	for _, base := range []string{"2025-12-31", "2026-05-11", "2026-07-10", "2026-08-04"} {
		f.Closes = append(f.Closes, compute.Close{Date: day(base), Price: 100})
	}
	return f
}

// market is SPY and the 11 funds with the day returns -0.5, -0.4 … 0.5 in the order of the sectors.
func market() map[string]compute.Fund {
	funds := map[string]compute.Fund{"SPY": quoteOf(110, 0.05)}
	for i, s := range compute.Sectors {
		funds[s.Symbol] = quoteOf(110, float64(i-5)/10)
	}
	return funds
}

func rotation(t *testing.T, funds map[string]compute.Fund) compute.Rotation {
	t.Helper()
	r, used := compute.SectorRotation(compute.SectorsInput{Funds: funds, Calendar: cal})
	if used == nil {
		t.Fatal("no rotation")
	}
	return r
}

// Sectors with equal returns of the period and of the day are ranked by symbol.
func TestSectorRankTies(t *testing.T) {
	funds := market()
	for symbol := range funds {
		funds[symbol] = quoteOf(110, 1)
	}
	funds["XLE"] = quoteOf(110, 2)
	ranks := map[string]string{}
	for _, s := range rotation(t, funds).Sectors {
		ranks[s.Symbol] = fmt.Sprint(*s.Rank.Day, *s.Rank.Week, *s.Rank.Month, *s.Rank.Quarter, *s.Rank.YTD)
	}
	for i, symbol := range []string{"XLE", "XLB", "XLC", "XLF", "XLI", "XLK", "XLP", "XLRE", "XLU", "XLV", "XLY"} {
		equal(t, symbol, ranks[symbol], fmt.Sprint(i+1, i+1, i+1, i+1, i+1))
	}
}

// The tone is risk_on above +0.5 and risk_off below -0.5. At exactly ±0.5 it is mixed.
func TestTone(t *testing.T) {
	for spread, want := range map[float64]string{0.5: "mixed", 0.501: "risk_on", -0.5: "mixed", -0.501: "risk_off", 3: "risk_on", -3: "risk_off"} {
		funds := market()
		for _, s := range []string{"XLY", "XLF", "XLI", "XLB", "XLK"} {
			funds[s] = quoteOf(110, 1+spread)
		}
		for _, s := range []string{"XLP", "XLU", "XLV"} {
			funds[s] = quoteOf(110, 1)
		}
		r := rotation(t, funds)
		near(t, "spread", r.CycMinusDef, spread, 1e-12)
		text(t, fmt.Sprint("tone of ", spread), r.Tone, want)
	}
}

// A rotation needs a sector, which may be leader and laggard.
func TestRotationOfOneSector(t *testing.T) {
	funds := map[string]compute.Fund{"SPY": quoteOf(110, 0.05), "XLK": quoteOf(110, 0.2)}
	r := rotation(t, funds)
	equal(t, "the only leader", fmt.Sprint(r.Leaders, r.Laggards), "[{XLK Information Technology 0.2}] [{XLK Information Technology 0.2}]")
	near(t, "stdev of one", r.Dispersion.Stdev, 0, 0)
	delete(funds, "XLK")
	if _, used := compute.SectorRotation(compute.SectorsInput{Funds: funds, Calendar: cal}); used != nil {
		t.Error("a rotation without a sector")
	}
	if _, used := compute.SectorRotation(compute.SectorsInput{Calendar: cal}); used != nil {
		t.Error("a rotation of nothing")
	}
}

// Without the benchmark, the sectors are still served.
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
