package compute

import (
	"math"
)

// The terms of a profile that are wide enough are summed on lattices, and the grid is interpolated from their sum: a wide
// term needs few points. Lattice 0 has the step latticeStep, and each further lattice has twice the step of the one before. A
// term goes to the coarsest lattice of at least perSigma points to its width v. From the coarsest to the finest, the sum of a
// lattice is interpolated at the points of the next and added. With 24 points to an interpolation, its error is 4e-16 of the
// term's peak, and the recurrence of [term.addTo] remains the largest error.
const (
	latticeStep   = 1.0 / 2048
	latticeLevels = 10
	perSigma      = 6
	taps          = 24
	// latticePad is the number of points beyond each end of the grid. Interpolation between the points of a lattice takes half
	// of it, and the points beyond the ends of the next lattice the other half.
	latticePad = taps
	// peakReach is how far outside the grid, in units of u, the peak of a term on a lattice may be.
	peakReach = 6.0
)

// latticeStart is ln(S'/S) at point 0 of every lattice, and latticeEnd at the last point of the grid.
var (
	latticeStart = math.Log(1 - gridHalfWidth)
	latticeEnd   = math.Log(1 + gridHalfWidth)
)

// latticeSegment returns the points of a lattice: points -latticePad to latticePad behind the end of the grid.
func latticeSegment(level int) segment {
	step := math.Ldexp(latticeStep, level)
	n := int(math.Ceil((latticeEnd-latticeStart)/step)) + 1
	return segment{x0: latticeStart - latticePad*step, step: step, n: n + 2*latticePad}
}

// lattice is lattice 0 of a profile.
type lattice struct {
	sums []float64 // Σ a·exp(-u²/2) of the wide terms at each point
	rest []int     // the indices of the other terms
}

// smooth returns the profile's lattice, which it computes once.
func (p *profile) smooth() *lattice {
	if p.lattice != nil {
		return p.lattice
	}
	terms := p.terms
	p.lattice = &lattice{}
	var segments [latticeLevels]segment
	var lattices [latticeLevels][]float64
	for level := range lattices {
		segments[level] = latticeSegment(level)
		lattices[level] = make([]float64, segments[level].n)
	}
	for i := range terms {
		if level, ok := terms[i].level(); ok {
			terms[i].addTo(lattices[level], segments[level])
		} else {
			p.lattice.rest = append(p.lattice.rest, i)
		}
	}
	for level := latticeLevels - 1; level > 0; level-- {
		refine(lattices[level-1], lattices[level])
	}
	p.lattice.sums = lattices[0]
	return p.lattice
}

// level returns the lattice of a term. ok is false if the term is too narrow, or if its peak is too far outside the grid.
func (t *term) level() (level int, ok bool) {
	level = math.Ilogb(1 / (t.inv * perSigma * latticeStep))
	low, high := t.d1+latticeStart*t.inv, t.d1+latticeEnd*t.inv
	return min(level, latticeLevels-1), level >= 0 && low <= peakReach && high >= -peakReach
}

// refine adds a lattice to the next finer one: the points that both have as they are, and those between them interpolated.
func refine(fine, coarse []float64) {
	const first = latticePad - latticePad/2 // the index in coarse of the first point of fine
	for i := range fine {
		at := first + i/2
		if i%2 == 0 {
			fine[i] += coarse[at]
			continue
		}
		sum := 0.0
		for k, w := range middle.weights {
			sum += w * coarse[at-taps/2+1+k]
		}
		fine[i] += sum
	}
}

// stencil gives the value between the points of a lattice as a weighted sum of the points around it: the polynomial through
// these points.
type stencil struct {
	from    int // index of the first point
	weights [taps]float64
}

var middle = newStencil(0.5)

// newStencil returns the weights for a position on a lattice, in steps from point 0. It uses the barycentric formula.
//
// Source: Berrut and Trefethen, Barycentric Lagrange interpolation, SIAM Review 46, 2004, eqs. 4.2 and 5.1.
func newStencil(position float64) (s stencil) {
	whole := math.Floor(position)
	s.from = latticePad + int(whole) - taps/2 + 1
	offset := position - whole + taps/2 - 1 // from the first point
	if offset == taps/2-1 {
		s.weights[taps/2-1] = 1
		return s
	}
	binomial, sum := 1.0, 0.0
	for k := range s.weights {
		s.weights[k] = binomial / (offset - float64(k))
		sum += s.weights[k]
		binomial *= -float64(taps-1-k) / float64(k+1)
	}
	for k := range s.weights {
		s.weights[k] /= sum
	}
	return s
}

func (s *stencil) apply(lattice []float64) float64 {
	sum := 0.0
	for k, v := range lattice[s.from : s.from+taps] {
		sum += s.weights[k] * v
	}
	return sum
}
