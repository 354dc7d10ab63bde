package compute

import (
	"cmp"
	"math"
	"slices"
)

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

// at returns G at a hypothetical spot. [sampled.at] is faster for many.
func (p *profile) at(spot float64) float64 { return spot * sumAt(p.terms, logMoneyness(spot, p.spot)) }

// sumAt returns Σ a·exp(-u²/2) at x = ln(S'/S).
func sumAt(terms []term, x float64) (sum float64) {
	for i := range terms {
		t := &terms[i]
		u := t.d1 + x*t.inv
		sum += t.a * math.Exp(-0.5*u*u)
	}
	return sum
}

// points returns G at S·(1 + j/1000), j = -60 … 60.
func (s *sampled) points() []ProfilePoint {
	const steps = 60
	out := make([]ProfilePoint, 0, 2*steps+1)
	for j := -steps; j <= steps; j++ {
		spot := s.of.spot * (1 + float64(j)/1000)
		point := ProfilePoint{Spot: Level(spot)}
		if s.of.contracts > 0 {
			point.Net = new(Dollars(s.at(spot)))
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
func (s *sampled) grid() (spots, values []float64) {
	spot, point := s.of.spot, s.of.point()
	for _, part := range [...]segment{
		newSegment(1-gridHalfWidth, 1-innerHalfWidth, spot, outerStep*point),
		newSegment(1-innerHalfWidth, 1+innerHalfWidth, spot, innerStep*point),
		newSegment(1+innerHalfWidth, 1+gridHalfWidth, spot, outerStep*point),
	} {
		sums := make([]float64, part.n)
		for i := range s.narrow {
			s.narrow[i].addTo(sums, part)
		}
		for j, sum := range sums {
			x := part.x0 + float64(j)*part.step
			at := spot * math.Exp(x)
			spots, values = append(spots, at), append(values, at*(sum+s.smooth(x)))
		}
	}
	return spots, values
}

// sampled is a profile that is fast to evaluate at many points of the grid: of the wide terms, which are smooth, it has the sums at evenly
// spaced samples, and interpolates between them.
type sampled struct {
	of     *profile
	wide   [widths]samples // by the width of the terms: each has twice the step of the one before
	narrow []term          // the other terms
}

// samples are sums of terms at the points of a segment.
type samples struct {
	segment
	sums []float64 // nil without a term
}

const (
	widths     = 8
	sampleStep = 4e-4 // of the narrowest: with fewer points, the grid itself would be cheaper
	// mostStep is the greatest step of samples, in units of u. The polynomial through 12 of them is off by at most 0.57·mostStep^12 of the
	// peak of a term, 1.4e-16, and 25 units away, where e^(-u²/2) is 1e-136, by a thousandth of the term.
	mostStep, mostAway = 0.05, 25
)

// binomials are the weights of the 12 points of an interpolation.
//
// Source: Berrut and Trefethen (2004), Barycentric Lagrange Interpolation, SIAM Review 46, eq. 5.1.
var binomials = [12]float64{1, -11, 55, -165, 330, -462, 462, -330, 165, -55, 11, -1}

// sample samples the wide terms of a profile.
func (p *profile) sample() *sampled {
	s := &sampled{of: p}
	for k := range s.wide {
		step := sampleStep * float64(int(1)<<k)
		low, high := math.Log(1-gridHalfWidth)-6*step, math.Log(1+gridHalfWidth)+6*step
		s.wide[k].segment = segment{x0: low, step: step, n: int((high-low)/step) + 2}
	}
	for i := range p.terms {
		if t := &p.terms[i]; !s.add(t) {
			s.narrow = append(s.narrow, *t)
		}
	}
	return s
}

// add adds a term to the samples if it is wide enough, and none of its samples is far from its peak.
func (s *sampled) add(t *term) bool {
	k := min(math.Ilogb(mostStep/(sampleStep*t.inv)), widths-1)
	if k < 0 {
		return false
	}
	w := &s.wide[k]
	first, du := t.d1+w.x0*t.inv, w.step*t.inv
	if first < -mostAway || first+float64(w.n-1)*du > mostAway {
		return false
	}
	if w.sums == nil {
		w.sums = make([]float64, w.n)
	}
	t.addAll(w.sums, first, du)
	return true
}

// smooth returns the sum of the wide terms at x = ln(S'/S), within the grid.
func (s *sampled) smooth(x float64) (sum float64) {
	for k := range s.wide {
		w := &s.wide[k]
		if w.sums == nil {
			continue
		}
		at := (x - w.x0) / w.step
		first := int(at) - 5
		at -= float64(first)
		if at == 5 {
			sum += w.sums[first+5]
			continue
		}
		var value, weights float64
		for i, c := range w.sums[first : first+len(binomials)] {
			weight := binomials[i] / (at - float64(i))
			value += weight * c
			weights += weight
		}
		sum += value / weights
	}
	return sum
}

// at returns G at a hypothetical spot within the grid.
func (s *sampled) at(spot float64) float64 {
	x := logMoneyness(spot, s.of.spot)
	return spot * (sumAt(s.narrow, x) + s.smooth(x))
}

// reach is the distance from the peak of a term, in units of u, up to which the term is computed. There e^(-u²/2) is 1e-30, a
// thousandth of a rounding error of any sum in which a root can be material.
const reach = 11.75

// resync is the number of points after which the recurrence of [term.addAll] starts anew. Its ratio q16, which has a rounding error
// of some 2^-51, is a factor (resync/4)²/2 times. So the error is 1e-12 of the sum of the terms' sizes.
const resync = 256

// addTo adds a·exp(-u²/2) at the points of the segment within reach of the term's peak. A term whose peak is out of reach of
// the whole segment still adds to the nearest point.
func (t *term) addTo(out []float64, s segment) {
	du := s.step * t.inv
	u0 := t.d1 + s.x0*t.inv
	from := int(min(max(math.Ceil((-reach-u0)/du), 0), float64(s.n-1)))
	to := int(min(max(math.Floor((reach-u0)/du)+1, float64(from+1)), float64(s.n)))
	t.addAll(out[from:to], u0+float64(from)*du, du)
}

// addAll adds a·exp(-u²/2) at points that are du apart, the first of which is at u0. u is linear in the point, so the exponential four
// points on is e' = e·r, and r' = r·q16 with q16 = e^(-16·du²). Four such chains are interleaved, because each multiplication of a chain
// waits for the one before.
func (t *term) addAll(out []float64, u0, du float64) {
	q, q16 := math.Exp(-du*du), math.Exp(-16*du*du)
	q4 := q * q * q * q
	for from := 0; from < len(out); from += resync {
		block := out[from:min(from+resync, len(out))]
		u := u0 + float64(from)*du
		next := math.Exp(-du * (u + 0.5*du)) // of one point
		e0, r0 := t.a*math.Exp(-0.5*u*u), math.Exp(-4*du*(u+2*du))
		e1, r1 := e0*next, r0*q4
		e2, r2 := e1*next*q, r1*q4
		e3, r3 := e2*next*q*q, r2*q4
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

// FlipStatus is the outcome of the search for the zero-gamma flip.
type FlipStatus string

// The outcomes of the search.
const (
	FlipFound        FlipStatus = "found"
	FlipMultiple     FlipStatus = "multiple"
	FlipNonePositive FlipStatus = "none_all_positive"
	FlipNoneNegative FlipStatus = "none_all_negative"
	FlipInsufficient FlipStatus = "insufficient_data"
	FlipSpotMismatch FlipStatus = "spot_mismatch" // the document contradicts itself: no figure is served
	FlipUnknown      FlipStatus = interestMissing // no sum over all contracts is known
)

// Flip is a sign change of net gamma exposure.
type Flip struct {
	Price Level `json:"price" unit:"USD or index points"` // Price of the underlying at the change.
	// Direction of the change as the underlying rises.
	Direction string `json:"direction" jsonschema:"enum=negative_to_positive,enum=positive_to_negative"`
}

const (
	negativeToPositive = "negative_to_positive"
	positiveToNegative = "positive_to_negative"
)

type flipSearch struct {
	flips   []Flip // material roots, rising
	nearest *Level // the root nearest the spot; nil when there are no flips
	status  FlipStatus
}

// materialShare is the least share of the grid's largest |G| that the two lobes beside a sign change must reach. Smaller
// lobes are rounding noise in the tails.
const materialShare = 0.01

// lobe is a run of grid points at which G has one sign. Points with G = 0 do not end it.
type lobe struct {
	first, last int
	peak        float64 // largest |G|
	positive    bool
}

// findFlips brackets the sign changes of G on the grid, drops the immaterial ones and refines the rest. Where only immaterial lobes lie
// between two material ones of other signs, G crosses once: at the change of that direction that is nearest the spot.
func (s *sampled) findFlips() flipSearch {
	spots, values := s.grid()
	lobes := lobesOf(values)
	if len(lobes) == 0 {
		return flipSearch{status: FlipInsufficient}
	}
	largest := slices.MaxFunc(lobes, func(a, b lobe) int { return cmp.Compare(a.peak, b.peak) })
	var out flipSearch
	last := -1 // the last material lobe
	for i, l := range lobes {
		if l.peak < materialShare*largest.peak {
			continue
		}
		if last >= 0 && lobes[last].positive != l.positive {
			root := math.Inf(1)
			for j := last; j < i; j += 2 {
				if x := s.bisect(spots[lobes[j].last], spots[lobes[j+1].first], l.positive); math.Abs(x-s.of.spot) < math.Abs(root-s.of.spot) {
					root = x
				}
			}
			out.add(root, l.positive, s.of.spot)
		}
		last = i
	}
	switch {
	case len(out.flips) > 1:
		out.status = FlipMultiple
	case len(out.flips) == 1:
		out.status = FlipFound
	case largest.positive:
		out.status = FlipNonePositive
	default:
		out.status = FlipNoneNegative
	}
	return out
}

// add adds a crossing. They come in rising order, so on a tie the lower stays the nearest.
func (f *flipSearch) add(root float64, rising bool, spot float64) {
	flip := Flip{Price: Level(root), Direction: positiveToNegative}
	if rising {
		flip.Direction = negativeToPositive
	}
	f.flips = append(f.flips, flip)
	if f.nearest == nil || math.Abs(root-spot) < math.Abs(float64(*f.nearest)-spot) {
		f.nearest = &flip.Price
	}
}

func lobesOf(values []float64) []lobe {
	var lobes []lobe
	for i, g := range values {
		if g == 0 {
			continue
		}
		if n := len(lobes); n == 0 || lobes[n-1].positive != (g > 0) {
			lobes = append(lobes, lobe{first: i, positive: g > 0})
		}
		l := &lobes[len(lobes)-1]
		l.last = i
		l.peak = max(l.peak, math.Abs(g))
	}
	return lobes
}

// flipTolerance is the greatest error of a root, in points. METHODS.md allows 0.02.
const flipTolerance = 1e-4

// bisect returns the root of G between lo and hi, where G has different signs. rising says that G is positive at hi.
func (s *sampled) bisect(lo, hi float64, rising bool) float64 {
	for hi-lo > flipTolerance*s.of.point() {
		mid := 0.5 * (lo + hi)
		g := s.at(mid)
		switch {
		case g == 0:
			return mid
		case g > 0 == rising:
			hi = mid
		default:
			lo = mid
		}
	}
	return 0.5 * (lo + hi)
}
