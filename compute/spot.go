package compute

import (
	"cmp"
	"fmt"
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
	SpotIndexStale SpotSource = "index_stale" // the published level although it stands still: the forwards imply no level
	SpotLast       SpotSource = "last"        // the last price of a fund or stock
	SpotClose      SpotSource = "close"       // the closing price of a fund or stock that has traded since its options closed
)

const (
	besideQuotes = 5 * time.Minute // the greatest difference between the last trade of the underlying and the quotes that it belongs to
	agreedGap    = 0.0015          // the greatest part by which a price and the level of the forwards differ when they agree
	mismatchGap  = 0.1             // a greater part means that the document contradicts itself
	mostDividend = 0.02            // the greatest part of a share that an ordinary dividend takes

	fitReach  = 60 * 24 * time.Hour // the greatest T of a series in the fit
	fitSpan   = 7 * 24 * time.Hour  // the least difference between the smallest T and the largest
	fitSeries = 5                   // the least number of series
)

// effectiveSpot is the spot of every figure of gex/{u}.
type effectiveSpot struct {
	level    float64
	source   SpotSource
	then     float64 // the published price of the time nearest the quotes: the close of a share that has traded since, else the last price
	gap      float64 // of the implied spot from the published level, percent; NaN when the forwards imply no level
	mismatch bool    // the document contradicts itself
	apart    bool    // the level is a price of another moment than the quotes: no better one is known
}

// findSpot chooses the effective spot of a chain whose quotes are of the instant q. The parity forwards of its series must be
// known. A series whose forward cannot be one of this spot loses the forward.
func findSpot(c *Chain, u Underlying, cal *Calendar, q time.Time, all []*series) effectiveSpot {
	day, share := DateOf(q.In(NewYork)), u.Kind != KindIndex
	beside := q.Sub(c.AsOf).Abs() <= besideQuotes
	trades := share || !cal.IsSession(day) || q.Before(cal.Close(day)) // after the close of its shares, an index stands still
	closed := share && c.AsOf.Sub(q) > besideQuotes && finite(Price.Usable(c.Close))
	s := effectiveSpot{level: c.Spot, source: SpotIndexStale, then: c.Spot, apart: !beside}
	if share {
		s.source = SpotLast
	}
	if closed {
		s.then = c.Close
	}
	fit := fitLevel(all, s.then, share, beside || closed, day)
	implied := Price.Usable(s.then * math.Exp(fit.level))
	s.gap = (implied/c.Spot - 1) * 100
	s.mismatch = contradicts(all, implied/s.then, s.then)
	switch {
	case share && s.mismatch: // whatever the quotes are of
		s.apart = false
	case beside && trades && fit.agrees:
		if !share {
			s.source = SpotIndex
		}
	case closed && (fit.dividend || !finite(implied)):
		s.level, s.source, s.apart = c.Close, SpotClose, false
	case finite(implied):
		s.level, s.source, s.apart = implied, SpotImplied, false
	}
	if !s.apart && !s.mismatch {
		refuseForwards(all, s.level, share, day)
	}
	return s
}

// spotFit is the level that the near parity forwards imply, beside a price.
type spotFit struct {
	level    float64 // ln(level/price); NaN when the forwards are too few, or too close to each other
	dividend bool    // the level is below the price by what may be a dividend before the nearest date
	agrees   bool    // the level does not contradict the price; also without a level
}

// fitLevel fits the level at T = 0. Most near forwards lie on a line. Those of an index that do not lie on it lose their forward. Those
// of a share fall at each ex-date: the nearest date tells the level, unless it cannot belong to the later dates. Of a nearest date that
// may be before a dividend or not be refreshed, the price decides, if it is known to be of the quotes.
func fitLevel(all []*series, price float64, share, known bool, day Date) spotFit {
	fit := spotFit{level: math.NaN(), agrees: true}
	near := parityWithin(all, fitReach)
	slope, line := mostlyOn(near, price)
	on := slices.Clone(near)
	if !share {
		on = slices.DeleteFunc(on, func(s *series) bool { return math.Abs(s.over(price)-slope*s.years-line) > s.tolerance() })
	}
	if math.IsNaN(slope) || len(on) < fitSeries || 2*len(on) <= len(near) || on[len(on)-1].left-on[0].left < fitSpan {
		return fit
	}
	nearest := near[0]
	tolerance := nearest.tolerance()
	_, fit.level = fitForwards(on, price)
	if share {
		fit.level = nearest.over(price) - slope*nearest.years
		if above := fit.level - line; above < -tolerance || above > mostDividend || known && math.Abs(line) < math.Abs(fit.level) {
			fit.level = line
		}
		fit.dividend = nearest.Expiration > day && fit.level < -tolerance && fit.level >= -mostDividend
	}
	fit.agrees = fit.dividend || math.Abs(fit.level) <= tolerance
	for _, s := range near {
		if !slices.Contains(on, s) {
			s.forward, s.source = 0, ""
		}
	}
	return fit
}

