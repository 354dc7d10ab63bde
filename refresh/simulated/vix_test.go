package simulated_test

import (
	"math"
	"testing"

	"strikecache/compute"
)

// The VIX quote is the model-free volatility of 30 days of the chain of the SPX of the same instant.
func TestVIXIsThatOfTheChain(t *testing.T) {
	calendar, worst := compute.NewCalendar(nil, nil), 0.0
	for _, at := range []string{
		"2023-03-13 15:10:00", "2024-08-05 12:00:00", "2025-10-10 16:50:00", "2026-02-17 10:00:00",
		"2026-03-04 12:00:00", "2026-07-20 16:50:00", "2026-08-11 09:50:00", "2026-08-11 12:00:00", "2026-08-14 16:50:00", "2026-10-26 14:00:00", // 2026-04-03 is Good Friday
	} {
		r := compute.GammaExposure(compute.GammaInput{Chain: chainAt(t, market, "_SPX", ny(at)), Calendar: calendar, RiskFreeRate: 0.04})
		got, want := quoteAt(t, market, "_VIX", ny(at)).Spot, r.Volatility.With(nil, calendar).Data.ModelFree30
		if want == nil || math.Abs(got-float64(*want)) > 0.2 {
			t.Errorf("%s: the VIX is %v, the formula gives %v", at, got, want)
			continue
		}
		worst = max(worst, math.Abs(got-float64(*want)))
	}
	t.Logf("at most %.3f points from the formula", worst)
}

// Options that expire on the session date have 43 to 65 % of the volume of the SPX, as in real sessions.
func TestShareOfTheLastDay(t *testing.T) {
	for _, day := range []string{"2026-08-10", "2026-08-11", "2026-08-12", "2026-08-14", "2026-08-21", "2026-09-18", "2026-09-30", "2026-11-05"} {
		for _, hour := range []string{" 12:00:00", " 16:50:00"} {
			chain := chainAt(t, market, "_SPX", ny(day+hour))
			last, all := 0.0, 0.0
			for _, c := range chain.Contracts {
				if all += c.Volume; c.Expiration.String() == day {
					last += c.Volume
				}
			}
			if share := last / all; share < 0.43 || share > 0.65 {
				t.Errorf("%s%s: 0DTE has %.3f of the volume", day, hour, share)
			} else {
				t.Logf("%s%s: %.3f", day, hour, share)
			}
		}
	}
}

// The skew of the SPX fades on the last days. The bounds are about those of the chain of 2026-08-11: −1.0 at a day, −1.7 at 8 days, −3.2 at
// 30, with a volatility at the money that was a fifth lower.
func TestSkewFades(t *testing.T) {
	for _, c := range []struct {
		date        string
		least, most float64 // volatility of the call with a delta of 0.25 less that of such a put, points
	}{{"2026-08-12", -1.4, -0.6}, {"2026-08-19", -2.8, -1.5}, {"2026-09-11", -4.6, -3}} {
		chain, at := chainAt(t, market, "_SPX", ny("2026-08-11 16:36:50")), [2]float64{}
		best := [2]float64{1, 1}
		for _, option := range chain.Contracts {
			if off := math.Abs(math.Abs(option.Delta) - 0.25); off < best[option.Right] && option.Root == "SPXW" && option.Expiration.String() == c.date {
				best[option.Right], at[option.Right] = off, 100*option.IV
			}
		}
		if skew := at[compute.Call] - at[compute.Put]; skew < c.least || skew > c.most {
			t.Errorf("%s: the risk reversal is %.2f", c.date, skew)
		}
	}
}
