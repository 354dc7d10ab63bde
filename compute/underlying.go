package compute

import (
	"slices"
	"strings"
	"time"
)

// Kind is the kind of an underlying. It decides how its options are exercised, and until when they trade.
type Kind uint8

// The kinds of underlyings.
const (
	KindIndex Kind = iota // European options, settled in cash
	KindFund              // American options, settled in shares
	KindStock             // American options, settled in shares; also every fund that is not in the list of funds
)

// Underlying is what the methods must know about an underlying beside its chain. It is a value without state.
type Underlying struct {
	Symbol string // without an underscore: SPX, SPY, AAPL
	Kind   Kind
	// Overnight says that the options trade from 20:15 New York on the eve of a session until 17:00. Other options trade from
	// 09:30 to 16:15, those of stocks to 16:00.
	Overnight bool

	roots  []optionRoot
	flow   flowLimits
	future *future // quarterly, on the index; nil: none
	// volatilityIndex says that the exchange publishes a volatility index from these options. Its figure of 30 days then takes the
	// expirations of that index.
	volatilityIndex bool
	// unusable says why no exposure can be computed; "" if it can.
	unusable string
}

// optionRoot is a root of the options of an underlying.
type optionRoot struct {
	name       string
	settlement Settlement
}

// The thresholds of unusual flow. One contract of SPX is worth about ten of SPY.
var (
	largeFlow = flowLimits{volume: 500, premium: 250_000}
	usualFlow = flowLimits{volume: 100, premium: 25_000}
)

// indices are the underlyings with index options.
//
// Source: Cboe, contract specifications of the options of each index, U.S. Options Hours & Holidays, and Volatility Index
// Mathematics Methodology; CME Group, contract specifications of E-mini S&P 500, Nasdaq-100 and Russell 2000 futures.
var indices = []Underlying{
	{Symbol: "SPX", Overnight: true, roots: []optionRoot{{"SPX", AM}, {"SPXW", PM}}, flow: largeFlow, future: &future{"ES", 0.25}, volatilityIndex: true},
	{Symbol: "XSP", Overnight: true, roots: []optionRoot{{"XSP", PM}}, flow: usualFlow},
	{Symbol: "NDX", roots: []optionRoot{{"NDX", AM}, {"NDXP", PM}}, flow: usualFlow, future: &future{"NQ", 0.25}},
	{Symbol: "RUT", roots: []optionRoot{{"RUT", AM}, {"RUTW", PM}}, flow: usualFlow, future: &future{"RTY", 0.1}},
	{Symbol: "VIX", roots: []optionRoot{{"VIX", AM}, {"VIXW", AM}}, flow: usualFlow, unusable: "each of its expirations is on another future"},
}

// funds are the exchange-traded funds whose options trade until 16:15, as brokers list them. Options of other funds close with
// those of stocks.
var funds = strings.Fields(`SPY QQQ IWM DIA XLB XLC XLE XLF XLI XLK XLP XLRE XLU XLV XLY
	EEM EFA IWN IWO KBE KRE MDY OEF XHB XME XRT`)

// UnderlyingOf returns the row of a symbol without an underscore. A symbol that is neither an index nor a listed fund is a stock.
// A root of an index that is not its symbol, such as SPXW, has no chain of its own: its row knows no root.
func UnderlyingOf(symbol string) Underlying {
	for _, u := range indices {
		if u.Symbol == symbol {
			return u
		}
		if _, known := u.settlement(symbol); known {
			return Underlying{Symbol: symbol, flow: usualFlow, unusable: "it is part of the chain of " + u.Symbol}
		}
	}
	u := Underlying{Symbol: symbol, Kind: KindStock, roots: []optionRoot{{symbol, PM}}, flow: usualFlow}
	if slices.Contains(funds, symbol) {
		u.Kind = KindFund
	}
	return u
}

// Unusable says why no exposure can be computed for the underlying, "" if it can: of VIX, and of a root of an index, such as SPXW.
func (u Underlying) Unusable() string { return u.unusable }

// American says whether the options can be exercised before they expire.
func (u Underlying) American() bool { return u.Kind != KindIndex }

// quoteHours returns when the option trading of session d begins and ends. An early close ends it three hours earlier, but that of
// overnight options at 13:15.
//
// Source: Cboe, U.S. Options Hours & Holidays: global trading hours, regular trading hours and curb session of SPX.
func (u Underlying) quoteHours(d Date, cal *Calendar) (opens, closes time.Time) {
	opens, closes = cal.Open(d), cal.Close(d)
	if u.Kind != KindStock {
		closes = closes.Add(15 * time.Minute)
	}
	if u.Overnight {
		opens = (d - 1).At(20, 15, 0, NewYork)
		if !cal.IsEarlyClose(d) {
			closes = d.At(17, 0, 0, NewYork)
		}
	}
	return opens, closes
}

// settlement returns how the options of a root settle. A root that is not in the row is not known: that of an adjusted series
// ends in a digit, and its contracts deliver something else.
func (u Underlying) settlement(root string) (s Settlement, known bool) {
	for _, r := range u.roots {
		if r.name == root {
			return r.settlement, true
		}
	}
	return 0, false
}
