package simulated_test

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"strikecache/compute"
)

// bySymbol indexes the contracts of a chain.
func bySymbol(chain *compute.Chain) map[string]*compute.Contract {
	index := make(map[string]*compute.Contract, len(chain.Contracts))
	for i := range chain.Contracts {
		index[chain.Contracts[i].Symbol()] = &chain.Contracts[i]
	}
	return index
}

// Contracts trade during the whole session. Volume and the time of the last trade only grow, and open interest stays. Options on indices
// trade until 16:15, but for those that settle at 16:00, and options on funds until 16:00. The AM-settled series of an index expire on third
// Fridays alone.
func TestChainDuringASession(t *testing.T) {
	closing := ny("2026-08-11 16:00:00").Unix()
	for _, symbol := range []string{"_SPX", "_NDX", "_RUT", "IWM", "TSLA"} {
		var last map[string]*compute.Contract
		traded, late := 0.0, 0
		for at := ny("2026-08-11 09:46:00"); at.Before(ny("2026-08-11 18:10:00")); at = at.Add(100 * time.Minute) {
			chain := chainAt(t, market, symbol, at)
			now := bySymbol(chain)
			sum, recent := 0.0, 0
			for name, c := range now {
				sum += c.Volume
				when := time.Unix(c.LastTrade, 0)
				if chain.AsOf.Sub(when) < 15*time.Minute {
					recent++
				}
				if when.After(chain.AsOf) || c.Volume > 0 == when.Before(ny("2026-08-11 09:30:00")) || c.LastTrade == 0 != (c.Last == 0) {
					t.Fatalf("%s at %s: volume %v, last trade %s at %v", name, chain.AsOf, c.Volume, when.UTC(), c.Last)
				}
				if c.LastTrade > closing {
					late++
				}
				if c.LastTrade > closing+15*60 || c.LastTrade > closing && c.Expiration == compute.NewDate(2026, time.August, 11) {
					t.Fatalf("%s traded last at %s", name, when.UTC())
				}
				if c.Settlement == compute.AM && !calendar.IsMonthly(c.Expiration) {
					t.Fatalf("%s settles at the open", name)
				}
				before := last[name]
				if last != nil && (before == nil || c.OpenInterest != before.OpenInterest || c.Volume < before.Volume || c.LastTrade < before.LastTrade) {
					t.Fatalf("%s went from %+v to %+v", name, before, c)
				}
			}
			if !at.After(ny("2026-08-11 16:00:00")) && (sum <= traded || recent < 20) {
				t.Errorf("%s: volume went from %v to %v by %s, %d contracts traded in the last 15 minutes", symbol, traded, sum, at, recent)
			}
			last, traded = now, sum
		}
		if (late > 0) != (symbol[0] == '_') {
			t.Errorf("%s: %d contracts traded after 16:00", symbol, late)
		}
	}
}

// Open interest changes once a day, on contracts that traded, by no more than their volume.
func TestOpenInterest(t *testing.T) {
	for symbol, share := range map[string]int{"_SPX": 4, "SPY": 4, "IWM": 4, "_NDX": 6, "_RUT": 6} { // fewer of NDX and RUT trade
		at := func(at string) map[string]*compute.Contract { return bySymbol(chainAt(t, small, symbol, ny(at))) }
		evening := at("2026-08-11 20:00:00")
		before := evening
		for _, c := range []struct {
			at      string
			changes bool // of more than one contract in share
		}{{"2026-08-12 06:59:30", false}, {"2026-08-12 07:00:30", true}, {"2026-08-12 12:00:00", false}} {
			now, n := at(c.at), 0
			for name, is := range now {
				if was := before[name]; was != nil && was.OpenInterest != is.OpenInterest {
					n++
				}
			}
			if c.changes != (n > len(now)/share) || !c.changes && n > 0 {
				t.Errorf("%s: %d of %d contracts changed by %s", symbol, n, len(now), c.at)
			}
			before = now
		}
		for name, now := range before {
			was := evening[name]
			if was == nil { // a newly listed strike begins at 0
				was = &compute.Contract{}
			}
			if math.Abs(now.OpenInterest-was.OpenInterest) > was.Volume {
				t.Errorf("%s went from %+v to %+v", name, was.Quote, now.Quote)
			}
		}
		for name, was := range evening {
			if before[name] == nil && was.Expiration > compute.NewDate(2026, time.August, 11) {
				t.Errorf("%s is gone", name)
			}
		}
	}
}

