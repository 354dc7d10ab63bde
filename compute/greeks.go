package compute

import "math"

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
