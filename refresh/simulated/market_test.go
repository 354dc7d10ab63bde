package simulated_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

var _ upstream.Source = (*simulated.Market)(nil)

var spxChain = upstream.Options("_SPX")

// chains are the underlyings with an option chain.
var chains = strings.Fields("_SPX _NDX _RUT SPY QQQ IWM XLC XLY XLP XLE XLF XLV XLI XLK XLB XLRE XLU AAPL NVDA TSLA MSFT AMZN META")

var calendar = compute.NewCalendar(nil, nil)

func newMarket(seed uint64) *simulated.Market {
	return simulated.New(simulated.Config{Seed: seed, Now: func() time.Time { return ny("2026-08-11 12:00:00") }, Calendar: calendar})
}

// market is shared by most tests, because it keeps what it has computed. small is the same market with an eighth of the strikes.
var (
	market = newMarket(1)
	small  = simulated.New(simulated.Config{Seed: 1, Calendar: calendar, Every: 8})
)

// ny parses a New York wall clock time.
func ny(s string) time.Time {
	t, err := time.ParseInLocation(time.DateTime, s, compute.NewYork)
	if err != nil {
		panic(err)
	}
	return t
}

func documentAt(t testing.TB, m *simulated.Market, name upstream.Name, at time.Time) *upstream.Document {
	t.Helper()
	doc, err := m.At(name, at)
	if err != nil {
		t.Fatalf("At(%s, %s): %v", name, at, err)
	}
	return doc
}

func chainAt(t testing.TB, m *simulated.Market, symbol string, at time.Time) *compute.Chain {
	t.Helper()
	chain, err := cboe.DecodeChain(documentAt(t, m, upstream.Options(symbol), at).Body)
	if err != nil {
		t.Fatalf("chain of %s at %s: %v", symbol, at, err)
	}
	if chain.BadNumbers > 0 {
		t.Errorf("chain of %s at %s: %d numbers are outside the ranges of their kinds", symbol, at, chain.BadNumbers)
	}
	return chain
}

func quoteAt(t testing.TB, m *simulated.Market, symbol string, at time.Time) *cboe.Quote {
	t.Helper()
	quote, err := cboe.DecodeQuote(documentAt(t, m, upstream.Quotes(symbol), at).Body)
	if err != nil {
		t.Fatalf("quote of %s at %s: %v", symbol, at, err)
	}
	return quote
}

// closesOf returns the history of a symbol.
func closesOf(t testing.TB, m *simulated.Market, symbol string, at time.Time) []compute.Close {
	t.Helper()
	closes, bad, err := cboe.DecodeHistory(documentAt(t, m, upstream.History(symbol), at).Body, cboe.PriceKind(strings.TrimPrefix(symbol, "_")))
	if err != nil || bad != 0 {
		t.Fatalf("history of %s: %d bad numbers, %v", symbol, bad, err)
	}
	return closes
}

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

// A market in gzip makes the same documents.
func TestGzip(t *testing.T) {
	at := ny("2026-08-11 12:00:00")
	const name = upstream.Name("options/XLK.json")
	want := documentAt(t, newMarket(7), name, at)
	got := documentAt(t, simulated.New(simulated.Config{Seed: 7, Calendar: calendar, Gzip: true}), name, at)
	text, err := cboe.Unpack(got)
	if err != nil || got.Body != nil || got.ETag != want.ETag || !bytes.Equal(text, want.Body) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// TestBudget bounds what the largest document may allocate for the one reader of a server: small machines make it again and again.
func TestBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector allocates") // a slice that grows takes its room twice
	}
	m := simulated.New(simulated.Config{Seed: 1, Calendar: calendar, Gzip: true})
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

// TestNewInstrumentsChangeNoOther compares the chain, quote and history of some instruments, of seed 1 in a session and at night, with those
// of the market as it has been since its nights follow the table of hours. Whatever is added to the market changes none of them.
func TestNewInstrumentsChangeNoOther(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the digests are of amd64: another GOARCH may fuse multiplications")
	}
	for _, c := range []struct{ symbol, at, want string }{
		{"_SPX", "2026-08-11 12:00:00", "946b4a20e39c11a0bd2c779d21024092a6ef25d707054cde43ceaa1484ad72dd"},
		{"_SPX", "2026-08-12 02:00:00", "fe1fb1ea085bb922585a14d76fcb57d5184f216398a05ca43b9e1ecf9a2a8124"},
		{"SPY", "2026-08-11 12:00:00", "fbcba21381b6406dcc17731f0302ec1d9ae1d5c7bd7cdf68b2062817cdd254df"},
		{"SPY", "2026-08-12 02:00:00", "5d4e647bf2a84d3fb84534b8a0a2a2eaf3b0aaccb64619db6f0c2a701150a6f7"},
		{"QQQ", "2026-08-11 12:00:00", "dd41bb5088ee0656a1e08ab41102379e5bac2a7b74664324db560380088e73a1"},
		{"QQQ", "2026-08-12 02:00:00", "11ac09f55f12e46e1d551085c888589ac16228df1e6c93e9760ec6c3e2c913de"},
		{"XLK", "2026-08-11 12:00:00", "55e83683754f71155d1487a2b32b82dac7510bdd724620e322d478d463db5442"},
		{"XLK", "2026-08-12 02:00:00", "803e0aa3d9a45fb365c032bfb336442093115e4bac09c3b4a1145e136e332499"},
	} {
		digest := sha256.New()
		for _, name := range []upstream.Name{upstream.Options(c.symbol), upstream.Quotes(c.symbol), upstream.History(c.symbol)} {
			digest.Write(documentAt(t, market, name, ny(c.at)).Body)
		}
		if got := fmt.Sprintf("%x", digest.Sum(nil)); got != c.want {
			t.Errorf("the documents of %s at %s have the digest %s", c.symbol, c.at, got)
		}
	}
}

