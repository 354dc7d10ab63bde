package simulated_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"strikecache/compute"
)

func TestSPXChainSize(t *testing.T) {
	long(t)
	for seed, days := range [][]string{{"2026-08-11"}, {"2026-01-05", "2026-03-20", "2026-05-18", "2026-11-27", "2026-12-31"}} {
		m := newMarket(uint64(seed))
		for _, day := range days {
			chain := chainAt(t, m, "_SPX", ny(day+" 12:30:00"))
			dates, roots := map[compute.Date]map[string]bool{}, map[string]int{}
			for _, c := range chain.Contracts {
				if dates[c.Expiration] == nil {
					dates[c.Expiration] = map[string]bool{}
				}
				dates[c.Expiration][c.Root] = true
				roots[c.Root]++
			}
			both := 0
			for _, r := range dates {
				if len(r) == 2 {
					both++
				}
			}
			n := len(chain.Contracts)
			if n < 27_500 || n > 32_500 || chain.Listed != n {
				t.Errorf("seed %d, %s: %d contracts, skipped %+v", seed, day, n, chain.Skipped)
			}
			if len(dates) < 50 || both < 4 || roots["SPX"] < 8000 || roots["SPXW"] < 15_000 {
				t.Errorf("seed %d, %s: %d expirations, %d with both roots, %v", seed, day, len(dates), both, roots)
			}
			if chain.Spot < 6300 || chain.Spot > 8200 {
				t.Errorf("seed %d, %s: SPX is %.2f", seed, day, chain.Spot)
			}
		}
	}
}

func TestMonthlyShiftsOnHoliday(t *testing.T) {
	chain := chainAt(t, market, "_SPX", ny("2027-03-10 12:00:00"))
	found := false
	for _, c := range chain.Contracts {
		if c.Root != "SPX" {
			continue
		}
		found = found || c.Expiration == compute.NewDate(2027, time.June, 17) // Juneteenth is observed on Friday the 18th
		if c.Expiration == compute.NewDate(2027, time.June, 18) {
			t.Fatal("SPX expires on a holiday")
		}
	}
	if !found {
		t.Error("no monthly on 2027-06-17")
	}
}

func TestFundAndStockChains(t *testing.T) {
	m := market
	halves, adjusted := false, 0
	for _, symbol := range m.Symbols() {
		chain := chainAt(t, m, symbol, ny("2026-08-11 12:00:00"))
		if n := len(chain.Contracts); n < 300 || n > 6000 {
			t.Errorf("%s has %d contracts", symbol, n)
		}
		adjusted += chain.Skipped.UnknownRoot
		if other := chain.Skipped.Total() - chain.Skipped.UnknownRoot; other > 0 {
			t.Errorf("%s: skipped %+v", symbol, chain.Skipped)
		}
		for _, c := range chain.Contracts {
			halves = halves || math.Mod(c.Strike, 1) == 0.5
		}
	}
	if !halves || adjusted == 0 {
		t.Errorf("half-dollar strikes %v, contracts of adjusted series %d", halves, adjusted)
	}
	want := []string{"AAPL", "AMZN", "META", "MSFT", "NVDA", "QQQ", "SPY", "TSLA"}
	for _, s := range compute.Sectors {
		want = append(want, s.Symbol)
	}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(m.Symbols())); !slices.Equal(got, want) {
		t.Errorf("symbols are %v", got)
	}
}

func TestQuotesOfOptions(t *testing.T) {
	m := market
	at := ny("2026-08-11 14:00:00")
	for _, symbol := range append(m.Symbols(), "_SPX") {
		chain := chainAt(t, m, symbol, at)
		type pair struct{ call, put *compute.Contract }
		type strike struct {
			root   string
			date   compute.Date
			strike float64
		}
		pairs := map[strike]pair{}
		for i := range chain.Contracts {
			c := &chain.Contracts[i]
			if !(c.Ask >= c.Bid) || !(c.Ask > 0) {
				t.Fatalf("%s: bid %v, ask %v", c.Symbol(), c.Bid, c.Ask)
			}
			key := strike{c.Root, c.Expiration, c.Strike}
			p := pairs[key]
			if c.Right == compute.Call {
				p.call = c
			} else {
				p.put = c
			}
			pairs[key] = p
		}
		checked := 0
		for _, p := range pairs {
			k := p.call.Strike
			days := float64(p.call.Expiration - compute.NewDate(2026, time.August, 11))
			if days < 1 || days > 400 || math.Abs(k/chain.Spot-1) > 0.02 {
				continue
			}
			years := days / 365
			parity := chain.Spot*math.Exp(-0.005*years) - k*math.Exp(-0.04*years)
			off := p.call.Mid() - p.put.Mid() - parity
			if limit := 0.3*(p.call.Ask-p.call.Bid+p.put.Ask-p.put.Bid) + 1e-4*chain.Spot; math.Abs(off) > limit {
				t.Errorf("%s: call less put is %.2f from parity, limit %.2f", p.call.Symbol(), off, limit)
			}
			checked++
		}
		if checked < 20 {
			t.Errorf("%s: parity checked on %d strikes", symbol, checked)
		}
	}
}

