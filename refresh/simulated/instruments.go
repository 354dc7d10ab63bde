package simulated

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"strikecache/compute"
)

const (
	spx = "_SPX"
	vix = "_VIX"
)

// instrument is an index, a fund or a stock of the simulated market.
type instrument struct {
	symbol string // the upstream's: _SPX, XLK
	// level is the price on pricedOn, USD, if the market and the instrument are on their trends.
	level  float64
	beta   float64    // to the market
	weight float64    // share of a sector fund in the index; the weights add up to 1, and so do the betas times the weights
	own    float64    // standard deviation of its own daily return
	twin   string     // the symbol of an instrument whose own moves it has besides: both are of one index
	iv     float64    // implied volatility in a quiet market, a decimal; 0: the surface follows the VIX
	unit   int32      // of strikes, thousandths of a USD
	chain  *chainSpec // nil without listed options
	scale  float64    // of the open interest and volume of options, 1 for the SPX
	// A volatility index besides the VIX is level, plus the level that the VIX returns to if onLevel is 1, plus slope times what the VIX is above
	// that. The longer the term of a volatility, the less it moves.
	onLevel, slope float64
}

// pricedOn is the date of instrument.level.
var pricedOn = compute.NewDate(2026, time.July, 1)

func (in *instrument) index() bool { return in.symbol[0] == '_' }

// termLevel is the mean of the level that the VIX returns to.
const termLevel = 19.6

// price returns the quoted price for given factors.
func (in *instrument) price(p point) float64 {
	price := in.level * math.Exp(in.beta*(p.market-trend(pricedOn))+p.own)
	switch {
	case in.slope != 0:
		level := termLevel * math.Exp(p.term)
		price = in.onLevel*level + in.level + in.slope*(math.Exp(p.vol)-level)
	case in.symbol == spx: // the upstream has it as a 32-bit number, with 4 decimals
		return math.Round(float64(float32(cents(math.Exp(p.market))))*1e4) / 1e4
	}
	return cents(price)
}

func cents(price float64) float64 { return math.Round(price*100) / 100 }

