package simulated

import "math"

// noise is a node in a tree of pseudo-random numbers. A child depends on nothing but its path from the seed, so
// every number can be had at any time and in any order.
type noise uint64

// golden is 2^64 divided by the golden ratio, the increment of SplitMix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, 2014).
const golden = 0x9e3779b97f4a7c15

// child returns the k-th child.
func (n noise) child(k uint64) noise {
	z := uint64(n) + (k+1)*golden
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return noise(z ^ z>>31)
}

// named returns the child of a name.
func (n noise) named(name string) noise {
	for i := range len(name) {
		n = n.child(uint64(name[i]))
	}
	return n
}

// unit returns a number in [0, 1).
func (n noise) unit() float64 { return float64(n>>11) / (1 << 53) }

// below returns a whole number in [0, limit).
func (n noise) below(limit int) int { return int(n.unit() * float64(limit)) }

// normal returns a number that is close to standard normal, within ±3.46: the sum of four uniform ones.
func (n noise) normal() float64 {
	sum := n&0xffff + n>>16&0xffff + n>>32&0xffff + n>>48
	return (float64(sum)/(1<<16) - 2) * math.Sqrt(3)
}

// bridge fills dst, of 2^k + 1 values, with a Brownian bridge on [0, 1]: 0 at both ends, and in between each
// middle is drawn given its neighbours (Lévy's construction).
func (n noise) bridge(dst []float64) {
	last := len(dst) - 1
	dst[0], dst[last] = 0, 0
	for step := last; step > 1; step /= 2 {
		half := step / 2
		deviation := 0.5 * math.Sqrt(float64(step)/float64(last))
		for i := half; i < last; i += step {
			dst[i] = 0.5*(dst[i-half]+dst[i+half]) + deviation*n.child(uint64(i)).normal()
		}
	}
}

// interpolate returns the value at u in [0, 1] of a path through evenly spaced knots.
func interpolate(knots []float64, u float64) float64 {
	last := len(knots) - 1
	x := u * float64(last)
	i := int(x)
	switch {
	case !(u > 0):
		return knots[0]
	case i >= last:
		return knots[last]
	}
	return knots[i] + (knots[i+1]-knots[i])*(x-float64(i))
}
