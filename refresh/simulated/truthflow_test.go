package simulated_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
)

// flowAt returns the flow of chains at an instant, as the service computes it: against the volatilities of the evening before.
func flowAt(t *testing.T, seed uint64, at time.Time, symbols ...string) []compute.FlowItem {
	t.Helper()
	m, calendar := newMarket(seed), compute.NewCalendar(nil, nil)
	var flows []compute.ChainFlow
	for _, symbol := range symbols {
		in := compute.FlowInput{Chain: chainAt(t, m, symbol, at), Calendar: calendar, PreviousIV: map[string]float64{}}
		evening := calendar.Previous(in.Chain.Session(calendar)).At(17, 0, 0, compute.NewYork)
		for _, c := range chainAt(t, m, symbol, evening).Contracts {
			in.PreviousIV[c.Symbol()] = c.IV
		}
		flows = append(flows, compute.UnusualFlow(in))
	}
	return compute.MergeFlow(flows).Items
}

// In the top 100 of the flow no more than a third of the contracts expire on the same day. Of the 30 sessions some are looked
// at, at another hour each: a reading needs 24 chains.
func TestTruthOfTheTopOfTheFlow(t *testing.T) {
	long(t)
	symbols := strings.Fields("_SPX SPY QQQ XLK XLF XLE AAPL NVDA TSLA MSFT AMZN META") // the default of --flow-symbols
	sessions := truthSessions(30)
	for seed := range uint64(truthSeeds) {
		for i := range 2 {
			session := sessions[int(seed)*10+i*6]
			at := session.At(10+int(seed)+3*i, 20, 0, compute.NewYork)
			today := 0
			items := flowAt(t, seed, at, symbols...)
			items = items[:min(len(items), 100)]
			for _, it := range items {
				if it.DaysToExpiration == 0 {
					today++
				}
			}
			if len(items) < 100 || today > 33 {
				t.Errorf("seed %d, %s: %d of the first %d expire on the day", seed, at, today, len(items))
			}
		}
	}
}

// The balance of the directions of a chain has no correlation with the last ten minutes of the index. With fewer minutes it has
// one, which is a limit of the rule: a side is known until one standard deviation of the option's move is twice the half-spread.
// Over 2,000 readings of 40 seeds the correlations with the last 1, 2, 5 and 10 minutes were -0.24, -0.22, -0.15 and -0.11 for
// SPY and -0.31, -0.28, -0.21 and -0.16 for QQQ. They were less, -0.16, -0.12, -0.07 and -0.06, for the SPX, whose quotes are
// wider; and -0.23, -0.17, -0.14 and -0.07 for the 100 rows served of all symbols. The directions of the same trades by the
// quotes of their moment have none. So with fewer minutes the test asks that the move term takes away at least half of the
// correlation that the age alone leaves.
func TestTruthOfDirections(t *testing.T) {
	long(t)
	calendar, windows := compute.NewCalendar(nil, nil), []int{1, 2, 5, 10} // minutes
	for _, symbol := range []string{"SPY", "QQQ"} {
		moves := map[int][]float64{}
		var balances, byAge []float64
		for seed := range uint64(truthSeeds) {
			m := newMarket(seed)
			for i, session := range truthSessions(34) {
				at := session.At(10, 30, 0, compute.NewYork).Add(time.Duration(i*7%15) * 10 * time.Minute)
				spot := quoteAt(t, m, "_SPX", at).Spot
				for _, minutes := range windows {
					before := quoteAt(t, m, "_SPX", at.Add(-time.Duration(minutes)*time.Minute)).Spot
					moves[minutes] = append(moves[minutes], math.Log(spot/before))
				}
				served, young := balance(chainAt(t, m, symbol, at), calendar)
				balances, byAge = append(balances, served), append(byAge, young)
			}
		}
		for _, minutes := range windows {
			rho, alone := correlation(moves[minutes], balances), correlation(moves[minutes], byAge)
			limit := 0.15
			if minutes < 10 {
				limit = max(limit, math.Abs(alone)/2)
			}
			if len(balances) < 100 || math.Abs(rho) >= limit {
				t.Errorf("%s, last minutes %d: over %d readings the correlation is %.3f, by the age alone %.3f",
					symbol, minutes, len(balances), rho, alone)
			}
		}
	}
}

// balance returns how many more directions of a chain are bullish than bearish: as computed, and by a rule that asks for the age
// of the trade alone.
func balance(chain *compute.Chain, calendar *compute.Calendar) (served, byAge float64) {
	quoted := chain.QuoteInstant(calendar)
	for _, it := range compute.UnusualFlow(compute.FlowInput{Chain: chain, Calendar: calendar}).Items {
		switch it.Direction {
		case "bullish":
			served++
		case "bearish":
			served--
		}
		place := float64(2**it.LastPrice-*it.Bid-*it.Ask) / float64(*it.Ask-*it.Bid)
		if quoted.Sub(it.ObservedAt) <= 450*time.Second && math.Abs(place) >= 0.5 {
			byAge += math.Copysign(1, place) * float64(1-2*int(it.OptionType))
		}
	}
	return served, byAge
}

func correlation(x, y []float64) float64 {
	var sx, sy, xx, yy, xy float64
	for i := range x {
		sx, sy = sx+x[i], sy+y[i]
	}
	n := float64(len(x))
	for i := range x {
		dx, dy := x[i]-sx/n, y[i]-sy/n
		xx, yy, xy = xx+dx*dx, yy+dy*dy, xy+dx*dy
	}
	return xy / math.Sqrt(xx*yy)
}

// Between the sessions no quote is of the moment of a trade: no direction is known.
func TestTruthOfDirectionsAtNight(t *testing.T) {
	long(t)
	for i, at := range []string{
		"2026-11-18 17:30:00", "2026-11-18 21:00:00", "2026-11-19 04:00:00", "2026-11-19 09:30:00", "2026-11-22 22:00:00",
	} {
		items := flowAt(t, uint64(i%truthSeeds), ny(at), "_SPX", "SPY", "TSLA")
		if len(items) < 50 {
			t.Errorf("%s: %d items", at, len(items))
		}
		for _, it := range items {
			if it.Direction != "unknown" {
				t.Fatalf("%s: %s is %s by %v", at, it.Contract, it.Direction, it.Reasons)
			}
		}
	}
}
