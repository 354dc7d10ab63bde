package compute_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
)

// binomial is a Cox-Ross-Rubinstein tree of a price with discrete proportional dividends.
type binomial struct {
	spot, rate, volatility float64
	dividend               float64   // share of the price that each dividend takes
	exDates                []float64 // years from now
	steps                  int
}

// paid is what the dividends until a time leave of the price.
func (b binomial) paid(years float64) float64 {
	left := 1.0
	for _, ex := range b.exDates {
		if ex <= years {
			left *= 1 - b.dividend
		}
	}
	return left
}

// american returns the price and the gamma of an American option. The gamma is that of the nodes after two steps.
func (b binomial) american(right compute.Right, k, t float64) (price, gamma float64) {
	dt := t / float64(b.steps)
	up := math.Exp(b.volatility * math.Sqrt(dt))
	growth := math.Exp(b.rate * dt)
	p := (growth - 1/up) / (up - 1/up)
	pu, pd := p/growth, (1-p)/growth
	sign := 1.0
	if right == compute.Put {
		sign = -1
	}
	values := make([]float64, b.steps+1)
	for step := b.steps; step >= 0; step-- {
		at := b.spot * b.paid(float64(step)*dt) * math.Pow(up, -float64(step))
		for i := range values[:step+1] {
			exercise := sign * (at - k)
			if step == b.steps {
				values[i] = math.Max(exercise, 0)
			} else {
				values[i] = math.Max(pd*values[i]+pu*values[i+1], exercise)
			}
			at *= up * up
		}
		if step == 2 {
			low, mid, high := b.spot*b.paid(2*dt)/(up*up), b.spot*b.paid(2*dt), b.spot*b.paid(2*dt)*up*up
			upper, lower := (values[2]-values[1])/(high-mid), (values[1]-values[0])/(mid-low)
			gamma = (upper - lower) / ((high - low) / 2)
		}
	}
	return values[0], gamma
}

// treeChain is a chain that quotes the prices of the tree, one open contract each: 25 strikes from -reach to +reach around the spot on
// each date. gross is the exposure of a date by the tree's own gamma.
func treeChain(t *testing.T, symbol string, b binomial, reach float64, dates ...compute.Date) (chain *compute.Chain, gross []float64) {
	u := index(b.spot, closing)
	u.Symbol = symbol
	var rows []row
	for _, d := range dates {
		years, sum := years(compute.PM.Instant(d, cal).Sub(u.AsOf).Hours()), 0.0
		for j := -12; j <= 12; j++ {
			k := math.Round(b.spot*(1+reach*float64(j)/12)*100) / 100
			for right, letter := range "CP" {
				price, gamma := b.american(compute.Right(right), k, years)
				rows = append(rows, row{symbolOf(fmt.Sprintf("%s%s%c", symbol, d.Midnight().Format("060102"), letter), k), quoted(price, price, 1)})
				sum += gamma * compute.Multiplier * b.spot * b.spot * 0.01
			}
		}
		gross = append(gross, sum)
	}
	return build(t, u, rows...), gross
}

// quarterly returns ex-dates 91 days apart for a year and more.
func quarterly(firstDay float64) (years []float64) {
	for d := firstDay; d < 400; d += 91 {
		years = append(years, d/365)
	}
	return years
}

// METHODS.md §1.8: how far gross exposure, computed as of European options on the parity forward, is from that of American options on
// a binomial tree of 400 steps. The figures of METHODS.md hold within 1.5 points, those of the forwards within 2 bp.
func TestAmericanAsEuropean(t *testing.T) {
	t.Parallel()
	days := []compute.Date{7, 30, 60, 120, 365}
	for _, c := range []struct {
		name, symbol string
		reach        float64
		tree         binomial
		percent      []float64 // by date
		forward      []float64 // basis points
	}{
		{"fund", "SPY", 0.12, binomial{spot: 100, rate: 0.04, volatility: 0.14, dividend: 0.003, exDates: quarterly(28)},
			[]float64{0.5, -1.0, -2.2, -5.4, -11.8}, []float64{0, 11, -5, 7, -43}},
		{"stock without a dividend", "NVDA", 0.25, binomial{spot: 100, rate: 0.04, volatility: 0.35},
			[]float64{0.2, -0.7, -2.3, -3.0, -6.1}, []float64{0, -2, -5, -13, -50}},
		{"stock with a dividend", "XOM", 0.12, binomial{spot: 100, rate: 0.02, volatility: 0.17, dividend: 0.0125, exDates: quarterly(28)},
			[]float64{0.3, -3.6, -4.8, -8.0, -12.9}, []float64{0, 63, 18, 64, 42}},
	} {
		c.tree.steps = 400
		dates := make([]compute.Date, len(days))
		for i, d := range days {
			dates[i] = day("2026-08-11") + d
		}
		chain, gross := treeChain(t, c.symbol, c.tree, c.reach, dates...)
		r := compute.GammaExposure(compute.GammaInput{Chain: chain, Calendar: cal, RiskFreeRate: c.tree.rate})
		equal(t, c.name+": source", r.Data.SpotSource, compute.SpotLast)
		for i, d := range days {
			row, name := r.Data.ByExpiration[i], fmt.Sprintf("%s, %d days", c.name, d)
			off := (float64(*row.Gross)/gross[i] - 1) * 100
			nearly(t, name+": gross, percent", off, c.percent[i], 1.5)
			years := years(compute.PM.Instant(dates[i], cal).Sub(chain.AsOf).Hours())
			forward := c.tree.spot * math.Exp(c.tree.rate*years) * c.tree.paid(years)
			wide := (float64(row.Forward)/forward - 1) * 1e4
			nearly(t, name+": forward, basis points", wide, c.forward[i], 2)
			equal(t, name+": forward source", string(row.ForwardSource), "parity")
		}
		beyond := *r.Data.ByExpiration[3].Gross + *r.Data.ByExpiration[4].Gross
		equal(t, c.name+": contradictory strikes", r.Quality.Contradictory, 0)
		near(t, c.name+": beyond 60 days", r.Quality.GrossBeyond60Days, float64(beyond / *r.Data.Gross)*100, 1e-9)
	}
}

