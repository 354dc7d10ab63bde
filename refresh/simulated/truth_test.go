package simulated_test

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"strikecache/compute"
)

// The tests of this file check properties of real markets in the simulated market, most of them over 30 sessions of three
// seeds. The sessions have six Fridays, a holiday and an early close. Where a chain of the index would take too long, the
// test uses the chain of a fund whose options have the surface of the index.

const truthSeeds = 3

// truthSessions returns n sessions, the first of them a Monday.
func truthSessions(n int) (sessions []compute.Date) {
	calendar := compute.NewCalendar(nil, nil)
	for d := compute.NewDate(2026, time.October, 26); len(sessions) < n; d = calendar.Next(d) {
		sessions = append(sessions, d)
	}
	return sessions
}

// expiration holds the quoted contracts of one root and date.
type expiration struct {
	date       compute.Date
	settlement compute.Settlement
	rights     [2][]*compute.Contract // with a two-sided quote, by strike
}

// expirations returns the quotes of the unsettled contracts of a chain, by settlement.
func expirations(chain *compute.Chain, calendar *compute.Calendar) (all []*expiration) {
	byKey := map[string]*expiration{}
	for i := range chain.Contracts {
		c := &chain.Contracts[i]
		if !c.TwoSided() || !c.Settlement.Instant(c.Expiration, calendar).After(chain.AsOf) {
			continue
		}
		key := c.Root + c.Expiration.String()
		if byKey[key] == nil {
			byKey[key] = &expiration{date: c.Expiration, settlement: c.Settlement}
			all = append(all, byKey[key])
		}
		byKey[key].rights[c.Right] = append(byKey[key].rights[c.Right], c)
	}
	for _, e := range all {
		for _, contracts := range e.rights {
			slices.SortFunc(contracts, func(a, b *compute.Contract) int { return cmp.Compare(a.Strike, b.Strike) })
		}
	}
	slices.SortFunc(all, func(a, b *expiration) int {
		return cmp.Or(cmp.Compare(a.date, b.date), cmp.Compare(a.settlement, b.settlement))
	})
	return all
}

// atTheMoney returns the forward and the total volatility at the money.
func (e *expiration) atTheMoney(t *testing.T) (forward, total float64) {
	t.Helper()
	least, put := math.Inf(1), map[float64]*compute.Contract{}
	for _, p := range e.rights[compute.Put] {
		put[p.Strike] = p
	}
	ok := false
	for _, c := range e.rights[compute.Call] {
		p := put[c.Strike]
		if p == nil || math.Abs(c.Mid()-p.Mid()) >= least {
			continue
		}
		least, forward = math.Abs(c.Mid()-p.Mid()), c.Strike+c.Mid()-p.Mid()
		right := compute.Call
		if c.Strike < forward {
			right, c = compute.Put, p
		}
		total, ok = compute.ImpliedTotalVolatility(right, c.Mid(), forward, c.Strike)
	}
	if !ok {
		t.Fatalf("%s: no volatility at the money", e.date)
	}
	return forward, total
}

// long skips a test of many documents in a short run, such as make race.
func long(t *testing.T) {
	if testing.Short() {
		t.Skip("one job at a time, over many documents: not worth its time under the race detector")
	}
}

// Variance accrues in trading time: by the close of a Friday a fund's options expect the move of one session, as on other
// days. And the VIX is about 1.2 times the volatility at the money at 30 days.
func TestTruthOfVolatility(t *testing.T) {
	long(t)
	calendar := compute.NewCalendar(nil, nil)
	for seed := range uint64(truthSeeds) {
		m := newMarket(seed)
		var fridays, others []float64
		for _, session := range truthSessions(30) {
			at := session.At(16, 40, 0, compute.NewYork)
			vix := quoteAt(t, m, "_VIX", at).Spot
			all := expirations(chainAt(t, m, "SPY", at), calendar)
			_, next := all[0].atTheMoney(t)
			if all[0].date != calendar.Next(session) {
				t.Fatalf("%s: the nearest expiration is %s", session, all[0].date)
			}
			if session.Weekday() == time.Friday {
				fridays = append(fridays, next/vix)
			} else {
				others = append(others, next/vix)
			}
			far := slices.IndexFunc(all, func(e *expiration) bool { return e.date > session+30 })
			_, near := all[far-1].atTheMoney(t)
			_, after := all[far].atTheMoney(t)
			days := func(e *expiration) float64 { return float64(e.date - session) }
			w := (30 - days(all[far-1])) / (days(all[far]) - days(all[far-1]))
			month := 100 * math.Sqrt((near*near*(1-w)+after*after*w)/30*365)
			if ratio := vix / month; ratio < 1.1 || ratio > 1.3 {
				t.Errorf("seed %d, %s: the VIX is %.2f, %.3f times the volatility at 30 days", seed, session, vix, ratio)
			}
		}
		mean := func(x []float64) (sum float64) {
			for _, v := range x {
				sum += v / float64(len(x))
			}
			return sum
		}
		if ratio := mean(fridays) / mean(others); len(fridays) != 6 || ratio < 0.95 || ratio > 1.1 {
			t.Errorf("seed %d: of %d Fridays the expected move is %.3f times that of other days", seed, len(fridays), ratio)
		}
	}
}

