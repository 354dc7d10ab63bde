package server_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"strikecache/bench/need"
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

// Every response is counted once, by its name in the route table, status and coding, whichever way it was answered.
func TestStatsCountEveryResponse(t *testing.T) {
	s := newShelf(t)
	gamma := s.editions["gex/spx"].Default
	web, secrets := withKeys(t, s, func(c *server.Config) { c.Addresses = limits.NewAddresses(100) }, keys.Spec{Name: "k", PerMinute: 2})
	address := listen(t, web)
	key := "X-API-Key: " + secrets["k"] + "\r\n"
	const get, host = "GET /api/v1/gex/spx HTTP/1.1\r\n", "Host: a\r\n"
	twice := strings.Repeat("X-Forwarded-For: 192.0.2.1\r\n", 2) // answered by the general path
	asked := map[string]int{
		get + host + "\r\n":                                                               3,
		get + host + twice + "\r\n":                                                       2,
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
		"GET /" + strings.Repeat("a", 5000):                                               1,
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
		t.Errorf("beyond: %v", counted)
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
	need.Until(t, "every connection is closed", func() bool { return web.Stats().ConnectionsOpen == 0 })
}

// One response in 64 of a kind is timed, the first among them.
func TestDurationsAreSampled(t *testing.T) {
	web := newServer(newShelf(t))
	address := listen(t, web)
	exchange(t, address, strings.Repeat(ask+"Host: a\r\n\r\n", 200), true)
	d := web.Stats().Durations
	if len(d) != 1 || d[0].Resource != "gex/spx/series" || d[0].Count != 4 {
		t.Errorf("%+v", d)
	}
}

// No log line and no count names a client unless it is asked to, and then only a sampled request does.
func TestClientAddressesInTheLog(t *testing.T) {
	proxies, err := limits.ParseProxies("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	const client = "198.51.100.7"
	for _, named := range []bool{false, true} {
		var log need.Log
		web := newServer(newShelf(t), func(c *server.Config) {
			c.Log, c.LogEvery, c.LogClientAddr, c.Proxies, c.Addresses = log.Logger(slog.LevelDebug), 1, named, proxies, limits.NewAddresses(1000)
		})
		address := listen(t, web)
		forwarded := "Host: a\r\nX-Forwarded-For: " + client + "\r\n\r\n"
		for _, raw := range []string{
			ask + forwarded, "GET /nowhere HTTP/1.1\r\n" + forwarded, "GET / HTTP/9.9\r\n" + forwarded, ask + "Host: a b\r\n\r\n", ask,
		} {
			exchange(t, address, raw, true)
		}
		need.Until(t, "four lines", func() bool { return strings.Count(log.String(), "msg=request") == 4 })
		text := log.String()
		if got := strings.Count(text, "client="+client); named && got != 2 || !named && got != 0 {
			t.Errorf("%v: %d lines name the client behind the proxy\n%s", named, got, text)
		}
		if got := strings.Count(text, "client=127.0.0.1"); named && got != 2 || !named && strings.Contains(text, "127.0.0.1") {
			t.Errorf("%v: %d lines name the peer\n%s", named, got, text)
		}
	}
}

// faulty is a Finder with a fault of ours.
type faulty struct {
	*shelf
	detail string
}

func (f faulty) Current(string) *snapshots.Edition { panic(f.detail) }

// A fault of ours is answered without any detail, on both ways, and the server goes on.
func TestPanicIsAnswered(t *testing.T) {
	var log need.Log
	const detail = "/srv/secret/place.go:17 goroutine 5"
	web := newServer(newShelf(t), func(c *server.Config) { c.Finder, c.Log = faulty{newShelf(t), detail}, log.Logger(slog.LevelDebug) })
	address := listen(t, web)
	bodies := map[string]bool{}
	for _, fields := range []string{"", "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.1\r\n"} {
		got := exchange(t, address, "GET /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\n"+fields+"\r\n"+ask+"Host: a\r\n\r\n", true)
		head, body, _ := strings.Cut(got, "\r\n\r\n")
		if !strings.HasPrefix(head, "HTTP/1.1 500 ") || !strings.Contains(head, "Connection: close") || strings.Count(got, "HTTP/1.1") != 1 {
			t.Errorf("%q", got)
		}
		bodies[body] = true
		for _, leak := range []string{"secret", ".go", "goroutine", "panic"} {
			if strings.Contains(got, leak) {
				t.Errorf("%q leaks: %q", leak, got)
			}
		}
	}
	if want := `{"success":false,"error":{"code":"internal_error","message":"internal error"},"meta":{"endpoint":"","source":"simulated"},"usage":{"tier":"anonymous"}}`; len(bodies) != 1 || !bodies[want] {
		t.Errorf("%v", bodies)
	}
	if n := strings.Count(log.String(), "request panicked"); n != 2 || !strings.Contains(log.String(), detail) {
		t.Errorf("%d log lines: %s", n, log.String())
	}
	if got := exchange(t, address, "GET /api/v1/gex/spx/historical HTTP/1.1\r\nHost: a\r\n\r\n", true); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("afterwards: %q", got)
	}
	if n := web.Stats().Errors["internal_error"]; n != 2 {
		t.Errorf("%d internal errors counted", n)
	}
}

// An error behind a lookup never shows in the answer, whatever it says.
func TestErrorsCarryNoDetail(t *testing.T) {
	s := newShelf(t)
	var log need.Log
	s.err = &net.OpError{Op: "read", Err: io.ErrUnexpectedEOF, Addr: &net.TCPAddr{IP: net.IPv4(203, 0, 113, 9), Port: 443}}
	address := listen(t, newServer(s, func(c *server.Config) {
		c.Log = log.Logger(slog.LevelDebug)
		c.Readiness = func() server.Readiness {
			r := server.Readiness{}
			r.Impaired("disk", &net.AddrError{Err: "/srv/data/simulated: no space left", Addr: "203.0.113.9"})
			return r
		}
	}))
	for _, target := range []string{"/api/v1/gex/spx/historical", "/api/v1/gex/spx/historical?date=2026-11-17", "/readyz"} {
		got := exchange(t, address, "GET "+target+" HTTP/1.1\r\nHost: a\r\n\r\n", true)
		want := "internal_error"
		if target == "/readyz" {
			want = `"degraded":["disk"]`
		}
		if !strings.Contains(got, want) || strings.Contains(got, "203.0.113.9") || strings.Contains(got, "unexpected EOF") || strings.Contains(got, "/srv") {
			t.Errorf("%s: %q", target, got)
		}
	}
	if !strings.Contains(log.String(), "unexpected EOF") {
		t.Errorf("the log does not say it either: %s", log.String())
	}
}

func TestPages(t *testing.T) {
	s := newShelf(t)
	c := start(t, s)
	for path, typ := range map[string]string{"/": "text/html; charset=utf-8", "/assets/app.css": "text/css; charset=utf-8"} {
		plain, body := do(t, c, "GET", path, "Accept-Encoding", "identity")
		if plain.StatusCode != 200 || plain.Header.Get("Content-Type") != typ || plain.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %v", path, plain.StatusCode, plain.Header)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
				"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
			"Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Vary": "Accept-Encoding", "Cache-Control": "no-cache",
		} {
			if got := plain.Header.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		if !strings.Contains(plain.Header.Get("Permissions-Policy"), "geolocation=()") {
			t.Errorf("%s: Permissions-Policy %q", path, plain.Header.Get("Permissions-Policy"))
		}
		tags := map[string]bool{plain.Header.Get("ETag"): true}
		for _, coding := range []string{"gzip", "br", "zstd"} {
			coded, b := do(t, c, "GET", path, "Accept-Encoding", coding)
			if coded.Header.Get("Content-Encoding") != coding || path == "/" && len(b) >= len(body) {
				t.Errorf("%s in %s: %q, %d bytes of %d", path, coding, coded.Header.Get("Content-Encoding"), len(b), len(body))
			}
			tags[coded.Header.Get("ETag")] = true
		}
		if len(tags) != 4 || tags[""] {
			t.Errorf("%s: %v", path, tags)
		}
		same, b := do(t, c, "GET", path, "If-None-Match", plain.Header.Get("ETag"))
		if same.StatusCode != 304 || len(b) != 0 || same.Header.Get("ETag") == "" || same.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: %d %v", path, same.StatusCode, same.Header)
		}
		if head, b := do(t, c, "HEAD", path, "Accept-Encoding", "identity"); head.StatusCode != 200 || len(b) != 0 || head.ContentLength != int64(len(body)) {
			t.Errorf("%s: HEAD %d %v", path, head.StatusCode, head.Header)
		}
		for _, method := range []string{"POST", "OPTIONS"} {
			if resp, _ := do(t, c, method, path); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s: %s %d, Allow %q", path, method, resp.StatusCode, resp.Header.Get("Allow"))
			}
		}
	}
}

