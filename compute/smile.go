package compute

import (
	"cmp"
	"math"
	"slices"
)

const (
	leastPoints = 5 // points of a smile, and options of a model-free volatility, that determine it
	// mostEnd is the greatest price, as a part of that at the center, at which a side of a model-free volatility may end.
	mostEnd = 0.05
	// leastOfATM is the least model-free volatility, as a part of that at the money: with less, most of the options are missing.
	leastOfATM = 0.9
	// d1 at a call delta of 25 and 10 % is minus this, at a put delta plus this: N(d1) = 0.75 and 0.9.
	delta25 = 0.67448975019608174320
	delta10 = 1.28155156554460046696
)

// smile is the points of a series at which out-of-the-money quotes give the volatility, strikes rising. Between neighbouring
// points v² is linear in x. Outside them it is unknown.
type smile []smilePoint

type smilePoint struct {
	x   float64 // ln(K/F)
	w   float64 // v²
	mid float64 // of the out-of-the-money quote
}

// smile returns the points of a series at the strikes that may be one.
func (s *series) smile(may func(*strike) bool) smile {
	var m smile
	for i := range s.strikes {
		if row := &s.strikes[i]; row.step == volImplied && may(row) {
			m = append(m, smilePoint{logMoneyness(row.k, s.forward), row.v * row.v, row.contracts[s.outOf(row.k)].Mid()})
		}
	}
	return m
}

// atTheMoney returns w(0), or why it is unknown.
func (m smile) atTheMoney() (w float64, why string) {
	if len(m) < leastPoints {
		return 0, fewStrikes
	}
	i := slices.IndexFunc(m, func(p smilePoint) bool { return p.x >= 0 })
	if i < 0 || i == 0 && m[0].x > 0 {
		return 0, notBracketed
	}
	last := len(m) - 1
	if i < last && m[i].mid <= m[last].mid || i > 1 && m[i-1].mid <= m[0].mid {
		return 0, "flat_prices"
	}
	if m[i].x == 0 {
		return m[i].w, ""
	}
	w = between(m[i-1], m[i], 0)
	if max(-m[i-1].x, m[i].x) > math.Sqrt(w) {
		return 0, "wide_gap"
	}
	return w, ""
}

// atTheMoney returns w(0) of the smile. Where that is unknown, it is between the strikes around the forward, whatever gave their volatility.
// It is NaN without a volatility.
func (s *series) atTheMoney() float64 {
	w, why := s.smile(func(*strike) bool { return true }).atTheMoney()
	switch {
	case why == "":
		return w
	case s.strikes[0].step == volNone: // and so have all
		return math.NaN()
	}
	v := volatilityAt(s.strikes, s.forward)
	return v * v
}

// between returns w at x, linear between two points.
func between(a, b smilePoint, x float64) float64 { return a.w + (x-a.x)/(b.x-a.x)*(b.w-a.w) }

// atDelta returns w where d1 = -x/√w + √w/2 has the given value, at the crossing nearest the forward. It is NaN if no neighbouring
// points have the crossing between them.
func (m smile) atDelta(d1 float64) float64 {
	above := func(p smilePoint) bool { return -p.x/math.Sqrt(p.w)+math.Sqrt(p.w)/2 > d1 }
	found, nearest := math.NaN(), math.Inf(1)
	for i := 1; i < len(m); i++ {
		a, b := m[i-1], m[i]
		side := above(a)
		if side == above(b) {
			continue
		}
		low, high := a.x, b.x
		for high-low > 1e-12 {
			x := low + 0.5*(high-low)
			if above(smilePoint{x: x, w: between(a, b, x)}) == side {
				low = x
			} else {
				high = x
			}
		}
		if x := low + 0.5*(high-low); math.Abs(x) < nearest {
			found, nearest = between(a, b, x), math.Abs(x)
		}
	}
	return found
}

// straddle returns the mid of the call and the put at the strike nearest the forward, the lower on a tie; nil unless both are quoted.
func (s *series) straddle() *Level {
	nearest := slices.MinFunc(s.strikes, s.byDistance)
	if !nearest.quoted() {
		return nil
	}
	return new(Level(nearest.contracts[Call].Mid() + nearest.contracts[Put].Mid()))
}

type option struct{ k, mid float64 }

// modelFree returns the total variance by the formula of the Cboe Volatility Index, NaN and the reason where unknown. The center K0 is
// the highest strike at or below the forward at which both rights are quoted. atm is w(0).
//
// Source: Cboe, Volatility Index Mathematics Methodology, steps 1 and 2.
func (s *series) modelFree(m smile, atm float64) (w float64, why string) {
	center := -1
	for i := range s.strikes {
		if row := &s.strikes[i]; row.k > 0 && row.k <= s.forward && row.quoted() {
			center = i
		}
	}
	if center < 0 {
		return math.NaN(), notBracketed
	}
	k0 := &s.strikes[center]
	at := option{k0.k, (k0.contracts[Call].Mid() + k0.contracts[Put].Mid()) / 2}
	puts, calls := s.outOfTheMoney(Put, center, m), s.outOfTheMoney(Call, center, m)
	for _, side := range [...][]option{puts, calls} {
		if last := append([]option{at}, side...)[len(side)]; last.mid > mostEnd*at.mid {
			return math.NaN(), quoteGap
		}
	}
	slices.Reverse(puts)
	options := append(append(puts, at), calls...)
	if len(options) < leastPoints {
		return math.NaN(), fewStrikes
	}
	sum := 0.0
	for i, o := range options {
		below, above := max(i-1, 0), min(i+1, len(options)-1)
		sum += (options[above].k - options[below].k) / float64(above-below) / (o.k * o.k) * o.mid
	}
	away := s.forward/k0.k - 1
	switch w = 2*sum/s.discount - away*away; {
	case !(w > 0):
		return math.NaN(), "not_positive"
	case w < leastOfATM*leastOfATM*atm:
		return math.NaN(), quoteGap
	}
	return w, ""
}

// outOfTheMoney returns the puts below the center or the calls above it that have a price, nearest first. It ends at two neighbouring
// options without a bid under an ask. An option without any quote, or without a usable one, is none of these: it has the price that
// the smile gives it. So has a call in the money, between the center and the forward, whose strike is off.
func (s *series) outOfTheMoney(right Right, center int, m smile) (options []option) {
	step, missing := 1, 0
	if right == Put {
		step = -1
	}
	for i := center + step; i >= 0 && i < len(s.strikes) && missing < 2; i += step {
		row := &s.strikes[i]
		switch c := row.contracts[right]; {
		case c == nil || row.k == 0:
		case row.usable(right) != nil && !(row.off && right != s.outOf(row.k)):
			options, missing = append(options, option{row.k, c.Mid()}), 0
		case c.Bid == 0 && c.Ask > 0:
			missing++
		default:
			if w := m.at(logMoneyness(row.k, s.forward)); finite(w) {
				options = append(options, option{row.k, s.discount * BlackValue(right, s.forward, row.k, math.Sqrt(w))})
			} else if c.Bid > 0 && row.step == volPublished {
				options = append(options, option{row.k, s.discount * BlackValue(right, s.forward, row.k, row.v)})
			}
		}
	}
	return options
}

// at returns w at x, NaN outside the points.
func (m smile) at(x float64) float64 {
	i, found := slices.BinarySearchFunc(m, x, func(p smilePoint, x float64) int { return cmp.Compare(p.x, x) })
	switch {
	case found:
		return m[i].w
	case i == 0 || i == len(m):
		return math.NaN()
	}
	return between(m[i-1], m[i], x)
}
