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

// factors are the daily closing values that every price is made of: the market, its volatility, and for each
// instrument a path of its own. Each grows session by session from the epoch and depends on the seed alone.
type factors struct {
	key      noise
	calendar *compute.Calendar

	dates  []compute.Date // sessions from the epoch on
	market []float64      // logarithm of the index
	vol    []float64      // logarithm of the VIX
	term   []float64      // logarithm of the level the VIX returns to, less its mean
	own    map[string][]float64
}

func newFactors(key noise, calendar *compute.Calendar) *factors {
	return &factors{key: key, calendar: calendar, own: map[string][]float64{}}
}

// trend returns the logarithm of the index's trend.
func trend(d compute.Date) float64 {
	return math.Log(epochLevel) + trendGrowth*float64(d-epoch)/365.25
}

// extend makes all sessions up to a date known.
func (f *factors) extend(through compute.Date) {
	if len(f.dates) == 0 {
		f.dates = append(f.dates, f.calendar.Next(epoch-1))
		f.market = append(f.market, trend(f.dates[0]))
		f.vol = append(f.vol, volMean)
		f.term = append(f.term, 0)
	}
	for last := f.dates[len(f.dates)-1]; last < through; {
		last = f.calendar.Next(last)
		f.step(last)
	}
}

// step appends the session d.
func (f *factors) step(d compute.Date) {
	i := len(f.dates) - 1
	key := f.key.child(uint64(d))
	shock := key.child(0).normal()
	jump := 0.0
	if key.child(1).unit() < 1.0/120 { // about twice a year
		shock -= 3
		jump = 0.3
	}
	away := f.market[i] - trend(f.dates[i])
	f.market = append(f.market, trend(d)+reversion*away+f.deviation(i+1)*shock)
	vol := volMean + volReversion*(f.vol[i]-volMean) + jump +
		volStep*(volLeverage*shock+math.Sqrt(1-volLeverage*volLeverage)*key.child(2).normal())
	f.vol = append(f.vol, min(max(vol, volFloor), volCeiling))
	f.term = append(f.term, termReversion*f.term[i]+termStep*key.child(3).normal())
	f.dates = append(f.dates, d)
}

// deviation returns the market's standard deviation over session i, from the VIX of the close before.
func (f *factors) deviation(i int) float64 {
	return math.Exp(f.vol[i-1]) / 100 / math.Sqrt(252) * realised
}

// index returns which session the date is, or the last one before it; -1 before the epoch.
func (f *factors) index(d compute.Date) int {
	f.extend(d)
	i, found := slices.BinarySearch(f.dates, d)
	if !found {
		i--
	}
	return i
}

// ownPath returns the closing values of an instrument's own path, at least up to session i.
func (f *factors) ownPath(in *instrument, i int) []float64 {
	path := f.own[in.symbol]
	if len(path) == 0 {
		path = append(path, 0)
	}
	key := f.key.named(in.symbol)
	for k := len(path); k <= i; k++ {
		path = append(path, ownReversion*path[k-1]+in.own*key.child(uint64(f.dates[k])).normal())
	}
	f.own[in.symbol] = path
	return path
}

// knots is the number of intervals of an intraday path: one each 11 seconds of a full session.
const knots = 2048

// overnightKnots is the number of intervals of a path from 20:15 to 09:15.
const overnightKnots = 256

// leg is the path of a factor from one close to the next: a step over night, then a bridge to the close.
type leg struct {
	from, gap, to float64
	scale         float64 // standard deviation of the bridge over a whole session
	key           noise
}

// fill writes the intraday path and leaves the bridge, unscaled, in bridge.
func (l leg) fill(dst, bridge []float64) {
	l.key.bridge(bridge)
	last := len(dst) - 1
	start, step := l.from+l.gap, (l.to-l.from-l.gap)/float64(last)
	for i := range dst {
		dst[i] = start + step*float64(i) + l.scale*bridge[i]
	}
	dst[last] = l.to
}

// overnight returns the value at w in [0, 1] of the hours before the session, in which options trade alone.
func (l leg) overnight(w float64) float64 {
	var bridge [overnightKnots + 1]float64
	l.key.child(1 << 32).bridge(bridge[:])
	return l.from + l.gap*w + 0.3*l.scale*interpolate(bridge[:], w)
}

func (f *factors) marketLeg(i int) leg {
	key := f.key.named("market").child(uint64(f.dates[i]))
	deviation := f.deviation(i)
	return leg{
		from: f.market[i-1], to: f.market[i], scale: 0.7 * deviation, key: key,
		gap: 0.3*(f.market[i]-f.market[i-1]) + 0.15*deviation*key.child(1<<33).normal(),
	}
}

func (f *factors) volLeg(i int) leg {
	return leg{
		from: f.vol[i-1], to: f.vol[i], gap: 0.4 * (f.vol[i] - f.vol[i-1]), scale: 0.015,
		key: f.key.named("volatility").child(uint64(f.dates[i])),
	}
}

func (f *factors) ownLeg(in *instrument, i int) leg {
	path := f.ownPath(in, i)
	return leg{
		from: path[i-1], to: path[i], gap: 0.3 * (path[i] - path[i-1]), scale: 0.6 * in.own,
		key: f.key.named(in.symbol).named("own").child(uint64(f.dates[i])),
	}
}

// tape is the intraday path of the common factors of one session.
type tape struct {
	session     int
	market, vol []float64 // knots + 1 values
}

// volBeta is how much the logarithm of the VIX moves with that of the index within a session.
const volBeta = -5

func newTape() *tape {
	return &tape{market: make([]float64, knots+1), vol: make([]float64, knots+1)}
}

// record writes session i on a tape.
func (f *factors) record(t *tape, i int) {
	var market, own [knots + 1]float64
	l := f.marketLeg(i)
	l.fill(t.market, market[:])
	f.volLeg(i).fill(t.vol, own[:])
	for k := range t.vol {
		t.vol[k] += volBeta * l.scale * market[k]
	}
	t.session = i
}