// The landing page runs and styles nothing inline, links to what exists alone, and says whether its numbers are real.
func TestLandingPage(t *testing.T) {
	for source, simulated := range map[string]bool{"simulated": true, "cboe": false} {
		address := listen(t, newServer(newShelf(t), func(c *server.Config) { c.Source = source }))
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		get := func(path string) (int, string) {
			resp, err := c.Get("http://" + address + path)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return resp.StatusCode, string(body)
		}
		_, page := get("/")
		if strings.Contains(page, "The market is simulated") != simulated || !strings.Contains(page, "<strong>"+source+"</strong>") {
			t.Errorf("%s: %s", source, page)
		}
		for _, inline := range []string{"<script>", "<style", " style=", " onclick=", "javascript:", "//"} {
			if strings.Contains(strings.ToLower(page), inline) {
				t.Errorf("%s: the page has %q", source, inline)
			}
		}
		links := 0
		page = strings.ReplaceAll(page, `src="`, `href="`)
		for _, part := range strings.Split(page, `href="/`)[1:] {
			path, _, _ := strings.Cut(part, `"`)
			if status, _ := get("/" + path); status != 200 {
				t.Errorf("%s: link /%s: %d", source, path, status)
			}
			links++
		}
		if links != 29 { // seven resources, two probes, the interface twice and its document, the icon, two style sheets, two scripts and 12 that they load
			t.Errorf("%s: %d links", source, links)
		}
	}
}
