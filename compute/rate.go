package compute

import (
	"math"
	"slices"
	"time"
)

// RateSource names the source of a rate.
type RateSource string

// The sources of a rate.
const (
	RateDocument   RateSource = "document"   // the quotes of the chain
	RateConfigured RateSource = "configured" // --risk-free-rate: the quotes give none
)

const (
	rateFrom, rateTo = 45 * 24 * time.Hour, 400 * 24 * time.Hour // T of a series that gives a rate
	rateSeries       = 3                                         // the least number of these
	ratePoints       = 5                                         // the least number of strikes
	rateReach        = 0.25                                      // the greatest distance of a strike from the center, as a part of it
	rateError        = 0.005                                     // the greatest standard error of the rate of a series, per year
	leastRate        = -0.01                                     // per year
	mostRate         = 0.1                                       // per year
	// leastWidth bounds the weight of a strike, as a part of the center: 0.06 points of an index of 6000.
	leastWidth = 1e-5
)

// RateOf returns the rate at which the quotes of a chain discount, per year, continuously compounded: of European options, C − P falls by
// e^(−rT) for each point of strike. It is the median over the series of 45 to 400 days, from −1 to 10 %, with 6 decimals. Where fewer
// than three series give one, and for American options, it is the configured rate.
func RateOf(c *Chain, cal *Calendar, configured float64) (rate float64, source RateSource) {
	var rates []float64
	if !UnderlyingOf(c.Symbol).American() {
		for left, contracts := range c.unsettled(cal) {
			if left < rateFrom || left > rateTo {
				continue
			}
			if r, off := seriesRate(contracts, left.Seconds()/secondsPerYear); finite(r) && off <= rateError {
				rates = append(rates, r)
			}
		}
	}
	if len(rates) < rateSeries {
		return configured, RateConfigured
	}
	return math.Round(max(leastRate, min(median(rates), mostRate))*1e6) / 1e6, RateDocument
}

// seriesRate returns the rate of a series, and its standard error: NaN if it has none. It is the slope of C − P on K by weighted least
// squares, over the strikes near the one at which C and P are closest to each other. The weight of a strike is 1 over the sum of the
// two spreads.
func seriesRate(contracts []Contract, years float64) (rate, off float64) {
	var points []weighted
	center, closest := 0.0, math.Inf(1)
	for i := 1; i < len(contracts); i++ {
		call, put := &contracts[i-1], &contracts[i]
		if call.Strike != put.Strike || !call.TwoSided() || !put.TwoSided() {
			continue
		}
		p := weighted{call.Strike, call.Mid() - put.Mid(), call.Ask - call.Bid + put.Ask - put.Bid}
		if gap := math.Round(math.Abs(p.y)*1e6) / 1e6; gap < closest {
			center, closest = p.x, gap
		}
		points = append(points, p)
	}
	points = slices.DeleteFunc(points, func(p weighted) bool { return math.Abs(p.x-center) > rateReach*center })
	if len(points) < ratePoints {
		return math.NaN(), math.NaN()
	}
	for i := range points {
		points[i].weight = 1 / max(points[i].weight, leastWidth*center)
	}
	slope, _, off := leastSquares(points)
	return -math.Log(-slope) / years, off / -slope / years
}
