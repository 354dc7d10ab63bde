package compute_test

import (
	"fmt"
	"math"
	"testing"

	"strikecache/compute"
)

// Four hours before the close, all strikes near the spot have nearly the gamma of 7000, so open interest orders them: the pin counts calls and
// puts, and a wall what is left of one right. The move to the close is that of the volatility with which the chain was made, over
// √(4 h / 365 days), and after the close there is none.
func TestZeroDTEStrikes(t *testing.T) {
	rows := []row{}
	for k, held := range map[float64][2]float64{
		6970: {0, 1200}, 6980: {0, 400}, 6990: {10, 600}, 6995: {0, 150}, 7000: {2000, 2000}, 7005: {500, 0}, 7010: {1500, 400}, 7020: {300, 0}, 7700: {9e6, 0},
	} {
		for right, interest := range held {
			rows = append(rows, row{symbolOf("SPXW260811"+string("CP"[right]), k), published(0.2, interest)})
		}
	}
	g := exposure(t, index(7000, noon), rows...).Data
	z := g.ZeroDTE
	strikes := func(walls []compute.StrikeWall) (all []compute.Level) {
		for _, w := range walls {
			all = append(all, w.Strike)
			for _, r := range g.ByStrike {
				if r.Strike == w.Strike && *r.Net != w.Net {
					t.Errorf("%v has %v, want %v", w.Strike, w.Net, *r.Net)
				}
			}
		}
		return all
	}
	near(t, "pin", z.Pin, 7000, 0)
	equal(t, "walls", fmt.Sprint(strikes(z.CallWalls), strikes(z.PutWalls)), "[7010 7005 7020] [6970 6990 6980]")
	near(t, "move", z.RemainingMove, 7000*0.2*math.Sqrt(4/(365*24.)), 0.005)
	if z = exposure(t, index(7000, "2026-08-11T20:00:00Z"), rows...).Data.ZeroDTE; z.Pin != nil || z.RemainingMove != nil || z.CallWalls == nil || len(z.CallWalls)+len(z.PutWalls) > 0 {
		t.Errorf("after the close: %+v", z)
	}
	z = exposure(t, index(7000.3, noon), flickerRows()...).Data.ZeroDTE
	near(t, "pin of quotes", z.Pin, 7000, 0)
	near(t, "move of quotes, in ticks, of a smile of 13 %", z.RemainingMove, 7000.3*0.13*math.Sqrt(4/(365*24.)), 0.1)
}
