package simulated_test

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"strikecache/compute"
)

// The daily returns of NDX and RUT move with those of SPX. Over the 1,000 sessions up to the end of 2026, seeds 0 to 11 had, for NDX,
// correlations from 0.910 to 0.936 (mean 0.925) and betas from 1.18 to 1.23, and, for RUT, correlations from 0.829 to 0.871 (mean 0.850) and
// betas from 1.15 to 1.24. The returns of QQQ and IWM are those of their indices but for the rounding to cents.
func TestIndicesMoveTogether(t *testing.T) {
	const sessions = 1000
	for _, seed := range []uint64{1, 2, 3} {
		m := newMarket(seed)
		returns := func(symbol string) []float64 {
			closes := closesOf(t, m, symbol, ny("2026-12-31 20:00:00"))
			closes = closes[len(closes)-sessions-1:]
			out := make([]float64, sessions)
			for i := range out {
				out[i] = math.Log(closes[i+1].Price / closes[i].Price)
			}
			return out
		}
		market := returns("_SPX")
		for _, c := range []struct {
			index, fund       string
			correlation, beta [2]float64
			volatility        [2]float64 // of a year
		}{
			{"_NDX", "QQQ", [2]float64{0.9, 0.94}, [2]float64{1.12, 1.28}, [2]float64{0.14, 0.2}},
			{"_RUT", "IWM", [2]float64{0.82, 0.88}, [2]float64{1.1, 1.3}, [2]float64{0.15, 0.21}},
		} {
			own := returns(c.index)
			_, deviation, correlation, beta := related(market, own)
			volatility := deviation * math.Sqrt(252)
			t.Logf("seed %d, %s: correlation %.3f, beta %.3f, volatility %.3f", seed, c.index, correlation, beta, volatility)
			for what, v := range map[string]struct {
				got    float64
				bounds [2]float64
			}{"correlation": {correlation, c.correlation}, "beta": {beta, c.beta}, "volatility": {volatility, c.volatility}} {
				if v.got < v.bounds[0] || v.got > v.bounds[1] {
					t.Errorf("seed %d: the %s of %s is %.3f, not within %v", seed, what, c.index, v.got, v.bounds)
				}
			}
			for i, r := range returns(c.fund) {
				if math.Abs(r-own[i]) > 0.0005 {
					t.Errorf("seed %d: %s returned %.5f and %s %.5f on the same session", seed, c.index, own[i], c.fund, r)
				}
			}
		}
	}
}

// related returns mean and standard deviation of the second of two series, its correlation with the first, and its beta to it.
func related(x, y []float64) (mean, deviation, correlation, beta float64) {
	n := float64(len(x))
	var sx, sy, sxx, sxy, syy float64
	for i := range x {
		sx, sy, sxx, sxy, syy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i], syy+y[i]*y[i]
	}
	xx, xy, yy := sxx-sx*sx/n, sxy-sx*sy/n, syy-sy*sy/n
	return sy / n, math.Sqrt(yy / n), xy / math.Sqrt(xx*yy), xy / xx
}

// Before the open, at any time of a session and after the close, a fund has its share of the index.
func TestFundsFollowTheirIndices(t *testing.T) {
	for at := ny("2026-10-26 08:00:00"); at.Before(ny("2026-11-07 00:00:00")); at = at.Add(97 * time.Minute) {
		for _, c := range []struct {
			index, fund string
			share       float64
		}{{"_SPX", "SPY", 1 / 10.02}, {"_NDX", "QQQ", 1.0 / 41}, {"_RUT", "IWM", 1.0 / 10}} {
			index, fund := quoteAt(t, market, c.index, at).Spot, quoteAt(t, market, c.fund, at).Spot
			if math.Abs(fund/index/c.share-1) > 0.001 {
				t.Errorf("%s: %s is %v and %s %v", at, c.index, index, c.fund, fund)
			}
		}
	}
}

