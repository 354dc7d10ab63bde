package server_test

import (
	"bytes"
	"strings"
	"testing"

	"strikecache/server"
	"strikecache/server/keys"
	"strikecache/server/limits"
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

// Every response is counted once, by resource, status and coding. Nothing else that a client chooses becomes a label.
func TestStatsCountEveryResponse(t *testing.T) {
	s := newFinder(t)
	web, secrets := withKeys(t, s, func(c *server.Config) { c.Addresses = limits.NewAddresses(100) }, keys.Key{Name: "k", PerMinute: 3})
	address := listen(t, web)
	const get, host = "GET /api/v1/gex/spx HTTP/1.1\r\n", "Host: a\r\n"
	key := "X-API-Key: " + secrets["k"] + "\r\n"
	connections, want, errors := uint64(0), map[server.Responses]uint64{}, map[string]uint64{"internal_error": 0}
	bodies := map[server.Responses]uint64{} // bytes that the client got
	for _, c := range []struct {
		raw              string
		n                uint64
		resource, coding string
		status           int
		code             string // of an error
	}{
		{get + host, 70, "gex/spx", "identity", 200, ""},
		{get + host + "Accept-Encoding: br\r\n", 2, "gex/spx", "br", 200, ""},
		{"HEAD /api/v1/gex/spx HTTP/1.1\r\n" + host, 1, "gex/spx", "identity", 200, ""},
		{get + host + "If-None-Match: *\r\nAccept-Encoding: gzip\r\n", 4, "gex/spx", "gzip", 304, ""},
		{get + host + key + "Accept-Encoding: zstd\r\n", 1, "gex/spx", "zstd", 200, ""},
		{get + host + key, 2, "gex/spx", "identity", 200, ""},
		{get + host + key, 1, "gex/spx", "identity", 429, "rate_limited"},
		{get + host + "X-API-Key: sk_guess\r\n", 2, "gex/spx", "identity", 401, "invalid_api_key"},
		{"GET /api/v1/options/flow/unusual?limit=0 HTTP/1.1\r\n" + host, 1, "options/flow/unusual", "identity", 400, "invalid_parameter"},
		{"GET /api/v1/gex/spx/historical?date=2026-11-18 HTTP/1.1\r\n" + host, 1, "gex/spx/historical", "identity", 404, "snapshot_not_found"},
		{"GET /api/public/spx-max-pain?expiration=2027-11-18 HTTP/1.1\r\n" + host, 1, "spx-max-pain", "identity", 404, "expiration_not_found"},
		{"OPTIONS /api/v1/gex/spx HTTP/1.1\r\n" + host, 1, "gex/spx", "identity", 204, ""},
		{"QUERY /2026-11-19 HTTP/1.1\r\n" + host, 2, "other", "identity", 404, "not_found"},
		{"GET /healthz HTTP/1.1\r\n" + host, 1, "healthz", "identity", 200, ""},
		{"GET /readyz HTTP/1.1\r\n" + host, 2, "readyz", "identity", 200, ""},
		{"GET / HTTP/1.1\r\n" + host + "Accept-Encoding: gzip\r\n", 1, "page", "gzip", 200, ""},
		{"GET /" + strings.Repeat("a", 5000) + " HTTP/1.1\r\n" + host, 1, "other", "identity", 414, "uri_too_long"},
		{"GET / HTTP/9.9\r\n" + host, 1, "other", "identity", 505, "http_version_not_supported"},
	} {
		for range c.n {
			_, body, _ := strings.Cut(exchange(t, address, c.raw+"\r\n", true), "\r\n\r\n")
			bodies[server.Responses{Resource: c.resource, Coding: c.coding}] += uint64(len(body))
		}
		connections += c.n
		want[server.Responses{Resource: c.resource, Status: c.status, Coding: c.coding}] += c.n
		errors[c.code] += c.n
	}
	got := web.Stats()
	equal(t, responses(got), want, "responses")
	delete(errors, "")
	for code, n := range errors {
		equal(t, got.Errors[code], n, "%s", code)
	}
	for _, b := range got.Bytes {
		equal(t, b.Count, bodies[server.Responses{Resource: b.Resource, Coding: b.Coding}], "bytes of %s in %s", b.Resource, b.Coding)
	}
	for _, d := range got.Durations { // one response in 64 of a kind: of gex/spx the first and 65th 200 in identity, the first in br, zstd, 304, 429, 401
		if d.Resource == "gex/spx" && (d.Count != 7 || d.Sum <= 0 || d.Buckets[10] != d.Count) {
			t.Errorf("%+v", d)
		}
	}
	if got.ConnectionsAccepted != connections || got.AddressesHeld != 1 || got.KeysKnown != 1 {
		t.Errorf("%d connections of %d, %d addresses, %d keys", got.ConnectionsAccepted, connections, got.AddressesHeld, got.KeysKnown)
	}
	until(t, "every connection is closed", func() bool { return web.Stats().ConnectionsOpen == 0 })
}

// Each GET and HEAD of a resource counts against the limits of its key, whatever its answer is, but no other request does.
func TestRequestsThatCount(t *testing.T) {
	s := newFinder(t)
	delete(s.editions, "sectors/rotation")
	web, secrets := withKeys(t, s, nil, keys.Key{Name: "k"})
	c, n := clientOf(t, web), 0
	for _, r := range []struct {
		method, path string
		status       int
		counts       bool
		fields       []string
	}{
		{"GET", "/api/v1/gex/spx", 200, true, nil}, {"HEAD", "/api/v1/gex/spx", 200, true, nil}, {"GET", "/api/v1/gex/spx/levels?format=csv", 200, true, nil},
		{"GET", "/api/v1/gex/spx", 304, true, []string{"If-None-Match", "*"}}, {"GET", "/api/v1/gex/spx", 412, true, []string{"If-Match", `"x"`}},
		{"GET", "/api/v1/gex/spx?date=x", 400, true, nil}, {"GET", "/api/v1/gex/spx?symbol=qqq", 404, true, nil},
		{"GET", "/api/v1/gex/spx/historical?date=2020-01-01", 404, true, nil}, {"GET", "/api/v1/sectors/rotation", 503, true, nil}, {"GET", "/api/v1/gex/spx/nothing", 404, false, nil}, {"GET", "/api/v1/gex/qqq", 404, false, nil},
		{"POST", "/api/v1/gex/spx", 405, false, nil}, {"OPTIONS", "/api/v1/gex/spx", 204, false, nil}, {"GET", "/healthz", 200, false, nil}, {"GET", "/openapi.json", 200, false, nil},
	} {
		if resp, body := do(t, c, r.method, r.path, append(r.fields, "X-API-Key", secrets["k"])...); resp.StatusCode != r.status || r.counts == bytes.Contains(body, []byte(`"anonymous"`)) && r.status >= 400 {
			t.Errorf("%s %s: %d %s", r.method, r.path, resp.StatusCode, body)
		}
		_, body := do(t, c, "GET", "/api/v1/gex/spx", "X-API-Key", secrets["k"])
		if n++; r.counts {
			n++
		}
		equal(t, usageOf(t, body).RequestsToday, n, "requests after %s %s", r.method, r.path)
	}
}