var instruments = [...]instrument{
	{symbol: spx, level: 7350, beta: 1, chain: &spxChain, scale: 1, unit: 5000},
	{symbol: vix},
	{symbol: "_VIX3M", onLevel: 1, level: 0.4, slope: 0.5},
	{symbol: "_VIX1D", onLevel: 1, level: -1, slope: 1.25},
	{symbol: "_VIX9D", onLevel: 1, level: -0.4, slope: 1.15},
	{symbol: "_VIX6M", onLevel: 1, level: 1.2, slope: 0.32},
	{symbol: "_VIX1Y", onLevel: 1, level: 2, slope: 0.2},
	{symbol: "_VVIX", level: 96, slope: 2.2},
	{symbol: "_SKEW", level: 141, slope: -0.9},
	{symbol: "_VXN", onLevel: 1, level: 4.5, slope: 1.05},
	{symbol: "_RVX", onLevel: 1, level: 4, slope: 0.9},
	{symbol: "SPY", level: 733.5, beta: 1, own: 0.00004, chain: &fundChain, scale: 0.8, unit: 1000},
	{symbol: "_NDX", level: 28_208, beta: 1.2, own: 0.00004, twin: "QQQ", iv: 0.165, chain: &ndxChain, scale: 0.03, unit: 25_000},
	{symbol: "_RUT", level: 2470, beta: 1.2, own: 0.006, iv: 0.2, chain: &rutChain, scale: 0.08, unit: 5000},
	{symbol: "IWM", level: 247, beta: 1.2, own: 0.00004, twin: "_RUT", iv: 0.2, chain: &fundChain, scale: 0.6, unit: 500},
	{symbol: "QQQ", level: 688, beta: 1.2, own: 0.004, iv: 0.165, chain: &fundChain, scale: 0.8, unit: 1000},
	{symbol: "XLC", level: 118, weight: 0.1, beta: 1.1, own: 0.006, iv: 0.17, chain: &stockChain, scale: 0.12, unit: 1000},
	{symbol: "XLY", level: 122, weight: 0.105, beta: 1.2, own: 0.006, iv: 0.19, chain: &stockChain, scale: 0.12, unit: 1000},
	{symbol: "XLP", level: 81, weight: 0.05, beta: 0.45, own: 0.0055, iv: 0.13, chain: &stockChain, scale: 0.12, unit: 500},
	{symbol: "XLE", level: 58, weight: 0.03, beta: 0.7, own: 0.011, iv: 0.23, chain: &stockChain, scale: 0.12, unit: 500},
	{symbol: "XLF", level: 54, weight: 0.13, beta: 0.95, own: 0.006, iv: 0.17, chain: &stockChain, scale: 0.12, unit: 500},
	{symbol: "XLV", level: 149, weight: 0.09, beta: 0.65, own: 0.006, iv: 0.15, chain: &stockChain, scale: 0.12, unit: 1000},
	{symbol: "XLI", level: 165, weight: 0.085, beta: 1, own: 0.005, iv: 0.16, chain: &stockChain, scale: 0.12, unit: 1000},
	{symbol: "XLK", level: 187, weight: 0.345, beta: 1.18, own: 0.0055, iv: 0.21, chain: &stockChain, scale: 0.12, unit: 1000},
	{symbol: "XLB", level: 47, weight: 0.02, beta: 0.95, own: 0.007, iv: 0.18, chain: &stockChain, scale: 0.12, unit: 500},
	{symbol: "XLRE", level: 43, weight: 0.02, beta: 0.8, own: 0.007, iv: 0.17, chain: &stockChain, scale: 0.12, unit: 500},
	{symbol: "XLU", level: 44, weight: 0.025, beta: 0.45, own: 0.0085, iv: 0.17, chain: &stockChain, scale: 0.12, unit: 500},
	{symbol: "AAPL", level: 274, beta: 1.15, own: 0.011, iv: 0.26, chain: &stockChain, scale: 0.6, unit: 2500},
	{symbol: "NVDA", level: 196, beta: 1.6, own: 0.017, iv: 0.4, chain: &stockChain, scale: 0.6, unit: 2500},
	{symbol: "TSLA", level: 412, beta: 1.5, own: 0.024, iv: 0.52, chain: &stockChain, scale: 0.6, unit: 2500},
	{symbol: "MSFT", level: 508, beta: 1, own: 0.01, iv: 0.23, chain: &stockChain, scale: 0.6, unit: 2500},
	{symbol: "AMZN", level: 238, beta: 1.25, own: 0.013, iv: 0.3, chain: &stockChain, scale: 0.6, unit: 2500},
	{symbol: "META", level: 690, beta: 1.25, own: 0.015, iv: 0.31, chain: &stockChain, scale: 0.6, unit: 5000},
}

// chainSpec is how the options of an underlying are listed, quoted and traded.
type chainSpec struct {
	pm     string // what the root of series of an index that settle PM has after the index's name: W of SPXW
	roles  []role
	bands  []band
	least  float64 // width of the cheapest quote, USD
	slope  float64 // width per USD of time value
	deep   float64 // the most that intrinsic value adds, USD
	deepAt float64 // intrinsic value, as a share of the spot, that adds all of deep
	tick   int     // cents
	bursts float64 // share of the contracts near the money that trade many times their open interest
}

var quarters = []time.Month{3, 6, 9, 12}

// indexRoles are the expirations of an index.
var indexRoles = []role{
	{am: true, plays: monthly, life: 425, width: 1.4, interest: 6240, growth: 2},
	{am: true, plays: monthly, months: quarters, life: 425, width: 1.4, interest: 12480, growth: 1},
	{am: true, plays: monthly, months: []time.Month{3, 6, 9}, life: 730, width: 1.4, interest: 3600, growth: 1},
	{am: true, plays: monthly, months: []time.Month{12}, life: longestLife, width: 1.4, interest: 9600, growth: 0.4},
	{plays: anySession, life: 41, width: 0.85, interest: 2000, growth: 1.5},
	{plays: weekEnd, life: 70, width: 1, interest: 4600, growth: 0.9},
	{plays: monthly, life: 150, width: 1, interest: 2000, growth: 1.4},
	{plays: monthEnd, life: 190, width: 1, interest: 2000, growth: 1.2},
	{plays: monthEnd, months: quarters, life: 365, width: 1, interest: 2600, growth: 0.6},
}

