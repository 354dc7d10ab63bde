package simulated_test

import (
	"math"
	"slices"
	"testing"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
)

// Each index of the ladder has a quote. The longer the term of a volatility, the less it moves. VVIX moves with the VIX, and SKEW against it.
// From 2022 to 2026, seeds 1 to 3 have means of VIX9D from 17.8 to 18.9, and of VIX1Y from 20.9 to 21.7.
func TestLadder(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		m, now := newMarket(seed), ny("2026-11-20 11:00:00")
		levels := map[string][]float64{}
		for _, symbol := range compute.VIXIndices {
			quote, err := cboe.DecodeQuote(documentAt(t, m, upstream.Quotes("_"+symbol), now).Body)
			if err != nil || quote.Symbol != symbol || !(quote.Spot > 0) || math.IsNaN(quote.PriceChangePercent) || quote.BadNumbers > 0 {
				t.Errorf("seed %d: quote of %s: %+v, %v", seed, symbol, quote, err)
			}
			for _, c := range closesOf(t, m, "_"+symbol, now) {
				levels[symbol] = append(levels[symbol], c.Price)
			}
		}
		last := math.Inf(1)
		for _, symbol := range compute.VIXIndices[:5] {
			mean, deviation, _, _ := related(levels["VIX"], levels[symbol])
			t.Logf("seed %d: %s has mean %.2f and deviation %.2f", seed, symbol, mean, deviation)
			if mean < 12 || mean > 25 || deviation >= last {
				t.Errorf("seed %d: %s has mean %.2f and deviation %.2f, the index with a shorter term %.2f", seed, symbol, mean, deviation, last)
			}
			last = deviation
		}
		for symbol, c := range map[string]struct{ least, most, with float64 }{"VVIX": {60, 180, 1}, "SKEW": {110, 160, -1}} {
			_, _, correlation, _ := related(levels["VIX"], levels[symbol])
			if least, most := slices.Min(levels[symbol]), slices.Max(levels[symbol]); correlation*c.with < 0.8 || least < c.least || most > c.most {
				t.Errorf("seed %d: %s is from %.1f to %.1f, with a correlation of %.2f to the VIX", seed, symbol, least, most, correlation)
			}
		}
	}
}
