package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"strikecache/server"
	"strikecache/server/keys"
	"strikecache/server/limits"
	"strikecache/snapshots"
)

func TestConditionalRequests(t *testing.T) {
	s := newShelf(t)
	c := start(t, s)
	gamma, other := s.editions["gex/spx"].Default, s.dated["2026-11-17"]
	tag := func(c snapshots.Coding) string { return gamma.ETag(c) }
	modified, err := http.ParseTime(gamma.LastModified())
	if err != nil {
		t.Fatal(err)
	}
	at := func(d time.Duration) string { return modified.Add(d).Format(http.TimeFormat) }
	for _, e := range []struct {
		name, noneMatch, modifiedSince string
		status                         int
	}{
		{"own tag", tag(snapshots.Identity), "", 304},
		{"tag of another coding", tag(snapshots.Brotli), "", 304},
		{"weak tag", "W/" + tag(snapshots.Gzip), "", 304},
		{"in a list", `"a", W/"b" ,` + tag(snapshots.Zstd) + `, "c"`, "", 304},
		{"anything", "*", "", 304},
		{"tag of another snapshot", other.ETag(snapshots.Identity), "", 200},
		{"without quotes", strings.Trim(tag(snapshots.Identity), `"`), "", 200},
		{"lower-case w", "w/" + tag(snapshots.Identity), "", 200},
		{"cut off", tag(snapshots.Identity)[:20], "", 200},
		{"after what is malformed", `"a" b, ` + tag(snapshots.Identity), "", 200},
		{"empty", "", "", 200},
		{"the same instant", "", at(0), 304},
		{"later", "", at(time.Hour), 200}, // not a date of ours
		{"earlier", "", at(-time.Second), 200},
		{"no date", "", "yesterday", 200},
		{"tag goes before date", `"a"`, at(0), 200},
		{"tag goes before date, and matches", tag(snapshots.Identity), at(-time.Hour), 304},
	} {
		headers := []string{"Accept-Encoding", "identity"}
		if e.noneMatch != "" {
			headers = append(headers, "If-None-Match", e.noneMatch)
		}
		if e.modifiedSince != "" {
			headers = append(headers, "If-Modified-Since", e.modifiedSince)
		}
		for _, method := range []string{"GET", "HEAD"} {
			resp, body := do(t, c, method, "/api/v1/gex/spx", headers...)
			if resp.StatusCode != e.status || (len(body) > 0) != (e.status == 200 && method == "GET") {
				t.Errorf("%s %s: %d with %d bytes, want %d", method, e.name, resp.StatusCode, len(body), e.status)
			}
			// RFC 9110 §15.4.5: what a 200 would have had.
			for name, want := range map[string]string{
				"ETag": tag(snapshots.Identity), "Last-Modified": at(0), "Vary": "Accept-Encoding, X-API-Key",
				"Cache-Control": "public, max-age=25, stale-while-revalidate=25, stale-if-error=86400", "Access-Control-Allow-Origin": "*",
			} {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s %s: %s is %q, want %q", method, e.name, name, got, want)
				}
			}
			if resp.Header.Get("Date") == "" || e.status == 304 && resp.Header.Get("Content-Length") != "" {
				t.Errorf("%s %s: %v", method, e.name, resp.Header)
			}
		}
	}
}

// The gate and fasthttp give the same answer to the same request, field for field; a repeated X-Forwarded-For,
// which means nothing here, makes the difference.
func TestBothWaysAnswerAlike(t *testing.T) {
	s := newShelf(t)
	gamma := s.editions["gex/spx"].Default
	address := listen(t, newServer(s))
	for _, target := range []string{
		"/api/v1/gex/spx", "/api/v1/gex/spx/historical?date=2026-11-17", "/api/public/spx-max-pain?expiration=2026-11-27",
		"/api/v1/options/flow/unusual?limit=1", "/api/v1/options/flow/unusual?limit=0", "/api/v1/gex/spx/historical?date=2026-11-18",
	} {
		for _, fields := range []string{
			"", "Accept-Encoding: gzip\r\n", "Accept-Encoding: br, zstd\r\n", "If-None-Match: " + gamma.ETag(snapshots.Gzip) + "\r\n", "X-API-Key: guess\r\n",
		} {
			for _, method := range []string{"GET", "HEAD"} {
				raw := method + " " + target + " HTTP/1.1\r\nHost: a\r\n" + fields
				plain := exchange(t, address, raw+"\r\n", true)
				general := exchange(t, address, raw+strings.Repeat("X-Forwarded-For: 192.0.2.1\r\n", 2)+"\r\n", true)
				a, b := fieldsOf(plain), fieldsOf(general)
				if len(a) < 6 || !slices.Equal(a, b) {
					t.Errorf("%s %s with %q:\n%q\n%q", method, target, fields, a, b)
				}
			}
		}
	}
}

