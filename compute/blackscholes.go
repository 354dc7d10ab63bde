package compute

import "math"

const invSqrt2Pi = 0.39894228040143267793994605993438 // 1/√(2π)

func normPDF(x float64) float64 { return invSqrt2Pi * math.Exp(-0.5*x*x) }

// logMoneyness returns ln(f/k), accurate to the last bits also where f is close to k.
func logMoneyness(f, k float64) float64 {
	if f < 2*k && k < 2*f {
		return math.Log1p((f - k) / k)
	}
	return math.Log(f / k)
}

// BlackValue returns the undiscounted value, in the unit of the forward, of a European option on forward f > 0
// with strike k > 0 and total volatility v = σ√T > 0.
//
// Source: Black (1976), The pricing of commodity contracts, Journal of Financial Economics 3, eq. 16.
func BlackValue(right Right, f, k, v float64) float64 {
	otm, intrinsic := Call, math.Max(k-f, 0)
	if k < f {
		otm, intrinsic = Put, f-k
	}
	x := -math.Abs(logMoneyness(f, k))
	value := math.Sqrt(f) * math.Sqrt(k) * blackOTM(x, v, math.Exp(0.5*x), math.Exp(-0.5*x))
	if right != otm {
		value += intrinsic
	}
	return value
}

// BlackGamma returns the gamma, per index point, of a European option with strike k at the spot price at: the second
// derivative of its discounted value by the spot. f is the forward at the price spot, and moves in proportion to the spot.
// The total volatility v does not move with the spot. discount is e^(-rT). A call and a put have the same gamma. All
// arguments must be > 0. d1 is computed as the sum of two logarithms, which keeps all digits when both are small.
//
// Source: Hull, Options, Futures and Other Derivatives, ch. 19.6, with the carry b: e^((b-r)T) φ(d1) / (S v).
func BlackGamma(spot, at, f, k, v, discount float64) float64 {
	d1 := (logMoneyness(f, k)+logMoneyness(at, spot))/v + 0.5*v
	return f / spot * discount * normPDF(d1) / (at * v)
}

// blackOTM returns the normalised Black value b(x, v) of an out-of-the-money call, its undiscounted value over
// √(fk), x = ln(f/k) <= 0. It lies in [0, e^(x/2)). up is e^(x/2) and down is e^(-x/2).
func blackOTM(x, v, up, down float64) float64 {
	h, t := x/v, 0.5*v
	b := 0.5 * (up*math.Erfc(-(h+t)*invSqrt2) - down*math.Erfc(-(h-t)*invSqrt2))
	return math.Max(b, 0)
}

const invSqrt2 = 0.70710678118654752440084436210485

// ImpliedTotalVolatility returns the total volatility v = σ√T at which [BlackValue] gives the undiscounted value. T is not
// needed, so the function works up to the last second before expiration. ok is false where there is no such v: the value is
// not finite, not above the intrinsic value, or not below its bound (f for a call, k for a put).
//
// The out-of-the-money value b(v) rises from 0 with one inflection at v = √(2|x|). Above the inflection, Newton's method on
// b converges from below. Below it, the method works on 1/√(-ln b), which is close to linear there (after P. Jäckel, Let's
// be rational, Wilmott 2015). Every step is kept inside a shrinking bracket. The guess saves steps if it is close, and may be any
// number.
func ImpliedTotalVolatility(right Right, value, f, k, guess float64) (v float64, ok bool) {
	if !finite(value) || !finite(f) || !finite(k) || f <= 0 || k <= 0 {
		return 0, false
	}
	bound, intrinsic := f, math.Max(f-k, 0)
	if right == Put {
		bound, intrinsic = k, math.Max(k-f, 0)
	}
	if value >= bound {
		return 0, false
	}
	value -= intrinsic
	if value <= 0 || value >= math.Min(f, k) {
		return 0, false
	}
	return solveOTM(-math.Abs(logMoneyness(f, k)), value/(math.Sqrt(f)*math.Sqrt(k)), guess)
}

const maxTotalVolatility = 64 // the value is √(fk)·(1 - 1e-200) there: no float64 price needs more

