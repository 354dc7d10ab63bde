package compute

import (
	"math"
	"slices"
	"time"
)

// SpotSource names the source of the effective spot.
type SpotSource string

// The sources of the effective spot.
const (
	SpotIndex      SpotSource = "index"       // the published level, which agrees with the quotes
	SpotImplied    SpotSource = "implied"     // the level that the forwards imply
	SpotIndexStale SpotSource = "index_stale" // the published level although it is too old: the forwards imply no level
	SpotLast       SpotSource = "last"        // the last price of a fund or stock, whatever the forwards imply
)

const (
	freshIndex  = 5 * time.Minute // the index is fresh if it is at most this much older than the quotes
	agreedGap   = 0.15            // percent: the greatest difference of the implied spot from a fresh index
	mismatchGap = 10              // percent: a larger difference means that the document contradicts itself

	fitReach  = 60 * 24 * time.Hour // the greatest T of a series in the fit
	fitSpan   = 7 * 24 * time.Hour  // the least difference between the smallest T and the largest
	fitSeries = 5                   // the least number of series
)

// effectiveSpot is the spot of every figure of gex/{u}.
type effectiveSpot struct {
	level  float64
	source SpotSource
	gap    float64 // of the implied spot from the published level, percent; NaN when the forwards imply no level
}

// mismatch says whether the document contradicts itself.
func (s effectiveSpot) mismatch() bool { return math.Abs(s.gap) > mismatchGap }

// findSpot chooses the effective spot of a chain whose quotes are of the instant q. The parity forwards of its series must be
// known.
func findSpot(c *Chain, u Underlying, q time.Time, all []*series) effectiveSpot {
	implied := impliedSpot(all, c.Spot)
	s := effectiveSpot{level: c.Spot, source: SpotIndexStale, gap: (implied/c.Spot - 1) * 100}
	switch {
	case u.Kind != KindIndex:
		s.source = SpotLast
	case q.Sub(c.AsOf) <= freshIndex && !(math.Abs(s.gap) > agreedGap):
		s.source = SpotIndex
	case finite(implied):
		s.level, s.source = implied, SpotImplied
	}
	return s
}

// impliedSpot returns exp(intercept) of the line through the near parity forwards. It is NaN when these are too few or too close to
// each other, and when the fitted price is not usable.
func impliedSpot(all []*series, published float64) float64 {
	near := parityWithin(all, fitReach)
	span, _, intercept := fitForwards(near, published)
	if len(near) < fitSeries || span < fitSpan {
		return math.NaN()
	}
	return Price.Usable(published * math.Exp(intercept))
}

// parityWithin returns the series that have a parity forward and at most a given T.
func parityWithin(all []*series, reach time.Duration) []*series {
	return slices.DeleteFunc(slices.Clone(all), func(s *series) bool { return s.source != forwardParity || s.left > reach })
}

// fitForwards returns the ordinary least-squares line of ln(F/spot), which has more digits than ln F, on T, and the difference between the
// smallest T and the largest. Without a difference, the line is NaN.
func fitForwards(parity []*series, spot float64) (span time.Duration, slope, intercept float64) {
	var meanT, meanY, sxx, sxy float64
	n, least, most := float64(len(parity)), time.Duration(math.MaxInt64), time.Duration(0)
	for _, s := range parity {
		meanT += s.years
		meanY += logMoneyness(s.forward, spot)
		least, most = min(least, s.left), max(most, s.left)
	}
	meanT, meanY = meanT/n, meanY/n
	for _, s := range parity {
		x := s.years - meanT
		sxx += x * x
		sxy += x * (logMoneyness(s.forward, spot) - meanY)
	}
	slope = sxy / sxx
	return most - least, slope, meanY - slope*meanT
}

// withhold removes every figure that rests on the spot, or on open interest, from the data of a document that contradicts
// itself.
func (g *Gamma) withhold() {
	g.Net, g.Call, g.Put, g.Gross, g.Tilt = nil, nil, nil, nil, nil
	g.Flip, g.FlipStatus, g.FlipDistance, g.Flips, g.FlipBand = nil, FlipSpotMismatch, nil, []Flip{}, nil
	g.Regime, g.ExpectedMove, g.Exposures = nil, nil, Exposures{}
	g.CallWall, g.PutWall, g.VolTrigger, g.AbsGammaStrike, g.Walls = nil, nil, nil, nil, Walls{}
	g.ZeroDTE.Net, g.ZeroDTE.Share, g.ZeroDTE.Flip = nil, nil, nil
	for i := range g.Scenarios {
		g.Scenarios[i].Net, g.Scenarios[i].Flip = nil, nil
	}
	for i := range g.Conventions {
		g.Conventions[i].Net, g.Conventions[i].Flip = nil, nil
	}
	for i := range g.Profile {
		g.Profile[i].Net = nil
	}
	for i := range g.ByExpiration {
		g.ByExpiration[i].Net, g.ByExpiration[i].Gross, g.ByExpiration[i].Share = nil, nil, nil
		g.ByExpiration[i].Exposures = Exposures{}
	}
	withholdDollars(g.ByStrike)
}

// withholdDollars removes the dollars of strikes. Their positions stay.
func withholdDollars(rows []StrikeGamma) {
	for i := range rows {
		rows[i].Call, rows[i].Put, rows[i].Net = nil, nil, nil
	}
}
