package compute_test

import (
	"math"
)

// plainCrossing is one material root of G.
type plainCrossing struct {
	Price     float64 `json:"price"`
	Direction string  `json:"direction"` // negative_to_positive or positive_to_negative as the spot rises
}

// flipSearch is what the flip search found.
type flipSearch struct {
	flip      *float64
	status    string
	crossings []plainCrossing
}

// grid returns the grid of §1.2, literally, in ascending order.
func grid(spot float64) []float64 {
	lowest, highest, point := 0.85*spot, 1.15*spot, 1.0
	if spot < 1000 {
		point = spot / 5000
	}
	j := 0
	for 100*float64(j+1)*point <= 3*spot {
		j++
	}
	var below []float64
	for x := spot - float64(j)*point - 5*point; x > lowest; x -= 5 * point {
		below = append(below, x)
	}
	points := []float64{lowest}
	for i := len(below) - 1; i >= 0; i-- {
		points = append(points, below[i])
	}
	for i := -j; i <= j; i++ {
		points = append(points, spot+float64(i)*point)
	}
	for x := spot + float64(j)*point + 5*point; x < highest; x += 5 * point {
		points = append(points, x)
	}
	return append(points, highest)
}

// lobe is a run of grid points of one sign. Exact zeros are in no lobe.
type lobe struct {
	positive    bool
	first, last float64 // the outermost points
	most        float64 // the largest |G|
}

// findFlips finds the material roots of the exposure of the legs.
func findFlips(legs []leg, spot float64) flipSearch {
	var lobes []lobe
	for _, x := range grid(spot) {
		g := netExposure(legs, spot, x)
		if g == 0 {
			continue
		}
		n := len(lobes)
		if n == 0 || lobes[n-1].positive != (g > 0) {
			lobes = append(lobes, lobe{positive: g > 0, first: x})
			n++
		}
		lobes[n-1].last = x
		lobes[n-1].most = math.Max(lobes[n-1].most, math.Abs(g))
	}
	if len(lobes) == 0 {
		return flipSearch{status: "insufficient_data"}
	}
	largest := lobes[0]
	for _, l := range lobes {
		if l.most > largest.most {
			largest = l
		}
	}
	var s flipSearch
	for i := 1; i < len(lobes); i++ {
		left, right := lobes[i-1], lobes[i]
		if left.most < 0.01*largest.most || right.most < 0.01*largest.most {
			continue
		}
		c := plainCrossing{Price: bisect(legs, spot, left.last, right.first, right.positive)}
		c.Direction = "positive_to_negative"
		if right.positive {
			c.Direction = "negative_to_positive"
		}
		s.crossings = append(s.crossings, c)
	}
	for _, c := range s.crossings { // ascending, so a tie keeps the lower
		if s.flip == nil || math.Abs(c.Price-spot) < math.Abs(*s.flip-spot) {
			s.flip = known(c.Price)
		}
	}
	switch {
	case len(s.crossings) == 1:
		s.status = "found"
	case len(s.crossings) > 1:
		s.status = "multiple"
	case largest.positive:
		s.status = "none_all_positive"
	default:
		s.status = "none_all_negative"
	}
	return s
}

// bisect refines a bracket to well below 0.01 point. rising says whether G is positive at the high end.
func bisect(legs []leg, spot, low, high float64, rising bool) float64 {
	for range 60 {
		x := low + (high-low)/2
		g := netExposure(legs, spot, x)
		if g == 0 {
			return x
		}
		if (g > 0) == rising {
			high = x
		} else {
			low = x
		}
	}
	return low + (high-low)/2
}

func (r *plainResult) flip(legs []leg, spot float64) {
	s := findFlips(legs, spot)
	r.Flip, r.FlipStatus, r.Flips = s.flip, s.status, s.crossings
	if s.flip != nil {
		r.FlipDistance = known((spot - *s.flip) / spot * 100)
	}
}

func (r *plainResult) scenarios(legs []leg, spot, rate float64) {
	nearest := r.SessionDate
	for i := range legs {
		if d := legs[i].contract.Expiration; i == 0 || d < nearest {
			nearest = d
		}
	}
	var down, up, flat, without, within []leg
	for _, l := range legs {
		x := l
		x.v = l.v * 0.9
		down = append(down, x)
		x.v = l.v * 1.1
		up = append(up, x)
		x = l
		x.logFK = math.Log(spot / l.contract.Strike)
		x.discount = math.Exp(-rate * l.group.years)
		flat = append(flat, x)
		if l.contract.Expiration != nearest {
			without = append(without, l)
		}
		if l.contract.Expiration-r.SessionDate <= 90 {
			within = append(within, l)
		}
	}
	r.Scenarios = []plainRepriced{
		reprice("vol_down_10", down, spot),
		reprice("vol_up_10", up, spot),
		reprice("no_carry", flat, spot),
		reprice("ex_nearest_expiration", without, spot),
		reprice("within_90_days", within, spot),
	}
	all := []*float64{r.Flip}
	for _, s := range r.Scenarios {
		all = append(all, s.Flip)
	}
	for _, f := range all {
		if f == nil {
			continue
		}
		if r.FlipBand == nil {
			r.FlipBand = &plainBand{*f, *f}
		}
		r.FlipBand.Low = math.Min(r.FlipBand.Low, *f)
		r.FlipBand.High = math.Max(r.FlipBand.High, *f)
	}
}

// reprice returns the net and the flip of a set of legs, both nil when the set is empty.
func reprice(name string, legs []leg, spot float64) plainRepriced {
	if len(legs) == 0 {
		return plainRepriced{Name: name}
	}
	return plainRepriced{Name: name, Net: known(netExposure(legs, spot, spot)), Flip: findFlips(legs, spot).flip}
}

func (r *plainResult) conventions(legs []leg, spot float64) {
	published, anyPublished := 0.0, false
	var perfiliev, volume []leg
	for _, l := range legs {
		c := l.contract
		if isFinite(c.Gamma) {
			published += l.sign * c.Gamma * c.OpenInterest * 100 * spot * spot * 0.01
			anyPublished = true
		}
		if c.IV > 0 && isFinite(c.IV) {
			days := max(1, weekdaysBetween(r.SessionDate, c.Expiration))
			x := l
			x.v = c.IV * math.Sqrt(float64(days)/262)
			x.logFK, x.discount = math.Log(spot/c.Strike), 1
			perfiliev = append(perfiliev, x)
		}
		x := l
		x.weight = 0
		if c.Volume > 0 && isFinite(c.Volume) {
			x.weight = c.Volume
		}
		volume = append(volume, x)
	}
	r.Conventions = []plainRepriced{
		{Name: "model", Net: r.Net, Flip: r.Flip}, {Name: "published_gamma"},
		reprice("perfiliev", perfiliev, spot), reprice("volume_weighted", volume, spot),
	}
	if anyPublished {
		r.Conventions[1].Net = known(published)
	}
}
