package compute_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
)

func TestUnderlyingOf(t *testing.T) {
	for _, c := range []struct {
		symbol    string
		kind      compute.Kind
		overnight bool
	}{
		{"SPX", compute.KindIndex, true}, {"XSP", compute.KindIndex, true}, {"NDX", compute.KindIndex, false},
		{"RUT", compute.KindIndex, false}, {"VIX", compute.KindIndex, false}, {"SPY", compute.KindFund, false},
		{"IWM", compute.KindFund, false}, {"XLRE", compute.KindFund, false}, {"AAPL", compute.KindStock, false},
		{"XL", compute.KindStock, false}, {"A", compute.KindStock, false},
	} {
		u := compute.UnderlyingOf(c.symbol)
		equal(t, c.symbol, u.Symbol, c.symbol)
		equal(t, c.symbol+": kind", u.Kind, c.kind)
		equal(t, c.symbol+": overnight", u.Overnight, c.overnight)
		equal(t, c.symbol+": American", u.American(), c.kind != compute.KindIndex)
	}
}

// of is the head of a chain of a symbol at noon, with quotes of the same instant.
func of(symbol string, spot float64) compute.UnderlyingQuote {
	u := index(spot, noon)
	u.Symbol = symbol
	return u
}

// weekly are the rows of six weekly expirations of a root around a level, priced with a carry of 2 %.
func weekly(root string, level float64) (rows []row) {
	for w := range 6 {
		d := day("2026-08-14") + compute.Date(7*w)
		t := compute.PM.Instant(d, cal).Sub(at(noon)).Hours() / (365 * 24)
		for j := -20; j <= 20; j++ {
			k := math.Round(level*(1+0.01*float64(j))*100) / 100
			for right, letter := range "CP" {
				price := compute.BlackValue(compute.Right(right), level*math.Exp(0.02*t), k, 0.2*math.Sqrt(t))
				rows = append(rows, row{symbolOf(root+d.Midnight().Format("060102")+string(letter), k), quoted(price, price, 101+float64(5*j*(1-2*right)))})
			}
		}
	}
	return rows
}

// each calls f for an index, a fund and a stock.
func each(t *testing.T, f func(t *testing.T, symbol, root string, spot float64, american bool)) {
	for _, c := range []struct {
		symbol, root string
		spot         float64
	}{{"NDX", "NDXP", 25_000}, {"IWM", "IWM", 240}, {"AAPL", "AAPL", 18.5}} {
		t.Run(c.symbol, func(t *testing.T) { f(t, c.symbol, c.root, c.spot, c.symbol != "NDX") })
	}
}

// changed returns the rows with changed quotes.
func changed(rows []row, change func(i int, r *row)) []row {
	out := append([]row{}, rows...)
	for i := range out {
		change(i, &out[i])
	}
	return out
}

// Each kind of chain gives every figure, and says how it was treated.
func TestMadeChains(t *testing.T) {
	each(t, func(t *testing.T, symbol, root string, spot float64, american bool) {
		chain := build(t, of(symbol, spot), weekly(root, spot)...)
		r := compute.GammaExposure(compute.GammaInput{Chain: chain, Calendar: cal})
		g, q := r.Data, r.Quality
		source := map[bool]compute.SpotSource{true: compute.SpotLast, false: compute.SpotIndex}[american]
		equal(t, "source", g.SpotSource, source)
		equal(t, "status", g.FlipStatus, compute.FlipFound)
		near(t, "flip", g.Flip, spot, 0.02*spot)
		near(t, "gap", q.SpotGap, 0, 1e-6)
		for name, is := range map[string]bool{"walls": g.CallWall != nil && g.PutWall != nil, "move": g.ExpectedMove != nil,
			"band": g.FlipBand != nil, "exposures": g.Exposures.Delta != nil, "matrix": len(r.Matrix.Strikes) > 0} {
			equal(t, name, is, true)
		}
		equal(t, "symbol of the matrix", r.Matrix.Symbol, symbol)
		equal(t, "dates of max pain", len(compute.MaxPains(chain, cal)), 6)
		body := string(marshal(t, q))
		equal(t, "note", strings.Contains(body, `"exercise_note":"American options`), american)
		equal(t, "share", strings.Contains(body, `"gross_beyond_60_days_pct":0`), american) // the last date is 38 days away
	})
}

