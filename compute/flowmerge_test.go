package compute_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"strikecache/compute"
)

// Bands are of the rounded score. 5,000 contracts at 0.05 are just P0, at 5 they are 100 P0, which adds 25; a last price
// above a locked quote adds 15, and none nothing.
func TestBands(t *testing.T) {
	for _, c := range []struct {
		volumeOI, price, last float64
		score                 float64
		band                  string
	}{
		{0, 0.05, 0, 0, "low"}, {29.94, 0.05, 0, 29.9, "low"}, {29.96, 0.05, 0, 30, "notable"},
		{24.94, 5, 0, 49.9, "notable"}, {24.96, 5, 0, 50, "high"}, {29.94, 5, 6, 69.9, "high"}, {29.96, 5, 6, 70, "extreme"},
		{30, 5, 6, 70, "extreme"},
	} {
		const volume = 5000
		openInterest := volume/(0.5*math.Pow(20, c.volumeOI/30)) - 100 // 30·ln(R/0.5)/ln 20 solved
		it := one(t, trade(c.price, c.price, c.last, volume, openInterest, 0))
		nearly(t, fmt.Sprint("score of ", c.volumeOI, " at ", c.price), it.Score, c.score, 1e-9)
		equal(t, fmt.Sprint("band of ", c.score), it.Band, c.band)
	}
}

// ranked is the order of METHODS.md §5: rounded score, premium in whole dollars, contract.
func ranked(a, b compute.FlowItem) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Premium, a.Premium), cmp.Compare(a.Contract, b.Contract))
}

