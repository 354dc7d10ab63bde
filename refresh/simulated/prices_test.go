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

func TestLevelsArePlausible(t *testing.T) {
	at := ny("2027-01-05 12:00:00")
	for seed := range uint64(3) {
		m := newMarket(seed)
		quiet, inverted, n := 0, 0, 0
		three := closesOf(t, m, "_VIX3M", at)
		for i, c := range closesOf(t, m, "_VIX", at) {
			n++
			if c.Price >= 12 && c.Price <= 30 {
				quiet++
			}
			if c.Price > three[i].Price {
				inverted++
			}
			if c.Price < 9 || c.Price > 60 {
				t.Errorf("seed %d: VIX is %v on %s", seed, c.Price, c.Date)
			}
		}
		if quiet < n*9/10 || inverted == 0 || inverted > n/2 {
			t.Errorf("seed %d: of %d sessions the VIX was from 12 to 30 on %d, above the VIX3M on %d", seed, n, quiet, inverted)
		}
		sum, squares, days, inRange := 0.0, 0.0, 0.0, 0
		closes := closesOf(t, m, "_SPX", at)
		for i := 1; i < len(closes); i++ {
			r := math.Log(closes[i].Price / closes[i-1].Price)
			sum, squares, days = sum+r, squares+r*r, days+1
			if math.Abs(r) > 0.08 {
				t.Errorf("seed %d: SPX moved %.1f%% on %s", seed, r*100, closes[i].Date)
			}
			if closes[i].Date.Year() == 2026 && closes[i].Price > 6800 && closes[i].Price < 7900 {
				inRange++
			}
		}
		if vol := math.Sqrt(squares / days * 252); vol < 0.08 || vol > 0.2 || inRange < 230 {
			t.Errorf("seed %d: SPX has a volatility of %.3f and was near 7,000 to 7,700 on %d days of 2026", seed, vol, inRange)
		}
	}
}

