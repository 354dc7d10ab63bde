package compute

import "math"

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

// flipSearch is the result of a search.
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

// findFlips brackets the sign changes of G on the grid, drops the immaterial ones and refines the rest.
func (p *profile) findFlips() flipSearch {
	spots, values := p.grid()
	lobes := lobesOf(values)
	if len(lobes) == 0 {
		return flipSearch{status: FlipInsufficient}
	}
	largest := lobes[0]
	for _, l := range lobes {
		if l.peak > largest.peak {
			largest = l
		}
	}
	var out flipSearch
	for i := 1; i < len(lobes); i++ {
		before, after := lobes[i-1], lobes[i]
		if min(before.peak, after.peak) < materialShare*largest.peak {
			continue
		}
		root := p.bisect(spots[before.last], spots[after.first], after.positive)
		flip := Flip{Price: Level(root), Direction: positiveToNegative}
		if after.positive {
			flip.Direction = negativeToPositive
		}
		out.flips = append(out.flips, flip)
		if out.nearest == nil || math.Abs(root-p.spot) < math.Abs(float64(*out.nearest)-p.spot) {
			out.nearest = &flip.Price // rising order: on a tie the lower stays
		}
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
func (p *profile) bisect(lo, hi float64, rising bool) float64 {
	for hi-lo > flipTolerance*p.point() {
		mid := 0.5 * (lo + hi)
		g := p.at(mid)
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
