package simulated

import "time"

// chainSpec is how the options of an underlying are listed, quoted and traded.
type chainSpec struct {
	amRoles, pmRoles []role
	maker            maker
	scale            float64 // of open interest and volume, 1 for the SPX
	bursts           int     // contracts a session that trade many times their open interest
	burstFloor       int     // contracts that the least of these trades
	adjusted         bool    // lists a series for another deliverable, whose root ends in a digit
}

// spxChain is as wide as the chain of 2026-08-11.
func spxChain() *chainSpec {
	return &chainSpec{
		maker:      maker{least: 0.08, slope: 0.0035, deep: 20, deepAt: 0.04, fine: 5, coarse: 10, amWider: 1.9},
		scale:      1,
		bursts:     8,
		burstFloor: 3000,
		amRoles:    spxMonthly(),
		pmRoles:    spxWeekly(),
	}
}

// spxMonthly are the expirations of root SPX.
func spxMonthly() []role {
	bands := []band{
		{step: 1, below: 0.085, above: 0.045, within: 120, taper: true},
		{step: 2, below: 0.26, above: 0.10, within: 170, taper: true}, {step: 2, below: 0.04, above: 0.025},
		{step: 5, below: 0.50, above: 0.17}, {step: 10, below: 0.55, above: 0.19},
		{step: 20, below: 0.68, above: 0.26}, {step: 40, below: 0.96, above: 0.5},
	}
	return []role{
		{plays: monthly, life: 425, calm: true, interest: 6240, growth: 2, bands: bands},
		{plays: monthlyIn(3, 6, 9, 12), life: 425, calm: true, interest: 12480, growth: 1, bands: bands},
		{plays: monthlyIn(3, 6, 9), life: 730, calm: true, interest: 3600, growth: 1, bands: []band{
			{step: 10, below: 0.40, above: 0.17}, {step: 20, below: 0.47, above: 0.2}, {step: 40, below: 0.57, above: 0.6},
		}},
		{plays: monthlyIn(12), life: 1970, calm: true, interest: 9600, growth: 0.4, bands: []band{
			{step: 10, below: 0.45, above: 0.17, within: 900}, {step: 20, below: 0.62, above: 0.18, within: 1600},
			{step: 40, below: 0.78, above: 0.45}, {step: 200, below: 0.9, above: 1.1},
		}},
	}
}

// spxWeekly are the expirations of root SPXW.
func spxWeekly() []role {
	return []role{
		{plays: anySession, life: 41, interest: 2000, growth: 1.5, bands: []band{
			{step: 1, below: 0.085, above: 0.04, within: 30, taper: true},
			{step: 2, below: 0.11, above: 0.055, within: 50, taper: true},
			{step: 5, below: 0.17, above: 0.08},
			{step: 20, below: 0.22, above: 0.10}, {step: 40, below: 0.58, above: 0.27},
		}},
		{plays: weekEnd, life: 70, interest: 4600, growth: 0.9, bands: []band{
			{step: 1, below: 0.05, above: 0.03, within: 35, taper: true},
			{step: 2, below: 0.14, above: 0.07, within: 70, taper: true},
			{step: 5, below: 0.18, above: 0.095}, {step: 10, below: 0.23, above: 0.11},
			{step: 20, below: 0.29, above: 0.14}, {step: 40, below: 0.66, above: 0.28},
		}},
		{plays: monthly, life: 150, calm: true, interest: 2000, growth: 1.4, bands: []band{
			{step: 1, below: 0.085, above: 0.045, within: 110, taper: true},
			{step: 2, below: 0.18, above: 0.09, within: 160, taper: true},
			{step: 5, below: 0.24, above: 0.11}, {step: 10, below: 0.37, above: 0.16},
			{step: 20, below: 0.54, above: 0.23}, {step: 40, below: 0.8, above: 0.35},
		}},
		{plays: monthEnd, life: 190, calm: true, interest: 2000, growth: 1.2, bands: []band{
			{step: 1, below: 0.085, above: 0.05, within: 120, taper: true}, {step: 1, below: 0.045, above: 0.03},
			{step: 2, below: 0.20, above: 0.10, within: 190, taper: true},
			{step: 5, below: 0.28, above: 0.13}, {step: 10, below: 0.35, above: 0.14},
			{step: 20, below: 0.46, above: 0.18}, {step: 40, below: 0.63, above: 0.28},
		}},
		{plays: quarterEnd, life: 365, calm: true, interest: 2600, growth: 0.6, bands: []band{
			{step: 1, below: 0.20, above: 0.07, within: 340}, {step: 2, below: 0.20, above: 0.08},
			{step: 5, below: 0.27, above: 0.11}, {step: 10, below: 0.37, above: 0.14},
			{step: 20, below: 0.55, above: 0.21}, {step: 40, below: 0.63, above: 0.26},
		}},
	}
}