// spxChain is about as wide as the chain of 2026-08-11.
var spxChain = chainSpec{
	pm: "W", least: 0.08, slope: 0.0035, deep: 20, deepAt: 0.04, tick: 5, bursts: 0.02, roles: indexRoles,
	bands: []band{{1, 0.11, 0.085, 45}, {2, 0.15, 0.1, 120}, {5, 0.21, 0.11, 0}, {10, 0.3, 0.15, 0}, {20, 0.45, 0.2, 0}, {40, 0.62, 0.35, 0}},
}

var ndxChain = chainSpec{
	pm: "P", least: 0.4, slope: 0.008, deep: 75, deepAt: 0.04, tick: 5, bursts: 0.02, roles: indexRoles,
	bands: []band{{2, 0.055, 0.045, 25}, {4, 0.09, 0.06, 0}, {10, 0.2, 0.13, 0}, {40, 0.5, 0.3, 0}},
}

var rutChain = chainSpec{
	pm: "W", least: 0.1, slope: 0.006, deep: 9, deepAt: 0.04, tick: 5, bursts: 0.02, roles: indexRoles,
	bands: []band{{1, 0.04, 0.035, 5}, {2, 0.05, 0.04, 60}, {4, 0.12, 0.08, 0}, {10, 0.25, 0.16, 0}, {20, 0.5, 0.3, 0}},
}

// fundChain is the chain of the large index funds.
var fundChain = chainSpec{
	least: 0.01, slope: 0.004, deep: 1.6, deepAt: 0.05, tick: 1, bursts: 0.02,
	roles: []role{
		{plays: anySession, life: 14, width: 1, interest: 900, growth: 1},
		{plays: weekEnd, life: 56, width: 1, interest: 1600, growth: 1},
		{plays: monthly, life: 300, width: 1, interest: 6000, growth: 1},
		{plays: monthEnd, months: quarters, life: 300, width: 1, interest: 2000, growth: 1},
		{plays: monthly, months: []time.Month{1, 12}, life: 900, width: 1, interest: 5000, growth: 1},
	},
	bands: []band{{1, 0.09, 0.075, 40}, {5, 0.18, 0.13, 0}, {10, 0.3, 0.2, 0}},
}

// stockChain is the chain of a stock or a sector fund.
var stockChain = chainSpec{
	least: 0.02, slope: 0.012, deep: 2.4, deepAt: 0.2, tick: 1, bursts: 0.06,
	roles: []role{
		{plays: weekEnd, life: 49, width: 1, interest: 1800, growth: 1.2},
		{plays: monthly, life: 240, width: 1, interest: 5000, growth: 1.2},
		{plays: monthly, months: []time.Month{1, 6}, life: 900, width: 1, interest: 6000, growth: 0.8},
	},
	bands: []band{{1, 0.3, 0.35, 90}, {2, 0.4, 0.45, 0}, {4, 0.55, 0.6, 0}, {8, 0.7, 0.8, 0}},
}

// role is a reason why an expiration is listed. One date can play several roles: then its series has the longest life and the widest
// strikes of them.
type role struct {
	am     bool                                       // settled at the open, under a root of its own
	plays  func(*compute.Calendar, compute.Date) bool // whether a date, which is a session, plays the role
	months []time.Month                               // of the dates; nil: all
	life   int                                        // days from the listing to the expiration
	width  float64                                    // factor of the bands of strikes
	// interest is the typical open interest, in contracts, of a strike near the money on the last day. Before that day it is multiplied by
	// the share of life that has passed, to the power of growth.
	interest, growth float64
}

// band is a range of strikes: the multiples of step from below under to above over the trend of the price. With a taper, the band opens
// taper days before the expiration and widens from nothing to its full width at the expiration.
type band struct {
	step         int32   // strike units, see instrument.unit
	below, above float64 // share of the price
	taper        int     // days; 0 for a band of constant width
}

