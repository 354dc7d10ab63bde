package server_test

import (
	"strings"
	"testing"

	"strikecache/server"
	"strikecache/server/keys"
	"strikecache/server/limits"
	"strikecache/snapshots"
)

// responses returns the counts of a server without those at zero.
func responses(s server.Stats) map[server.Responses]uint64 {
	counts := map[server.Responses]uint64{}
	for _, r := range s.Responses {
		n := r.Count
		r.Count = 0
		counts[r] += n
	}
	return counts
}

// Every response is counted once, by resource, status and coding.
func TestStatsCountEveryResponse(t *testing.T) {
	s := newFinder(t)
	gamma := s.editions["gex/spx"].Default
	web, secrets := withKeys(t, s, func(c *server.Config) { c.Addresses = limits.NewAddresses(100) }, keys.Key{Name: "k", PerMinute: 2})
	address := listen(t, web)
	key := "X-API-Key: " + secrets["k"] + "\r\n"
	const get, host = "GET /api/v1/gex/spx HTTP/1.1\r\n", "Host: a\r\n"
	asked := map[string]int{
		get + host + "\r\n":                                                               5,
		get + host + "Accept-Encoding: br\r\n\r\n":                                        2,
		"HEAD /api/v1/gex/spx HTTP/1.1\r\n" + host + "\r\n":                               1,
		get + host + "If-None-Match: *\r\nAccept-Encoding: gzip\r\n\r\n":                  4,
		get + host + key + "\r\n":                                                         3, // of which the limit lets 2 pass
		get + host + "X-API-Key: sk_guess\r\n\r\n":                                        2,
		"GET /api/v1/options/flow/unusual?limit=0 HTTP/1.1\r\n" + host + "\r\n":           1,
		"GET /api/v1/gex/spx/historical?date=2026-11-18 HTTP/1.1\r\n" + host + "\r\n":     1,
		"GET /api/public/spx-max-pain?expiration=2027-11-18 HTTP/1.1\r\n" + host + "\r\n": 1,
		"OPTIONS /api/v1/gex/spx HTTP/1.1\r\n" + host + "\r\n":                            1,
		"GET /nowhere HTTP/1.1\r\n" + host + "\r\n":                                       2,
		"GET /healthz HTTP/1.1\r\n" + host + "\r\n":                                       1,
		"GET /readyz HTTP/1.1\r\n" + host + "\r\n":                                        2,
		"GET / HTTP/1.1\r\n" + host + "Accept-Encoding: gzip\r\n\r\n":                     1,
		"GET /" + strings.Repeat("a", 5000) + " HTTP/1.1\r\n" + host + "\r\n":             1,
		"GET / HTTP/9.9\r\n" + host + "\r\n":                                              1,
	}
	connections := uint64(0)
	for raw, n := range asked {
		for range n {
			exchange(t, address, raw, true)
			connections++
		}
	}
	got := web.Stats()
	want := map[server.Responses]uint64{
		{Resource: "gex/spx", Status: 200, Coding: "identity"}:              3 + 2 + 1 + 2,
		{Resource: "gex/spx", Status: 200, Coding: "br"}:                    2,
		{Resource: "gex/spx", Status: 304, Coding: "gzip"}:                  4,
		{Resource: "gex/spx", Status: 429, Coding: "identity"}:              1,
		{Resource: "gex/spx", Status: 401, Coding: "identity"}:              2,
		{Resource: "gex/spx", Status: 204, Coding: "identity"}:              1,
		{Resource: "options/flow/unusual", Status: 400, Coding: "identity"}: 1,
		{Resource: "gex/spx/historical", Status: 404, Coding: "identity"}:   1,
		{Resource: "spx-max-pain", Status: 404, Coding: "identity"}:         1,
		{Resource: "other", Status: 404, Coding: "identity"}:                2,
		{Resource: "healthz", Status: 200, Coding: "identity"}:              1,
		{Resource: "readyz", Status: 200, Coding: "identity"}:               2,
		{Resource: "page", Status: 200, Coding: "gzip"}:                     1,
		{Resource: "other", Status: 414, Coding: "identity"}:                1,
		{Resource: "other", Status: 505, Coding: "identity"}:                1,
	}
	counted := responses(got)
	for r, n := range want {
		if counted[r] != n {
			t.Errorf("%+v: %d, want %d", r, counted[r], n)
		}
		delete(counted, r)
	}
	if len(counted) > 0 {
		t.Errorf("not expected: %v", counted)
	}
	for code, n := range map[string]uint64{
		"rate_limited": 1, "invalid_api_key": 2, "invalid_parameter": 1, "snapshot_not_found": 1, "expiration_not_found": 1,
		"not_found": 2, "uri_too_long": 1, "http_version_not_supported": 1, "internal_error": 0,
	} {
		if got.Errors[code] != n {
			t.Errorf("%s: %d, want %d", code, got.Errors[code], n)
		}
	}
	for _, b := range got.Bytes {
		if want := uint64(2 * len(gamma.Body(snapshots.Brotli))); b.Resource == "gex/spx" && b.Coding == "br" && b.Count != want {
			t.Errorf("%d bytes, want %d", b.Count, want)
		}
	}
	for _, d := range got.Durations { // of gex/spx: the first 200 in identity and in br, 304, 429, 401
		if d.Resource == "gex/spx" && (d.Count < 4 || d.Count > 5 || d.Sum <= 0 || d.Buckets[10] != d.Count) {
			t.Errorf("%+v", d)
		}
	}
	if got.ConnectionsAccepted != connections || got.AddressesHeld != 1 || got.KeysKnown != 1 {
		t.Errorf("%d connections of %d, %d addresses, %d keys", got.ConnectionsAccepted, connections, got.AddressesHeld, got.KeysKnown)
	}
	until(t, "every connection is closed", func() bool { return web.Stats().ConnectionsOpen == 0 })
}

// One response in 64 of a kind is timed, the first among them.
func TestDurationsAreSampled(t *testing.T) {
	web := newServer(newFinder(t))
	address := listen(t, web)
	exchange(t, address, strings.Repeat(seriesLine+"Host: a\r\n\r\n", 200), true)
	d := web.Stats().Durations
	if len(d) != 1 || d[0].Resource != "gex/spx/series" || d[0].Count != 4 {
		t.Errorf("%+v", d)
	}
}