// benchmarkChain is that of the large funds.
func benchmarkChain() *chainSpec {
	bands := []band{
		{step: 1, below: 0.055, above: 0.036, within: 40, taper: true}, {step: 5, below: 0.2, above: 0.12},
		{step: 10, below: 0.34, above: 0.22},
	}
	return &chainSpec{
		maker:      maker{least: 0.01, slope: 0.004, deep: 1.6, deepAt: 0.05, fine: 1, coarse: 1, amWider: 1},
		scale:      0.8,
		bursts:     4,
		burstFloor: 4000,
		pmRoles: []role{
			{plays: anySession, life: 14, interest: 900, growth: 1, bands: bands},
			{plays: weekEnd, life: 56, interest: 1600, growth: 1, bands: bands},
			{plays: monthly, life: 300, interest: 6000, growth: 1, bands: bands},
			{plays: quarterEnd, life: 300, interest: 2000, growth: 1, bands: bands},
			{plays: monthlyIn(time.January, time.December), life: 900, interest: 5000, growth: 1, bands: bands},
		},
	}
}

func stockChain() *chainSpec {
	bands := []band{
		{step: 1, below: 0.12, above: 0.12, within: 70, taper: true}, {step: 2, below: 0.24, above: 0.24, within: 400},
		{step: 4, below: 0.45, above: 0.5}, {step: 8, below: 0.7, above: 0.8},
	}
	return &chainSpec{
		maker:      maker{least: 0.02, slope: 0.012, deep: 2.4, deepAt: 0.2, fine: 1, coarse: 5, amWider: 1},
		scale:      0.6,
		bursts:     3,
		burstFloor: 2500,
		pmRoles: []role{
			{plays: weekEnd, life: 49, interest: 1800, growth: 1.2, bands: bands},
			{plays: monthly, life: 240, interest: 5000, growth: 1.2, bands: bands},
			{plays: monthlyIn(time.January, time.June), life: 900, interest: 6000, growth: 0.8, bands: bands},
		},
	}
}

// adjustedStockChain is a stock's with a series that delivers something else since a corporate action.
func adjustedStockChain() *chainSpec {
	spec := stockChain()
	spec.adjusted = true
	return spec
}

func sectorChain() *chainSpec {
	bands := []band{
		{step: 1, below: 0.08, above: 0.07, within: 60, taper: true}, {step: 2, below: 0.15, above: 0.13},
		{step: 5, below: 0.3, above: 0.25}, {step: 10, below: 0.5, above: 0.45},
	}
	return &chainSpec{
		maker:      maker{least: 0.03, slope: 0.03, deep: 0.9, deepAt: 0.2, fine: 1, coarse: 5, amWider: 1},
		scale:      0.12,
		bursts:     2,
		burstFloor: 1500,
		pmRoles: []role{
			{plays: weekEnd, life: 42, interest: 400, growth: 1.2, bands: bands},
			{plays: monthly, life: 200, interest: 4000, growth: 1.2, bands: bands},
			{plays: monthlyIn(time.January), life: 800, interest: 3000, growth: 0.8, bands: bands},
		},
	}
}
