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

// The balance of the directions has no correlation with the last minutes of the index. SPY stands for the index.
func TestTruthOfDirections(t *testing.T) {
	long(t)
	var moves, balances []float64
	for seed := range uint64(truthSeeds) {
		m := newMarket(seed)
		for i, session := range truthSessions(34) {
			at := session.At(10, 30, 0, compute.NewYork).Add(time.Duration(i*7%15) * 10 * time.Minute)
			chain := chainAt(t, m, "SPY", at)
			before := quoteAt(t, m, "SPY", at.Add(-10*time.Minute)).Spot
			up, down := 0.0, 0.0
			for _, it := range compute.UnusualFlow(compute.FlowInput{Chain: chain, Calendar: compute.NewCalendar(nil, nil)}).Items {
				switch it.Direction {
				case "bullish":
					up++
				case "bearish":
					down++
				}
			}
			moves, balances = append(moves, math.Log(chain.Spot/before)), append(balances, up-down)
		}
	}
	if rho := correlation(moves, balances); len(moves) < 100 || math.Abs(rho) >= 0.15 {
		t.Errorf("over %d readings the correlation is %.3f", len(moves), rho)
	}
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
