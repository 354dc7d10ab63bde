package compute

import "math"

// term is one strike of one series in the sum G(S') = S'·Σ a·exp(-u²/2), u = d1 + ln(S'/S)·inv.
type term struct {
	a   float64 // signed dollars per index point at u = 0
	d1  float64 // at the spot
	inv float64 // 1/v
}

// profile is G(S'), the net gamma exposure in dollars per 1 % move at a hypothetical spot S'.
type profile struct {
	spot      float64
	terms     []term
	contracts int   // number of contracts in the sum
	grids     *grid // of the spot; nil until it is needed
	lattice   *lattice
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
// ±3 % and of at most 5 points outside.
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

// grid is the bracketing grid of a spot, which all profiles of a chain share.
type grid struct {
	segments [3]segment
	spots    []float64 // S', rising
	weights  []stencil // that give each point from the lattice
}

func newGrid(spot float64) *grid {
	g := &grid{segments: [3]segment{
		newSegment(1-gridHalfWidth, 1-innerHalfWidth, spot, outerStep),
		newSegment(1-innerHalfWidth, 1+innerHalfWidth, spot, innerStep),
		newSegment(1+innerHalfWidth, 1+gridHalfWidth, spot, outerStep),
	}}
	for _, s := range g.segments {
		for j := range s.n {
			x := s.x0 + float64(j)*s.step
			g.spots = append(g.spots, spot*math.Exp(x))
			g.weights = append(g.weights, newStencil((x-latticeStart)/latticeStep))
		}
	}
	return g
}

// grid returns the points S' of the bracketing grid in rising order and G at each. The caller must not change the points.
func (p *profile) grid() (spots, values []float64) {
	if p.grids == nil {
		p.grids = newGrid(p.spot)
	}
	g := p.grids
	smooth := p.smooth()
	values = make([]float64, len(g.spots))
	from := 0
	for _, s := range g.segments {
		part := values[from : from+s.n]
		for _, i := range smooth.rest {
			p.terms[i].addTo(part, s)
		}
		from += s.n
	}
	for j, spot := range g.spots {
		values[j] = spot * (values[j] + g.weights[j].apply(smooth.sums))
	}
	return g.spots, values
}

const (
	// reach is the distance from the peak of a term, in units of u, up to which the term is computed. There e^(-u²/2) is
	// 1e-30, a thousandth of a rounding error of any sum in which a root can be material.
	reach = 11.75
	// steepest is the largest change of u between points for which the recurrence is used. Its ratios would overflow at 15.
	// A term this narrow has at most a dozen points within reach.
	steepest = 2.0
)

// resync is the number of points after which the recurrence starts anew. Its ratio q, which has a rounding error of 2^-53, is a
// factor resync²/2 times. So the error is 2.5e-13 of the sum of the terms' sizes.
const resync = 64

// addTo adds a·exp(-u²/2) at the points of the segment within reach of the term's peak. A term whose peak is
// out of reach of the whole segment still adds to the points nearest to it.
func (t *term) addTo(out []float64, s segment) {
	du := s.step * t.inv
	u0 := t.d1 + s.x0*t.inv
	from := min(max(int(math.Ceil(min((-reach-u0)/du, 1e6))), 0), max(s.n-resync, 0))
	to := max(min(int(math.Floor(min((reach-u0)/du, 1e6)))+1, s.n), min(resync, s.n))
	q := math.Exp(-du * du)
	for from < to {
		block := out[from:min(from+resync, to)]
		u := u0 + float64(from)*du
		if du < steepest && math.Abs(u) < 3*reach {
			t.addBlock(block, u, du, q)
		} else {
			for j := range block {
				if u*u < 1500 { // else e^(-u²/2) is 0
					block[j] += t.a * math.Exp(-0.5*u*u)
				}
				u += du
			}
		}
		from += len(block)
	}
}

// addBlock adds the term at consecutive points, u at the first and du between them. u is linear in the point, so the
// exponential obeys e' = e·r, r' = r·q with q = e^(-du²): two multiplications a point. Four such chains are interleaved,
// each advancing four points a step, because each multiplication of a single chain waits for the one before.
func (t *term) addBlock(out []float64, u, du, q float64) {
	e0 := t.a * math.Exp(-0.5*u*u)
	r := math.Exp(-du * (u + 0.5*du))
	e1 := e0 * r
	e2 := e1 * r * q
	e3 := e2 * r * q * q
	q2 := q * q
	q4 := q2 * q2
	r0 := r * r * r * r * q4 * q2 // e[4]/e[0]
	r1, r2, r3 := r0*q4, r0*q4*q4, r0*q4*q4*q4
	q16 := q4 * q4 * q4 * q4
	for len(out) >= 4 {
		out[0] += e0
		out[1] += e1
		out[2] += e2
		out[3] += e3
		e0, e1, e2, e3 = e0*r0, e1*r1, e2*r2, e3*r3
		r0, r1, r2, r3 = r0*q16, r1*q16, r2*q16, r3*q16
		out = out[4:]
	}
	for j := range out {
		out[j] += [...]float64{e0, e1, e2}[j]
	}
}
