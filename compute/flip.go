package compute

import (
	"cmp"
	"math"
	"slices"
)

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
