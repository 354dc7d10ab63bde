package simulated_test

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"slices"
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
	questions := []question{{spxChain, "2026-08-12 12:00:00"}}
	for _, at := range []string{"2024-05-20 12:00:00", "2026-08-11 15:59:00", "2026-08-12 05:00:00", "2026-08-12 12:00:00", "2026-08-15 12:00:00"} {
		for _, name := range []upstream.Name{
			"options/TSLA.json", "quotes/XLK.json", "quotes/_VIX.json", "quotes/_NDX.json", "quotes/IWM.json", "charts/historical/XLC.json", "settlement/2026-08-10.csv",
		} {
			questions = append(questions, question{name, at})
		}
	}
	one, two, other := newMarket(7), newMarket(7), newMarket(8)
	first := map[question]*upstream.Document{}
	for _, q := range questions {
		first[q] = documentAt(t, one, q.name, ny(q.at))
	}
	slices.Reverse(questions)
	for _, q := range questions {
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
	for _, name := range []upstream.Name{
		"options/_SPXW.json", "options/_VIX.json", "quotes/ZZZZ.json", "charts/historical/DIA.json", "nonsense", "settlement/today.csv",
	} {
		if _, err := market.Fetch(t.Context(), name, nil); upstream.ReasonOf(err) != upstream.Refused || market.Offers(name) {
			t.Errorf("%s: %v, offered %v", name, err, market.Offers(name))
		}
	}
	for name, at := range map[upstream.Name]string{spxChain: "2022-01-10 23:00:00", "settlement/2022-01-03.csv": "2026-08-11 12:00:00"} {
		if _, err := market.At(name, ny(at)); upstream.ReasonOf(err) != upstream.Missing || !market.Offers(name) {
			t.Errorf("%s, before the market began: %v", name, err)
		}
	}
	for _, at := range []string{"2022-01-11 00:00:00", "2022-01-11 09:46:00"} {
		chainAt(t, market, "_SPX", ny(at))
	}
}

func TestNotModified(t *testing.T) {
	name := upstream.Quotes("_SPX")
	doc, err := market.Fetch(t.Context(), name, documentAt(t, market, name, ny("2026-08-11 11:00:00")))
	if err != nil {
		t.Fatalf("since an older document: %v", err)
	}
	if _, err := market.Fetch(t.Context(), name, doc); !errors.Is(err, upstream.ErrNotModified) {
		t.Errorf("the same document again: %v", err)
	}
}

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

// TestBudget bounds what the largest document may allocate for the one reader of a server: small machines make it again and again.
func TestBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector allocates") // a slice that grows takes its room twice
	}
	m := simulated.New(simulated.Config{Seed: 1, Calendar: compute.NewCalendar(nil, nil), Gzip: true})
	documentAt(t, m, "quotes/SPY.json", ny("2026-08-11 12:00:00")) // the factors since the epoch
	for _, at := range []string{"2026-08-11 12:00:00", "2026-08-11 12:00:15"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		doc := documentAt(t, m, spxChain, ny(at))
		runtime.ReadMemStats(&after)
		if mb := float64(after.TotalAlloc-before.TotalAlloc) / (1 << 20); mb > 10 {
			t.Errorf("%s: a chain of %d bytes of gzip allocated %.1f MB", at, len(doc.Gzip), mb)
		}
	}
}

// A market in gzip makes the same documents.
func TestGzip(t *testing.T) {
	at := ny("2026-08-11 12:00:00")
	const name = upstream.Name("options/XLK.json")
	want := documentAt(t, newMarket(7), name, at)
	got := documentAt(t, simulated.New(simulated.Config{Seed: 7, Calendar: compute.NewCalendar(nil, nil), Gzip: true}), name, at)
	text, err := cboe.Unpack(got)
	if err != nil || got.Body != nil || got.ETag != want.ETag || !bytes.Equal(text, want.Body) {
		t.Errorf("%d bytes, %v", len(text), err)
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