func TestChainDuringASession(t *testing.T) {
	long(t)
	m := market
	for _, symbol := range []string{"_SPX", "TSLA"} {
		var last map[string]*compute.Contract
		traded := 0.0
		for at := ny("2026-08-11 09:46:00"); at.Before(ny("2026-08-11 16:50:00")); at = at.Add(65 * time.Minute) {
			chain := chainAt(t, m, symbol, at)
			now := bySymbol(chain)
			sum, recent := 0.0, 0
			for name, c := range now {
				sum += c.Volume
				when := time.Unix(c.LastTrade, 0)
				if when.After(chain.AsOf) {
					t.Fatalf("%s traded at %s, after %s", name, when.UTC(), chain.AsOf)
				}
				if c.Volume > 0 && compute.DateOf(when.In(compute.NewYork)) != compute.NewDate(2026, time.August, 11) {
					t.Fatalf("%s has volume %v and last traded on %s", name, c.Volume, when.UTC())
				}
				if chain.AsOf.Sub(when) < 15*time.Minute {
					recent++
				}
				if c.LastTrade == 0 != (c.Last == 0) {
					t.Fatalf("%s last traded at %d for %v", name, c.LastTrade, c.Last)
				}
				before := last[name]
				if last == nil {
					continue
				}
				if before == nil || c.OpenInterest != before.OpenInterest || c.Volume < before.Volume || c.LastTrade < before.LastTrade {
					t.Fatalf("%s went from %+v to %+v", name, before, c)
				}
			}
			if sum <= traded && !at.After(ny("2026-08-11 16:00:00")) {
				t.Errorf("%s: volume went from %v to %v by %s", symbol, traded, sum, at)
			}
			if recent < 20 && at.Before(ny("2026-08-11 16:00:00")) {
				t.Errorf("%s: %d contracts traded in the last 15 minutes before %s", symbol, recent, chain.AsOf)
			}
			last, traded = now, sum
		}
	}
}

func TestOpenInterestMovesInTheMorning(t *testing.T) {
	m := market
	interest := func(at string) map[string]*compute.Contract { return bySymbol(chainAt(t, m, "SPY", ny(at))) }
	changed := func(a, b map[string]*compute.Contract) (n int) {
		for name, c := range b {
			if before, ok := a[name]; ok && before.OpenInterest != c.OpenInterest {
				n++
			}
		}
		return n
	}
	evening, early, morning, noon := interest("2026-08-11 20:00:00"), interest("2026-08-12 06:59:30"), interest("2026-08-12 07:00:30"), interest("2026-08-12 12:00:00")
	if n := changed(evening, early); n > 0 {
		t.Errorf("%d changed before 07:00", n)
	}
	if n := changed(early, morning); n < len(morning)/3 {
		t.Errorf("%d of %d changed at 07:00", n, len(morning))
	}
	if n := changed(morning, noon); n > 0 {
		t.Errorf("%d changed during the session", n)
	}
	var calls, puts, zero float64
	chain := chainAt(t, m, "_SPX", ny("2026-08-12 12:00:00"))
	spot := chain.Spot
	for _, c := range chain.Contracts {
		switch {
		case c.OpenInterest == 0:
			zero++
		case c.Right == compute.Call && c.Strike > spot:
			calls += c.OpenInterest
		case c.Right == compute.Put && c.Strike < spot:
			puts += c.OpenInterest
		default:
			calls, puts = calls-c.OpenInterest/2, puts-c.OpenInterest/2
		}
	}
	if share := zero / float64(len(chain.Contracts)); share < 0.15 || share > 0.35 || calls <= 0 || puts <= 0 {
		t.Errorf("zero share %.2f; out of the money more than in it: calls %v, puts %v", share, calls, puts)
	}
}

func TestExpiredRowsStayOverNight(t *testing.T) {
	m := market
	for _, c := range []struct {
		symbol  string
		at      string
		expired string
		listed  bool
	}{
		{"_SPX", "2026-08-11 16:36:50", "2026-08-11", true},
		{"SPY", "2026-08-12 02:59:30", "2026-08-11", true},
		{"SPY", "2026-08-12 03:00:30", "2026-08-11", false},
		{"SPY", "2026-08-16 20:00:00", "2026-08-14", true}, // Friday's on Sunday
		{"SPY", "2026-08-17 02:00:00", "2026-08-14", true},
		{"SPY", "2026-08-17 03:01:00", "2026-08-14", false},
	} {
		chain := chainAt(t, m, c.symbol, ny(c.at))
		n, priced := 0, 0
		for _, k := range chain.Contracts {
			if k.Expiration.String() == c.expired {
				n++
				if k.IV > 0 {
					priced++
				}
			}
		}
		if (n > 0) != c.listed {
			t.Errorf("%s: %d rows that expired on %s", c.at, n, c.expired)
		}
		if n > 0 && (priced == 0 || priced > n/10) {
			t.Errorf("%s: %d of %d expired rows have an implied volatility", c.at, priced, n)
		}
	}
}

func TestChainOfAnEarlyClose(t *testing.T) {
	m := market
	settled := ny("2026-11-27 13:00:00")
	for _, symbol := range []string{"_SPX", "SPY"} {
		end := settled
		if symbol == "_SPX" {
			end = end.Add(15 * time.Minute)
		}
		late := 0
		for _, c := range chainAt(t, m, symbol, ny("2026-11-27 15:00:00")).Contracts {
			if c.LastTrade >= end.Unix() || c.Expiration == compute.NewDate(2026, time.November, 27) && c.LastTrade > settled.Unix() {
				t.Fatalf("%s traded at %s", c.Symbol(), time.Unix(c.LastTrade, 0).UTC())
			}
			if c.LastTrade > end.Add(-15*time.Minute).Unix() {
				late++
			}
		}
		if late == 0 {
			t.Errorf("%s: nothing traded in the last quarter of an hour", symbol)
		}
	}
}

func TestBurstsStandOut(t *testing.T) {
	m := market
	for _, symbol := range []string{"_SPX", "AAPL", "XLF", "SPY"} {
		chain := chainAt(t, m, symbol, ny("2026-08-12 15:50:00"))
		flow := compute.UnusualFlow(compute.FlowInput{Chain: chain, Calendar: compute.NewCalendar(nil, nil)})
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
}