// On the eve of an ex-date, the forwards of the dates after it fall, and gross exposure of the nearest of them is about 11 % too small.
func TestEveOfExDate(t *testing.T) {
	t.Parallel()
	weekly := []compute.Date{day("2026-08-14"), day("2026-08-21"), day("2026-08-28"), day("2026-09-04"), day("2026-09-18")}
	for _, c := range []struct {
		name                        string
		dividend, exDay, volatility float64
		later                       time.Duration // the last trade of the underlying, after the close
		dates                       []compute.Date
		want                        bool
	}{
		{"eve", 0.0125, 1, 0.17, 0, weekly, true},
		{"eve of a fund", 0.003, 1, 0.14, 0, weekly, true},
		{"small dividend", 0.0009, 1, 0.25, 0, weekly, false},
		{"no dividend", 0, 1, 0.25, 0, weekly, false},
		{"after the first date", 0.0125, 5, 0.25, 0, weekly, false},
		{"price of the evening", 0.0125, 1, 0.25, 31 * time.Minute, weekly, false},
		{"few dates", 0.0125, 1, 0.25, 0, weekly[:3], false},
		{"first date in 10 days", 0.0125, 1, 0.25, 0, weekly[1:], false},
	} {
		tree := binomial{spot: 100, rate: 0.04, volatility: c.volatility, dividend: c.dividend, exDates: []float64{c.exDay / 365}, steps: 200}
		chain, gross := treeChain(t, "XOM", tree, 0.12, c.dates...)
		chain.AsOf, chain.CapturedAt = chain.AsOf.Add(c.later), chain.CapturedAt.Add(c.later)
		r := compute.GammaExposure(compute.GammaInput{Chain: chain, Calendar: cal, RiskFreeRate: 0.04})
		equal(t, c.name+": contradictory strikes", r.Quality.Contradictory, 0)
		if c.name == "eve" {
			nearly(t, "gross of the nearest date, percent", (float64(*r.Data.ByExpiration[0].Gross)/gross[0]-1)*100, -11, 1.5)
		}
		if got := strings.Contains(r.Quality.ExerciseNote, "ex-dividend"); got != c.want {
			t.Errorf("%s: %s", c.name, r.Quality.ExerciseNote)
		}
	}
}

// METHODS.md §1.0: how far the implied spot of a share is from the price that its options belong to, in basis points, when the share has
// moved by 2 % since. A dividend after the nearest date does not move the implied spot. A dividend before it lowers the spot, but not
// where the document has the closing price.
func TestImpliedSpotOfShares(t *testing.T) {
	t.Parallel()
	dates := []compute.Date{day("2026-08-14"), day("2026-08-21"), day("2026-08-28"), day("2026-09-04"), day("2026-09-11"), day("2026-09-18")}
	for _, c := range []struct {
		name, symbol         string
		dividend, volatility float64
		exDay, closing       float64
		want, within         float64
	}{
		{"no dividend", "SPY", 0, 0.14, 1, 0, 0, 2},
		{"a stock without one", "NVDA", 0, 0.45, 1, 0, 0, 2},
		{"a fund, after the first date", "SPY", 0.003, 0.14, 5, 0, 0, 4},
		{"a fund, in the middle", "SPY", 0.003, 0.14, 18, 0, 0, 4},
		{"a fund, before the last date", "SPY", 0.003, 0.14, 33, 0, 0, 4},
		{"a stock, after the first date", "XOM", 0.0125, 0.17, 5, 0, 0, 10},
		{"a stock, in the middle", "XOM", 0.0125, 0.17, 18, 0, 0, 10},
		{"a stock, before the last date", "XOM", 0.0125, 0.17, 33, 0, 0, 10},
		{"a fund, tomorrow", "SPY", 0.003, 0.14, 1, 0, -30, 12},
		{"a stock, tomorrow", "XOM", 0.0125, 0.17, 1, 0, -125, 70},
		{"a fund, tomorrow, with its close", "SPY", 0.003, 0.14, 1, 100, 0, 0},
		{"a stock, tomorrow, with its close", "XOM", 0.0125, 0.17, 1, 100, 0, 0},
	} {
		tree := binomial{spot: 100, rate: 0.04, volatility: c.volatility, dividend: c.dividend, exDates: []float64{c.exDay / 365}, steps: 200}
		chain, _ := treeChain(t, c.symbol, tree, 0.12, dates...)
		chain.AsOf, chain.CapturedAt = chain.AsOf.Add(2*time.Hour), chain.CapturedAt.Add(2*time.Hour)
		chain.Spot, chain.Close = 98, c.closing
		r := compute.GammaExposure(compute.GammaInput{Chain: chain, Calendar: cal, RiskFreeRate: 0.04})
		off := math.Log(float64(r.Data.EffectiveSpot)/100) * 1e4
		nearly(t, c.name, off, c.want, c.within)
	}
}
