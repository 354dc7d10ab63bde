package simulated_test

import (
	"strings"
	"testing"
	"time"

	"strikecache/bench/need"
	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

// oneGoroutine is why a test is not worth its time under the race detector.
const oneGoroutine = "many documents, one goroutine"

var (
	spxChain = upstream.Options("_SPX")
	spxQuote = upstream.Quotes("_SPX")
)

func newMarket(seed uint64) *simulated.Market {
	return simulated.New(simulated.Config{
		Seed: seed, Now: func() time.Time { return ny("2026-08-11 12:00:00") }, Calendar: compute.NewCalendar(nil, nil),
	})
}

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
	chain, _, err := cboe.DecodeChain(documentAt(t, m, upstream.Options(symbol), at).Body)
	if err != nil {
		t.Fatalf("chain of %s at %s: %v", symbol, at, err)
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

// member is one key and value of a flat JSON object, as written.
type member struct{ key, value string }

// members returns the members of an object, as written, and of the objects in it in the place of those.
func members(object string) []member {
	var all []member
	for {
		_, rest, ok := strings.Cut(object, `"`)
		if !ok {
			return all
		}
		key, rest, _ := strings.Cut(rest, `"`)
		rest = strings.TrimLeft(rest, ": ")
		end := strings.IndexAny(rest, ",}")
		if strings.HasPrefix(rest, `"`) {
			end = strings.IndexByte(rest[1:], '"') + 2
		}
		if strings.HasPrefix(rest, "{") {
			object = rest
			continue
		}
		if end < 0 {
			end = len(rest)
		}
		all = append(all, member{key, rest[:end]})
		object = rest[end:]
	}
}

func keysOf(all []member) []string {
	keys := make([]string, len(all))
	for i, m := range all {
		keys[i] = m.key
	}
	return keys
}

// valueOf returns the value of a key as written, "" when the object does not have it.
func valueOf(all []member, key string) string {
	for _, m := range all {
		if m.key == key {
			return strings.Trim(m.value, `"`)
		}
	}
	return ""
}

// parts splits a chain document into its rows and its underlying, as written.
func parts(t testing.TB, body []byte) (rows []string, underlying []member) {
	t.Helper()
	_, rest, ok := strings.Cut(string(body), `"options":[{`)
	list, tail, ok2 := strings.Cut(rest, `}],`)
	if !ok || !ok2 {
		t.Fatal("document has no options")
	}
	return strings.Split(list, "},{"), members(tail)
}

// recorded returns a recorded document below ../shared/recorded/replay of the module.
func recorded(t testing.TB, path string) []byte {
	t.Helper()
	return need.Document(t, "replay/"+path)
}
