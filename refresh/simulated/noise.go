package simulated

import "math"

// noise is a node in a tree of pseudo-random numbers. A child depends on nothing but its path from the seed, so every number can be had at
// any time and in any order.
type noise uint64

// golden is 2^64 divided by the golden ratio, the increment of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, 2014).
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

// normal returns a number that is close to standard normal, within ±3.46: the sum of four uniform ones.
func (n noise) normal() float64 {
	sum := n&0xffff + n>>16&0xffff + n>>32&0xffff + n>>48
	return (float64(sum)/(1<<16) - 2) * math.Sqrt(3)
}

// knots is the number of intervals of a path: 46 seconds each in a full session.
const knots = 512

// bridge returns a Brownian bridge on [0, 1]. It is 0 at both ends. Between them each middle is drawn given its neighbours (Lévy's
// construction).
func (n noise) bridge(drawn func(noise) float64) *[knots + 1]float64 {
	var b [knots + 1]float64
	for step := knots; step > 1; step /= 2 {
		half := step / 2
		deviation := 0.5 * math.Sqrt(float64(step)/knots)
		for i := half; i < knots; i += step {
			b[i] = 0.5*(b[i-half]+b[i+half]) + deviation*drawn(n.child(uint64(i)))
		}
	}
	return &b
}