// fieldsOf returns the status line, the sorted field lines but Date, and the body of a response.
func fieldsOf(response string) []string {
	head, body, _ := strings.Cut(response, "\r\n\r\n")
	lines := strings.Split(strings.ReplaceAll(head, "Etag:", "ETag:"), "\r\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "Date: ") })
	for i := range lines[1:] {
		name, value, _ := strings.Cut(lines[i+1], ":")
		lines[i+1] = http.CanonicalHeaderKey(name) + ":" + value
	}
	slices.Sort(lines[1:])
	return append(lines, body)
}

// withKeys returns a server that knows keys, and the secrets by name.
func withKeys(t testing.TB, s *shelf, change func(*server.Config), specs ...keys.Spec) (*server.Server, map[string]string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.json")
	secrets := map[string]string{}
	for _, spec := range specs {
		secret, _, err := keys.Create(path, spec, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		secrets[spec.Name] = secret
	}
	table, err := keys.Open(path, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	return newServer(s, func(c *server.Config) {
		c.Keys = table
		if change != nil {
			change(c)
		}
	}), secrets
}

type usage struct {
	Tier          string
	Key           string
	RequestsToday int  `json:"requests_today"`
	LimitPerDay   *int `json:"limit_per_day"`
	Remaining     *int `json:"remaining_today"`
}

func usageOf(t testing.TB, body []byte) usage {
	t.Helper()
	var doc struct{ Usage usage }
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatalf("%v in %.200q", err, body)
	}
	return doc.Usage
}

// A keyed answer has the same data, its own usage, and a caching that keeps it from everyone else.
func TestKeyedAnswers(t *testing.T) {
	s := newShelf(t)
	web, secrets := withKeys(t, s, nil, keys.Spec{Name: "free"}, keys.Spec{Name: "metered", PerMinute: 600, PerDay: 8})
	address := listen(t, web)
	c := &http.Client{Transport: &http.Transport{DisableCompression: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("tcp", address)
	}}}
	defer c.CloseIdleConnections()
	ask := func(method, key string, headers ...string) (*http.Response, []byte) {
		t.Helper()
		return do(t, c, method, "/api/v1/gex/spx", append(headers, "X-API-Key", key)...)
	}
	gamma := s.editions["gex/spx"].Default
	data := append([]byte(`{"success":true,"data":`), gamma.Data()...)
	resp, body := ask("GET", secrets["free"])
	u := usageOf(t, body)
	if !bytes.HasPrefix(body, data) || u.Tier != "keyed" || !strings.HasPrefix(u.Key, "k_") || u.RequestsToday != 1 || u.LimitPerDay != nil || u.Remaining != nil {
		t.Errorf("%+v in %.100q", u, body)
	}
	if h := resp.Header; h.Get("ETag") != "W/"+gamma.ETag(snapshots.Identity) || !strings.HasPrefix(h.Get("Cache-Control"), "private, max-age=25") ||
		h.Get("RateLimit") != "" {
		t.Errorf("%v", h)
	}
	for n := 1; n <= 7; n++ {
		resp, body := ask("GET", secrets["metered"])
		u, h := usageOf(t, body), resp.Header
		if u.RequestsToday != n || *u.LimitPerDay != 8 || *u.Remaining != 8-n {
			t.Errorf("request %d: %+v", n, u)
		}
		if h.Get("RateLimit-Policy") != `"minute";q=600;w=60, "day";q=8;w=86400` || !strings.Contains(h.Get("RateLimit"), fmt.Sprintf(`"day";r=%d;t=`, 8-n)) ||
			h.Get("X-RateLimit-Limit") != "8" || h.Get("X-RateLimit-Remaining") != fmt.Sprint(8-n) || h.Get("X-RateLimit-Reset") == "" {
			t.Errorf("request %d: %v", n, h)
		}
	}
	resp, _ = ask("GET", secrets["metered"], "If-None-Match", gamma.ETag(snapshots.Gzip)) // counts too
	if resp.StatusCode != 304 || resp.Header.Get("X-RateLimit-Remaining") != "0" || resp.Header.Get("ETag") != "W/"+gamma.ETag(snapshots.Identity) {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	resp, body = ask("GET", secrets["metered"])
	if resp.StatusCode != 429 || !bytes.Contains(body, []byte(`"code":"quota_exceeded"`)) || resp.Header.Get("Retry-After") == "" || usageOf(t, body).RequestsToday != 8 {
		t.Errorf("%d %s %v", resp.StatusCode, body, resp.Header)
	}
	if resp, body = ask("GET", secrets["free"]+"x"); resp.StatusCode != 401 || usageOf(t, body).Tier != "anonymous" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	for _, coding := range []snapshots.Coding{snapshots.Gzip, snapshots.Brotli, snapshots.Zstd} {
		resp, body := ask("GET", secrets["free"], "Accept-Encoding", coding.String())
		if resp.Header.Get("Content-Encoding") != coding.String() || !bytes.HasPrefix(body, gamma.Prefix(coding)) {
			t.Errorf("%v: %v", coding, resp.Header)
		}
		if resp, _ := ask("HEAD", secrets["free"], "Accept-Encoding", coding.String()); resp.ContentLength != int64(len(body)) {
			t.Errorf("%v: HEAD has length %d, GET %d", coding, resp.ContentLength, len(body))
		}
	}
}

func TestRateLimits(t *testing.T) {
	proxies, err := limits.ParseProxies("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	web, secrets := withKeys(t, newShelf(t), func(c *server.Config) {
		c.Addresses, c.Proxies = limits.NewAddresses(3), proxies
	}, keys.Spec{Name: "slow", PerMinute: 2})
	address := listen(t, web)
	counts := map[string]int{}
	for range 5 {
		for _, fields := range []string{
			"", "X-Forwarded-For: 192.0.2.1\r\n", "X-Forwarded-For: 192.0.2.7, 192.0.2.2\r\n", "X-Forwarded-For: 192.0.2.3\r\nX-Forwarded-For: 192.0.2.4\r\n",
			"X-API-Key: " + secrets["slow"] + "\r\n",
		} {
			got := exchange(t, address, "GET /api/v1/gex/spx/series HTTP/1.1\r\nHost: a\r\n"+fields+"\r\n", true)
			counts[fields+got[9:12]]++
			if strings.HasPrefix(got[9:], "429") != strings.Contains(got, "Retry-After: ") || !strings.Contains(got, "RateLimit-Policy: \"minute\";q=") {
				t.Errorf("%q", got)
			}
		}
	}
	for name, n := range counts {
		limit := 3
		if strings.HasPrefix(name, "X-API-Key") {
			limit = 2
		}
		if strings.HasSuffix(name, "200") && n != limit || strings.HasSuffix(name, "429") && n != 5-limit || len(counts) != 10 {
			t.Errorf("%v", slices.Sorted(maps.Keys(counts)))
		}
	}
}

// A server that stops lets answers under way be the last of their connections, and waits for no idle client.
func TestShutdown(t *testing.T) {
	web := newServer(newShelf(t))
	ln, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- web.Serve(ln) }()
	idle, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	used, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := io.WriteString(used, "GET /api/v1/gex/spx/series HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(used, make([]byte, 400)); err != nil {
			t.Fatal(err)
		}
	}
	if err := web.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]net.Conn{"idle": idle, "used": used} {
		if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(c); err != nil {
			t.Errorf("%s: %v after %q", name, err, rest)
		}
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
