package simulated

import (
	"math"
	"slices"
	"time"

	"strikecache/compute"
)

// noise is a node in a tree of pseudo-random numbers. A child depends on nothing but its path from the seed, so every number can be had at
// any time and in any order.
type noise uint64

// golden is 2^64 divided by the golden ratio, the increment of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, 2014).
const golden = 0x9e3779b97f4a7c15

func (n noise) child(k uint64) noise {
	z := uint64(n) + (k+1)*golden
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return noise(z ^ z>>31)
}

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

// epoch is the first session of the simulated market.
var epoch = compute.NewDate(2022, time.January, 3)

const (
	// The trend of the index: 4,796 at the epoch, and 7,000 to 7,700 in 2026.
	epochLevel  = 4796.0
	trendGrowth = 0.0951 // per year, logarithmic
	reversion   = 0.93   // of the distance from the trend, a session
	// The volatility factor is about the logarithm of the VIX, see vixLevel.
	volMean      = 2.8332 // ln 17
	volReversion = 0.94
	volStep      = 0.055 // a session
	volLeverage  = -0.8  // correlation with the market's shocks
	volBeta      = -5    // moves with the logarithm of the index, within a session
	volFloor     = 2.3514
	volCeiling   = 3.8067 // ln 45
	// realised is the volatility of the market's moves as a share of the VIX.
	realised      = 0.65
	termReversion = 0.99
	termStep      = 0.009
	ownReversion  = 0.98
)

// point is the value of the factors at one instant, from which every price is made.
type point struct {
	market float64 // logarithm of the index
	vol    float64 // about the logarithm of the VIX
	term   float64 // logarithm of the level that the VIX returns to, less its mean
	own    float64 // what one instrument adds to the logarithm of its price
}

// toward returns the point at w in [0, 1] on the straight line from p to q.
func (p point) toward(q point, w float64) point {
	return point{
		p.market + (q.market-p.market)*w, p.vol + (q.vol-p.vol)*w, p.term + (q.term-p.term)*w, p.own + (q.own-p.own)*w,
	}
}

// factors are the closing values of the factors. They grow session by session from the epoch, and depend on the seed and the calendar
// alone.
type factors struct {
	tree     noise // of all their numbers
	calendar *compute.Calendar
	dates    []compute.Date // sessions from the epoch on
	closes   []point        // without own
	own      map[*instrument][]float64
}

// trend returns the logarithm of the index's trend.
func trend(d compute.Date) float64 {
	return math.Log(epochLevel) + trendGrowth*float64(d-epoch)/365.25
}

// index returns the number of the session of a date, or of the last session before it; -1 before the epoch.
func (f *factors) index(d compute.Date) int {
	for f.dates[len(f.dates)-1] < d {
		f.step()
	}
	i, found := slices.BinarySearch(f.dates, d)
	if !found {
		i--
	}
	return i
}

func (f *factors) step() {
	i := len(f.dates) - 1
	d := f.calendar.Next(f.dates[i])
	last, key := f.closes[i], f.tree.child(uint64(d))
	shock, jump := key.child(0).normal(), 0.0
	if key.child(1).unit() < 1.0/120 { // about twice a year
		shock, jump = shock-3, 0.3
	}
	vol := volMean + volReversion*(last.vol-volMean) + jump +
		volStep*(volLeverage*shock+math.Sqrt(1-volLeverage*volLeverage)*key.child(2).normal())
	f.closes = append(f.closes, point{
		market: trend(d) + reversion*(last.market-trend(f.dates[i])) + f.deviation(i+1)*shock,
		vol:    min(max(vol, volFloor), volCeiling),
		term:   termReversion*last.term + termStep*key.child(3).normal(),
	})
	f.dates = append(f.dates, d)
}

// deviation returns the market's standard deviation over session i, from the VIX of the close before.
func (f *factors) deviation(i int) float64 {
	return math.Exp(f.closes[i-1].vol) / 100 / math.Sqrt(252) * realised
}

// drawn returns the own move of an instrument, with that of its twin. From a sector fund's it subtracts the weighted mean of all: they add
// up to the index.
func (f *factors) drawn(in *instrument, key noise) float64 {
	x := in.own * key.named(in.symbol).normal()
	for _, s := range instruments {
		if in.weight > 0 && s.weight > 0 {
			x -= s.weight * s.own * key.named(s.symbol).normal()
		}
		if s.symbol == in.twin {
			x += s.own * key.named(s.symbol).normal()
		}
	}
	return x
}

// closeOf returns the factors of an instrument at the close of session i.
func (f *factors) closeOf(in *instrument, i int) point {
	own := f.own[in]
	if len(own) == 0 {
		own = append(own, 0)
	}
	for k := len(own); k <= i; k++ {
		own = append(own, ownReversion*own[k-1]+f.drawn(in, f.tree.named("own").child(uint64(f.dates[k]))))
	}
	f.own[in] = own
	p := f.closes[i]
	p.own = own[i]
	return p
}

// openOf returns the factors of an instrument at the open of session i: the point at nightShare of a Brownian bridge from the close before
// to the close.
func (f *factors) openOf(in *instrument, i int) point {
	p, key := f.closeOf(in, i-1).toward(f.closeOf(in, i), nightShare), f.tree.named("open").child(uint64(f.dates[i]))
	spread := math.Sqrt(nightShare * (1 - nightShare))
	surprise := spread * f.deviation(i) * key.normal()
	p.market += surprise
	p.vol += volBeta * surprise
	p.own += spread * f.drawn(in, key)
	return p
}

// path holds the factors of one instrument through a session.
type path [knots + 1]point

// path returns the factors of an instrument through session i >= 1: a straight line from the open to the close plus random bridges, which
// are scaled for a session of the instrument.
func (f *factors) path(in *instrument, i int) *path {
	key := f.tree.named("day").child(uint64(f.dates[i]))
	market, vol := key.child(0).bridge(noise.normal), key.child(1).bridge(noise.normal)
	own := key.child(2).bridge(func(k noise) float64 { return f.drawn(in, k) })
	spread := math.Sqrt(1 - nightShare)
	ofMarket := spread * f.deviation(i)
	from, to := f.openOf(in, i), f.closeOf(in, i)
	var way path
	for k := range knots {
		p := from.toward(to, float64(k)/knots)
		p.market += ofMarket * market[k]
		p.vol += 0.015*vol[k] + volBeta*ofMarket*market[k]
		p.own += spread * own[k]
		way[k] = p
	}
	way[knots] = to
	return &way
}

// at returns the factors when the share u of the session has passed: 0 at the open, 1 at the close.
func (way *path) at(u float64) point {
	x := min(max(u, 0), 1) * knots
	k := min(int(x), knots-1)
	return way[k].toward(way[k+1], x-float64(k))
}
