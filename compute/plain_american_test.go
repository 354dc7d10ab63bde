package compute_test

import (
	"math"
	"slices"

	"strikecache/compute"
)

// plainUnderlying is the underlying of a root.
func plainUnderlying(root string) string {
	switch root {
	case "SPXW":
		return "SPX"
	case "NDXP":
		return "NDX"
	case "RUTW":
		return "RUT"
	case "VIXW":
		return "VIX"
	}
	return root
}

// plainStock says whether a symbol is that of a stock: neither an index nor a fund in the table of §1.
func plainStock(symbol string) bool {
	funds := []string{"SPY", "QQQ", "IWM", "DIA", "XLB", "XLC", "XLE", "XLF", "XLI", "XLK", "XLP", "XLRE", "XLU",
		"XLV", "XLY", "EEM", "EFA", "IWN", "IWO", "KBE", "KRE", "MDY", "OEF", "XHB", "XME", "XRT"}
	return plainAmerican(symbol) && !slices.Contains(funds, symbol)
}

// plainAmerican says whether the options of a symbol are American: all but those of an index.
func plainAmerican(symbol string) bool {
	switch symbol {
	case "SPX", "XSP", "NDX", "RUT", "VIX":
		return false
	}
	return true
}

// beyond60Days is the share of the legs with more than 60 days in gross exposure.
func beyond60Days(legs []leg, spot float64) *float64 {
	far := 0.0
	for i := range legs {
		if legs[i].group.seconds > 60*86400 {
			far += math.Abs(legs[i].gex(0, spot))
		}
	}
	return ratio(100*far, grossExposure(legs, spot, spot))
}

// exDate returns the date before which the forwards fall by more than 10 bp on top of the carry, by the rule of §1.8. late is
// q - as_of in seconds.
func exDate(parity []*plainSeries, spot, late float64, today compute.Date) (compute.Date, bool) {
	var near []*plainSeries
	for _, g := range parity {
		if g.seconds <= 60*86400 {
			near = append(near, g)
		}
	}
	if len(near) < 4 {
		return 0, false
	}
	var slopes []float64
	for i := range near[1:] {
		slopes = append(slopes, math.Log(near[i+1].forward/near[i].forward)/(near[i+1].years-near[i].years))
	}
	slices.Sort(slopes)
	n := len(slopes)
	carry := (slopes[n/2] + slopes[(n-1)/2]) / 2
	from, fromT, to := spot, 0.0, near[0]
	switch {
	case near[0].expiration == today:
		from, fromT, to = near[0].forward, near[0].years, near[1]
	case math.Abs(late) > 15*60:
		return 0, false
	}
	fall := carry*(to.years-fromT) - math.Log(to.forward/from)
	return to.expiration, fall > 0.001 && to.expiration-today <= 7
}

// wasSplit says whether the shares were split since the reference.
func wasSplit(before *plainState, spot float64, groups []*plainSeries, settled func(plainHeld) bool) bool {
	listed := map[string]bool{}
	for _, g := range groups {
		for _, c := range g.contracts {
			listed[plainSymbol(c)] = true
		}
	}
	var stayed, all float64
	for symbol, was := range before.held {
		if settled(was) {
			continue
		}
		all++
		if listed[symbol] {
			stayed++
		}
	}
	if spot > 1.2*before.spot || spot < 0.8*before.spot {
		return stayed < 0.9*all
	}
	return stayed < 0.5*all
}
