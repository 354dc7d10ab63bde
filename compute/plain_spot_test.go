package compute_test

import (
	"math"
	"time"

	"strikecache/compute"
)

// quoteInstant is the instant q of §0 that the option quotes of an underlying describe.
func (c plainClock) quoteInstant(asOf, captured time.Time, symbol string) time.Time {
	q := captured.Add(-15 * time.Minute)
	if asOf.After(q) {
		q = asOf
	}
	overnight, today := symbol == "SPX" || symbol == "XSP", newYorkDate(q)
	if overnight && c.session(today+1) && !q.Before(wall(today, 20, 15)) {
		return q // the night before a session
	}
	if !c.session(today) || !overnight && q.Before(c.open(today)) {
		return c.lastQuote(c.lastSession(today-1), symbol)
	}
	if end := c.lastQuote(today, symbol); q.After(end) {
		return end
	}
	return q
}

// lastQuote is the instant at which the options stop trading on the day of a session.
func (c plainClock) lastQuote(d compute.Date, symbol string) time.Time {
	switch stock := plainStock(symbol); {
	case c.early[d] && stock:
		return wall(d, 13, 0)
	case c.early[d]:
		return wall(d, 13, 15)
	case symbol == "SPX" || symbol == "XSP":
		return wall(d, 17, 0)
	case stock:
		return wall(d, 16, 0)
	default:
		return wall(d, 16, 15)
	}
}

// effectiveSpot fills the spot of the figures, its source and the gap. parity holds the groups with a parity forward,
// sorted by T. late is q - as_of.
func (r *plainResult) effectiveSpot(parity []*plainSeries, late time.Duration, american bool) {
	fitted, ok := impliedSpot(parity)
	gap := 0.0
	if ok {
		gap = (fitted/r.Spot - 1) * 100
		r.quality.SpotGap = known(gap)
	}
	switch {
	case american:
		r.EffectiveSpot, r.SpotSource = r.Spot, "last"
	case late <= 5*time.Minute && math.Abs(gap) <= 0.15:
		r.EffectiveSpot, r.SpotSource = r.Spot, "index"
	case ok:
		r.EffectiveSpot, r.SpotSource = fitted, "implied"
	default:
		r.EffectiveSpot, r.SpotSource = r.Spot, "index_stale"
	}
}

// impliedSpot returns exp(intercept) of the least-squares line of ln F on T over the parity forwards of 60 days.
func impliedSpot(parity []*plainSeries) (float64, bool) {
	const day = 86400.0
	var near []*plainSeries
	for _, g := range parity {
		if g.seconds <= 60*day {
			near = append(near, g)
		}
	}
	n := len(near)
	if n < 5 || near[n-1].seconds-near[0].seconds < 7*day {
		return 0, false
	}
	meanT, meanF, slope := fitted(near)
	return math.Exp(meanF - slope*meanT), true
}

// fitted returns the means and the slope of the least-squares line of ln F on T.
func fitted(parity []*plainSeries) (meanT, meanF, slope float64) {
	n := len(parity)
	for _, g := range parity {
		meanT += g.years / float64(n)
		meanF += math.Log(g.forward) / float64(n)
	}
	var covariance, variance float64
	for _, g := range parity {
		covariance += (g.years - meanT) * (math.Log(g.forward) - meanF)
		variance += (g.years - meanT) * (g.years - meanT)
	}
	return meanT, meanF, covariance / variance
}

// contradict sets to null all that is unknown when quotes and index contradict each other.
func (r *plainResult) contradict() {
	r.FlipStatus = "spot_mismatch"
	r.Net, r.Call, r.Put, r.Gross, r.Tilt = nil, nil, nil, nil, nil
	r.Flip, r.Flips, r.FlipDistance, r.FlipBand, r.Regime, r.ExpectedMove = nil, nil, nil, nil, nil, nil
	r.Exposures = plainExposures{}
	r.CallWall, r.PutWall, r.VolTrigger, r.AbsGammaStrike, r.Walls = nil, nil, nil, nil, plainWalls{}
	r.ZeroDTE.Net, r.ZeroDTE.Share, r.ZeroDTE.Flip = nil, nil, nil
	for i := range r.Scenarios {
		r.Scenarios[i].Net, r.Scenarios[i].Flip = nil, nil
	}
	for i := range r.Conventions {
		r.Conventions[i].Net, r.Conventions[i].Flip = nil, nil
	}
	for i := range r.Profile {
		r.Profile[i].Net = nil
	}
	for i := range r.ByExpiration {
		row := &r.ByExpiration[i]
		row.Net, row.Gross, row.Share, row.plainExposures = nil, nil, nil, plainExposures{}
	}
	for i := range r.ByStrike {
		row := &r.ByStrike[i]
		row.Call, row.Put, row.Net = nil, nil, nil
	}
}

// countTwoSided returns the count of the rule quotes_missing: contracts with T > 0 and a two-sided quote, with or without
// open interest.
func countTwoSided(chain *compute.Chain, clock plainClock) int {
	groups, _ := groupContracts(chain, clock)
	n := 0
	for _, g := range groups {
		for _, c := range g.contracts {
			if twoSided(c) {
				n++
			}
		}
	}
	return n
}
