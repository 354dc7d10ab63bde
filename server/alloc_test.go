package server_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"strikecache/server"
	"strikecache/server/keys"
	"strikecache/server/limits"
	"strikecache/snapshots"
)

// storeOf returns a real store with the snapshots of a finder.
func storeOf(t testing.TB, s *finder) *snapshots.Store {
	t.Helper()
	store, err := snapshots.Open(snapshots.Options{
		Dir: t.TempDir(), Source: "simulated",
		DatedProducts: []string{"gex/spx", "gex/spx/intraday", "spx-max-pain", "sectors/rotation", "vix-term-structure"}, Deltas: map[string][]string{"gex/spx/series": {""}, "options/flow/unusual": {"", "100"}}, HistoryBytes: 1 << 20, Log: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	save := func(resource string, s *snapshots.Snapshot) {
		t.Helper()
		file := snapshots.File{Product: resource, Edition: &snapshots.Edition{Default: s, Variants: map[string]*snapshots.Snapshot{"2026-12-18": s}}, Dated: true}
		must(t, store.Save([]snapshots.File{file}, nil))
	}
	for resource, dates := range s.past {
		for _, snapshot := range dates {
			save(resource, snapshot)
		}
	}
	must(t, store.Publish(s.editions))
	save("gex/spx", s.past["gex/spx"][slices.Max(store.DatesOf("gex/spx"))])
	return store
}

// A request that has an answer allocates nothing, with keys, limits and counts, and is answered with exactly
// the sealed bytes.
func TestNoAllocations(t *testing.T) {
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector allocates")
	}
	s := newFinder(t)
	gamma, large := s.editions["gex/spx"].Default, seal(t, "gex/spx/matrix", `"`+strings.Repeat("0123456789", 3400)+`"`) // over writeSize
	s.editions["gex/spx/matrix"] = &snapshots.Edition{Default: large}
	store, earlier := withDeltas(t, s)
	flow := store.Current("options/flow/unusual")
	delta, csv := flow.Default.Delta([]byte(announced(earlier))), s.editions["gex/spx/series"].Default.Form("csv")
	dictionary := "Accept-Encoding: gzip, deflate, br, zstd, dcb, dcz\r\nAvailable-Dictionary: "
	proxies, err := limits.ParseProxies("192.0.2.0/24,127.0.0.1")
	must(t, err)
	web, secrets := withKeys(t, s, func(c *server.Config) {
		c.Finder, c.Addresses, c.Proxies = store, limits.NewAddresses(1_000_000), proxies
		c.NextChange = func(_ string, now time.Time) time.Time { return now.Add(9 * time.Second) }
	}, keys.Key{Name: "k", PerMinute: 1_000_000, PerDay: 1_000_000_000})
	address := listen(t, web)
	id := fmt.Sprintf("k_%x", sha256.Sum256([]byte(secrets["k"])))[:14]
	browser := "Host: a\r\nUser-Agent: " + strings.Repeat("Mozilla ", 12) + "\r\nAccept: */*\r\n"
	forwarded := "X-Forwarded-For: 198.51.100.7, 192.0.2.9\r\n"
	key := "X-API-Key: " + secrets["k"] + "\r\n"
	for _, c := range []struct {
		name, target, fields string
		status               string
		body                 []byte // anonymous
	}{
		{"200", "/api/v1/gex/spx", "", "200", gamma.Body(snapshots.Identity)},
		{"widget", "/api/widgets/gex?a=b&underlying=spx", "", "200", gamma.Body(snapshots.Identity)},
		{"HEAD", "/api/v1/gex/spx", "", "200", nil},
		{"304 by tag", "/api/v1/gex/spx", "If-None-Match: " + gamma.ETag(snapshots.Brotli) + "\r\n", "304", nil},
		{"gzip", "/api/v1/gex/spx", "Accept-Encoding: gzip\r\n", "200", gamma.Body(snapshots.Gzip)},
		{"br", "/api/v1/gex/spx", "Accept-Encoding: br;q=1.0, gzip;q=0.8, *;q=0.1\r\n", "200", gamma.Body(snapshots.Brotli)},
		{"zstd", "/api/v1/gex/spx", "Accept-Encoding: zstd\r\n", "200", gamma.Body(snapshots.Zstd)},
		{"large", "/api/v1/gex/spx/matrix", "", "200", large.Body(snapshots.Identity)},
		{"limit", "/api/v1/options/flow/unusual?limit=100", "", "200", s.editions["options/flow/unusual"].Variants["100"].Body(snapshots.Identity)},
		{"expiration", "/api/public/spx-max-pain?expiration=2026-12-18", "", "200", s.editions["spx-max-pain"].Default.Body(snapshots.Identity)},
		{"delta", flowPath, dictionary + delta.Base + "\r\n", "200", delta.Body},
		{"unknown dictionary", flowPath, dictionary + announced(gamma) + "\r\n", "200", s.editions["options/flow/unusual"].Default.Body(snapshots.Brotli)},
		{"304 by the tag of a delta", flowPath, dictionary + announced(gamma) + "\r\nIf-None-Match: W/" + delta.ETag + "\r\n", "304", nil},
		{"304 of a delta", flowPath, dictionary + delta.Base + "\r\nIf-None-Match: \"a\", " + delta.ETag + "\r\n", "304", nil},
		{"keyed with a dictionary", flowPath, dictionary + delta.Base + "\r\n" + key, "200", nil},
		{"historical", "/api/v1/gex/spx/historical", "", "200", s.past["gex/spx"]["2026-11-20"].Body(snapshots.Identity)},
		{"historical date", "/api/v1/gex/spx/historical?date=2026-11-17", "", "200", s.past["gex/spx"]["2026-11-17"].Body(snapshots.Identity)},
		{"track", "/api/v1/gex/spx/intraday", "", "200", s.editions["gex/spx/intraday"].Default.Body(snapshots.Identity)},
		{"expiration of a date", "/api/public/spx-max-pain?date=2026-11-17&expiration=2026-12-18", "", "200", s.past["spx-max-pain"]["2026-11-17"].Body(snapshots.Identity)},
		{"track of a date", "/api/v1/gex/spx/intraday?date=2026-11-18", "", "200", s.past["gex/spx/intraday"]["2026-11-18"].Body(snapshots.Identity)},
		{"csv", "/api/v1/gex/spx/series?format=csv", "", "200", csv.Body(snapshots.Identity)},
		{"csv in gzip", "/api/v1/gex/spx/series?format=csv", "Accept-Encoding: gzip, br\r\n", "200", csv.Body(snapshots.Gzip)},
		{"csv with a key", "/api/v1/gex/spx/series?format=csv", key, "200", csv.Body(snapshots.Identity)},
		{"304 of csv", "/api/v1/gex/spx/series?format=csv", "If-None-Match: " + csv.ETag(snapshots.Gzip) + "\r\n", "304", nil},
		{"csv of a limit", "/api/v1/options/flow/unusual?limit=100&format=csv", "", "200", formed(t, flow.Variants["100"]).Form("csv").Body(snapshots.Identity)},
		{"csv of a date", "/api/v1/gex/spx/intraday?format=csv&date=2026-11-18", "", "200", s.past["gex/spx/intraday"]["2026-11-18"].Form("csv").Body(snapshots.Identity)},
		{"line", "/api/v1/gex/spx/levels?format=line", "", "200", s.editions["gex/spx/levels"].Default.Form("line").Body(snapshots.Identity)},
		{"curve of a date", "/api/public/vix-term-structure?date=2026-11-16", "", "200", s.past["vix-term-structure"]["2026-11-16"].Body(snapshots.Identity)},
		{"keyed 200", "/api/v1/gex/spx", key, "200", nil},
		{"keyed gzip", "/api/v1/gex/spx", key + "Accept-Encoding: gzip\r\n", "200", nil},
		{"keyed zstd", "/api/v1/gex/spx", key + "Accept-Encoding: zstd\r\n", "200", nil},
		{"keyed 304", "/api/v1/gex/spx", key + "If-None-Match: \"" + id + "." + gamma.ETag(snapshots.Gzip)[1:] + "\r\n", "304", nil},
		{"401", "/api/v1/gex/spx", "X-API-Key: sk_guess\r\n", "401", nil},
		{"an IPv6 client", "/api/v1/gex/spx", "X-Forwarded-For: [2001:db8::1]:443\r\n", "200", gamma.Body(snapshots.Identity)},
		{"proxies on two lines", "/api/v1/gex/spx", "X-Forwarded-For: 198.51.100.7\r\nX-Forwarded-For: 192.0.2.9\r\n", "200", gamma.Body(snapshots.Identity)},
		{"a malformed client", "/api/v1/gex/spx", "X-Forwarded-For: unknown, fe80::1%eth0\r\n", "200", gamma.Body(snapshots.Identity)},
		{"400", "/api/v1/options/flow/unusual?limit=0", "", "400", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			method := "GET"
			if c.name == "HEAD" {
				method = "HEAD"
			}
			if !strings.Contains(c.fields, "X-Forwarded-For") {
				c.fields += forwarded
			}
			raw := []byte(method + " " + c.target + " HTTP/1.1\r\n" + browser + c.fields + "\r\n")
			conn := dial(t, address)
			b := make([]byte, 1<<20)
			for _, n := range []int{1, 5} { // pipelined
				requests, got := bytes.Repeat(raw, n), 0
				ask := func() {
					if _, err := conn.Write(requests); err != nil {
						t.Fatal(err)
					}
					answered := 0
					for got = 0; answered < n; {
						m, err := conn.Read(b[got:])
						must(t, err)
						got += m
						answered = bytes.Count(b[:got], []byte("HTTP/1.1 "+c.status))
						if c.body != nil && (answered < n || !bytes.HasSuffix(b[:got], c.body)) {
							answered = 0 // the last body is not whole
						}
					}
				}
				for range 200 { // allocate what later requests reuse, such as the answer of a date
					ask()
				}
				equal(t, testing.AllocsPerRun(200, ask), 0.0, "allocations for %d requests", n)
			}
		})
	}
}