// Options on indices trade until 16:15, but for those that settle at 16:00, and options on funds until 16:00. The AM-settled series of an
// index expire on third Fridays alone.
func TestHoursAndSettlementOfIndices(t *testing.T) {
	closing, calendar := ny("2026-08-11 16:00:00").Unix(), compute.NewCalendar(nil, nil)
	for _, symbol := range []string{"_SPX", "_NDX", "_RUT", "SPY", "IWM"} {
		late := 0
		for _, c := range chainAt(t, market, symbol, ny("2026-08-11 18:00:00")).Contracts {
			if c.LastTrade > closing {
				late++
			}
			if c.LastTrade > closing+15*60 || c.LastTrade > closing && c.Expiration == compute.NewDate(2026, time.August, 11) {
				t.Fatalf("%s traded last at %s", c.Symbol(), time.Unix(c.LastTrade, 0).UTC())
			}
			if c.Settlement == compute.AM && c.Expiration != calendar.OnOrBefore(compute.ThirdFriday(c.Expiration.Year(), c.Expiration.Month())) {
				t.Fatalf("%s settles at the open", c.Symbol())
			}
		}
		if (late > 0) != (symbol[0] == '_') {
			t.Errorf("%s: %d contracts traded after 16:00", symbol, late)
		}
	}
}

// The middles of the quotes of a series have no arbitrage, but for ticks: a call falls with the strike and a put rises, by at most the
// discounted difference of the strikes. The price is convex in the strike. A call less the put of its strike falls by just that difference.
// Contracts without a bid are left out, because they have no middle, and so are those with a delta under 0.0005 or over 0.9995: far out, on
// the last day, the smile is so steep that a put is worth half a tick more than one of a higher strike.
func TestNoArbitrage(t *testing.T) {
	const rate = 0.04
	calendar := compute.NewCalendar(nil, nil)
	for _, symbol := range chains {
		tick := 0.1
		if symbol[0] != '_' {
			tick = 0.05
		}
		chain := chainAt(t, market, symbol, ny("2026-08-11 14:00:00"))
		type side struct {
			root  string
			date  compute.Date
			right compute.Right
		}
		sides := map[side][]*compute.Contract{}
		for i := range chain.Contracts {
			if c := &chain.Contracts[i]; c.Bid > 0 && math.Abs(c.Delta) > 0.0005 && math.Abs(c.Delta) < 0.9995 {
				key := side{c.Root, c.Expiration, c.Right}
				sides[key] = append(sides[key], c)
			}
		}
		middle := func(c *compute.Contract) float64 { return (c.Bid + c.Ask) / 2 }
		for key, all := range sides {
			slices.SortFunc(all, func(a, b *compute.Contract) int { return cmp.Compare(a.Strike, b.Strike) })
			settles := calendar.Close(key.date)
			if all[0].Settlement == compute.AM {
				settles = calendar.Open(key.date)
			}
			discount := math.Exp(-rate * settles.Sub(chain.AsOf).Hours() / 24 / 365)
			puts := map[float64]*compute.Contract{}
			for _, p := range sides[side{key.root, key.date, compute.Put}] {
				puts[p.Strike] = p
			}
			for i := 1; i < len(all); i++ {
				a, b := all[i-1], all[i]
				step, gain := discount*(b.Strike-a.Strike), middle(b)-middle(a)
				if key.right == compute.Call {
					gain = -gain
					if p, q := puts[a.Strike], puts[b.Strike]; p != nil && q != nil && math.Abs(gain+middle(q)-middle(p)-step) > tick {
						t.Fatalf("the calls and puts of %s and %s are not in parity", a.Symbol(), b.Symbol())
					}
				}
				if gain < -tick/2 || gain > step+tick/2 {
					t.Fatalf("%s is worth %v and %s %v", a.Symbol(), middle(a), b.Symbol(), middle(b))
				}
				if i == 1 {
					continue
				}
				z := all[i-2]
				w := (b.Strike - a.Strike) / (b.Strike - z.Strike)
				if middle(a) > w*middle(z)+(1-w)*middle(b)+tick/2+1e-9 {
					t.Fatalf("%s, %s and %s are not convex: %v, %v, %v", z.Symbol(), a.Symbol(), b.Symbol(), middle(z), middle(a), middle(b))
				}
			}
		}
	}
}