func anySession(*compute.Calendar, compute.Date) bool { return true }

// weekEnd says whether the date is the last session up to a Friday.
func weekEnd(cal *compute.Calendar, d compute.Date) bool {
	return cal.OnOrBefore(d+compute.Date(time.Friday-d.Weekday())) == d
}

var monthly = (*compute.Calendar).IsMonthly

func monthEnd(cal *compute.Calendar, d compute.Date) bool { return cal.Next(d).Month() != d.Month() }

// series is one root and expiration of a chain.
type series struct {
	root    string
	date    compute.Date
	am      bool
	settles moment
	since   compute.Date // the session it was listed on
	life    int          // days from its listing
	roles   []role       // the roles that the date plays
	strikes []strike     // rising
	key     noise
}

// strike is a listed strike of a series.
type strike struct {
	thousandths int32        // of a USD
	since       compute.Date // the session it was listed on
}

func (s *series) days(from compute.Date) int { return int(s.date - from) }

const longestLife = 1970 // days, the maximum of all roles

// listing returns the series of a chain that are listed on a session: first the AM-settled ones, each kind by date.
func (m *Market) listing(in *instrument, listed compute.Date) (all []series) {
	name := strings.TrimPrefix(in.symbol, "_")
	for _, kind := range []series{{root: name, am: true}, {root: name + in.chain.pm}} {
		for date := listed; date <= listed+longestLife; date = m.calendar.Next(date) {
			s, width := kind, 0.0
			s.date = date
			for _, r := range in.chain.roles {
				month := r.months == nil || slices.Contains(r.months, date.Month())
				if r.am == s.am && month && s.days(listed) <= r.life && r.plays(m.calendar, date) {
					s.life, width, s.roles = max(s.life, r.life), max(width, r.width), append(s.roles, r)
				}
			}
			if len(s.roles) > 0 {
				s.settles = m.settles(date, s.am)
				s.since = m.calendar.Next(date - compute.Date(s.life) - 1)
				s.key = m.key.named("options").named(s.root).child(uint64(date))
				s.strikes = m.strikes(in, &s, width, listed)
				all = append(all, s)
			}
		}
	}
	return all
}

func (f *factors) settles(date compute.Date, am bool) moment {
	i := f.index(date)
	if am {
		return f.opening(i)
	}
	return f.closing(i)
}

// interest returns the open interest of a typical strike near the money, contracts.
func (s *series) interest(on compute.Date) float64 {
	most := 0.0
	for _, r := range s.roles {
		if age := 1 - float64(s.days(on))/float64(r.life); age > 0 {
			most = max(most, r.interest*math.Pow(age, r.growth))
		}
	}
	return most
}

// strikes returns the strikes of a series that are listed on a session. Their center is the trend of the price on a fixed date, about
// when most of them are listed, so that a listed strike stays.
func (m *Market) strikes(in *instrument, s *series, width float64, listed compute.Date) (strikes []strike) {
	center := in.level * math.Exp(in.beta*(trend(s.date-compute.Date(min(s.life, 200)))-trend(pricedOn))) * 1000 / float64(in.unit)
	for _, b := range in.chain.bands {
		below, above := min(b.below*width, 0.97)*center, b.above*width*center
		step := b.step * m.every
		for k := int32(center-below)/step*step + step; float64(k) <= center+above; k += step {
			since := s.since
			if b.taper > 0 {
				away := max((center-float64(k))/below, (float64(k)-center)/above) // 1 at the end of the band
				since = max(since, m.calendar.Next(s.date-compute.Date(float64(b.taper)*(1-away))-1))
			}
			if since <= listed {
				strikes = append(strikes, strike{k * in.unit, since})
			}
		}
	}
	slices.SortFunc(strikes, func(a, b strike) int {
		return cmp.Or(cmp.Compare(a.thousandths, b.thousandths), cmp.Compare(a.since, b.since))
	})
	return slices.CompactFunc(strikes, func(a, b strike) bool { return a.thousandths == b.thousandths })
}
