package simulated_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
)

// The levels and the daily returns of each index are plausible: NDX and RUT move with SPX, volatilities against it. The longer the term of a
// volatility, the less it moves. The bounds are a little wider than what seeds 1 to 3 have from 2022 to 2026.
func TestIndicesArePlausible(t *testing.T) {
	now := ny("2026-12-31 20:00:00")
	for _, seed := range []uint64{1, 2, 3} {
		m := newMarket(seed)
		returns := func(closes []compute.Close) (out []float64) {
			for i := 1; i < len(closes); i++ {
				out = append(out, math.Log(closes[i].Price/closes[i-1].Price))
			}
			return out
		}
		spx := returns(closesOf(t, m, "_SPX", now))
		for symbol, c := range map[string]struct{ levels, mean, volatility, correlation [2]float64 }{
			"_SPX":   {[2]float64{4300, 7900}, [2]float64{5900, 6300}, [2]float64{0.11, 0.14}, [2]float64{0.999, 1.001}},
			"_NDX":   {[2]float64{14_500, 33_000}, [2]float64{22_000, 23_500}, [2]float64{0.14, 0.2}, [2]float64{0.9, 0.94}},
			"_RUT":   {[2]float64{1250, 2950}, [2]float64{1900, 2100}, [2]float64{0.15, 0.21}, [2]float64{0.82, 0.88}},
			"_VIX1D": {[2]float64{5, 57}, [2]float64{16, 20}, [2]float64{1.2, 1.9}, [2]float64{-0.8, -0.65}},
			"_VIX9D": {[2]float64{8, 55}, [2]float64{17, 20}, [2]float64{1.1, 1.5}, [2]float64{-0.8, -0.7}},
			"_VIX":   {[2]float64{9, 50}, [2]float64{17.5, 20.5}, [2]float64{0.95, 1.3}, [2]float64{-0.8, -0.65}},
			"_VIX3M": {[2]float64{14, 36}, [2]float64{18, 21}, [2]float64{0.45, 0.65}, [2]float64{-0.8, -0.65}},
			"_VIX6M": {[2]float64{15, 32}, [2]float64{19, 22}, [2]float64{0.28, 0.42}, [2]float64{-0.8, -0.65}},
			"_VIX1Y": {[2]float64{16, 29}, [2]float64{20, 23}, [2]float64{0.18, 0.27}, [2]float64{-0.75, -0.6}},
			"_VVIX":  {[2]float64{60, 180}, [2]float64{85, 105}, [2]float64{0.4, 0.6}, [2]float64{-0.8, -0.65}},
			"_VXN":   {[2]float64{12, 57}, [2]float64{21, 26}, [2]float64{0.75, 1.1}, [2]float64{-0.8, -0.65}},
			"_RVX":   {[2]float64{13, 52}, [2]float64{21, 26}, [2]float64{0.65, 1}, [2]float64{-0.8, -0.65}},
			"_SKEW":  {[2]float64{110, 160}, [2]float64{135, 148}, [2]float64{0.11, 0.2}, [2]float64{0.65, 0.8}},
		} {
			var levels []float64
			closes := closesOf(t, m, symbol, now)
			for _, c := range closes {
				levels = append(levels, c.Price)
			}
			mean, _, _ := related(levels, levels)
			_, deviation, correlation := related(spx, returns(closes))
			for what, x := range map[string]struct {
				got    float64
				bounds [2]float64
			}{
				"least level": {slices.Min(levels), c.levels}, "greatest level": {slices.Max(levels), c.levels}, "mean": {mean, c.mean},
				"volatility": {deviation * math.Sqrt(252), c.volatility}, "correlation": {correlation, c.correlation},
			} {
				if x.got < x.bounds[0] || x.got > x.bounds[1] {
					t.Errorf("seed %d: the %s of %s is %.3f, not within %v", seed, what, symbol, x.got, x.bounds)
				}
			}
			if quote := quoteAt(t, m, symbol, now); "_"+quote.Symbol != symbol || !(quote.Spot > 0) || math.IsNaN(quote.PriceChangePercent) || quote.BadNumbers > 0 {
				t.Errorf("seed %d: quote of %s: %+v", seed, symbol, quote)
			}
		}
	}
}

