package plain

import (
	"math"

	"strikecache/compute"
)

// The steps by which a volatility is found.
const (
	stepImplied      = "implied"
	stepPublished    = "published"
	stepInterpolated = "interpolated"
	stepNone         = "none"
)

// smile is the total volatility of one strike of a group.
type smile struct {
	strike  float64
	v       float64
	step    string
	floored bool
}

// smileAt returns the volatility of a listed strike.
func (g *group) smileAt(strike float64) smile {
	for _, s := range g.smiles {
		if s.strike == strike {
			return s
		}
	}
	panic("plain: strike is not listed")
}

// volatilities finds one v per strike of a group.
func volatilities(g *group, rate float64) []smile {
	var smiles []smile
	for i, c := range g.contracts {
		if i > 0 && g.contracts[i-1].Strike == c.Strike {
			continue
		}
		var call, put *compute.Contract
		for _, x := range g.contracts {
			if x.Strike == c.Strike && x.Right == compute.Call {
				call = x
			}
			if x.Strike == c.Strike && x.Right == compute.Put {
				put = x
			}
		}
		smiles = append(smiles, quotedVolatility(g, c.Strike, call, put, rate))
	}
	quoted := make([]smile, 0, len(smiles))
	for _, s := range smiles {
		if s.step != stepNone {
			quoted = append(quoted, s)
		}
	}
	for i := range smiles {
		if smiles[i].step == stepNone && len(quoted) > 0 {
			smiles[i].v = interpolate(quoted, smiles[i].strike, g.forward)
			smiles[i].step = stepInterpolated
		}
	}
	return smiles
}

// quotedVolatility is steps 1 and 2: from the out-of-the-money mid, else from the published iv.
func quotedVolatility(g *group, strike float64, call, put *compute.Contract, rate float64) smile {
	outside, other := put, call
	if strike >= g.forward {
		outside, other = call, put
	}
	if outside != nil && twoSided(outside) {
		price := mid(outside) * math.Exp(rate*g.years)
		if v, ok := implied(price, g.forward, strike, strike >= g.forward); ok {
			return smile{strike: strike, v: v, step: stepImplied}
		}
	}
	const floor = 15 * 60.0 // seconds
	years := math.Max(g.seconds, floor) / (365 * 86400)
	for _, c := range []*compute.Contract{outside, other} {
		if c != nil && c.IV > 0 && finite(c.IV) {
			return smile{strike: strike, v: c.IV * math.Sqrt(years), step: stepPublished, floored: g.seconds < floor}
		}
	}
	return smile{strike: strike, step: stepNone}
}

// interpolate is step 3: v^2 linear in ln(K/F) between quoted neighbours, flat outside.
func interpolate(quoted []smile, strike, forward float64) float64 {
	first, last := quoted[0], quoted[len(quoted)-1]
	if strike <= first.strike {
		return first.v
	}
	if strike >= last.strike {
		return last.v
	}
	i := 1
	for quoted[i].strike < strike {
		i++
	}
	low, high := quoted[i-1], quoted[i]
	if low.strike == 0 { // ln(K/F) is -Inf: the limit
		return high.v
	}
	x, x0, x1 := math.Log(strike/forward), math.Log(low.strike/forward), math.Log(high.strike/forward)
	return math.Sqrt(low.v*low.v + (high.v*high.v-low.v*low.v)*(x-x0)/(x1-x0))
}

func normal(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }

// black is the undiscounted Black price for total volatility v.
func black(forward, strike, v float64, call bool) float64 {
	d1 := math.Log(forward/strike)/v + v/2
	d2 := d1 - v
	if call {
		return forward*normal(d1) - strike*normal(d2)
	}
	return strike*normal(-d2) - forward*normal(-d1)
}

// implied solves black(v) = price by bisection until no number is left between the ends.
func implied(price, forward, strike float64, call bool) (float64, bool) {
	intrinsic, upper := math.Max(0, strike-forward), strike
	if call {
		intrinsic, upper = math.Max(0, forward-strike), forward
	}
	if !(price > intrinsic) || !(price < upper) {
		return 0, false
	}
	low, high := 0.0, 1.0
	for black(forward, strike, high, call) < price {
		high *= 2
		if high > 1000 {
			return 0, false
		}
	}
	for {
		v := low + (high-low)/2
		if v == low || v == high {
			break
		}
		if black(forward, strike, v, call) < price {
			low = v
		} else {
			high = v
		}
	}
	return high, true
}
