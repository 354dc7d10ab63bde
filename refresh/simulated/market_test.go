package simulated_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

var _ upstream.Source = (*simulated.Market)(nil)

func TestDocumentsDependOnSeedAndInstantAlone(t *testing.T) {
	type question struct {
		name upstream.Name
		at   string
	}
	var questions []question
	for _, at := range []string{
		"2024-05-20 12:00:00", "2026-08-11 09:50:00", "2026-08-11 15:59:00", "2026-08-11 23:00:00", "2026-08-12 05:00:00",
		"2026-08-12 09:30:00", "2026-08-12 12:00:00", "2026-08-15 12:00:00",
	} {
		for _, name := range []upstream.Name{
			"options/SPY.json", "options/TSLA.json", "quotes/XLK.json", "quotes/_VIX.json", "charts/historical/XLC.json",
			"charts/historical/_VIX3M.json", "settlement/2026-08-10.csv",
		} {
			questions = append(questions, question{name, at})
		}
	}
	questions = append(questions, question{spxChain, "2026-08-12 12:00:00"})
	one, two, other := newMarket(7), newMarket(7), newMarket(8)
	first := map[question]*upstream.Document{}
	for _, q := range questions {
		first[q] = documentAt(t, one, q.name, ny(q.at))
	}
	slices.Reverse(questions)
	for _, q := range questions {
		if q.name == spxChain {
			documentAt(t, two, q.name, ny("2025-01-15 12:00:00")) // something else in between
		}
		got := documentAt(t, two, q.name, ny(q.at))
		if !bytes.Equal(got.Body, first[q].Body) || got.ETag != first[q].ETag {
			t.Errorf("%s at %s depends on what was asked before", q.name, q.at)
		}
		if bytes.Equal(documentAt(t, other, q.name, ny(q.at)).Body, got.Body) {
			t.Errorf("%s at %s does not depend on the seed", q.name, q.at)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	m := newMarket(3)
	want := documentAt(t, newMarket(3), "options/XLF.json", ny("2026-08-11 12:00:00")).ETag
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 10 {
				at := ny("2026-08-11 12:00:00").Add(time.Duration((i+j)%4) * time.Hour)
				if _, err := m.At("options/XLK.json", at); err != nil {
					t.Error(err)
				}
				doc, err := m.Fetch(t.Context(), "options/XLF.json", nil)
				if err != nil || doc.ETag != want {
					t.Errorf("fetch: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func TestUnknownDocuments(t *testing.T) {
	m := market
	for name, reason := range map[upstream.Name]upstream.Reason{
		"options/_SPXW.json": upstream.Refused, "options/_VIX.json": upstream.Refused, "quotes/ZZZZ.json": upstream.Refused,
		"charts/historical/IWM.json": upstream.Refused, "nonsense": upstream.Missing, "settlement/today.csv": upstream.Missing,
	} {
		_, err := m.Fetch(t.Context(), name, nil)
		if err == nil || upstream.ReasonOf(err) != reason || m.Offers(name) {
			t.Errorf("%s: %v, offered %v", name, err, m.Offers(name))
		}
	}
	for _, name := range []upstream.Name{spxChain, "options/XLRE.json", "quotes/_VIX3M.json", "charts/historical/_SPX.json", "settlement/2026-08-10.csv"} {
		if !m.Offers(name) {
			t.Errorf("%s is not offered", name)
		}
	}
	if _, err := m.At(spxChain, ny("2021-06-01 12:00:00")); upstream.ReasonOf(err) != upstream.Missing {
		t.Errorf("before the market began: %v", err)
	}
}

func TestNotModified(t *testing.T) {
	m := market
	doc, err := m.Fetch(t.Context(), spxQuote, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Fetch(t.Context(), spxQuote, doc); !errors.Is(err, upstream.ErrNotModified) {
		t.Errorf("the same document again: %v", err)
	}
	older := documentAt(t, m, spxQuote, ny("2026-08-11 11:00:00"))
	if again, err := m.Fetch(t.Context(), spxQuote, older); err != nil || again.ETag != doc.ETag {
		t.Errorf("since an older document: %v", err)
	}
}

func TestPricesMoveInSmallSteps(t *testing.T) {
	m := market
	for _, symbol := range []string{"_SPX", "TSLA", "_VIX"} {
		last, moved, steps := 0.0, 0, 0
		for at := ny("2026-08-11 09:46:00"); at.Before(ny("2026-08-11 16:14:00")); at = at.Add(15 * time.Second) {
			spot := quoteAt(t, m, symbol, at).Spot
			if last > 0 {
				steps++
				if spot != last {
					moved++
				}
				if step := math.Abs(math.Log(spot / last)); step > 0.01 {
					t.Errorf("%s: %v to %v at %s", symbol, last, spot, at)
				}
			}
			last = spot
		}
		if float64(moved) < 0.4*float64(steps) || symbol == "_SPX" && float64(moved) < 0.98*float64(steps) {
			t.Errorf("%s moved in %d of %d steps", symbol, moved, steps)
		}
	}
}

// closesOf returns the history of a symbol.
func closesOf(t testing.TB, m *simulated.Market, symbol string, at time.Time) []compute.Close {
	t.Helper()
	closes, err := cboe.DecodeHistory(documentAt(t, m, upstream.History(symbol), at).Body)
	if err != nil {
		t.Fatalf("history of %s: %v", symbol, err)
	}
	return closes
}

func TestLevelsArePlausible(t *testing.T) {
	at := ny("2027-01-05 12:00:00")
	for seed := range uint64(4) {
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

func TestFundsFollowTheMarket(t *testing.T) {
	m, at := market, ny("2027-01-05 12:00:00")
	index := closesOf(t, m, "_SPX", at)
	for _, symbol := range []string{"SPY", "QQQ", "XLE", "XLK", "XLU", "TSLA"} {
		closes := closesOf(t, m, symbol, at)
		ours := index[len(index)-len(closes):]
		var xy, xx, yy float64
		for i := 1; i < len(closes); i++ {
			x, y := math.Log(ours[i].Price/ours[i-1].Price), math.Log(closes[i].Price/closes[i-1].Price)
			xy, xx, yy = xy+x*y, xx+x*x, yy+y*y
		}
		r := xy / math.Sqrt(xx*yy)
		if r < 0.2 || symbol == "SPY" && r < 0.99 || symbol != "SPY" && r > 0.98 {
			t.Errorf("%s: correlation with the index is %.3f", symbol, r)
		}
	}
	spy := closesOf(t, m, "SPY", at)
	if ratio := index[len(index)-1].Price / spy[len(spy)-1].Price; ratio < 9.8 || ratio > 10.2 {
		t.Errorf("SPX is %.2f times SPY", ratio)
	}
}

// TestBudget bounds what the largest document may allocate: it is built again and again on small machines.
func TestBudget(t *testing.T) {
	m := market
	documentAt(t, m, "quotes/SPY.json", ny("2026-08-11 12:00:00")) // the factors since the epoch
	for _, at := range []string{"2026-08-11 12:00:00", "2026-08-11 12:00:15", "2026-08-12 12:00:00"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		documentAt(t, m, spxChain, ny(at))
		runtime.ReadMemStats(&after)
		if mb := float64(after.TotalAlloc-before.TotalAlloc) / (1 << 20); mb > 40 {
			t.Errorf("%s: a chain allocated %.1f MB", at, mb)
		}
	}
}

func BenchmarkChain(b *testing.B) {
	m, at := market, ny("2026-08-11 12:00:00")
	documentAt(b, m, spxChain, at)
	for b.Loop() {
		at = at.Add(15 * time.Second)
		b.SetBytes(int64(len(documentAt(b, m, spxChain, at).Body)))
	}
}

func ExampleMarket_At() {
	m := simulated.New(simulated.Config{Seed: 1, Calendar: compute.NewCalendar(nil, nil)})
	at := time.Date(2026, time.August, 11, 16, 11, 33, 0, time.UTC)
	doc, err := m.At(upstream.Quotes("XLK"), at)
	if err != nil {
		fmt.Println(err)
		return
	}
	quote, err := cboe.DecodeQuote(doc.Body)
	fmt.Println(quote.Symbol, strconv.Quote(doc.Generated.Format(time.DateTime)), err)
	// Output: XLK "2026-08-11 16:11:26" <nil>
}
