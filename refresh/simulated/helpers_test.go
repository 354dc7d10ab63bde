package simulated_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/folder"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

var spxChain = upstream.Options("_SPX")

// chains are the underlyings with an option chain.
var chains = strings.Fields("_SPX _NDX _RUT SPY QQQ IWM XLC XLY XLP XLE XLF XLV XLI XLK XLB XLRE XLU AAPL NVDA TSLA MSFT AMZN META")

func newMarket(seed uint64) *simulated.Market {
	return simulated.New(simulated.Config{
		Seed: seed, Now: func() time.Time { return ny("2026-08-11 12:00:00") }, Calendar: compute.NewCalendar(nil, nil),
	})
}

// market is shared by most tests, because it keeps what it has computed. small is the same market with an eighth of the strikes.
var (
	market = newMarket(1)
	small  = simulated.New(simulated.Config{Seed: 1, Calendar: compute.NewCalendar(nil, nil), Every: 8})
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

// bySymbol indexes the contracts of a chain.
func bySymbol(chain *compute.Chain) map[string]*compute.Contract {
	index := make(map[string]*compute.Contract, len(chain.Contracts))
	for i := range chain.Contracts {
		index[chain.Contracts[i].Symbol()] = &chain.Contracts[i]
	}
	return index
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

// recorded returns a recorded document below ../shared/recorded of the module, unpacked.
func recorded(t testing.TB, name upstream.Name) []byte {
	t.Helper()
	source, err := folder.NewRecorded(filepath.Join("..", "..", "..", "shared", "recorded", "replay"))
	if required := os.Getenv("STRIKECACHE_REQUIRE"); errors.Is(err, fs.ErrNotExist) && !strings.Contains(required, "recorded") && required != "all" {
		t.Skip("needs the recorded documents (../shared/recorded): real Cboe documents that are not published; their formats are described in refresh/cboe")
	}
	if err != nil {
		t.Fatal(err)
	}
	doc, err := source.Fetch(t.Context(), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return doc.Body
}
