package compute_test

import (
	"fmt"
	"math"
	"testing"

	"strikecache/compute"
)

// Where the rule of METHODS.md holds a direction, and where it cannot. When a quote moves, a trade at the bid, the mid or the
// ask keeps its direction if the quote moves by less than half of its half-spread h. A side is known when f >= 0.5, which is
// m <= 2h(1 - a/900). So every known direction is held through a move of less than 1/(4(1 - a/900)) standard deviations m: a
// quarter when the trade is of now, a half when it is 450 s old, the greatest age with a known side. A move of the index by 0.1 %
// is less than that when iv > 0.004(1 - a/900)√(5,896,800/a): 23 % for an age of 450 s, 37 % for 300 s, 117 % for 60 s.
//
// All trades of the volatile session fulfil this, and no direction turns. Those of the calm session do not: a known direction
// turns there, but only where h is less than twice the move. This is the limit of the rule.
func TestMovedChain(t *testing.T) {
	for _, session := range []struct {
		name       string
		iv         float64 // the lowest of the chain
		since      float64 // age of the latest trade, s
		everywhere bool    // the rule holds every known direction
	}{{"volatile", 0.3, 400, true}, {"calm", 0.13, 1, false}} {
		for _, percent := range []float64{-0.1, 0.1} {
			known, turned, beyond := map[string]int{}, 0, 0
			for _, r := range sessionChain(session.iv, session.since) {
				name := fmt.Sprintf("%s session, %+v %%: %s", session.name, percent, r.symbol)
				half, move, age := (r.Ask-r.Bid)/2, r.Delta*7000*percent/100, float64(at(noon).Unix()-r.LastTrade)
				was := only(t, flowOf(t, fund("SPX", 7000), nil, r)).Direction
				r.Bid, r.Ask = r.Bid+move, r.Ask+move
				now := only(t, flowOf(t, fund("SPX", 7000), nil, r)).Direction
				if age <= 450 && math.Abs(move) > half/2 {
					beyond++
				}
				if was == "unknown" {
					equal(t, name, now, was)
					continue
				}
				known[was]++
				held := math.Abs(move) < math.Abs(r.Delta)*7000*r.IV*math.Sqrt(age/(252*23_400))/(4*(1-age/900))
				if session.everywhere && !held {
					t.Errorf("%s: the move is more than the rule holds", name)
				}
				if now != was {
					turned++
					if held || math.Abs(move) < half/2-1e-9 {
						t.Errorf("%s, traded %v s before, turned from %s to %s", name, age, was, now)
					}
				}
			}
			if min(known["bullish"], known["bearish"], known["neutral"]) < 10 || beyond < 100 || session.everywhere != (turned == 0) {
				t.Errorf("%s session, %+v %%: of %v %d turned; %d quotes of young trades moved by over h/2",
					session.name, percent, known, turned, beyond)
			}
		}
	}
}

// sessionChain returns contracts of the SPX at 7000, at noon of a session. The quotes are as wide as those of the recorded chain:
// 0.08 and 0.35 % of the time value, in the money up to 12 more, and very wide in the far years. The volatility is iv from the
// money upward, and 27 % of iv higher for each standard deviation below. The last trades were at the bid, the mid or the ask,
// from since to 600 seconds ago.
func sessionChain(iv, since float64) (rows []row) {
	for series, days := range map[string]float64{"SPXW260814": 3, "SPXW260918": 38, "SPX301220": 1592} {
		years := days / 365
		for strike := 4000.0; strike <= 10_000; strike += 25 {
			total := iv*math.Sqrt(years) + 0.27*max(0, math.Log(7000/strike))
			call := compute.BlackValue(compute.Call, 7000, strike, total)
			timeValue := call - max(7000-strike, 0)
			for right, value := range []float64{call, call + strike - 7000} {
				width := (0.08 + 0.0035*timeValue + 12*min(1, (value-timeValue)/280)) * math.Exp(1.3*max(0, years-1.9))
				tick := 0.05
				if value > 3 {
					tick = 0.1
				}
				bid := tick * math.Round((value-width/2)/tick)
				ask := bid + tick*max(1, math.Round(width/tick))
				if bid < 0.05 {
					continue
				}
				n := int(strike)/25 + right
				q := trade(bid, ask, bid+(ask-bid)*float64(n%3)/2, 1e5, 1e6, since+math.Mod(float64(n*7), 600-since))
				q.IV, q.Delta = total/math.Sqrt(years), normal(math.Log(7000/strike)/total+total/2)-float64(right)
				rows = append(rows, row{symbolOf(series+string("CP"[right]), strike), q})
			}
		}
	}
	return rows
}

// The recorded chain was made 7 minutes after the last trades, and its quotes are of the curb session: no side is known.
func TestRecordedDirections(t *testing.T) {
	f := compute.UnusualFlow(compute.FlowInput{Chain: recordedChain(t, spxChain), Calendar: cal})
	equal(t, "items", len(f.Items), compute.MaxFlowItems)
	for _, it := range f.Items {
		equal(t, fmt.Sprint(it.Contract, ", last traded ", it.ObservedAt), it.Direction, "unknown")
	}
}