// related returns mean and standard deviation of the second of two series, and its correlation with the first.
func related(x, y []float64) (mean, deviation, correlation float64) {
	n := float64(len(x))
	var sx, sy, sxx, sxy, syy float64
	for i := range x {
		sx, sy, sxx, sxy, syy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i], syy+y[i]*y[i]
	}
	xx, xy, yy := sxx-sx*sx/n, sxy-sx*sy/n, syy-sy*sy/n
	return sy / n, math.Sqrt(yy / n), xy / math.Sqrt(xx*yy)
}

// A history ends with the latest published session. Its last close and change are those of the quote of that evening.
func TestHistoryJoinsQuotes(t *testing.T) {
	for at, last := range map[string]string{
		"2026-08-11 09:00:00": "2026-08-10", "2026-08-11 17:59:00": "2026-08-10", "2026-08-11 18:01:00": "2026-08-11",
		"2026-08-15 12:00:00": "2026-08-14", "2026-08-17 12:00:00": "2026-08-14", "2026-11-27 18:00:30": "2026-11-27",
	} {
		for _, symbol := range []string{"_SPX", "_VIX", "_VIX3M", "_VIX1D", "_VIX9D", "_VIX6M", "_VIX1Y", "_VVIX", "_SKEW", "_VXN", "_RVX", "_NDX", "_RUT", "SPY", "IWM", "XLC", "TSLA"} {
			closes := closesOf(t, market, symbol, ny(at))
			want := compute.NewDate(2022, time.January, 3)
			for _, c := range closes {
				if c.Date != want {
					t.Fatalf("%s: a close of %s, want %s", symbol, c.Date, want)
				}
				want = calendar.Next(want)
			}
			now, before := closes[len(closes)-1], closes[len(closes)-2]
			quote := quoteAt(t, market, symbol, ny(last+" 16:40:00"))
			change := (now.Price/before.Price - 1) * 100
			if now.Date.String() != last || quote.Spot != now.Price || math.Abs(quote.PriceChangePercent-change) > 6e-5 {
				t.Errorf("%s at %s: the last close is %v of %s, %+.4f%%; the quote is %+v", symbol, at, now.Price, now.Date, change, quote.UnderlyingQuote)
			}
		}
	}
}

// The return of SPY differs by at most 0.05 percentage points from the weighted return of the sector funds, at any time of a session and
// at its close.
func TestSectorsAddUpToTheIndex(t *testing.T) {
	weights := map[string]float64{ // approximate shares by market value
		"XLC": 0.1, "XLY": 0.105, "XLP": 0.05, "XLE": 0.03, "XLF": 0.13, "XLV": 0.09, "XLI": 0.085, "XLK": 0.345, "XLB": 0.02, "XLRE": 0.02,
		"XLU": 0.025,
	}
	for at := ny("2026-10-26 09:46:00"); at.Before(ny("2026-11-07 00:00:00")); at = at.Add(4*time.Hour + 7*time.Minute) {
		want, got := quoteAt(t, market, "SPY", at).PriceChangePercent, 0.0
		for symbol, weight := range weights {
			got += weight * quoteAt(t, market, symbol, at).PriceChangePercent
		}
		if math.Abs(got-want) > 0.05 {
			t.Errorf("%s: SPY %+.3f %%, the sectors %+.3f %%", at, want, got)
		}
	}
}

// Before the open, at any time of a session and after the close, a fund has its share of the index.
func TestFundsFollowTheirIndices(t *testing.T) {
	for at := ny("2026-10-26 08:00:00"); at.Before(ny("2026-11-07 00:00:00")); at = at.Add(97 * time.Minute) {
		for _, c := range []struct {
			index, fund string
			share       float64
		}{{"_SPX", "SPY", 1 / 10.02}, {"_NDX", "QQQ", 1.0 / 41}, {"_RUT", "IWM", 1.0 / 10}} {
			index, fund := quoteAt(t, market, c.index, at).Spot, quoteAt(t, market, c.fund, at).Spot
			if math.Abs(fund/index/c.share-1) > 0.001 {
				t.Errorf("%s: %s is %v and %s %v", at, c.index, index, c.fund, fund)
			}
		}
	}
}

