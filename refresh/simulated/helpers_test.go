package simulated_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

var (
	spxChain = upstream.Options("_SPX")
	spxQuote = upstream.Quotes("_SPX")
)

func newMarket(seed uint64) *simulated.Market {
	return simulated.New(simulated.Config{
		Seed: seed, Now: func() time.Time { return ny("2026-08-11 12:00:00") }, Calendar: compute.NewCalendar(nil, nil),
	})
}

// market is what most tests share: a market with seed 1, which remembers what it has computed.
var market = newMarket(1)

// long skips a test of many documents in short runs, such as those of the race detector: one goroutine makes them.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: many documents, one goroutine")
	}
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

// recorded returns a recorded document below ../shared/recorded of the module, unpacked.
func recorded(t testing.TB, path string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "recorded", filepath.FromSlash(path)))
	if os.IsNotExist(err) {
		const why = "needs the recorded documents (../shared/recorded): real Cboe documents that are not published; " +
			"their formats are described in refresh/cboe"
		required := strings.Split(os.Getenv("STRIKECACHE_REQUIRE"), ",")
		if slices.Contains(required, "recorded") || slices.Contains(required, "all") {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	if err == nil && strings.HasSuffix(path, ".gz") {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(z)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return body
}