func TestClocks(t *testing.T) {
	for _, c := range []struct{ at, generated, index, stock string }{
		// at, index and stock are New York times; generated is UTC
		{"2026-08-11 12:00:05", "2026-08-11 15:59:56", "2026-08-11 11:44:52", "2026-08-11 11:44:52"},
		{"2026-08-11 16:20:00", "2026-08-11 20:19:56", "2026-08-11 16:04:52", "2026-08-11 16:00:00"},
		{"2026-08-11 16:36:50", "2026-08-11 20:36:41", "2026-08-11 16:14:59", "2026-08-11 16:00:00"},
		{"2026-08-11 21:25:33", "2026-08-12 01:25:26", "2026-08-11 16:14:59", "2026-08-11 16:00:00"},
		{"2026-08-12 09:40:00", "2026-08-12 13:39:56", "2026-08-11 16:14:59", "2026-08-11 16:00:00"},
		{"2026-08-12 09:46:00", "2026-08-12 13:45:56", "2026-08-12 09:30:52", "2026-08-12 09:30:52"},
		{"2026-08-09 18:38:43", "2026-08-09 22:38:41", "2026-08-07 16:14:59", "2026-08-07 16:00:00"}, // Sunday
		{"2026-09-07 12:00:00", "2026-09-07 15:59:56", "2026-09-04 16:14:59", "2026-09-04 16:00:00"}, // Labor Day
		{"2026-11-27 14:30:00", "2026-11-27 19:29:56", "2026-11-27 13:14:59", "2026-11-27 13:00:00"}, // early close
		{"2026-03-06 12:00:00", "2026-03-06 16:59:56", "2026-03-06 11:44:52", "2026-03-06 11:44:52"}, // before the clocks go forward
		{"2026-03-09 12:00:00", "2026-03-09 15:59:56", "2026-03-09 11:44:52", "2026-03-09 11:44:52"}, // and after
		{"2026-11-02 12:00:00", "2026-11-02 16:59:56", "2026-11-02 11:44:52", "2026-11-02 11:44:52"}, // after they go back
	} {
		for _, symbol := range []string{"_SPX", "_NDX", "_RUT", "_VIX", "XLK", "IWM"} {
			doc := documentAt(t, market, upstream.Quotes(symbol), ny(c.at))
			quote := quoteAt(t, market, symbol, ny(c.at))
			want := c.index
			if symbol[0] != '_' {
				want = c.stock
			}
			if got := doc.Generated.Format(time.DateTime); got != c.generated || !quote.CapturedAt.Equal(doc.Generated) || !quote.AsOf.Equal(ny(want)) {
				t.Errorf("%s, %s: generated %s, timestamp %s, last trade %s, want %s", c.at, symbol, got, quote.CapturedAt, quote.AsOf, want)
			}
			if want := doc.Generated.Format("Mon, 02 Jan 2006 15:04:05 GMT"); doc.LastModified != want || !doc.Received.Equal(ny(c.at)) {
				t.Errorf("%s: last modified %s, received %s", c.at, doc.LastModified, doc.Received)
			}
		}
	}
}

// Between two sessions a document has no new data, except that quotes of SPX and RUT options change at night.
func TestFrozenBody(t *testing.T) {
	for _, c := range []struct {
		symbol, a, b string
		frozen       bool
	}{
		{"_SPX", "2026-08-11 17:01:00", "2026-08-11 20:29:00", true},
		{"_SPX", "2026-08-11 20:29:00", "2026-08-11 21:01:00", false},
		{"TSLA", "2026-08-11 21:01:00", "2026-08-12 02:30:00", true},
		{"_NDX", "2026-08-11 17:01:00", "2026-08-12 02:30:00", true},
		{"_RUT", "2026-08-11 17:01:00", "2026-08-12 09:44:00", false}, // the listing of 07:00
		{"_RUT", "2026-08-11 21:01:00", "2026-08-12 02:30:00", false},
		{"_SPX", "2026-08-12 09:16:00", "2026-08-12 09:44:00", false}, // to 09:25
		{"_SPX", "2026-08-12 09:41:00", "2026-08-12 09:44:00", true},
		{"_SPX", "2026-09-05 12:00:00", "2026-09-07 02:00:00", false}, // a holiday, to 11:30
		{"_SPX", "2026-09-07 11:46:00", "2026-09-07 20:29:00", true},
		{"_SPX", "2026-08-14 21:01:00", "2026-08-16 19:00:00", true},  // over a weekend
		{"_SPX", "2026-08-16 19:00:00", "2026-08-16 23:00:00", false}, // to the night before Monday
	} {
		name := upstream.Options(c.symbol)
		one, two := documentAt(t, small, name, ny(c.a)), documentAt(t, small, name, ny(c.b))
		before, err := cboe.DecodeChain(one.Body)
		after, laterErr := cboe.DecodeChain(two.Body)
		if err != nil || laterErr != nil || before.Spot != after.Spot || !before.AsOf.Equal(after.AsOf) || before.CapturedAt.Equal(after.CapturedAt) {
			t.Fatalf("from %s to %s: %+v, %v, %+v, %v", c.a, c.b, before.UnderlyingQuote, err, after.UnderlyingQuote, laterErr)
		}
		was := *after
		was.UnderlyingQuote = before.UnderlyingQuote // its clock alone has moved
		if reflect.DeepEqual(before, &was) != c.frozen {
			t.Errorf("from %s to %s: want frozen %v", c.a, c.b, c.frozen)
		}
	}
}
