package compute

import (
	"maps"
	"math"
	"slices"
)

const (
	// VolatilityHistory is how many earlier sessions a rank counts at most: 252 with its own.
	VolatilityHistory = 251
	leastRanked       = 60 // values that a rank needs
	// mostJump is the greatest ratio of neighbouring closes: a larger one is a split, not a return.
	mostJump = 1.5
)

// With returns the result with the figures that rest on earlier sessions, which must be rising, before that of the result, and at most
// [VolatilityHistory]. It does not change the receiver.
func (r VolatilityResult) With(earlier []VolatilityDay, cal *Calendar) VolatilityResult {
	v, unknown, now := &r.Data, maps.Clone(r.Quality.Unknown), r.Today.ATM30
	r.Quality.Unknown = unknown
	var values []float64
	var closes []VolatilityDay
	for _, d := range append(slices.Clone(earlier), r.Today) {
		if d.ATM30 != nil {
			values = append(values, *d.ATM30)
		}
		if d.Close != nil {
			closes = append(closes, d)
		}
	}
	v.Sessions = len(values)
	why := noDates
	if now != nil {
		why = fewSessions
	}
	if now != nil && len(values) >= leastRanked {
		low, high := slices.Min(values), slices.Max(values)
		v.Percentile = new(midRank(*now, values))
		v.Rank, why = finiteOrNil(Ratio((*now-low)/(high-low)*100)), noRange // 0/0 is NaN
	}
	known(v.Percentile, unknown, "percentile_1y", why)
	known(v.Rank, unknown, "rank_1y", why)
	v.Realised60, why = realised(closes, 60, cal)
	known(v.Realised60, unknown, "realised_60d", why)
	v.Realised20, why = realised(closes, 20, cal)
	if known(v.Realised20, unknown, "realised_20d", why) != nil && now != nil {
		v.ImpliedMinusRealised = new(Ratio(*now) - *v.Realised20)
	} else if v.Realised20 != nil {
		why = noDates
	}
	known(v.ImpliedMinusRealised, unknown, "implied_minus_realised", why)
	return r
}

// realised returns √(252/m · Σ ln²(C/C before)) in percent over the last n+1 closes, m being the sessions from the first to the last: n
// unless closes are missing. why says why it is unknown.
func realised(closes []VolatilityDay, n int, cal *Calendar) (_ *Ratio, why string) {
	if len(closes) <= n {
		return nil, fewSessions
	}
	closes = closes[len(closes)-n-1:]
	m := cal.SessionsBetween(closes[0].Session, closes[n].Session)
	if 4*m > 5*n {
		return nil, missingSessions
	}
	sum := 0.0
	for i, d := range closes[1:] {
		move := math.Log(*d.Close / *closes[i].Close)
		if math.Abs(move) > math.Log(mostJump) {
			return nil, priceJump
		}
		sum += move * move
	}
	return new(Ratio(100 * math.Sqrt(252/float64(m)*sum))), ""
}
