package compute_test

import (
	"fmt"
	"math"
	"testing"

	"strikecache/compute"
)

// f = (1 - a/900)·min(1, h/m), where m = |delta|·S·iv·√(max(a, 1)/(252·23400)) is the likely move of the option since the
// trade. The half-spread h is 0.1 and the price S of XLK is 150. An f under 0.5 is an unknown side.
func TestTrustInTheQuote(t *testing.T) {
	nan := math.NaN()
	m := func(delta, iv, a float64) float64 { return math.Abs(delta) * 150 * iv * math.Sqrt(a/(252*23_400)) }
	for _, c := range []struct {
		name           string
		delta, iv, ago float64
		f              float64
		side           string
	}{
		{"hardly moved", 0.01, 0.2, 90, 0.9, "ask"},
		{"moved by more than the half-spread", 0.8, 0.6, 180, 0.8 * 0.1 / m(0.8, 0.6, 180), "unknown"},
		{"moved by little more", 0.8, 0.3, 90, 0.9 * 0.1 / m(0.8, 0.3, 90), "ask"},
		{"the delta of a put", -0.8, 0.3, 90, 0.9 * 0.1 / m(0.8, 0.3, 90), "ask"},
		{"a second at least", 1, 9, 0, 0.1 / m(1, 9, 1), "unknown"},
		{"a trade after the quote", 0.01, 0.2, -60, 1, "ask"},
		{"15 minutes", 0.01, 0.2, 900, 0, "unknown"},
		{"no delta", nan, 0.2, 0, 0, "unknown"},
		{"delta 0", 0, 0.2, 0, 0, "unknown"},
		{"no iv", 0.01, nan, 0, 0, "unknown"},
		{"iv 0", 0.01, 0, 0, 0, "unknown"},
	} {
		q := trade(1.9, 2.1, 2.1, 3000, 1e6, c.ago)
		q.Delta, q.IV = c.delta, c.iv
		it := one(t, q)
		nearly(t, c.name, it.Components.QuoteLocation, 15*c.f, 1e-9)
		equal(t, c.name, it.Side, c.side)
		confidence := 0.0
		if c.side != "unknown" {
			confidence = math.Min(0.6, c.f)
		}
		nearly(t, c.name+": confidence", it.Confidence, confidence, 1e-9)
	}
	// The age counts from the quote instant, not from the index: quotes of 12:20 do not show the side of a trade of 12:00.
	u := fund("XLK", 150)
	u.CapturedAt = at(noon).Add(35 * 60e9)
	it := only(t, flowOf(t, u, nil, row{"XLK260821C00157500", placed(1.9, 2.1, 2.1, 3000, 1e6, 0)}))
	equal(t, "an old index", it.Side, "unknown")
}

// The underlying moves by 0.1 % after the trades, a usual move for their age, and the quotes follow. With a volatility of
// 35 % no direction changes. With 15 %, where the move is one standard deviation, no direction turns into its opposite. A
// rule that looks only at the age would turn some.
func TestMovedQuotesTurnNoDirection(t *testing.T) {
	for _, market := range []struct {
		iv, leastAge float64
		every        bool // neutral directions stay, too
	}{{0.35, 360, true}, {0.15, 300, false}} {
		directions := func(percent float64) map[string]compute.FlowItem {
			items := map[string]compute.FlowItem{}
			strike := 7000.0
			for _, half := range []float64{0.05, 0.2, 0.5, 1, 2, 4, 8} {
				for _, delta := range []float64{0.05, 0.2, 0.5, 0.8} {
					for age := market.leastAge; age < 900; age += 45 {
						for place := -1.0; place <= 1; place++ {
							strike += 5
							q := trade(100-half, 100+half, 100+place*half, 1000, 1e6, age)
							q.Delta, q.IV = delta, market.iv
							moved := delta * 7000 * percent / 100
							q.Bid, q.Ask = q.Bid+moved, q.Ask+moved
							it := only(t, flowOf(t, fund("SPX", 7000), nil, row{symbolOf("SPXW260821C", strike), q}))
							items[it.Contract] = it
						}
					}
				}
			}
			return items
		}
		before := directions(0)
		for _, percent := range []float64{-0.1, 0.1} {
			known, turnedByAge := 0, 0
			for contract, now := range directions(percent) {
				was := before[contract]
				half := float64(*was.Ask-*was.Bid) / 2
				placeWas, placeNow := float64(*was.LastPrice-*was.Bid)/half-1, float64(*now.LastPrice-*now.Bid)/half-1
				if placeWas*placeNow < 0 && math.Abs(placeNow) > 0.5 {
					turnedByAge++
				}
				if was.Direction == "unknown" {
					continue
				}
				known++
				opposite := was.Direction != now.Direction && was.Direction != "neutral" && now.Direction != "neutral"
				if now.Direction == "unknown" || opposite || market.every && was.Direction != now.Direction {
					t.Errorf("iv %v, %v %%: %s turned from %s to %s", market.iv, percent, contract, was.Direction, now.Direction)
				}
			}
			if known < 20 || turnedByAge < 50 {
				t.Errorf("iv %v: only %d directions are known, the age alone turned %d", market.iv, known, turnedByAge)
			}
		}
	}
}

// The recorded chain was made 7 minutes after the last trades, and its quotes are of the curb session: no side is known.
func TestRecordedDirections(t *testing.T) {
	f := compute.UnusualFlow(compute.FlowInput{Chain: recordedChain(t, spxChain), Calendar: cal})
	equal(t, "items", len(f.Items), compute.MaxFlowItems)
	for _, it := range f.Items {
		equal(t, fmt.Sprint(it.Contract, ", last traded ", it.ObservedAt), it.Direction, "unknown")
	}
}
