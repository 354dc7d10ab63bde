package compute

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

const epsilon = 0x1p-52

// directly returns G at a hypothetical spot by METHODS.md §1.1, term by term, the sum of the terms' sizes, and a bound on
// the error of any float64 evaluation and of the interpolation. Such an evaluation knows u = d1 + x/v to some units of |d1| + |x|/v, as it
// knows the point itself, and e^(-u²/2) to |u| times that. The remainder of a polynomial through 12 points that are h apart is at most
// 5.5e-5·h^12 times the 12th derivative, which is He12(u)·e^(-u²/2), less than (|u| + 2.5)^12 of it.
func (p *profile) directly(spot float64) (g, size, bound float64) {
	x := math.Log(spot / p.spot)
	for _, t := range p.terms {
		u := t.d1 + x*t.inv
		term := spot * t.a * math.Exp(-0.5*u*u)
		g += term
		size += math.Abs(term)
		if term != 0 {
			bound += math.Abs(term) * math.Min(1, (1+math.Abs(u))*4*epsilon*(math.Abs(t.d1)+(math.Abs(x)+1)*t.inv)+5.5e-5*math.Pow(mostStep*(math.Abs(u)+2.5), 12))
		}
	}
	return g, size, bound
}

// mixed is a profile of n random strikes: v from lo to hi, peaks from reach below to reach above the spot.
func mixed(random *rand.Rand, n int, spot, lo, hi, around float64) *profile {
	p := &profile{spot: spot, contracts: n}
	for range n {
		v := lo * math.Pow(hi/lo, random.Float64())
		p.add(math.Round(random.NormFloat64()*1000), v, (random.Float64()*2-1)*around, 0.9+0.1*random.Float64())
	}
	return p
}

// recurrenceError is the error of the recurrence of [resync] points, and a tenth more.
const recurrenceError = resync * resync / 2 * 0x1p-53 * 1.1

// checkGrid fails the test unless the recurrence is within recurrenceError of a direct evaluation, relative to the sum of
// the terms' sizes. It also allows the error of any float64 evaluation, and 2e-30 of a peak for the tails that the recurrence
// cuts.
func checkGrid(t *testing.T, name string, p *profile) {
	t.Helper()
	sampled := p.sample()
	spots, values := sampled.grid()
	tails := 1e-300 // underflow
	for _, term := range p.terms {
		tails += 1.2 * p.spot * math.Abs(term.a) * 2e-30
	}
	for j, s := range spots {
		want, size, bound := p.directly(s)
		if off := math.Abs(values[j] - want); !(off <= recurrenceError*size+bound+tails) {
			t.Fatalf("%s: G(%v) = %v by recurrence, %v directly: off by %.2g of %.2g", name, s, values[j], want, off, size)
		}
		for _, at := range []float64{p.at(s), sampled.at(s)} {
			if !(math.Abs(at-want) <= 1e-12*size+bound+1e-300) {
				t.Fatalf("%s: G(%v) = %v, %v directly", name, s, at, want)
			}
		}
	}
}

func TestGridAgainstDirectEvaluation(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct {
		name            string
		lo, hi, around  float64
		terms, profiles int
	}{
		{"an ordinary book", 0.005, 0.5, 0.3, 300, 8},
		{"the last hour", 3e-4, 3e-3, 0.1, 100, 8},
		{"the last seconds", 1e-6, 1e-4, 0.16, 100, 8},
		{"years", 0.3, 4, 3, 100, 4},
		{"everything", 1e-6, 4, 1, 300, 8},
		{"peaks outside the grid", 1e-3, 0.05, 4, 100, 8},
	} {
		for i := range c.profiles {
			p := mixed(random, c.terms, 100*math.Pow(200, random.Float64()), c.lo, c.hi, c.around)
			checkGrid(t, fmt.Sprintf("%s %d", c.name, i), p)
		}
	}
}

// One narrow term at a time has its peak on, between and beside grid points, and at the ends of the segments.
func TestGridOfOneNarrowTerm(t *testing.T) {
	for _, v := range []float64{1e-6, 1e-5, 3e-5, 7e-5, 1e-4, 3e-4, 1e-3} {
		for _, peak := range []float64{0.85, 0.8500001, 0.91, 0.9699999, 0.97, 0.97001, 0.999, 1, 1.00001, 1.0299999, 1.03, 1.1, 1.15} {
			p := &profile{spot: 7728.2, contracts: 1}
			p.add(1000, v, -math.Log(peak), 1)
			checkGrid(t, fmt.Sprintf("v %v at %v S", v, peak), p)
		}
	}
}