// Equal scores (all components are at their limits) are ordered by premium in whole dollars, equal premiums by contract.
func TestFlowOrder(t *testing.T) {
	full := func(price float64) compute.Quote { return trade(price, price, price+1, 1e6, 0, 0) }
	f := flowOf(t, fund("XLK", 150), nil,
		row{"XLK260821C00150000", full(2)}, row{"XLK260821C00151000", full(3)}, row{"XLK260821P00150000", full(2.000000001)},
		row{"XLK260814P00150000", full(2)}, row{"XLK260821C00149000", trade(2, 2, 2, 1e6, 0, 3600)})
	var got []string
	for _, it := range f.Items {
		got = append(got, it.Contract)
	}
	// 2.000000001 · 1e6 · 100 is 200,000,000.1: the same whole dollars.
	want := []string{"XLK260821C00151000", "XLK260814P00150000", "XLK260821C00150000", "XLK260821P00150000", "XLK260821C00149000"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// randomFlow is a chain of random quotes of which many are absent, crossed, one-sided or absurd.
func randomFlow(t *testing.T, random *rand.Rand, symbol string) compute.ChainFlow {
	t.Helper()
	nan := math.NaN()
	amount := func(scale float64) float64 {
		switch random.IntN(12) {
		case 0:
			return nan
		case 1:
			return 0
		case 2:
			return -1
		case 3:
			return scale * 1e9
		}
		return scale * math.Exp(random.NormFloat64()*2)
	}
	var rows []row
	previous := map[string]float64{}
	for i := range 300 {
		q := trade(amount(2), amount(3), amount(2), math.Round(amount(3000)), min(math.Round(math.Abs(amount(500))), 1e9), random.Float64()*2000-200)
		q.IV, q.Delta = amount(0.3), random.NormFloat64()
		if q.OpenInterest != q.OpenInterest {
			q.OpenInterest = 0
		}
		r := row{symbolOf(symbol+"260821"+string("CP"[i%2]), float64(100+i)), q}
		previous[r.symbol] = amount(0.3)
		rows = append(rows, r)
	}
	return flowOf(t, fund(symbol, 150), previous, rows...)
}

func TestFlowIsBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	seen := 0
	for range 40 {
		f := randomFlow(t, random, "XLK")
		r := f.Rejected
		if f.Eligible+r.Settled+r.NotThisSession+r.LowVolume+r.LowPrice+r.LowPremium != 300 {
			t.Fatalf("%d eligible, %+v", f.Eligible, r)
		}
		if !slices.IsSortedFunc(f.Items, ranked) || len(f.Items) > compute.MaxFlowItems || len(f.Items) > f.Eligible {
			t.Fatal("order or number of items")
		}
		for _, it := range f.Items {
			seen++
			c := it.Components
			for _, part := range []struct{ got, most compute.Score }{{c.VolumeOI, 30}, {c.Premium, 25}, {c.SizeSurprise, 20},
				{c.QuoteLocation, 15}, {c.IVChange, 10}, {it.Score, 100}} {
				if !(part.got >= 0 && part.got <= part.most) {
					t.Fatalf("%+v", it)
				}
			}
			sum := float64(c.VolumeOI + c.Premium + c.SizeSurprise + c.QuoteLocation + c.IVChange)
			nearly(t, "score", it.Score, float64(it.Quality)*sum, 0.05+1e-9)
			if !(it.Quality >= 0.5 && it.Quality <= 1 && it.Confidence >= 0 && it.Confidence <= 0.6) {
				t.Fatalf("%+v", it)
			}
			var back compute.FlowItem
			once := marshal(t, it)
			if err := json.Unmarshal(once, &back); err != nil {
				t.Fatal(err)
			}
			equal(t, "read and written again", string(marshal(t, back)), string(once))
		}
	}
	if seen < 500 {
		t.Errorf("only %d items", seen)
	}
}

// Chains of an older session are left out; the universe is that of the newest, rejects are summed, at most 100 items.
func TestMergeFlow(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 16))
	xlk, spy, old := randomFlow(t, random, "XLK"), randomFlow(t, random, "SPY"), randomFlow(t, random, "QQQ")
	old.Session--
	f := compute.MergeFlow([]compute.ChainFlow{old, xlk, spy})
	equal(t, "universe", fmt.Sprint(f.Universe), "[SPY XLK]")
	equal(t, "session", f.SessionDate, day("2026-08-11"))
	equal(t, "settled", f.Rejected.Settled, 0)
	equal(t, "low volume", f.Rejected.LowVolume, xlk.Rejected.LowVolume+spy.Rejected.LowVolume)
	equal(t, "low price", f.Rejected.LowPrice, xlk.Rejected.LowPrice+spy.Rejected.LowPrice)
	equal(t, "low premium", f.Rejected.LowPremium, xlk.Rejected.LowPremium+spy.Rejected.LowPremium)
	equal(t, "not this session", f.Rejected.NotThisSession, xlk.Rejected.NotThisSession+spy.Rejected.NotThisSession)
	all := slices.Concat(xlk.Items, spy.Items)
	slices.SortFunc(all, ranked)
	all = all[:min(len(all), compute.MaxFlowItems)]
	equal(t, "count", f.Count, len(all))
	for i := range all {
		equal(t, "item", f.Items[i].ID, all[i].ID)
	}
	reversed := compute.MergeFlow([]compute.ChainFlow{spy, xlk, old})
	equal(t, "order of the chains", string(marshal(t, reversed)), string(marshal(t, f)))

	few := f.Limit(3)
	equal(t, "limited", len(few.Items), 3)
	equal(t, "limited count", few.Count, 3)
	equal(t, "the whole is left", len(f.Items), len(all))
	equal(t, "more than there is", f.Limit(1000).Count, len(all))
	empty := compute.MergeFlow(nil)
	equal(t, "empty", string(marshal(t, empty.Items))+string(marshal(t, empty.Universe)), "[][]")
	equal(t, "two sessions", compute.MergeFlow([]compute.ChainFlow{xlk, old}).SessionDate, day("2026-08-11"))
}

// At most 100 items are kept of a chain: the best.
func TestFlowKeepsTheBest(t *testing.T) {
	var rows []row
	for i := range 150 {
		rows = append(rows, row{symbolOf("XLK260821C", float64(100+i)), trade(2, 2, 2, 1000, float64(i)*40, 60)})
	}
	f := flowOf(t, fund("XLK", 150), nil, rows...)
	equal(t, "eligible", f.Eligible, 150)
	equal(t, "items", len(f.Items), 100)
	// The score falls with open interest: the strikes from 100 on are the best.
	for _, it := range f.Items {
		if it.Strike > 199 && it.Score > f.Items[99].Score {
			t.Errorf("%s has %v", it.Contract, it.Score)
		}
	}
}
