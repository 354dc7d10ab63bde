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
			mean, deviation, _, _ := moments(levels[symbol], levels["VIX"])
			t.Logf("seed %d: %s has mean %.2f and deviation %.2f", seed, symbol, mean, deviation)
			if mean < 12 || mean > 25 || deviation >= last {
				t.Errorf("seed %d: %s has mean %.2f and deviation %.2f, the index with a shorter term %.2f", seed, symbol, mean, deviation, last)
			}
			last = deviation
		}
		for symbol, c := range map[string]struct{ least, most, with float64 }{"VVIX": {60, 180, 1}, "SKEW": {110, 160, -1}} {
			_, _, correlation, ends := moments(levels[symbol], levels["VIX"])
			if correlation*c.with < 0.8 || ends[0] < c.least || ends[1] > c.most {
				t.Errorf("seed %d: %s is from %.1f to %.1f, with a correlation of %.2f to the VIX", seed, symbol, ends[0], ends[1], correlation)
			}
		}
	}
}

// moments returns mean, standard deviation, correlation with another series, and the lowest and highest value.
func moments(x, y []float64) (mean, deviation, correlation float64, ends [2]float64) {
	n, other := float64(len(x)), 0.0
	ends = [2]float64{math.Inf(1), math.Inf(-1)}
	for i := range x {
		mean, other = mean+x[i]/n, other+y[i]/n
		ends = [2]float64{min(ends[0], x[i]), max(ends[1], x[i])}
	}
	var xx, yy, xy float64
	for i := range x {
		xx, yy, xy = xx+(x[i]-mean)*(x[i]-mean), yy+(y[i]-other)*(y[i]-other), xy+(x[i]-mean)*(y[i]-other)
	}
	return mean, math.Sqrt(xx / n), xy / math.Sqrt(xx*yy), ends
}

// The close of an index in the history is its last quote of the session, also on an early close.
func TestCloseIsTheLastQuote(t *testing.T) {
	calendar := compute.NewCalendar(nil, nil)
	m := newMarket(1)
	history := map[string][]compute.Close{}
	for _, symbol := range compute.VIXIndices {
		history[symbol] = closesOf(t, m, "_"+symbol, ny("2026-12-01 11:00:00"))
	}
	d := compute.NewDate(2026, 11, 30)
	for range 15 {
		for symbol, closes := range history {
			quote, err := cboe.DecodeQuote(documentAt(t, m, upstream.Quotes("_"+symbol), d.At(18, 45, 0, compute.NewYork)).Body)
			i, found := slices.BinarySearchFunc(closes, d, func(c compute.Close, d compute.Date) int { return int(c.Date - d) })
			if err != nil || !found || quote.Spot != closes[i].Price {
				t.Errorf("%s of %s: the last quote is %v, the close %v, %v", symbol, d, quote.Spot, closes[i], err)
			}
		}
		d = calendar.Previous(d)
	}
}
