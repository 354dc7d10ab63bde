package simulated_test

import (
	"math"
	"testing"
	"time"

	"strikecache/compute"
)

// Contracts trade during the whole session. Volume and the time of the last trade only grow, and open interest stays.
func TestChainDuringASession(t *testing.T) {
	for _, symbol := range []string{"_SPX", "_NDX", "_RUT", "IWM", "TSLA"} {
		var last map[string]*compute.Contract
		traded := 0.0
		for at := ny("2026-08-11 09:46:00"); at.Before(ny("2026-08-11 16:50:00")); at = at.Add(100 * time.Minute) {
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
	}
}

// Open interest changes once a day, on contracts that traded, by no more than their volume.
func TestOpenInterest(t *testing.T) {
	for symbol, share := range map[string]int{"_SPX": 4, "SPY": 4, "IWM": 4, "_NDX": 6, "_RUT": 6} { // fewer of NDX and RUT trade
		t.Run(symbol, func(t *testing.T) { checkOpenInterest(t, symbol, share) })
	}
}

// checkOpenInterest wants changes at 07:00 of more than one contract in share.
func checkOpenInterest(t *testing.T, symbol string, share int) {
	t.Helper()
	interest := func(at string) map[string]*compute.Contract { return bySymbol(chainAt(t, small, symbol, ny(at))) }
	evening, early := interest("2026-08-11 20:00:00"), interest("2026-08-12 06:59:30")
	morning, noon := interest("2026-08-12 07:00:30"), interest("2026-08-12 12:00:00")
	for _, c := range []struct {
		what          string
		before, after map[string]*compute.Contract
		changes       bool
	}{{"by 07:00", evening, early, false}, {"at 07:00", early, morning, true}, {"in the session", morning, noon, false}} {
		n := 0
		for name, now := range c.after {
			if before := c.before[name]; before != nil && before.OpenInterest != now.OpenInterest {
				n++
			}
		}
		if c.changes != (n > len(c.after)/share) || !c.changes && n > 0 {
			t.Errorf("%d of %d contracts changed %s", n, len(c.after), c.what)
		}
	}
	for name, now := range morning {
		before := evening[name]
		if before == nil { // a newly listed strike begins at 0
			before = &compute.Contract{}
		}
		if math.Abs(now.OpenInterest-before.OpenInterest) > before.Volume {
			t.Errorf("%s went from %+v to %+v", name, before.Quote, now.Quote)
		}
	}
	for name, before := range evening {
		if morning[name] == nil && before.Expiration > compute.NewDate(2026, time.August, 11) {
			t.Errorf("%s is gone", name)
		}
	}
}

func TestExpiredRowsStayOverNight(t *testing.T) {
	for _, c := range []struct {
		symbol, at, expired string
		listed              bool
	}{
		{"_SPX", "2026-08-11 16:36:50", "2026-08-11", true},
		{"SPY", "2026-08-12 06:59:30", "2026-08-11", true},
		{"SPY", "2026-08-12 07:00:30", "2026-08-11", false},
		{"_NDX", "2026-08-11 16:36:50", "2026-08-11", true},
		{"_NDX", "2026-08-12 07:00:30", "2026-08-11", false},
		{"_RUT", "2026-08-12 06:59:30", "2026-08-11", true},
		{"IWM", "2026-08-12 06:59:30", "2026-08-11", true},
		{"IWM", "2026-08-12 07:00:30", "2026-08-11", false},
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
		size, roots := [2]int{300, 6000}, map[string]int{}
		if own, ok := map[string][2]int{
			"_SPX": {27_500, 32_500}, "_NDX": {9000, 13_000}, "_RUT": {5000, 8000}, "IWM": {3500, 4500},
		}[symbol]; ok {
			size = own
		}
		if n := len(chain.Contracts); n < size[0] || n > size[1] || chain.Skipped.Total() > 0 {
			t.Errorf("%s has %d contracts, skipped %+v", symbol, n, chain.Skipped)
		}
		for i := range chain.Contracts {
			c := &chain.Contracts[i]
			roots[c.Root]++
			halves = halves || math.Mod(c.Strike, 1) == 0.5
			if !(c.Ask > c.Bid) || !(c.Ask > 0) {
				t.Fatalf("%s: bid %v, ask %v", c.Symbol(), c.Bid, c.Ask)
			}
		}
		for root, least := range map[string]map[string]int{
			"_SPX": {"SPX": 8000, "SPXW": 15_000}, "_NDX": {"NDX": 3000, "NDXP": 6000}, "_RUT": {"RUT": 1500, "RUTW": 3000}, "IWM": {"IWM": 3500},
		}[symbol] {
			if roots[root] < least {
				t.Errorf("%s: roots %v", symbol, roots)
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
	calendar := compute.NewCalendar(nil, nil)
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