// solveOTM finds v with b(x, v) = beta, for x <= 0 and 0 < beta < e^(x/2). It begins at the guess if that can be v,
// else at the inflection.
func solveOTM(x, beta, guess float64) (float64, bool) {
	lo, hi := 0.0, float64(maxTotalVolatility)
	v := math.Sqrt(-2 * x)
	if x > -1e-12 {
		v = beta / invSqrt2Pi // b ≈ v φ(0) at the money
	}
	up, down := math.Exp(0.5*x), math.Exp(-0.5*x)
	low := beta < blackOTM(x, v, up, down)
	if guess > 1e-6 && guess < maxTotalVolatility && low == (guess < v) {
		v = guess
	}
	target := 1 / math.Sqrt(-math.Log(beta))
	for range 100 {
		b := blackOTM(x, v, up, down)
		if b < beta {
			lo = v
		} else {
			hi = v
		}
		h, t := x/v, 0.5*v
		slope := invSqrt2Pi * math.Exp(-0.5*(h*h+t*t))
		next := v - (b-beta)/slope
		if low && b > 0 && b < 1 {
			l := -math.Log(b)
			next = v - (1/math.Sqrt(l)-target)*2*l*math.Sqrt(l)*b/slope
		}
		if !(next >= lo && next <= hi) { // also when next is NaN
			next = 0.5 * (lo + hi)
		}
		if math.Abs(next-v) <= 1e-8*next { // both methods converge quadratically: next is good to 1e-15
			return next, true
		}
		v = next
	}
	return v, v < 0.999*maxTotalVolatility
}

// Exposures are the exposures beside gamma, of the same contracts with the same signs: dealers long every call and short every
// put.
type Exposures struct {
	// Amount of the underlying that gains and loses like these options. `null` when no contract could be used, after
	// `spot_mismatch`, and while open interest is not known.
	Delta *Dollars `json:"delta_dollars" unit:"USD"`
	// Change of `delta_dollars` when every volatility rises by one point, as from 15 % to 16 %. `null` when no contract could be
	// used, and after `spot_mismatch`.
	Vanna *Dollars `json:"vanna_dollars_per_vol_point" unit:"USD per volatility point"`
	// Change of `delta_dollars` when one calendar day passes and nothing else changes. `null` when no contract could be used, and
	// after `spot_mismatch`.
	Charm *Dollars `json:"charm_dollars_per_day" unit:"USD per day"`
	// `charm_dollars_per_day` without the contracts that settle on the session date, whose charm is often half of all. `null` as
	// that field is.
	LaterCharm *Dollars `json:"charm_ex_zero_dte_dollars_per_day" unit:"USD per day"`
}

// Greeks are derivatives of the discounted value V of a European option on one unit of the underlying.
type Greeks struct {
	Delta [2]float64 // ∂V/∂S, by right
	Vanna float64    // ∂Δ/∂σ, of both rights
	Charm [2]float64 // ∂Δ/∂t per year as time passes, at a constant carry and a constant σ; by right
}

// BlackGreeks returns the greeks of the options of a strike k >= 0 at the price spot: f is the forward, v = σ√T the total
// volatility, years is T, rate is continuously compounded. All other arguments must be > 0. σ, the carry ln(f/spot)/T and the
// speed of time count T as at least 15 minutes.
//
// Source: Haug, The Complete Guide to Option Pricing Formulas, 2nd ed., 2007, ch. 2: delta, DdeltaDvol and DdeltaDtime of the
// generalised Black-Scholes-Merton formula.
func BlackGreeks(spot, f, k, v, years, rate float64) Greeks {
	d1 := logMoneyness(f, k)/v + 0.5*v
	d2 := d1 - v
	floored := max(years, floorYears)
	sigma, carry := v/math.Sqrt(floored), logMoneyness(f, spot)/floored
	growth := f / spot * math.Exp(-rate*years) // e^((b-r)T)
	density := normPDF(d1)
	call, put := normCDF(d1), normCDF(-d1)
	g := Greeks{Delta: [2]float64{growth * call, -growth * put}}
	decay := 0.0
	if density > 0 { // d1 and d2 are infinite for a strike of 0
		g.Vanna = -growth * density * d2 / sigma
		decay = density * (carry/v - d2/(2*floored))
	}
	g.Charm = [2]float64{-growth * (decay + (carry-rate)*call), -growth * (decay - (carry-rate)*put)}
	return g
}

// normCDF is the normal distribution function, accurate also in the lower tail.
func normCDF(x float64) float64 { return 0.5 * math.Erfc(-x*invSqrt2) }

// greeks are sums of [Exposures], in dollars.
type greeks struct {
	delta, vanna, charm float64
	laterCharm          float64 // of what settles after the session date
}

// add adds one contract of a strike, with the weight sign · open interest.
func (g *greeks) add(one *Greeks, right Right, weight, spot float64) {
	dollars := weight * Multiplier * spot
	g.delta += dollars * one.Delta[right]
	g.vanna += dollars * one.Vanna * 0.01
	g.charm += dollars * one.Charm[right] / 365
}

func (g *greeks) exposures() Exposures {
	return Exposures{new(Dollars(g.delta)), new(Dollars(g.vanna)), new(Dollars(g.charm)), new(Dollars(g.laterCharm))}
}