// The open interest of a contract changes from one session to the next by no more than the volume of the session. A newly
// listed strike begins at 0, and a listed one stays until it expires.
func TestTruthOfOpenInterest(t *testing.T) {
	long(t)
	for seed := range uint64(truthSeeds) {
		m := newMarket(seed)
		for symbol, n := range map[string]int{[]string{"XLU", "TSLA", "SPY"}[seed]: 31, "_SPX": 2} {
			var last map[string]*compute.Contract
			changed := 0
			for _, session := range truthSessions(n) {
				now := bySymbol(chainAt(t, m, symbol, session.At(16, 40, 0, compute.NewYork)))
				for name, c := range now {
					before := last[name]
					if before == nil {
						before = &compute.Contract{}
					}
					if last == nil {
						continue
					}
					if math.Abs(c.OpenInterest-before.OpenInterest) > before.Volume {
						t.Fatalf("seed %d, %s: %s went from %+v to %+v", seed, session, name, before.Quote, c.Quote)
					}
					if before.OpenInterest != c.OpenInterest {
						changed++
					}
				}
				for name, c := range last {
					if now[name] == nil && c.Expiration >= session {
						t.Errorf("seed %d, %s: %s is gone", seed, session, name)
					}
				}
				last = now
			}
			if changed < 1000 {
				t.Errorf("seed %d: the open interest of %s changed %d times", seed, symbol, changed)
			}
		}
	}
}

// tick returns the smallest step of a price, USD.
func tick(symbol string, price float64) float64 {
	switch {
	case symbol == "_SPX" && price < 3:
		return 0.05
	case symbol == "_SPX":
		return 0.1
	case symbol == "SPY" || symbol == "QQQ" || price < 3:
		return 0.01
	}
	return 0.05
}

// The middles of the quotes allow no arbitrage between strikes or between expirations: no gain is larger than the ticks of the
// quotes explain. Each session checks another chain.
func TestTruthOfArbitrage(t *testing.T) {
	long(t)
	calendar := compute.NewCalendar(nil, nil)
	for seed := range uint64(truthSeeds) {
		m := newMarket(seed)
		for i, session := range truthSessions(30) {
			symbol := chains[(i+10*int(seed)+1)%len(chains)]
			all := expirations(chainAt(t, m, symbol, session.At(12, 0, 0, compute.NewYork)), calendar)
			for k, e := range all {
				checkStrikes(t, symbol, e)
				if k > 0 {
					checkCalendar(t, symbol, session, all[k-1], e)
				}
			}
		}
	}
}

// checkStrikes looks for a vertical spread below 0 and for a butterfly below 0.
func checkStrikes(t *testing.T, symbol string, e *expiration) {
	t.Helper()
	for right, contracts := range e.rights {
		rises := float64(2*right - 1) // 1 for puts, which cost more at a higher strike
		for i, b := range contracts {
			limit := 0.51 * tick(symbol, b.Ask)
			if i > 0 && rises*(contracts[i-1].Mid()-b.Mid()) > limit {
				t.Errorf("%s costs %.3f, the strike before %.3f", b.Symbol(), b.Mid(), contracts[i-1].Mid())
			}
			if i == 0 || i+1 == len(contracts) {
				continue
			}
			a, c := contracts[i-1], contracts[i+1]
			w := (c.Strike - b.Strike) / (c.Strike - a.Strike)
			limit = 0.51 * tick(symbol, max(a.Ask, c.Ask))
			if gain := b.Mid() - w*a.Mid() - (1-w)*c.Mid(); gain > limit {
				t.Errorf("%s: a butterfly around it costs %.3f", b.Symbol(), -gain)
			}
		}
	}
}

// checkCalendar looks for an option out of the money that costs less than one of an earlier expiration, both as shares of
// their forwards and without interest.
func checkCalendar(t *testing.T, symbol string, session compute.Date, near, far *expiration) {
	t.Helper()
	nearF, _ := near.atTheMoney(t)
	farF, _ := far.atTheMoney(t)
	interest := math.Exp(0.04 * float64(far.date-near.date) / 365)
	for right, contracts := range near.rights {
		for _, c := range contracts {
			strike, others := c.Strike*farF/nearF, far.rights[right]
			i := slices.IndexFunc(others, func(o *compute.Contract) bool { return o.Strike >= strike })
			if i < 1 || (right == 0) != (c.Strike > nearF) {
				continue
			}
			a, b := others[i-1], others[i]
			w := (b.Strike - strike) / (b.Strike - a.Strike)
			value := (w*a.Mid() + (1-w)*b.Mid()) * interest * nearF / farF
			if limit := tick(symbol, b.Ask); c.Mid()-value > limit {
				t.Errorf("%s: %s costs %.3f, by %s %.3f", session, c.Symbol(), c.Mid(), far.date, value)
			}
		}
	}
}

// sectorWeights are the approximate shares of the sectors in the index by market value.
var sectorWeights = map[string]float64{
	"XLC": 0.1, "XLY": 0.105, "XLP": 0.05, "XLE": 0.03, "XLF": 0.13, "XLV": 0.09, "XLI": 0.085, "XLK": 0.345, "XLB": 0.02,
	"XLRE": 0.02, "XLU": 0.025,
}

// The return of SPY differs by at most 0.05 percentage points from the weighted return of the sector funds, at any time of a
// session and at its close.
func TestTruthOfSectors(t *testing.T) {
	long(t)
	for seed := range uint64(truthSeeds) {
		m := newMarket(seed)
		for i, session := range truthSessions(30) {
			during := session.At(9, 46, 0, compute.NewYork).Add(time.Duration(i) * 12 * time.Minute)
			for _, at := range []time.Time{during, session.At(17, 0, 0, compute.NewYork)} {
				want, got := quoteAt(t, m, "SPY", at).PriceChangePercent, 0.0
				for symbol, weight := range sectorWeights {
					got += weight * quoteAt(t, m, symbol, at).PriceChangePercent
				}
				if math.Abs(got-want) > 0.05 {
					t.Errorf("seed %d, %s: SPY %+.3f %%, the sectors %+.3f %%", seed, at, want, got)
				}
			}
		}
	}
}
