package plain

import (
	"cmp"
	"math"
	"slices"

	"strikecache/compute"
)

// Where a forward comes from.
const (
	sourceParity       = "parity"
	sourceOther        = "other_settlement"
	sourceInterpolated = "interpolated"
	sourceExtrapolated = "extrapolated"
	sourcePrevious     = "previous"
	sourceNone         = "none"
)

// setForwards fills logCarry, forward and source of every group.
func setForwards(groups []*group, spot, rate float64, previous map[compute.Series]float64) {
	var parity []*group // by T
	for _, g := range groups {
		if f, ok := parityForward(g, rate); ok {
			g.source, g.logCarry = sourceParity, math.Log(f/spot)
			g.forward = f
			parity = append(parity, g)
		}
	}
	slices.SortStableFunc(parity, func(a, b *group) int { return cmp.Compare(a.seconds, b.seconds) })
	for _, g := range groups {
		if g.source == sourceParity {
			continue
		}
		g.logCarry, g.source = otherForward(g, parity, previous)
		g.forward = spot * math.Exp(g.logCarry)
	}
}

// otherForward returns ln(F/S) of a group without a parity forward of its own.
func otherForward(g *group, parity []*group, previous map[compute.Series]float64) (float64, string) {
	if len(parity) == 0 {
		b, ok := previous[compute.Series{Root: g.root, Expiration: g.expiration}]
		if ok && finite(b) {
			return b * g.years, sourcePrevious
		}
		return 0, sourceNone
	}
	for _, p := range parity {
		if p.expiration == g.expiration && p.settlement != g.settlement {
			return p.logCarry, sourceOther
		}
	}
	lastT, lastCarry := 0.0, 0.0 // ln(F/S) is 0 at T = 0
	for _, p := range parity {
		if g.years <= p.years {
			w := (g.years - lastT) / (p.years - lastT)
			return lastCarry + w*(p.logCarry-lastCarry), sourceInterpolated
		}
		lastT, lastCarry = p.years, p.logCarry
	}
	return lastCarry / lastT * g.years, sourceExtrapolated
}

// parityForward is the median of K + e^{rT}(C-P) over the strikes nearest the money.
func parityForward(g *group, rate float64) (float64, bool) {
	type pair struct{ strike, difference float64 }
	var pairs []pair
	for _, call := range g.contracts {
		if call.Right != compute.Call || !twoSided(call) {
			continue
		}
		for _, put := range g.contracts {
			if put.Right == compute.Put && put.Strike == call.Strike && twoSided(put) {
				pairs = append(pairs, pair{call.Strike, mid(call) - mid(put)})
			}
		}
	}
	if len(pairs) < 3 {
		return 0, false
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { // by strike before: ties keep the lower strike first
		return cmp.Compare(tieUnits(a.difference), tieUnits(b.difference))
	})
	pairs = pairs[:min(7, len(pairs))]
	var forwards []float64
	for _, p := range pairs {
		forwards = append(forwards, p.strike+math.Exp(rate*g.years)*p.difference)
	}
	f := percentile(forwards, 0.5)
	return f, finite(f) && f > 0
}

// tieUnits is |x| in units of 1e-7: quotes are decimals, so that two differences that are equal on paper tie here
// too, whatever the last bit of their binary forms.
func tieUnits(x float64) float64 { return math.Round(math.Abs(x) * 1e7) }

func twoSided(c *compute.Contract) bool { return c.Bid > 0 && c.Ask >= c.Bid && finite(c.Ask) }

func mid(c *compute.Contract) float64 { return (c.Bid + c.Ask) / 2 }

// percentile is the linear percentile of x, which must not be empty: p = 0.5 is the median.
func percentile(x []float64, p float64) float64 {
	sorted := slices.Clone(x)
	slices.Sort(sorted)
	position := float64(len(sorted)-1) * p
	below := int(math.Floor(position))
	if below == len(sorted)-1 {
		return sorted[below]
	}
	return sorted[below] + (position-float64(below))*(sorted[below+1]-sorted[below])
}
