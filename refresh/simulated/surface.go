package simulated

import (
	"math"
	"time"

	"strikecache/compute"
)

const (
	// The carry of the simulated market: F = S·e^((rate-yield)T).
	rate  = 0.04
	yield = 0.005

	secondsPerYear, sessionsPerYear = 365 * 24 * 3600, 252
	// vixOverMoney is the ratio of the VIX to the volatility at the money at 30 days, or 21 sessions.
	vixOverMoney = 1.22
)

// surface is the implied volatility of one underlying at one instant, per year of trading time. At the money it goes from a short to a
// long level with time to expiration. In units of standard deviations, the wings of the smile have one shape. (On the SPX chain of
// 2026-08-11, from a week to a year, the ratio to the volatility at the money is 1.25 one deviation below, 1.85 three below and 2.7 six
// below, with its minimum one deviation above. On the last days, the minimum is at the money: the skew fades.)
type surface struct {
	spot        float64
	short, long float64 // volatility at the money, decimals
	steepness   float64 // of the smile, 1 for the SPX
}

// surface returns an instrument's surface for given factors.
func (in *instrument) surface(p point) surface {
	if in.iv == 0 {
		long := 0.195 * math.Exp(0.5*p.term)
		month := math.Exp(p.vol) / 100 / vixOverMoney
		return surface{spot: in.price(p), short: long - (long-month)/shortShare(21.0/sessionsPerYear), long: long, steepness: 1}
	}
	quiet := math.Exp(p.vol - volMean)
	return surface{
		spot: in.price(p), short: in.iv * math.Pow(quiet, 0.8) * math.Exp(-2*p.own), long: in.iv * 1.08 * math.Exp(0.4*p.term-p.own),
		steepness: min(1, 0.25+0.1/in.iv),
	}
}

// shortShare returns the position of the volatility at the money between the long level, 0, and the short level, 1, for years of trading
// time.
func shortShare(years float64) float64 {
	decay := func(x float64) float64 { return -math.Expm1(-x) / x }
	return 0.7*decay(8*years) + 0.3*decay(0.8*years)
}

// smile is the surface at one expiration.
type smile struct {
	spot, forward float64
	discount      float64 // e^(-rT)
	years         float64 // of the calendar
	money         float64 // total volatility at the money: σ√T
	// The smile is a hyperbola in the deviations z from the forward: 1 + bend·(tilt·z + √((z-shift)² + 1) - norm). It is 1 at z = 0.
	bend, tilt, shift, norm float64
}

// smile returns the surface of a moment at an expiration. An expiration that settles within a minute, or has settled, is treated as if it
// had a minute left: the upstream, too, still computes the numbers of expired rows.
func (sf surface) smile(now, settles moment) smile {
	years := max(settles.time.Sub(now.time).Seconds(), 60) / secondsPerYear
	traded := max(settles.sessions-now.sessions, 1.0/390) / sessionsPerYear
	far := min(years, 1)
	m := smile{
		spot: sf.spot, forward: sf.spot * math.Exp((rate-yield)*years), discount: math.Exp(-rate * years),
		years: years, money: (sf.long - (sf.long-sf.short)*shortShare(traded)) * math.Sqrt(traded),
		bend: 0.28 * sf.steepness, tilt: -0.08 - 0.12*far, shift: 1.65 * years / (years + 0.08),
	}
	m.norm = math.Sqrt(m.shift*m.shift + 1)
	return m
}

// deviations returns how many standard deviations a strike lies from the forward.
func (m *smile) deviations(strike float64) float64 { return math.Log(strike/m.forward) / m.money }

// variance returns the total variance that the VIX formula finds in the prices of the strikes of SPXW that are listed and have a bid.
func (m *smile) variance() (w float64) {
	const step = 0.125 // standard deviations
	for z := -25.0; z < 15; z += step {
		strike := m.forward * math.Exp(z*m.money)
		if v := m.value(strike); v.timeValue > 0.1 && strike > 0.38*m.spot && strike < 1.35*m.spot {
			w += 2 * step * m.money * v.timeValue / strike
		}
	}
	return w / m.discount
}

// vixLevel returns the VIX of an instant: the VIX formula for 30 days, from the third Fridays of SPX and the other Fridays of SPXW.
func (m *Market) vixLevel(p point, now moment) float64 {
	const month = 30.0 / 365
	surface, friday := m.instruments[spx].surface(p), compute.DateOf(now.time.In(compute.NewYork))+23
	friday += compute.Date((time.Friday - friday.Weekday() + 7) % 7)
	for years, variance := 0.0, 0.0; ; friday += 7 {
		date := m.calendar.OnOrBefore(friday)
		s := surface.smile(now, m.settles(date, monthly(m.calendar, date)))
		w := s.variance()
		if s.years > month {
			w = variance + (w-variance)*(month-years)/(s.years-years)
			return math.Round(1e4*math.Sqrt(w/month)) / 100
		}
		years, variance = s.years, w
	}
}

// value is what one strike is worth.
type value struct {
	total     float64    // implied volatility until the expiration: σ√T
	price     [2]float64 // of the call and the put, USD
	timeValue float64    // of both: the lower of the two prices
}

// value returns the theoretical value of a strike.
func (m *smile) value(strike float64) value {
	z := m.deviations(strike)
	if z < 0 {
		z /= 1 - 0.012*z // far below, the smile is less steep
	}
	v := value{total: m.money * (1 + m.bend*(m.tilt*z+math.Sqrt((z-m.shift)*(z-m.shift)+1)-m.norm))}
	right, other := compute.Call, compute.Put
	if strike < m.forward {
		right, other = compute.Put, compute.Call
	}
	v.timeValue = m.discount * compute.BlackValue(right, m.forward, strike, v.total)
	v.price[right] = v.timeValue
	v.price[other] = v.timeValue + m.discount*math.Abs(m.forward-strike)
	return v
}

// quote returns bid and ask of a contract, in cents. Contracts in the money are quoted wide. The bid of a contract that is worth less than
// a tick is 0; the ask is always above the bid. The middle of a bid and an ask is within a quarter of a tick of the value, so that no
// strategy of two or three contracts gains more than half a tick.
func (spec *chainSpec) quote(m *smile, v *value, c *contract) (bid, ask int) {
	price := v.price[c.right]
	width := spec.least + spec.slope*v.timeValue
	if c.am {
		width *= 1.9 // index series that settle at the open are quoted wider
	}
	intrinsic := price - v.timeValue
	if intrinsic > 0 {
		width += spec.deep * (0.2 + 0.8*c.key.child(9).unit()) * min(1, intrinsic/(spec.deepAt*m.spot))
	}
	width = min(width, 0.04*m.spot)
	half := min(0.5*width, 0.03+0.5*price)
	bid = max(int((price-half)*100), 0)
	tick := float64(spec.tick)
	if bid -= bid % spec.tick; bid == 0 {
		return 0, int(max(math.Ceil((price+half)*100/tick), 1) * tick)
	}
	ask = int(math.Round((200*price-float64(bid))/tick)) * spec.tick
	return bid, max(ask, bid+spec.tick)
}
