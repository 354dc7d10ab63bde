package compute

import "time"

// VIXIndices are the symbols of the volatility indices of [VIXCash], in its order.
var VIXIndices = []string{"VIX1D", "VIX9D", "VIX", "VIX3M", "VIX6M", "VIX1Y", "VVIX", "SKEW", "VXN", "RVX"}

// VIXCash is the volatility indices of the exchange by delayed quotes, which go on after the settlement date.
type VIXCash struct {
	VIX1D *CashIndex `json:"vix1d"` // Volatility of the current trading day, of SPX options that settle PM. `null` without a quote.
	VIX9D *CashIndex `json:"vix9d"` // Volatility over 9 days, of SPX options. `null` without a quote.
	VIX   *CashIndex `json:"vix"`   // Volatility over 30 days. `null` without a quote.
	VIX3M *CashIndex `json:"vix3m"` // Volatility over 3 months. `null` without a quote.
	VIX6M *CashIndex `json:"vix6m"` // Volatility over 6 months. `null` without a quote.
	VIX1Y *CashIndex `json:"vix1y"` // Volatility over a year. `null` without a quote.
	VVIX  *CashIndex `json:"vvix"`  // Volatility of the VIX over 30 days, of VIX options. `null` without a quote.
	// Skewness of SPX returns over 30 days. 100 is none. The exchange publishes it once a day. `null` without a quote.
	SKEW *CashIndex `json:"skew"`
	VXN  *CashIndex `json:"vxn"` // Volatility over 30 days of the Nasdaq-100, of NDX options. `null` without a quote.
	RVX  *CashIndex `json:"rvx"` // Volatility over 30 days of the Russell 2000, of RUT options. `null` without a quote.
}

// CashIndex is the newest quote of an index.
type CashIndex struct {
	Value Ratio     `json:"value" jsonschema:"exclusiveMinimum=0" unit:"index points"` // Level of the index.
	AsOf  time.Time `json:"as_of"`                                                     // Instant of the level.
	// Change in its session, by the quote's change in points, else by its change in percent. `null` when the quote has neither.
	Change *Ratio `json:"change_pct" unit:"percent"`
}

// all returns the indices in the order of [VIXIndices].
func (c *VIXCash) all() [10]**CashIndex {
	return [...]**CashIndex{&c.VIX1D, &c.VIX9D, &c.VIX, &c.VIX3M, &c.VIX6M, &c.VIX1Y, &c.VVIX, &c.SKEW, &c.VXN, &c.RVX}
}

// Unknown returns the symbols of the indices of which no quote is known.
func (c *VIXCash) Unknown() (symbols []string) {
	for i, index := range c.all() {
		if *index == nil {
			symbols = append(symbols, VIXIndices[i])
		}
	}
	return symbols
}

// vixCash returns the volatility indices from their quotes by symbol.
func vixCash(quotes map[string]UnderlyingQuote) (c VIXCash) {
	for i, index := range c.all() {
		if q, known := quotes[VIXIndices[i]]; known {
			*index = &CashIndex{Ratio(q.Spot), q.AsOf.UTC(), finiteOrNil(Ratio(q.PriceChangePercent))}
		}
	}
	return c
}
