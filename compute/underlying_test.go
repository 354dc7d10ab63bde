package compute_test

import (
	"math"
	"testing"

	"strikecache/compute"
)

func TestUnderlyingOf(t *testing.T) {
	for _, c := range []struct {
		symbol string
		kind   compute.Kind
	}{
		{"SPX", compute.KindIndex}, {"XSP", compute.KindIndex}, {"NDX", compute.KindIndex}, {"RUT", compute.KindIndex},
		{"VIX", compute.KindIndex}, {"DJX", compute.KindIndex}, {"OEX", compute.KindIndex}, {"SPY", compute.KindFund},
		{"VXX", compute.KindFund}, {"XLRE", compute.KindFund}, {"AAPL", compute.KindStock}, {"BRK.B", compute.KindStock},
		{"XL", compute.KindStock}, {"A", compute.KindStock}, {"RLG", compute.KindIndex},
	} {
		u := compute.UnderlyingOf(c.symbol)
		equal(t, c.symbol, u.Symbol, c.symbol)
		equal(t, c.symbol+": kind", u.Kind, c.kind)
		equal(t, c.symbol+": American", u.American(), c.kind != compute.KindIndex || c.symbol == "OEX")
		equal(t, c.symbol+": unusable", u.Unusable != "", c.symbol == "VIX" || c.symbol == "RLG")
	}
}

// weekly are the rows of six weekly expirations of a root around a level, priced with a carry of 2 %.
func weekly(root string, level float64) (rows []row) {
	for _, d := range []string{"260814", "260821", "260828", "260904", "260911", "260918"} {
		f := level * math.Exp(0.02*term(root+d, at(noon)))
		rows = append(rows, priced(root+d, noon, f, 0, strikes(0.8*level, 1.2*level, 0.01*level), always(0.2), func(k float64, right compute.Right, price float64) compute.Quote {
			return quoted(price, price, math.Round(101+500*(k/level-1)*(1-2*float64(right))))
		})...)
	}
	return rows
}

// Changes, and those of volatility in the flow, are null after a split: when under half of the contracts are still listed, or under 90 % after a change of price by over
// 20 %. A stock that falls without a split, and an index, keep theirs.
func TestSplit(t *testing.T) {
	for symbol, root := range map[string]string{"NDX": "NDXP", "IWM": "IWM", "AAPL": "AAPL"} {
		const spot = 240
		in := compute.GammaInput{Chain: build(t, of(symbol, spot), weekly(root, spot)[:400]...), Calendar: cal}
		in.Reference = compute.GammaExposure(in).State
		before := in.Chain
		for _, c := range []struct {
			name    string
			price   float64 // against the price before
			gone    int     // of 100 contracts
			isSplit bool
		}{
			{"nothing", 1, 0, false}, {"half is listed", 1, 50, false}, {"under half", 1, 51, true}, {"fall of 20 %", 0.8, 50, false},
			{"fall of 21 %", 0.79, 11, true}, {"fall of 21 %, nine tenths are listed", 0.79, 10, false}, {"reverse split", 1.21, 11, true},
		} {
			u := of(symbol, spot*c.price)
			rows := weekly(root, spot)[:400]
			for i := range rows {
				if i%100 < c.gone {
					rows[i].symbol = root + "270115" + rows[i].symbol[len(root)+6:]
				}
			}
			in.Chain = build(t, u, rows...)
			r := compute.GammaExposure(in)
			reason := r.Quality.ChangesReason // net_unknown where the price alone has moved: the quotes contradict it
			split := c.isSplit && symbol != "NDX"
			equal(t, symbol+": "+c.name, reason != nil && *reason == "split", split)
			equal(t, symbol+": "+c.name+": open interest", r.Data.OIChanges == nil, split)
			equal(t, symbol+": "+c.name+": flow", compute.UnusualFlow(compute.FlowInput{Chain: in.Chain, Calendar: cal, Before: before}).Split, split)
		}
	}
}