// G crosses once between two large lobes of other signs, whatever small lobes lie between them, and never twice in one direction.
func TestSmallLobesHideNoFlip(t *testing.T) {
	const v = 0.004 // each term is a lobe: the terms are over 7 standard deviations apart
	for name, c := range map[string]struct {
		first   float64 // ln(S'/S) of the first lobe; the others follow 0.03 apart
		weights []float64
		gaps    []int // the lobes after which G crosses
		status  FlipStatus
	}{
		"two small between, above":   {0.02, []float64{1, -0.005, 0.005, -0.5}, []int{0}, FlipFound},
		"two small between, below":   {-0.11, []float64{-1, 0.005, -0.005, 0.5}, []int{2}, FlipFound},
		"two small between, around":  {-0.06, []float64{1, -0.005, 0.005, -0.5}, []int{2}, FlipFound},
		"four small between":         {-0.09, []float64{1, -0.005, 0.004, -0.003, 0.005, -0.5}, []int{2}, FlipFound},
		"one small between":          {-0.03, []float64{1, -0.005, 0.5}, nil, FlipNonePositive},
		"small ones outside":         {-0.03, []float64{-0.005, 1, -0.5, 0.005}, []int{1}, FlipFound},
		"one small after a crossing": {-0.03, []float64{1, -0.5, 0.005, -0.4, 0.3}, []int{0, 3}, FlipMultiple},
	} {
		p := &profile{spot: 1000, contracts: 1}
		for i, w := range c.weights {
			p.add(w, v, -c.first-0.03*float64(i)-v*v/2, 1)
		}
		got := p.sample().findFlips()
		if got.status != c.status || len(got.flips) != len(c.gaps) {
			t.Errorf("%s: %s, %v", name, got.status, got.flips)
			continue
		}
		for i, gap := range c.gaps {
			x := c.first + 0.03*(float64(gap)+0.5) + v*v/0.03*math.Log(-c.weights[gap]/c.weights[gap+1]) // where the two terms are of one size
			if f := got.flips[i]; math.Abs(float64(f.Price)-1000*math.Exp(x)) > 0.001 || (f.Direction == negativeToPositive) != (c.weights[gap+1] > 0) {
				t.Errorf("%s: %v, want %v after lobe %d", name, f, 1000*math.Exp(x), gap)
			}
		}
	}
}

// A term whose peak is far outside the grid still adds to the nearest grid points: G has a sign there even if no other term
// reaches them. The peak of a wide term is 12 to 38 standard deviations away, where e^(-u²/2) is small but not 0.
func TestGridOfTermsFarOutside(t *testing.T) {
	for _, c := range []struct{ v, logForward float64 }{{0.01, 0.3}, {0.01, -0.3}, {0.02, 0.6}, {0.05, -1.5}, {0.1, 3.2}} {
		p := &profile{spot: 7000, contracts: 1}
		p.add(10, c.v, c.logForward, 1)
		if got := p.sample().findFlips().status; got != FlipNonePositive {
			t.Errorf("v %v, ln(F/K) %v: %s", c.v, c.logForward, got)
		}
		spots, values := p.sample().grid()
		nearest := 0 // where the term is largest
		for j, s := range spots {
			if p.at(s) > p.at(spots[nearest]) {
				nearest = j
			}
		}
		if want := p.at(spots[nearest]); !(math.Abs(values[nearest]-want) <= 1e-9*want) {
			t.Errorf("v %v, ln(F/K) %v: %v at %v, want %v", c.v, c.logForward, values[nearest], spots[nearest], want)
		}
	}
}

// METHODS.md §1.2: from 0.85·S to 1.15·S, at most 1 point apart within ±3 % and at most 5 outside. Below a spot of 1000, a point is
// a 5000th of the spot.
func TestGridSpacing(t *testing.T) {
	for _, spot := range []float64{0.5, 3, 20, 99.99, 157.5, 2000, 4000, 5999.99, 7728.2002, 12345.67, 60000, 250_000} {
		spots, values := (&profile{spot: spot}).sample().grid()
		if len(spots) != len(values) {
			t.Fatalf("%d points, %d values", len(spots), len(values))
		}
		tolerance, unit := 1e-9*spot, 1.0
		if spot < 1000 {
			unit = spot / 5000
		}
		if math.Abs(spots[0]-0.85*spot) > tolerance || math.Abs(spots[len(spots)-1]-1.15*spot) > tolerance {
			t.Errorf("spot %v: from %v to %v", spot, spots[0], spots[len(spots)-1])
		}
		for j := 1; j < len(spots); j++ {
			gap, inner := spots[j]-spots[j-1], spots[j] > 0.97*spot+tolerance && spots[j-1] < 1.03*spot-tolerance
			if gap < -tolerance || gap > 5*unit+tolerance || inner && gap > unit+tolerance {
				t.Errorf("spot %v: %v after %v", spot, spots[j], spots[j-1])
			}
		}
		if points := (0.06*spot + 0.24*spot/5) / unit; float64(len(spots)) > 1.3*points+12 {
			t.Errorf("spot %v: %d points, about %.0f are needed", spot, len(spots), points)
		}
	}
}

func TestProfileWithoutTerms(t *testing.T) {
	p := &profile{spot: 7000}
	p.add(0, 0.1, 0, 1)             // no weight
	p.add(10, 0.1, math.Inf(1), 1)  // strike 0
	p.add(10, math.Inf(1), 0, 1)    // no density left
	p.add(math.Inf(1), 0.1, 0, 1)   // not a number of contracts
	p.add(10, 0.1, math.Inf(-1), 1) // forward 0
	if len(p.terms) != 0 || p.net() != nil || p.at(7000) != 0 || p.sample().findFlips().status != FlipInsufficient {
		t.Errorf("%d terms, net %v, G %v", len(p.terms), p.net(), p.at(7000))
	}
	if got := p.sample().bisect(6990, 7000, true); got != 6995 {
		t.Errorf("G is 0 everywhere: root %v", got)
	}
	for _, point := range p.sample().points() {
		if point.Net != nil {
			t.Fatalf("%+v", point)
		}
	}
}

// BenchmarkGrid compares samples and the recurrence with a direct evaluation of every term at every point of the grid.
func BenchmarkGrid(b *testing.B) {
	p := mixed(rand.New(rand.NewPCG(9, 10)), 8000, 7728.2, 0.002, 0.6, 0.4)
	b.Run("samples", func(b *testing.B) {
		for b.Loop() {
			p.sample().grid()
		}
	})
	b.Run("naive", func(b *testing.B) {
		spots, values := p.sample().grid()
		for b.Loop() {
			for j, s := range spots {
				values[j] = p.at(s)
			}
		}
	})
}
