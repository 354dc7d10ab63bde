package simulated_test

import (
	"math"
	"slices"
	"testing"

	"strikecache/compute"
)

// optionsOf are the options of one series by strike.
type optionsOf map[float64]*[2]*compute.Contract

// seriesOf returns the options of a root and a date.
func seriesOf(chain *compute.Chain, root string, date compute.Date) optionsOf {
	series := optionsOf{}
	for i := range chain.Contracts {
		if c := &chain.Contracts[i]; c.Root == root && c.Expiration == date {
			if series[c.Strike] == nil {
				series[c.Strike] = &[2]*compute.Contract{}
			}
			series[c.Strike][c.Right] = c
		}
	}
	return series
}

// forward returns the forward by put-call parity at the strike where call and put differ least, the strikes in order, and the number of
// the last strike up to the forward.
func (s optionsOf) forward(growth float64) (f float64, strikes []float64, at int) {
	least := math.Inf(1)
	for k, sides := range s {
		strikes = append(strikes, k)
		c, p := sides[compute.Call], sides[compute.Put]
		if d := c.Mid() - p.Mid(); c.Bid > 0 && p.Bid > 0 && math.Abs(d) < least {
			least, f = math.Abs(d), k+growth*d
		}
	}
	slices.Sort(strikes)
	for at = len(strikes) - 1; strikes[at] > f; at-- {
	}
	return f, strikes, at
}

// variance is the total variance of the Cboe VIX formula: "VIX Index: mathematics methodology", steps 1 and 2.
func (s optionsOf) variance(growth float64) float64 {
	f, strikes, at := s.forward(growth)
	prices := map[float64]float64{strikes[at]: (s[strikes[at]][compute.Call].Mid() + s[strikes[at]][compute.Put].Mid()) / 2}
	for right, step := range []int{1, -1} {
		for i, zeros := at+step, 0; i >= 0 && i < len(strikes) && zeros < 2; i += step {
			if c := s[strikes[i]][right]; c.Bid > 0 {
				prices[strikes[i]], zeros = c.Mid(), 0
			} else {
				zeros++
			}
		}
	}
	used := slices.DeleteFunc(strikes, func(k float64) bool { return prices[k] == 0 })
	sum, k0 := 0.0, slices.Max(slices.DeleteFunc(slices.Clone(used), func(k float64) bool { return k > f }))
	for i, k := range used {
		low, high := max(i-1, 0), min(i+1, len(used)-1)
		sum += (used[high] - used[low]) / float64(high-low) / (k * k) * growth * prices[k]
	}
	return 2*sum - (f/k0-1)*(f/k0-1)
}

// The VIX quote is the VIX formula on the chain of the SPX of the same instant: of the third Fridays of SPX and the other Fridays of SPXW
// around 30 days, or of the day before if a Friday is a holiday.
func TestVIXIsThatOfTheChain(t *testing.T) {
	calendar, worst := compute.NewCalendar(nil, nil), 0.0
	for _, at := range []string{
		"2023-03-13 15:10:00", "2024-08-05 12:00:00", "2025-10-10 16:50:00", "2026-02-17 10:00:00", // Good Friday is 2026-04-03
		"2026-03-04 12:00:00", "2026-07-20 16:50:00", "2026-08-11 09:50:00", "2026-08-11 12:00:00", "2026-08-14 16:50:00", "2026-10-26 14:00:00",
	} {
		chain, near, next := chainAt(t, market, "_SPX", ny(at)), [2]float64{}, [2]float64{}
		days := chain.Session(calendar) + 20
		for friday := days + compute.Date((12-days.Weekday())%7); next[0] == 0; friday += 7 {
			date, root, settles := calendar.OnOrBefore(friday), "SPXW", calendar.Close
			if friday == compute.ThirdFriday(friday.Year(), friday.Month()) {
				root, settles = "SPX", calendar.Open
			}
			years := settles(date).Sub(chain.QuoteInstant(calendar)).Hours() / 24 / 365
			point := [2]float64{years, seriesOf(chain, root, date).variance(math.Exp(0.04 * years))}
			if years <= 30.0/365 {
				near = point
			} else {
				next = point
			}
		}
		w := near[1] + (next[1]-near[1])*(30.0/365-near[0])/(next[0]-near[0])
		got, want := quoteAt(t, market, "_VIX", ny(at)).Spot, 100*math.Sqrt(w*365/30)
		worst = max(worst, math.Abs(got-want))
		if !(math.Abs(got-want) <= 0.2) {
			t.Errorf("%s: the VIX is %v, the formula gives %.3f", at, got, want)
		}
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
		date, _ := compute.ParseDate(c.date)
		for _, sides := range seriesOf(chain, "SPXW", date) {
			for right, option := range sides {
				if off := math.Abs(math.Abs(option.Delta) - 0.25); off < best[right] {
					best[right], at[right] = off, 100*option.IV
				}
			}
		}
		if skew := at[compute.Call] - at[compute.Put]; skew < c.least || skew > c.most {
			t.Errorf("%s: the risk reversal is %.2f", c.date, skew)
		}
	}
}
