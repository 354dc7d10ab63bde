package cboe

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

// recordedDir returns the folder of recorded documents beside the module.
func recordedDir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "recorded")
	if _, err := os.Stat(dir); err != nil {
		const why = "needs the recorded documents (../shared/recorded): real Cboe documents that are not published; " +
			"their formats are described in refresh/cboe"
		required := strings.Split(os.Getenv("STRIKECACHE_REQUIRE"), ",")
		if slices.Contains(required, "recorded") || slices.Contains(required, "all") {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return dir
}

// recorded returns a recorded document, unpacked.
func recorded(t testing.TB, path string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(recordedDir(t), filepath.FromSlash(path)))
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

const spxChain = "replay/options/_SPX.json.gz"

// Every row of a chain is the one that the slow decoder of the fuzz target reads.
func TestChainAgreesWithEncodingJSON(t *testing.T) {
	agrees := func(t *testing.T, body []byte) *compute.Chain {
		want, err := plainChain(body, true)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeChain(body)
		if err != nil {
			t.Fatal(err)
		}
		sameUnderlying(t, got.UnderlyingQuote, want.UnderlyingQuote)
		if got.Listed != want.Listed || got.Skipped != want.Skipped || !slices.Equal(got.Contracts, want.Contracts) {
			t.Errorf("%d rows, skipped %+v, want %d, %+v", got.Listed, got.Skipped, want.Listed, want.Skipped)
		}
		if got.BadNumbers != 0 {
			t.Errorf("%d bad numbers in a chain without any", got.BadNumbers)
		}
		return got
	}
	t.Run("simulated", func(t *testing.T) {
		market := simulated.New(simulated.Config{Seed: 1, Calendar: compute.NewCalendar(nil, nil)})
		doc, err := market.At(upstream.Options("TSLA"), time.Date(2026, time.August, 11, 17, 0, 0, 0, time.UTC))
		if err != nil {
			t.Fatal(err)
		}
		agrees(t, doc.Body)
	})
	t.Run("pathological", func(t *testing.T) { agrees(t, recorded(t, "spx-chain-2026-08-11-pathological.json")) })
	t.Run("recorded", func(t *testing.T) {
		if c := agrees(t, recorded(t, spxChain)); c.Listed != 30692 || len(c.Contracts) != 30692 || c.Spot != 7728.2002 {
			t.Errorf("%d rows, %d kept, spot %v", c.Listed, len(c.Contracts), c.Spot)
		}
	})
}

// Ten real documents without their rows, of a weekend, a session, a close and evenings, have the right clocks and prices.
func TestRecordedEnvelopes(t *testing.T) {
	cal := compute.NewCalendar(nil, nil)
	files, err := filepath.Glob(filepath.Join(recordedDir(t), "spx-headers", "*.json"))
	if err != nil || len(files) != 10 {
		t.Fatalf("%d envelopes: %v", len(files), err)
	}
	want := map[string]struct {
		asOf    time.Time
		session string
		spot    float64
		change  float64
	}{
		"2026-08-09T22-38-43Z": {time.Date(2026, 8, 7, 20, 14, 59, 0, time.UTC), "2026-08-07", 7757.6401, 0.6184},
		"2026-08-10T23-57-37Z": {time.Date(2026, 8, 10, 20, 14, 59, 0, time.UTC), "2026-08-10", 7753.1099, -0.0584},
		"2026-08-11T00-07-40Z": {time.Date(2026, 8, 10, 20, 14, 59, 0, time.UTC), "2026-08-10", 7753.1099, -0.0584},
		"2026-08-11T16-11-33Z": {time.Date(2026, 8, 11, 15, 56, 26, 0, time.UTC), "2026-08-11", 7741.3999, -0.151},
		"2026-08-11T20-37-03Z": {time.Date(2026, 8, 11, 20, 14, 59, 0, time.UTC), "2026-08-11", 7728.2002, -0.3213},
		"2026-08-11T20-47-05Z": {time.Date(2026, 8, 11, 20, 14, 59, 0, time.UTC), "2026-08-11", 7728.2002, -0.3213},
		"2026-08-11T20-57-15Z": {time.Date(2026, 8, 11, 20, 14, 59, 0, time.UTC), "2026-08-11", 7728.2002, -0.3213},
		"2026-08-11T21-07-17Z": {time.Date(2026, 8, 11, 20, 14, 59, 0, time.UTC), "2026-08-11", 7728.2002, -0.3213},
		"2026-08-11T23-57-57Z": {time.Date(2026, 8, 11, 20, 14, 59, 0, time.UTC), "2026-08-11", 7728.2002, -0.3213},
		"2026-08-13T01-25-33Z": {time.Date(2026, 8, 12, 20, 14, 59, 0, time.UTC), "2026-08-12", 7748.5, 0.2627},
	}
	for _, file := range files {
		name := filepath.Base(file)
		fetched := name[len("_SPX_") : len(name)-len(".json")]
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeChain(body); err == nil {
			t.Errorf("%s: a chain without options is accepted", name)
		}
		q, err := DecodeQuote(body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		w := want[fetched]
		if !q.AsOf.Equal(w.asOf) || q.Session(cal).String() != w.session || q.Spot != w.spot || math.Round(q.PriceChangePercent*1e4)/1e4 != w.change {
			t.Errorf("%s: as_of %v session %v spot %v change %v, want %+v", name, q.AsOf, q.Session(cal), q.Spot, q.PriceChangePercent, w)
		}
		at, err := time.Parse("2006-01-02T15-04-05Z", fetched)
		if err != nil {
			t.Fatal(err)
		}
		// The timestamp is seconds before the fetch, except on the weekend, when it stops on Saturday.
		if lag := at.Sub(q.CapturedAt); fetched[:10] != "2026-08-09" && (lag < 0 || lag > time.Minute) {
			t.Errorf("%s: captured %v, %v before the fetch: the timestamp is not UTC", name, q.CapturedAt, lag)
		}
	}
}