// The VIX quote is the model-free volatility of 30 days of the chain of the SPX of the same instant.
func TestVIXIsThatOfTheChain(t *testing.T) {
	for _, at := range []string{
		"2023-03-13 15:10:00", "2024-08-05 12:00:00", "2025-10-10 16:50:00", "2026-02-17 10:00:00", "2026-03-04 12:00:00", // 2026-04-03 is Good Friday
		"2026-07-20 16:50:00", "2026-08-11 09:50:00", "2026-08-11 12:00:00", "2026-08-14 16:50:00", "2026-10-26 14:00:00",
	} {
		r := compute.GammaExposure(compute.GammaInput{Chain: chainAt(t, market, "_SPX", ny(at)), Calendar: calendar, RiskFreeRate: 0.04})
		got, want := quoteAt(t, market, "_VIX", ny(at)).Spot, r.Volatility.With(nil, calendar).Data.ModelFree30
		if want == nil || math.Abs(got-float64(*want)) > 0.2 {
			t.Errorf("%s: the VIX is %v, the formula gives %v", at, got, want)
		}
	}
}

func settlementAt(t *testing.T, date, at string) ([]compute.FuturesSettlement, *upstream.Document) {
	t.Helper()
	doc := documentAt(t, market, upstream.Settlement(date), ny(at))
	rows, bad, err := cboe.DecodeSettlement(doc.Body)
	if err != nil && !errors.Is(err, cboe.ErrNoRows) || bad > 0 {
		t.Fatalf("settlement %s at %s: %d bad, %v", date, at, bad, err)
	}
	return rows, doc
}

func TestSettlementPublication(t *testing.T) {
	for _, c := range []struct{ asked, at, date string }{
		{"2026-08-11", "2026-08-11 18:29:00", "2026-08-10"}, // not published yet: the newest file
		{"2026-08-11", "2026-08-11 18:31:00", "2026-08-11"}, {"2026-08-12", "2026-08-11 18:31:00", "2026-08-11"},
		{"2026-11-27", "2026-11-27 18:31:00", "2026-11-27"}, // early close
		{"2026-09-07", "2026-09-08 20:00:00", "2026-09-07"}, // Labor Day: no rows
	} {
		if rows, doc := settlementAt(t, c.asked, c.at); doc.FileDate != c.date || len(rows) > 0 != (c.date != "2026-09-07") {
			t.Errorf("%s at %s: file of %s with %d rows", c.asked, c.at, doc.FileDate, len(rows))
		}
	}
}

func TestSettlementRows(t *testing.T) {
	sessions, backwardation := 0.0, 0.0
	for d := calendar.Next(compute.NewDate(2024, time.January, 1)); d < compute.NewDate(2027, time.July, 1); d = calendar.Next(d) {
		rows, doc := settlementAt(t, d.String(), d.String()+" 20:00:00")
		body := string(doc.Body)
		if !strings.HasPrefix(body, "Product,Symbol,Expiration Date,Price\r\n") || strings.Count(body, "\n") != strings.Count(body, "\r\n") {
			t.Fatalf("%s: %.60q", d, body)
		}
		curve, q, ok := compute.VIXTermStructure(compute.VIXInput{Date: d, Rows: rows, Calendar: calendar, Today: d})
		if !ok || len(q.ExpirationDiffer) > 0 || q.BadRows > 0 || q.Monthly != 9 || len(curve.Curve) < 8 {
			t.Fatalf("%s: %+v, %d on the curve", d, q, len(curve.Curve))
		}
		sessions++
		if *curve.ContangoM1M2 <= 0 {
			backwardation++
		}
		final := curve.FinalSettlement != nil
		if expires := calendar.VIXExpiration(d.Year(), d.Month()) == d; final != expires {
			t.Errorf("%s: final settlement %v", d, curve.FinalSettlement)
		}
		if vix := quoteAt(t, market, "_VIX", ny(d.String()+" 16:45:00")).Spot; final && math.Abs(float64(*curve.FinalSettlement)/vix-1) > 0.3 {
			t.Errorf("%s: final settlement %v, VIX %v", d, *curve.FinalSettlement, vix)
		}
	}
	if share := backwardation / sessions; share < 0.03 || share > 0.4 {
		t.Errorf("backwardation on %.2f of sessions", share)
	}
}
