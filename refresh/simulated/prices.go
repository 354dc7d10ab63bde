package simulated

import (
	"math"
	"slices"
	"time"

	"strikecache/compute"
)

// epoch is the first session of the simulated market.
var epoch = compute.NewDate(2022, time.January, 3)

const (
	// The trend of the index: 4,796 at the epoch, and 7,000 to 7,700 in 2026.
	epochLevel  = 4796.0
	trendGrowth = 0.0951 // per year, logarithmic
	reversion   = 0.93   // of the distance from the trend, a session

	// The volatility factor is the logarithm of the VIX.
	volMean      = 2.8332 // ln 17
	volReversion = 0.94
	volStep      = 0.055 // a session
	volLeverage  = -0.8  // correlation with the market's shocks
	volFloor     = 2.3514
	volCeiling   = 3.8067 // ln 45

	// realised is what share of the VIX the market's moves are.
	realised = 0.65

	termReversion = 0.99
	termStep      = 0.009

	ownReversion = 0.98
)

// point is the value of the factors at one instant, from which every price is made.
type point struct {
	market float64 // logarithm of the index
	vol    float64 // logarithm of the VIX
	term   float64 // logarithm of the level that the VIX returns to, less its mean
	own    float64 // what one instrument adds
}

// toward returns the point at w in [0, 1] on the straight way from p to q.
func (p point) toward(q point, w float64) point {
	return point{
		p.market + (q.market-p.market)*w, p.vol + (q.vol-p.vol)*w, p.term + (q.term-p.term)*w, p.own + (q.own-p.own)*w,
	}
}

// factors are the closing values of the factors. They grow session by session from the epoch, and depend on the
// seed and the calendar alone.
type factors struct {
	key      noise
	calendar *compute.Calendar
	dates    []compute.Date // sessions from the epoch on
	closes   []point        // without own
	own      map[*instrument][]float64
}

// trend returns the logarithm of the index's trend.
func trend(d compute.Date) float64 {
	return math.Log(epochLevel) + trendGrowth*float64(d-epoch)/365.25
}

// index returns which session the date is, or the last one before it; -1 before the epoch.
func (f *factors) index(d compute.Date) int {
	if len(f.dates) == 0 {
		f.dates = append(f.dates, f.calendar.Next(epoch-1))
		f.closes = append(f.closes, point{market: trend(f.dates[0]), vol: volMean})
	}
	for last := f.dates[len(f.dates)-1]; last < d; {
		last = f.calendar.Next(last)
		f.step(last)
	}
	i, found := slices.BinarySearch(f.dates, d)
	if !found {
		i--
	}
	return i
}

// step appends the session d.
func (f *factors) step(d compute.Date) {
	i := len(f.dates) - 1
	last, key := f.closes[i], f.key.child(uint64(d))
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

// closeOf returns the factors of an instrument at the close of session i.
func (f *factors) closeOf(in *instrument, i int) point {
	path := f.own[in]
	if len(path) == 0 {
		path = append(path, 0)
	}
	key := f.key.named(in.symbol)
	for k := len(path); k <= i; k++ {
		path = append(path, ownReversion*path[k-1]+in.own*key.child(uint64(f.dates[k])).normal())
	}
	f.own[in] = path
	p := f.closes[i]
	p.own = path[i]
	return p
}

// openOf returns the factors of an instrument at the open of session i: a step over night takes part of the way to
// the close.
func (f *factors) openOf(in *instrument, i int) point {
	from, to := f.closeOf(in, i-1), f.closeOf(in, i)
	surprise := f.key.named("open").child(uint64(f.dates[i])).normal()
	return point{
		market: from.market + 0.3*(to.market-from.market) + 0.15*f.deviation(i)*surprise,
		vol:    from.vol + 0.4*(to.vol-from.vol), term: from.term, own: from.own + 0.3*(to.own-from.own),
	}
}

// volBeta is how much the logarithm of the VIX moves with that of the index within a session.
const volBeta = -5

// wandering returns a path from one point to another: the straight way and random bridges, which are scaled for a
// session of the instrument.
func (f *factors) wandering(in *instrument, i int, from, to point, key noise) *[knots + 1]point {
	market, vol, own := key.child(0).bridge(), key.child(1).bridge(), new([knots + 1]float64)
	if in.own > 0 {
		own = key.named(in.symbol).bridge()
	}
	ofMarket, ofOwn := 0.7*f.deviation(i), 0.6*in.own
	var path [knots + 1]point
	for k := range path {
		p := &path[k]
		*p = from.toward(to, float64(k)/knots)
		p.market += ofMarket * market[k]
		p.vol += 0.015*vol[k] + volBeta*ofMarket*market[k]
		p.own += ofOwn * own[k]
	}
	path[knots] = to
	return &path
}

// day is one instrument during one session. u is the share of the session that has passed, 0 at the open and 1
// at the close.
type day struct {
	in      *instrument
	factors *factors
	session int
	path    *[knots + 1]point
	before  float64 // official close of the session before
}

// day returns an instrument's session i >= 1.
func (m *Market) day(in *instrument, i int) *day {
	f := m.factors
	key := f.key.named("day").child(uint64(f.dates[i]))
	path := f.wandering(in, i, f.openOf(in, i), f.closeOf(in, i), key)
	return &day{in: in, factors: f, session: i, path: path, before: in.price(f.closeOf(in, i-1))}
}

// at returns the factors.
func (d *day) at(u float64) point {
	k, rest := knotAt(u)
	return d.path[k].toward(d.path[k+1], rest)
}

// price returns the quoted price.
func (d *day) price(u float64) float64 { return d.in.price(d.at(u)) }

// shares returns the volume of an instrument in session i up to u.
func (f *factors) shares(in *instrument, i int, u float64) int64 {
	busy := f.key.named(in.symbol).named("shares").child(uint64(f.dates[i])).normal()
	return int64(in.shares * math.Exp(0.2*busy) * activity(u))
}

// activity returns the share of a session's trading that is done at u: most of it is done after the open and before
// the close. It is the arcsine law.
func activity(u float64) float64 { return 2 / math.Pi * math.Asin(math.Sqrt(min(max(u, 0), 1))) }

// activityReaches returns the u at which a share of the session's trading is done, the inverse of activity.
func activityReaches(share float64) float64 {
	x := math.Sin(share * math.Pi / 2)
	return x * x
}
