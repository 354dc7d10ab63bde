package compute

import (
	"slices"
	"strings"
)

// Kind is the kind of an underlying.
type Kind uint8

// The kinds of underlyings.
const (
	KindIndex Kind = iota // options are settled in cash
	KindFund              // American options, settled in shares
	KindStock             // American options, settled in shares; also every fund that is not in the list of funds
)

// Underlying is what the methods must know about an underlying beside its chain. It is a value without state.
type Underlying struct {
	Symbol string // without an underscore: SPX, SPY, AAPL, BRK.B
	Kind   Kind

	hours  class // of an index in the table of hours; "": as most indices
	roots  []optionRoot
	flow   flowLimits
	future *future // quarterly, on the index; nil: none
	// volatilityIndex says that the exchange publishes a volatility index from these options. Its figure of 30 days then takes the
	// expirations of that index.
	volatilityIndex bool
	american        bool // of an index: its options can be exercised before they expire
	// Unusable says why no exposure can be computed, "" if it can: of VIX, of an index without a row, and of a root of an index, such as SPXW.
	Unusable string
}

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
	{Symbol: "SPX", hours: largeIndex, roots: []optionRoot{{"SPX", AM}, {"SPXW", PM}}, flow: largeFlow, future: &future{"ES", 0.25}, volatilityIndex: true},
	{Symbol: "XSP", hours: largeIndex, roots: []optionRoot{{"XSP", PM}}, flow: usualFlow},
	{Symbol: "NDX", roots: []optionRoot{{"NDX", AM}, {"NDXP", PM}}, flow: usualFlow, future: &future{"NQ", 0.25}},
	{Symbol: "RUT", hours: smallIndex, roots: []optionRoot{{"RUT", AM}, {"RUTW", PM}}, flow: usualFlow, future: &future{"RTY", 0.1}},
	{Symbol: "DJX", roots: []optionRoot{{"DJX", AM}}, flow: usualFlow},
	{Symbol: "OEX", roots: []optionRoot{{"OEX", PM}}, flow: usualFlow, american: true},
	{Symbol: "XEO", roots: []optionRoot{{"XEO", PM}}, flow: usualFlow},
	{Symbol: "MRUT", hours: smallIndex, roots: []optionRoot{{"MRUT", PM}}, flow: usualFlow},
	{Symbol: "XND", roots: []optionRoot{{"XND", PM}}, flow: usualFlow},
	{Symbol: "VIX", roots: []optionRoot{{"VIX", AM}, {"VIXW", AM}}, flow: usualFlow, Unusable: "each of its expirations is on another future"},
}

// otherIndices are symbols of further indices that have options on an exchange in the United States. Their roots, settlements or hours
// are not in the table, so no exposure can be computed.
//
// Source: Cboe, Cboe Listed Index Products; Nasdaq PHLX and ISE, index options; MIAX, SPIKES; Cboe, volatility indices.
var otherIndices = strings.Fields(`SPESG SPEQX RLG RLV RUI MXEA MXEF MXACW MXUSA MXWLD UKXM SIXB SIXC SIXE SIXI SIXM SIXR SIXRE SIXT SIXU SIXV
	SIXY CBTX MBTX MGTN NQX VOLQ XAU OSX SOX HGX UTY BKX XDA XDB XDC XDE XDN XDS XDZ SPIKE VVIX SKEW VXN VXO VXD RVX OVX GVZ GSPC DJI`)

// UnderlyingOf returns the row of a symbol without an underscore. A symbol that is neither an index nor a listed fund is a stock.
// A root of an index that is not its symbol, such as SPXW, has no chain of its own: its row knows no root.
func UnderlyingOf(symbol string) Underlying {
	for _, u := range indices {
		if u.Symbol == symbol {
			return u
		}
		if _, known := u.settlement(symbol); known {
			return Underlying{Symbol: symbol, flow: usualFlow, Unusable: "it is part of the chain of " + u.Symbol}
		}
	}
	if slices.Contains(otherIndices, symbol) {
		return Underlying{Symbol: symbol, flow: usualFlow, Unusable: "it is an index whose settlement and hours are not known here"}
	}
	u := Underlying{Symbol: symbol, Kind: KindStock, roots: []optionRoot{{RootOf(symbol), PM}}, flow: usualFlow}
	if slices.Contains(tailFunds, symbol) {
		u.Kind = KindFund
	}
	return u
}

// RootOf returns a symbol as the roots of its options spell it: BRKB of BRK.B.
func RootOf(symbol string) string { return strings.ReplaceAll(symbol, ".", "") }

// PathOf returns a symbol as paths spell it: brkb of BRK.B.
func PathOf(symbol string) string { return strings.ToLower(RootOf(symbol)) }

// American says whether the options can be exercised before they expire.
func (u Underlying) American() bool { return u.Kind != KindIndex || u.american }

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