// What a chain lacks is null with a reason, never a wrong number.
func TestChainsThatLackSomething(t *testing.T) {
	each(t, func(t *testing.T, symbol, root string, spot float64, american bool) {
		u, rows := of(symbol, spot), weekly(root, spot)
		none := exposure(t, u, changed(rows, func(_ int, r *row) { r.OpenInterest = 0 })...)
		equal(t, "no open interest", none.Data.FlipStatus, compute.FlipInsufficient)
		equal(t, "no open interest: skipped", none.Quality.Contracts.Skipped.NoOpenInterest, len(rows))
		isNull(t, "no open interest: net", none.Data.Net)
		isNull(t, "no open interest: share", none.Quality.GrossBeyond60Days)
		for _, p := range compute.MaxPains(build(t, u, changed(rows, func(_ int, r *row) { r.OpenInterest = 0 })...), cal) {
			isNull(t, "no open interest: max pain", p.MaxPain)
		}

		flat := exposure(t, u, changed(rows, func(_ int, r *row) { r.Bid, r.IV = 0, 0.2 })...)
		isNull(t, "no parity: gap", flat.Quality.SpotGap)
		nearly(t, "no parity: spot", flat.Data.EffectiveSpot, spot, 0)
		equal(t, "no parity: forwards", flat.Quality.Forwards["none"], 6)
		equal(t, "no parity: an ex-date", strings.Contains(flat.Quality.ExerciseNote, "ex-dividend"), false)

		adjusted := build(t, u, changed(rows, func(i int, r *row) {
			if i%4 < 2 {
				r.symbol = root + "1" + strings.TrimPrefix(r.symbol, root)
			}
		})...)
		equal(t, "adjusted", adjusted.Skipped, compute.Skipped{UnknownRoot: len(rows) / 2})
		half := compute.GammaExposure(compute.GammaInput{Chain: adjusted, Calendar: cal})
		equal(t, "adjusted: used", half.Data.ContractsAnalyzed, len(rows)/2)
		equal(t, "adjusted: status", half.Data.FlipStatus, compute.FlipFound)

		var b compute.ChainBuilder
		if _, err := b.Build(u); !errors.Is(err, compute.ErrEmptyChain) {
			t.Errorf("no options: %v", err)
		}
		for _, bad := range []float64{math.NaN(), 0, -1, 1e7} {
			b.Add([]byte(rows[0].symbol), rows[0].Quote)
			u.Spot = bad
			if _, err := b.Build(u); !errors.Is(err, compute.ErrNoSpot) {
				t.Errorf("spot of %v: %v", bad, err)
			}
		}
	})
}

// Figures of a fund or stock use its own last price, also where the forwards imply another. A difference of over 10 % is a
// contradiction for every kind.
func TestSpotOfKinds(t *testing.T) {
	each(t, func(t *testing.T, symbol, root string, spot float64, american bool) {
		for _, percent := range []float64{0.14, 0.2, 3, -9.9, 10.5} {
			for _, late := range []time.Duration{0, time.Hour} {
				u := of(symbol, spot)
				u.CapturedAt = u.CapturedAt.Add(late)
				r := exposure(t, u, weekly(root, spot*(1+percent/100))...)
				name := fmt.Sprintf("%v %% off, %s late", percent, late)
				near(t, name+": gap", r.Quality.SpotGap, percent, 0.01)
				want := compute.SpotImplied
				switch {
				case american:
					want = compute.SpotLast
				case percent == 0.14 && late == 0:
					want = compute.SpotIndex
				}
				equal(t, name+": source", r.Data.SpotSource, want)
				equal(t, name+": mismatch", r.Data.FlipStatus == compute.FlipSpotMismatch, percent > 10)
				if american {
					nearly(t, name+": spot", r.Data.EffectiveSpot, spot, 0)
				}
			}
		}
	})
}

// Changes are null after a split: when under half of the contracts are still listed, or under 90 % after a change of price by over
// 20 %. A stock that falls without a split, and an index, keep theirs.
func TestSplit(t *testing.T) {
	each(t, func(t *testing.T, symbol, root string, spot float64, american bool) {
		in := compute.GammaInput{Chain: build(t, of(symbol, spot), weekly(root, spot)[:400]...), Calendar: cal}
		in.Reference = compute.GammaExposure(in).State
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
			rows := changed(weekly(root, spot)[:400], func(i int, r *row) {
				if i%100 < c.gone {
					r.symbol = root + "270115" + r.symbol[len(root)+6:]
				}
			})
			in.Chain = build(t, u, rows...)
			r := compute.GammaExposure(in)
			reason := r.Quality.ChangesReason // net_unknown where the price alone has moved: the quotes contradict it
			equal(t, c.name, reason != nil && *reason == "split", american && c.isSplit)
			equal(t, c.name+": open interest", r.Data.OIChanges == nil, american && c.isSplit)
		}
	})
}