// A history ends with the latest published session. Its last close and change are those of the quote of that evening.
func TestHistoryJoinsQuotes(t *testing.T) {
	calendar := compute.NewCalendar(nil, nil)
	for at, last := range map[string]string{
		"2026-08-11 09:00:00": "2026-08-10", "2026-08-11 17:59:00": "2026-08-10", "2026-08-11 18:01:00": "2026-08-11",
		"2026-08-15 12:00:00": "2026-08-14", "2026-08-17 12:00:00": "2026-08-14", "2026-11-27 18:00:30": "2026-11-27",
	} {
		for _, symbol := range []string{"_SPX", "_VIX", "_VIX3M", "_VIX9D", "_VIX6M", "_VIX1Y", "_VVIX", "_SKEW", "_NDX", "_RUT", "SPY", "IWM", "XLC", "TSLA"} {
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

// The daily returns of NDX and RUT move with those of SPX. Over the 1,000 sessions up to the end of 2026, seeds 0 to 11 had, for NDX,
// correlations from 0.910 to 0.936 (mean 0.925) and betas from 1.18 to 1.23, and, for RUT, correlations from 0.829 to 0.871 (mean 0.850) and
// betas from 1.15 to 1.24.
func TestIndicesMoveTogether(t *testing.T) {
	const sessions = 1000
	for _, seed := range []uint64{1, 2, 3} {
		m := newMarket(seed)
		returns := func(symbol string) []float64 {
			closes := closesOf(t, m, symbol, ny("2026-12-31 20:00:00"))
			closes = closes[len(closes)-sessions-1:]
			out := make([]float64, sessions)
			for i := range out {
				out[i] = math.Log(closes[i+1].Price / closes[i].Price)
			}
			return out
		}
		for index, bounds := range map[string][3][2]float64{
			"_NDX": {{0.9, 0.94}, {1.12, 1.28}, {0.14, 0.2}}, "_RUT": {{0.82, 0.88}, {1.1, 1.3}, {0.15, 0.21}},
		} {
			_, deviation, correlation, beta := related(returns("_SPX"), returns(index))
			for i, got := range []float64{correlation, beta, deviation * math.Sqrt(252)} {
				if what := []string{"correlation", "beta", "volatility"}[i]; got < bounds[i][0] || got > bounds[i][1] {
					t.Errorf("seed %d: the %s of %s is %.3f, not within %v", seed, what, index, got, bounds[i])
				}
			}
		}
	}
}

// related returns mean and standard deviation of the second of two series, its correlation with the first, and its beta to it.
func related(x, y []float64) (mean, deviation, correlation, beta float64) {
	n := float64(len(x))
	var sx, sy, sxx, sxy, syy float64
	for i := range x {
		sx, sy, sxx, sxy, syy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i], syy+y[i]*y[i]
	}
	xx, xy, yy := sxx-sx*sx/n, sxy-sx*sy/n, syy-sy*sy/n
	return sy / n, math.Sqrt(yy / n), xy / math.Sqrt(xx*yy), xy / xx
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

// Each volatility index has a quote. The longer the term of a volatility, the less it moves. VVIX moves with the VIX, and SKEW against it.
// From 2022 to 2026, seeds 1 to 3 have means of VIX9D from 17.8 to 18.9, and of VIX1Y from 20.9 to 21.7.
func TestVolatilityIndices(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		m, now := newMarket(seed), ny("2026-11-20 11:00:00")
		levels := map[string][]float64{}
		for _, symbol := range compute.VIXIndices {
			quote := quoteAt(t, m, "_"+symbol, now)
			if quote.Symbol != symbol || !(quote.Spot > 0) || math.IsNaN(quote.PriceChangePercent) || quote.BadNumbers > 0 {
				t.Errorf("seed %d: quote of %s: %+v", seed, symbol, quote)
			}
			for _, c := range closesOf(t, m, "_"+symbol, now) {
				levels[symbol] = append(levels[symbol], c.Price)
			}
		}
		last := math.Inf(1)
		for _, symbol := range compute.VIXIndices[:5] {
			mean, deviation, _, _ := related(levels["VIX"], levels[symbol])
			if mean < 12 || mean > 25 || deviation >= last {
				t.Errorf("seed %d: %s has mean %.2f and deviation %.2f, the index with a shorter term %.2f", seed, symbol, mean, deviation, last)
			}
			last = deviation
		}
		for symbol, c := range map[string]struct{ least, most, with float64 }{"VVIX": {60, 180, 1}, "SKEW": {110, 160, -1}} {
			_, _, correlation, _ := related(levels["VIX"], levels[symbol])
			if least, most := slices.Min(levels[symbol]), slices.Max(levels[symbol]); correlation*c.with < 0.8 || least < c.least || most > c.most {
				t.Errorf("seed %d: %s is from %.1f to %.1f, with a correlation of %.2f to the VIX", seed, symbol, least, most, correlation)
			}
		}
	}
}

// The VIX quote is the model-free volatility of 30 days of the chain of the SPX of the same instant.
func TestVIXIsThatOfTheChain(t *testing.T) {
	calendar := compute.NewCalendar(nil, nil)
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

func TestSettlementRows(t *testing.T) {
	calendar := compute.NewCalendar(nil, nil)
	sessions, backwardation := 0.0, 0.0
	for d := calendar.Next(compute.NewDate(2024, time.January, 1)); d < compute.NewDate(2027, time.July, 1); d = calendar.Next(d) {
		rows, doc := settlementAt(t, d.String(), d.String()+" 20:00:00")
		body := string(doc.Body)
		if !strings.HasPrefix(body, "Product,Symbol,Expiration Date,Price\r\n") || strings.Count(body, "\n") != strings.Count(body, "\r\n") {
			t.Fatalf("%s: %.60q", d, body)
		}
		curve, q, ok := compute.VIXTermStructure(compute.VIXInput{Date: d, Rows: rows, Calendar: calendar, Now: doc.Received})
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
