package simulated

import (
	"math"
	"time"

	"strikecache/compute"
)

// instrument is an index, a fund or a stock of the simulated market.
type instrument struct {
	symbol string // the upstream's: _SPX, XLK
	// price is the level on pricedOn when neither the market nor the instrument is off its trend, USD.
	price float64
	beta  float64 // to the market
	own   float64 // standard deviation of its own daily return
	iv    float64 // implied volatility in a quiet market, a decimal; 0 for none
	// shares is an ordinary day's volume; 0 for an index.
	shares float64
	base   float64                                      // logarithm of the price when the logarithm of the market and own are 0
	level  func(market, vol, term, own float64) float64 // logarithm of the price, if it is not market and beta
	chain  *chainSpec                                   // nil without listed options
	unit   int32                                        // of strikes, thousandths of a USD
	// unlisted is how many sessions from the epoch on the history has rows of zeros for.
	unlisted int
}

// pricedOn is the date of instrument.price.
var pricedOn = compute.NewDate(2026, time.July, 1)

func (in *instrument) index() bool { return in.symbol[0] == '_' }

// logPrice returns the logarithm of the price for given factors.
func (in *instrument) logPrice(market, vol, term, own float64) float64 {
	if in.level != nil {
		return in.level(market, vol, term, own)
	}
	return in.base + in.beta*market + own
}

// quoted rounds a price as the upstream does: to cents, and the SPX as a 32-bit number with 4 decimals.
func (in *instrument) quoted(price float64) float64 {
	price = math.Round(price*100) / 100
	if in.symbol == spx {
		return math.Round(float64(float32(price))*1e4) / 1e4
	}
	return price
}

const (
	spx   = "_SPX"
	vix   = "_VIX"
	vix3m = "_VIX3M"
)

// The level that the VIX returns to, and how much of its distance the three-month index keeps.
const (
	termLevel  = 19.6
	vix3mShare = 0.5
)

// threeMonth returns the VIX3M that goes with a VIX.
func threeMonth(vix, term float64) float64 {
	level := termLevel * math.Exp(term)
	return level + 0.4 + vix3mShare*(vix-level)
}

// newInstruments returns the market's instruments, the SPX first, in the order of [Market.Symbols].
func newInstruments() []*instrument {
	all := []*instrument{
		{symbol: spx, price: 7350, level: func(market, _, _, _ float64) float64 { return market }, iv: 0.12, chain: spxChain(), unit: 5000},
		{symbol: vix, level: func(_, vol, _, _ float64) float64 { return vol }},
		{symbol: vix3m, level: func(_, vol, term, _ float64) float64 { return math.Log(threeMonth(math.Exp(vol), term)) }},
		{symbol: "SPY", price: 733.5, beta: 1, own: 0.00004, iv: 0.12, shares: 62e6, chain: benchmarkChain(), unit: 1000},
		{symbol: "QQQ", price: 688, beta: 1.2, own: 0.004, iv: 0.165, shares: 44e6, chain: benchmarkChain(), unit: 1000},
		{symbol: "XLC", price: 118, beta: 1.1, own: 0.006, iv: 0.17, shares: 5.2e6, unlisted: 20, unit: 1000},
		{symbol: "XLY", price: 122, beta: 1.2, own: 0.006, iv: 0.19, shares: 6.1e6, unit: 1000},
		{symbol: "XLP", price: 81, beta: 0.45, own: 0.0055, iv: 0.13, shares: 13e6, unit: 500},
		{symbol: "XLE", price: 58, beta: 0.7, own: 0.011, iv: 0.23, shares: 28e6, unit: 500},
		{symbol: "XLF", price: 54, beta: 0.95, own: 0.006, iv: 0.17, shares: 40e6, unit: 500},
		{symbol: "XLV", price: 149, beta: 0.65, own: 0.006, iv: 0.15, shares: 9.5e6, unit: 1000},
		{symbol: "XLI", price: 165, beta: 1, own: 0.005, iv: 0.16, shares: 9e6, unit: 1000},
		{symbol: "XLK", price: 187, beta: 1.25, own: 0.0055, iv: 0.21, shares: 8.5e6, unit: 1000},
		{symbol: "XLB", price: 47, beta: 0.95, own: 0.007, iv: 0.18, shares: 10e6, unit: 500},
		{symbol: "XLRE", price: 43, beta: 0.8, own: 0.007, iv: 0.17, shares: 6e6, unit: 500},
		{symbol: "XLU", price: 44, beta: 0.45, own: 0.0085, iv: 0.17, shares: 17e6, unit: 500},
		{symbol: "AAPL", price: 274, beta: 1.15, own: 0.011, iv: 0.26, shares: 46e6, chain: stockChain(), unit: 2500},
		{symbol: "NVDA", price: 196, beta: 1.6, own: 0.017, iv: 0.4, shares: 170e6, chain: stockChain(), unit: 2500},
		{symbol: "TSLA", price: 412, beta: 1.5, own: 0.024, iv: 0.52, shares: 85e6, chain: adjustedStockChain(), unit: 2500},
		{symbol: "MSFT", price: 508, beta: 1, own: 0.01, iv: 0.23, shares: 21e6, chain: stockChain(), unit: 2500},
		{symbol: "AMZN", price: 238, beta: 1.25, own: 0.013, iv: 0.3, shares: 42e6, chain: stockChain(), unit: 2500},
		{symbol: "META", price: 690, beta: 1.25, own: 0.015, iv: 0.31, shares: 13e6, chain: stockChain(), unit: 5000},
	}
	for _, in := range all {
		in.base = math.Log(in.price) - in.beta*trend(pricedOn)
		if in.chain == nil && !in.index() {
			in.chain = sectorChain()
		}
	}
	return all
}