func TestExpiredRowsStayOverNight(t *testing.T) {
	for _, c := range []struct {
		symbol, at, expired string
		listed              bool
	}{
		{"SPY", "2026-08-12 06:59:30", "2026-08-11", true},
		{"SPY", "2026-08-12 07:00:30", "2026-08-11", false},
		{"_NDX", "2026-08-12 07:00:30", "2026-08-11", false},
		{"SPY", "2026-08-17 02:00:00", "2026-08-14", true}, // Friday's on Monday
		{"SPY", "2026-08-17 07:01:00", "2026-08-14", false},
	} {
		n := 0
		for _, k := range chainAt(t, small, c.symbol, ny(c.at)).Contracts {
			if k.Expiration.String() == c.expired {
				n++
			}
		}
		if (n > 0) != c.listed {
			t.Errorf("%s: %d rows that expired on %s", c.at, n, c.expired)
		}
	}
}

// The chain of every underlying has a usual size and quotes with a positive width. Some have half-dollar strikes. Those of indices have
// both roots.
func TestChainOfEveryUnderlying(t *testing.T) {
	halves := false
	for _, symbol := range chains {
		chain := chainAt(t, market, symbol, ny("2026-08-11 14:00:00"))
		roots := map[string]int{}
		for i := range chain.Contracts {
			c := &chain.Contracts[i]
			roots[c.Root]++
			halves = halves || math.Mod(c.Strike, 1) == 0.5
			if !(c.Ask > c.Bid) || !(c.Ask > 0) {
				t.Fatalf("%s: bid %v, ask %v", c.Symbol(), c.Bid, c.Ask)
			}
		}
		want, ok := map[string]map[string]int{ // the least of each root, and "" the most of all
			"_SPX": {"SPX": 8000, "SPXW": 19_500, "": 32_500}, "_NDX": {"NDX": 3000, "NDXP": 6000, "": 13_000},
			"_RUT": {"RUT": 1500, "RUTW": 3500, "": 8000}, "IWM": {"IWM": 3500, "": 4500},
		}[symbol]
		if !ok {
			want = map[string]int{symbol: 300, "": 6000}
		}
		for root, least := range want {
			if n := len(chain.Contracts); n > want[""] || root != "" && roots[root] < least || chain.Skipped.Total() > 0 {
				t.Errorf("%s has contracts %v, want %v, skipped %+v", symbol, roots, want, chain.Skipped)
			}
		}
	}
	if !halves {
		t.Error("no half-dollar strikes")
	}
}

// The numbers that the resources compute from a chain are plausible: calls and puts are in parity with the index, there is
// a flip near the spot, the call wall is not below the put wall, and some contracts traded many times their open interest at the
// bid or ask.
func TestResourcesOfAChain(t *testing.T) {
	for _, symbol := range []string{"_SPX", "_NDX", "_RUT", "SPY", "IWM", "META", "XLK"} {
		chain := chainAt(t, market, symbol, ny("2026-08-12 15:50:00"))
		flow := compute.UnusualFlow(compute.FlowInput{Chain: chain, Calendar: calendar})
		high := 0
		for _, it := range flow.Items {
			if it.Score >= 50 && it.Volume > 5*it.OpenInterest && (it.Side == "ask" || it.Side == "bid") {
				high++
			}
		}
		if high == 0 {
			t.Errorf("%s: no contract traded many times its open interest at the bid or ask: %+v", symbol, flow.Rejected)
		}
	}
	for _, symbol := range []string{"_SPX", "_NDX", "_RUT", "IWM"} {
		flips := 0
		for _, day := range []string{"2026-08-11", "2026-09-15", "2026-10-20"} {
			r := compute.GammaExposure(compute.GammaInput{
				Chain: chainAt(t, market, symbol, ny(day+" 12:00:00")), Calendar: calendar, RiskFreeRate: 0.04,
			})
			g := r.Data
			if gap := r.Quality.SpotGap; gap == nil || math.Abs(float64(*gap)) > 0.02 {
				t.Errorf("%s, %s: parity implies another spot by %v %%", symbol, day, gap)
			}
			if g.Flip != nil && math.Abs(float64(*g.Flip/g.Spot)-1) < 0.06 {
				flips++
			}
			if g.CallWall == nil || g.PutWall == nil || *g.CallWall < *g.PutWall {
				t.Errorf("%s, %s: walls %v and %v", symbol, day, g.PutWall, g.CallWall)
			}
		}
		if flips < 2 {
			t.Errorf("%s: a flip near the spot on %d of 3 days", symbol, flips)
		}
	}
}

// The middles of the quotes of a series have no arbitrage, but for ticks: a call falls with the strike and a put rises, by at most the
// discounted difference of the strikes. The price is convex in the strike. A call less the put of its strike falls by just that difference.
// Contracts without a bid are left out, because they have no middle, and so are those with a delta under 0.0005 or over 0.9995: far out, on
// the last day, the smile is so steep that a put is worth half a tick more than one of a higher strike.
func TestNoArbitrage(t *testing.T) {
	const rate = 0.04
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
