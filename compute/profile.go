package compute

import "math"

// term is one strike of one series in the sum G(S') = S'·Σ a·exp(-u²/2), u = d1 + ln(S'/S)·inv.
type term struct {
	a   float64 // signed dollars per point at u = 0
	d1  float64 // at the spot
	inv float64 // 1/v
}

// profile is G(S'), the net gamma exposure in dollars per 1 % move at a hypothetical spot S'.
type profile struct {
	spot      float64
	terms     []term
	contracts int // number of contracts in the sum
}

// add appends the term of a strike: weight is the signed number of contracts (calls minus puts under the model
// convention), v its total volatility, logForward ln(F/K) and growth (F/S)·e^(-rT).
func (p *profile) add(weight, v, logForward, growth float64) {
	a := weight * Multiplier * 0.01 * growth * invSqrt2Pi / v
	if a == 0 || !finite(a) || !finite(logForward) {
		return
	}
	p.terms = append(p.terms, term{a: a, d1: logForward/v + 0.5*v, inv: 1 / v})
}

// net returns G at the spot, nil when the profile has no contract.
func (p *profile) net() *Dollars {
	if p.contracts == 0 {
		return nil
	}
	return new(Dollars(p.at(p.spot)))
}

// at returns G at a hypothetical spot.
func (p *profile) at(spot float64) float64 {
	x, sum := logMoneyness(spot, p.spot), 0.0
	for i := range p.terms {
		t := &p.terms[i]
		u := t.d1 + x*t.inv
		sum += t.a * math.Exp(-0.5*u*u)
	}
	return spot * sum
}

// points returns G at S·(1 + j/1000), j = -60 … 60.
func (p *profile) points() []ProfilePoint {
	const steps = 60
	out := make([]ProfilePoint, 0, 2*steps+1)
	for j := -steps; j <= steps; j++ {
		spot := p.spot * (1 + float64(j)/1000)
		point := ProfilePoint{Spot: Level(spot)}
		if p.contracts > 0 {
			point.Net = new(Dollars(p.at(spot)))
		}
		out = append(out, point)
	}
	return out
}

// The grid on which sign changes are bracketed covers ±15 % of the spot in steps of at most 1 point within
// ±3 % and of at most 5 points outside. A point is that of [profile.point].
const (
	gridHalfWidth  = 0.15
	innerHalfWidth = 0.03
	innerStep      = 1.0
	outerStep      = 5.0
)

// segment is a run of grid points whose logarithms are evenly spaced.
type segment struct {
	x0, step float64 // ln(S'/S) of the first point, and between points
	n        int
}

func newSegment(lo, hi, spot, step float64) segment {
	x0, x1 := math.Log(lo), math.Log(hi)
	n := int(math.Ceil((x1-x0)/math.Log1p(step/(spot*hi)))) + 1 // the widest gap, at the top, is step
	return segment{x0: x0, step: (x1 - x0) / float64(n-1), n: n}
}

// point is 1, or a 5000th of a spot under 1000. There, a step of 1 is too wide: SPY lists strikes 1 apart, a cheap stock 0.5 apart.
func (p *profile) point() float64 {
	if p.spot < 1000 {
		return p.spot / 5000
	}
	return 1
}

// grid returns the points S' of the bracketing grid in rising order and G at each.
func (p *profile) grid() (spots, values []float64) {
	for _, s := range [...]segment{
		newSegment(1-gridHalfWidth, 1-innerHalfWidth, p.spot, outerStep*p.point()),
		newSegment(1-innerHalfWidth, 1+innerHalfWidth, p.spot, innerStep*p.point()),
		newSegment(1+innerHalfWidth, 1+gridHalfWidth, p.spot, outerStep*p.point()),
	} {
		sums := make([]float64, s.n)
		for i := range p.terms {
			p.terms[i].addTo(sums, s)
		}
		for j, sum := range sums {
			spot := p.spot * math.Exp(s.x0+float64(j)*s.step)
			spots, values = append(spots, spot), append(values, spot*sum)
		}
	}
	return spots, values
}

// reach is the distance from the peak of a term, in units of u, up to which the term is computed. There e^(-u²/2) is 1e-30, a
// thousandth of a rounding error of any sum in which a root can be material.
const reach = 11.75

// resync is the number of points after which the recurrence of [term.addTo] starts anew. Its ratio q16, which has a rounding error
// of some 2^-51, is a factor (resync/4)²/2 times. So the error is 1e-12 of the sum of the terms' sizes.
const resync = 256

// addTo adds a·exp(-u²/2) at the points of the segment within reach of the term's peak. A term whose peak is out of reach of
// the whole segment still adds to the nearest point. u is linear in the point, so the exponential four points on is e' = e·r, and
// r' = r·q16 with q16 = e^(-16·du²). Four such chains are interleaved, because each multiplication of a chain waits for the one
// before.
func (t *term) addTo(out []float64, s segment) {
	du := s.step * t.inv
	u0 := t.d1 + s.x0*t.inv
	from := int(min(max(math.Ceil((-reach-u0)/du), 0), float64(s.n-1)))
	to := int(min(max(math.Floor((reach-u0)/du)+1, float64(from+1)), float64(s.n)))
	q := math.Exp(-du * du)
	q4 := q * q * q * q
	q16 := q4 * q4 * q4 * q4
	for from < to {
		block := out[from:min(from+resync, to)]
		u := u0 + float64(from)*du
		next := math.Exp(-du * (u + 0.5*du)) // of one point
		e0, r0 := t.a*math.Exp(-0.5*u*u), math.Exp(-4*du*(u+2*du))
		e1, r1 := e0*next, r0*q4
		e2, r2 := e1*next*q, r1*q4
		e3, r3 := e2*next*q*q, r2*q4
		from += len(block)
		for ; len(block) >= 4; block = block[4:] {
			block[0] += e0
			block[1] += e1
			block[2] += e2
			block[3] += e3
			e0, e1, e2, e3 = e0*r0, e1*r1, e2*r2, e3*r3
			r0, r1, r2, r3 = r0*q16, r1*q16, r2*q16, r3*q16
		}
		for j := range block {
			block[j] += [...]float64{e0, e1, e2}[j]
		}
	}
}
