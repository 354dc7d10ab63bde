package compute_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"strikecache/compute"
)

// walk returns n daily closes: a random walk that ends with the session of 2026-08-11.
func walk(random *rand.Rand, n int) []compute.Close {
	closes := make([]compute.Close, n)
	d, price := day("2026-08-11"), 100.0
	for i := range closes {
		closes[n-1-i] = compute.Close{Date: d}
		d = cal.Previous(d)
	}
	for i := range closes {
		price *= math.Exp(random.NormFloat64() * 0.01)
		closes[i].Price = price
	}
	return closes
}

func rrgOf(t *testing.T, fund, benchmark []compute.Close) *compute.RRG {
	t.Helper()
	f, b := quoteOf(110, 0.2), quoteOf(660, 0.1)
	f.Closes, b.Closes = fund, benchmark
	return sector(t, rotation(t, map[string]compute.Fund{"SPY": b, "XLK": f}), "XLK").RRG
}

// z63 returns (x - mean)/sd of the 63 values that end with index last, by Welford's recurrence. sd has n - 1 in the
// denominator.
func z63(xs map[int]float64, last int) float64 {
	mean, m2, n := 0.0, 0.0, 0.0
	for i := last - 62; i <= last; i++ {
		n++
		delta := xs[i] - mean
		mean += delta / n
		m2 += delta * (xs[i] - mean)
	}
	return (xs[last] - mean) / math.Sqrt(m2/(n-1))
}

// rrgByHand computes METHODS.md §3 backwards from the last close. The 63 values of the momentum need rs_ratio at the last
// 73 closes, and these need 135 closes.
func rrgByHand(fund, benchmark []compute.Close) (ratio, momentum float64) {
	last := len(fund) - 1
	rs, ratios, changes := map[int]float64{}, map[int]float64{}, map[int]float64{}
	for i := range fund {
		rs[i] = fund[i].Price / benchmark[i].Price
	}
	for i := last; i > last-73; i-- {
		ratios[i] = 100 + z63(rs, i)
	}
	for i := last; i > last-63; i-- {
		changes[i] = ratios[i] - ratios[i-10]
	}
	return ratios[last], 100 + z63(changes, last)
}

func TestRRG(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 18))
	seen := map[string]int{}
	for i := range 200 {
		n := 135 + random.IntN(200)
		fund, benchmark := walk(random, n), walk(random, n)
		ratio, momentum := rrgByHand(fund, benchmark)
		want := "lagging"
		switch {
		case ratio >= 100 && momentum >= 100:
			want = "leading"
		case ratio >= 100:
			want = "weakening"
		case momentum >= 100:
			want = "improving"
		}
		got := rrgOf(t, fund, benchmark)
		if got == nil {
			t.Fatalf("%d: no point from %d closes", i, n)
		}
		nearly(t, "ratio", got.Ratio, ratio, 1e-9)
		nearly(t, "momentum", got.Momentum, momentum, 1e-9)
		equal(t, fmt.Sprintf("quadrant of %v, %v", ratio, momentum), got.Quadrant, want)
		seen[want]++
	}
	if len(seen) != 4 {
		t.Errorf("quadrants %v", seen)
	}
}

// A point needs 135 common closes, and no more. Dates that only one history has do not count.
func TestRRGNeedsCommonCloses(t *testing.T) {
	random := rand.New(rand.NewPCG(19, 20))
	fund, benchmark := walk(random, 160), walk(random, 160)
	if rrgOf(t, fund[160-134:], benchmark) != nil || rrgOf(t, fund, benchmark[160-134:]) != nil || rrgOf(t, nil, benchmark) != nil {
		t.Error("a point from fewer than 135 closes")
	}
	full := rrgOf(t, fund[160-135:], benchmark)
	if full == nil || *full != *rrgOf(t, fund, benchmark) {
		t.Errorf("from 135 closes %+v, from all %+v", full, rrgOf(t, fund, benchmark))
	}
	if other := rrgOf(t, fund, benchmark[160-135:]); other == nil || *other != *full {
		t.Errorf("from 135 closes of the benchmark %+v, want %+v", other, full)
	}
	// One date missing in each history gives the same point as both dates missing in both.
	without := func(closes []compute.Close, drop ...int) []compute.Close {
		var out []compute.Close
		for i, c := range closes {
			if i != drop[0] && i != drop[len(drop)-1] {
				out = append(out, c)
			}
		}
		return out
	}
	holes := rrgOf(t, without(fund, 100), without(benchmark, 140))
	ratio, momentum := rrgByHand(without(fund, 100, 140), without(benchmark, 100, 140))
	nearly(t, "ratio over holes", holes.Ratio, ratio, 1e-9)
	nearly(t, "momentum over holes", holes.Momentum, momentum, 1e-9)
	if rrgOf(t, without(fund[160-135:], 50), benchmark) != nil {
		t.Error("a point from 134 common closes")
	}
}

// A relative strength that never moves has no z-score.
func TestRRGOfAConstant(t *testing.T) {
	benchmark := walk(rand.New(rand.NewPCG(21, 22)), 200)
	fund := make([]compute.Close, len(benchmark))
	for i, c := range benchmark {
		fund[i] = compute.Close{Date: c.Date, Price: 2 * c.Price}
	}
	if got := rrgOf(t, fund, benchmark); got != nil {
		t.Errorf("%+v", *got)
	}
}