// mostlyOn returns the line of ln(F/price) on T that has at least half of the forwards nearest to it, of the lines through two forwards
// that are days apart. It is NaN if there is none with the carry of a share.
//
// Source: Rousseeuw (1984), Least Median of Squares Regression, Journal of the American Statistical Association 79.
func mostlyOn(near []*series, price float64) (slope, line float64) {
	slope, line = math.NaN(), math.NaN()
	least, off, y := math.Inf(1), make([]float64, len(near)), make([]float64, len(near))
	for i, s := range near {
		y[i] = s.over(price)
	}
	for i, a := range near {
		for j, b := range near[:i] {
			c := (y[i] - y[j]) / (a.years - b.years)
			if (a.left-b.left).Abs() < fitSpan || math.Abs(c) > mostCarry {
				continue
			}
			for k, s := range near {
				off[k] = math.Abs(y[k] - y[i] - c*(s.years-a.years))
			}
			slices.Sort(off)
			if middle := off[len(off)/2]; middle < least {
				least, slope, line = middle, c, y[i]-c*a.years
			}
		}
	}
	return slope, line
}

// contradicts says whether prices of a document belong to different underlyings: the implied spot, as a part of the price, is over 10 %
// off. Without one, a single parity forward is enough that is further off than its carry and its spread can explain.
func contradicts(all []*series, implied, price float64) bool {
	if finite(implied) {
		return math.Abs(implied-1) > mismatchGap
	}
	return slices.ContainsFunc(parityWithin(all, math.MaxInt64), func(s *series) bool {
		return math.Abs(s.over(price)) > math.Log1p(mismatchGap)+mostCarry*s.years+s.tolerance()
	})
}

// refuseForwards takes the forward from each series whose carry, from the spot and from what most dates say, no arbitrage lets stand: it is
// not refreshed any more. Most of the forwards stay.
func refuseForwards(all []*series, spot float64, share bool, day Date) {
	parity, over := parityWithin(all, math.MaxInt64), []float64{}
	for _, s := range parity {
		over = append(over, s.over(spot))
	}
	middle := median(over)
	impossible := slices.DeleteFunc(parity, func(s *series) bool {
		up := mostCarry*s.years + s.tolerance()
		down := up
		if share && s.Expiration > day {
			down += mostDividend
		}
		x := s.over(spot)
		return -down <= x && x <= up || math.Abs(x-middle) <= up
	})
	if 2*len(impossible) < len(over) {
		for _, s := range impossible {
			s.forward, s.source = 0, ""
		}
	}
}

func (s *series) over(price float64) float64 { return logMoneyness(s.forward, price) }

// tolerance returns how far the forward, as a logarithm, may be off: 0.15 %, or half the spreads of the call and the put nearest to it.
func (s *series) tolerance() float64 {
	spread, nearest := 0.0, math.Inf(1)
	for i := range s.strikes {
		if row := &s.strikes[i]; row.quoted() && math.Abs(row.k-s.forward) < nearest {
			nearest = math.Abs(row.k - s.forward)
			spread = row.contracts[Call].Ask - row.contracts[Call].Bid + row.contracts[Put].Ask - row.contracts[Put].Bid
		}
	}
	return max(agreedGap, spread/2/s.discount/s.forward)
}

// parityWithin returns the series that have a parity forward and at most a given T, by T.
func parityWithin(all []*series, reach time.Duration) []*series {
	parity := slices.DeleteFunc(slices.Clone(all), func(s *series) bool { return s.source != forwardParity || s.left > reach })
	slices.SortStableFunc(parity, func(a, b *series) int { return cmp.Compare(a.left, b.left) })
	return parity
}

// fitForwards returns the ordinary least-squares line of ln(F/spot), which has more digits than ln F, on T. Without two different T, it is
// NaN.
func fitForwards(parity []*series, spot float64) (slope, intercept float64) {
	points := make([]weighted, len(parity))
	for i, s := range parity {
		points[i] = weighted{s.years, s.over(spot), 1}
	}
	slope, intercept, _ = leastSquares(points)
	return slope, intercept
}

// spotNote says how far the spot is from the quotes in time, "" if it belongs to them.
func (e *exposure) spotNote() string {
	if !e.apart {
		return ""
	}
	age, than := e.quoted.Sub(e.Chain.AsOf), "older"
	if age < 0 {
		age, than = -age, "newer"
	}
	return fmt.Sprintf("The price is %.0f minutes %s than the quotes; too few forwards agree on a spot.", age.Minutes(), than)
}
