package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strikecache/server"
	"strikecache/server/keys"
	"strikecache/server/limits"
	"strikecache/snapshots"
)

// Every resource sends its snapshot, byte for byte, with the fields that belong to it.
func TestEveryResourceSendsItsSnapshot(t *testing.T) {
	s := newFinder(t)
	c := clientOf(t, newServer(s))
	const (
		gamma  = "public, max-age=25, stale-while-revalidate=25, stale-if-error=86400"
		closed = "public, max-age=31536000, immutable"
		minute = "public, max-age=60, stale-while-revalidate=60, stale-if-error=86400"
	)
	for target, want := range map[string]struct {
		snapshot     *snapshots.Snapshot
		cacheControl string
	}{
		"/api/v1/gex/spx":                                      {s.editions["gex/spx"].Default, gamma},
		"/api/v1/gex/spx?anything=ignored&_=1":                 {s.editions["gex/spx"].Default, gamma},
		"/api/v1/gex/spx?symbol=%5ESPX&underlying=Spx":         {s.editions["gex/spx"].Default, gamma},
		"/api/v1/gex/spx/series":                               {s.editions["gex/spx/series"].Default, minute},
		"/api/v1/gex/spx/historical":                           {s.past["gex/spx"]["2026-11-20"], gamma},
		"/api/v1/gex/spx/historical?date=2026-11-20":           {s.past["gex/spx"]["2026-11-20"], gamma}, // today
		"/api/v1/gex/spx/historical?offset=0&date=2026-11-19":  {s.past["gex/spx"]["2026-11-19"], gamma}, // immutable from 00:15
		"/api/v1/gex/spx/historical?date=2026-11-17":           {s.past["gex/spx"]["2026-11-17"], closed},
		"/api/v1/gex/spx/historical?date=2026%2D11%2d17":       {s.past["gex/spx"]["2026-11-17"], closed},
		"/api/v1/gex/spx/intraday":                             {s.editions["gex/spx/intraday"].Default, minute}, // current, so that its freshness is told
		"/api/v1/gex/spx/intraday?date=2026-11-20":             {s.past["gex/spx/intraday"]["2026-11-20"], minute},
		"/api/v1/gex/spx/intraday?date=2026-11-18":             {s.past["gex/spx/intraday"]["2026-11-18"], closed},
		"/api/v1/sectors/rotation":                             {s.editions["sectors/rotation"].Default, minute},
		"/api/public/spx-max-pain":                             {s.editions["spx-max-pain"].Default, minute},
		"/api/public/spx-max-pain?expiration=2026-11-27":       {s.editions["spx-max-pain"].Variants["2026-11-27"], minute},
		"/api/v1/options/flow/unusual":                         {s.editions["options/flow/unusual"].Variants["20"], minute},
		"/api/v1/options/flow/unusual?limit=100":               {s.editions["options/flow/unusual"].Variants["100"], minute},
		"/api/v1/options/flow/unusual?date=2026-11-19":         {s.past["options/flow/unusual"]["2026-11-19"], minute},
		"/api/v1/options/flow/unusual?limit=1&date=2026-11-18": {s.limited["1"], closed},
		"/api/v1/options/flow/unusual?limit=%31":               {s.editions["options/flow/unusual"].Variants["1"], minute},
		"/api/public/vix-term-structure":                       {s.editions["vix-term-structure"].Default, minute},
		"/api/public/vix-term-structure?date=2026-11-19":       {s.past["vix-term-structure"]["2026-11-19"], minute},
		"/api/public/vix-term-structure?date=2026-11-16":       {s.past["vix-term-structure"]["2026-11-16"], closed},
		"/api/public/vix-term-structure/series":                {s.editions["vix-term-structure/series"].Default, minute},
		"/api/v1/sectors/rotation?date=2026-11-13":             {s.past["sectors/rotation"]["2026-11-13"], closed},
		"/api/public/spx-max-pain?date=2026-11-17":             {s.past["spx-max-pain"]["2026-11-17"], closed},

		"/api/public/spx-max-pain?expiration=2026-12-18&date=2026-11-17": {s.past["spx-max-pain"]["2026-11-17"], closed},
	} {
		for _, coding := range []snapshots.Coding{snapshots.Identity, snapshots.Gzip} {
			if !want.snapshot.Has(coding) { // a cut
				coding = snapshots.Identity
			}
			resp, body := do(t, c, "GET", target, "Accept-Encoding", coding.String())
			if resp.StatusCode != 200 || !bytes.Equal(body, want.snapshot.Body(coding)) {
				t.Errorf("%s: %d %s", target, resp.StatusCode, body)
			}
			for name, value := range map[string]string{
				"Content-Type": "application/json", "ETag": want.snapshot.ETag(coding), "Cache-Control": want.cacheControl,
				"Vary": "Accept-Encoding, X-API-Key", "X-Content-Type-Options": "nosniff",
				"Cache-Tag": "strikecache," + resourceOf(target) + "," + want.snapshot.Meta.AsOf.Format(time.DateOnly),
			} {
				equal(t, resp.Header.Get(name), value, "%s: %s", target, name)
			}
		}
	}
}

// resourceOf returns the name of the resource of a target.
func resourceOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return strings.TrimPrefix(strings.TrimPrefix(path, "/api/v1/"), "/api/public/")
}

// max-age counts down to the next change, from the interval to 1. It follows a
// publication at once.
func TestMaxAgeCountsDown(t *testing.T) {
	f := newFinder(t)
	var left atomic.Int64
	var asked atomic.Value
	c := clientOf(t, newServer(f, func(c *server.Config) {
		c.NextChange = func(resource string, at time.Time) time.Time {
			asked.Store(resource)
			return at.Add(time.Duration(left.Load()))
		}
	}))
	const gamma = "/api/v1/gex/spx"
	for _, x := range []struct {
		target, resource string
		left             time.Duration
		want, interval   int
	}{
		{gamma, "gex/spx", 17 * time.Second, 17, 25}, {gamma, "gex/spx", 9900 * time.Millisecond, 10, 25}, {gamma, "gex/spx", 100 * time.Millisecond, 1, 25}, {gamma, "gex/spx", 0, 1, 25},
		{gamma, "gex/spx", -4000 * time.Second, 1, 25}, {gamma, "gex/spx", 26 * time.Second, 25, 25}, {gamma, "gex/spx", 1 << 60, 25, 25},
		{gamma + "/historical", "gex/spx", 7 * time.Second, 7, 25}, {gamma + "/historical?date=2026-11-20", "gex/spx", 7 * time.Second, 7, 25},
		{gamma + "/intraday", "gex/spx/intraday", 7 * time.Second, 7, 60}, {gamma + "/intraday?date=2026-11-20", "gex/spx/intraday", 61 * time.Second, 60, 60},
		{"/api/v1/options/flow/unusual?limit=1", "options/flow/unusual", 9 * time.Second, 9, 60}, {"/api/public/vix-term-structure", "vix-term-structure", 59 * time.Second, 59, 60},
		{"/api/v1/sectors/rotation?date=2026-11-19", "sectors/rotation", 9 * time.Second, 9, 60}, {"/api/public/vix-term-structure?date=2026-11-19", "vix-term-structure", 9 * time.Second, 9, 60},
	} {
		left.Store(int64(x.left))
		f.publications.Add(1)
		resp, _ := do(t, c, "GET", x.target)
		equal(t, resp.Header.Get("Cache-Control"), fmt.Sprintf("public, max-age=%d, stale-while-revalidate=%d, stale-if-error=86400", x.want, x.interval), "%s, %v before the next refresh", x.target, x.left)
		equal(t, asked.Load(), any(x.resource), "%s: the resource that the server asks for", x.target)
	}
}

func TestHeadEqualsGet(t *testing.T) {
	c := clientOf(t, newServer(newFinder(t)))
	for _, target := range []string{"/api/v1/gex/spx", "/api/v1/gex/spx/series?format=csv", "/api/v1/options/flow/unusual?limit=0", "/nowhere", "/healthz", "/readyz", "/"} {
		for _, coding := range []string{"identity", "gzip", "br"} {
			get, body := do(t, c, "GET", target, "Accept-Encoding", coding)
			head, none := do(t, c, "HEAD", target, "Accept-Encoding", coding)
			get.Header.Del("Date")
			head.Header.Del("Date")
			if len(none) != 0 || head.StatusCode != get.StatusCode || head.ContentLength != int64(len(body)) || !maps.EqualFunc(get.Header, head.Header, slices.Equal) {
				t.Errorf("%s: GET %d %v, HEAD %d %v", target, get.StatusCode, get.Header, head.StatusCode, head.Header)
			}
		}
	}
}

// unfedSectors makes a source without documents for the sectors.
func unfedSectors(c *server.Config) {
	c.Readiness = func() server.Readiness {
		return server.Readiness{Unfed: []string{"sectors/rotation"}, Failures: []server.Failure{{Resource: "gex/spx", Reason: "upstream_unreachable"}}}
	}
}

func TestReadiness(t *testing.T) {
	fleet := func(c *server.Config) {
		c.Fleet, c.Readiness = true, func() server.Readiness {
			return server.Readiness{Role: "edge", Degraded: []string{"fleet"}, History: "41 of 250"}
		}
	}
	for want, change := range map[string]func(*server.Config){
		`{"ready":true,"source":"simulated","waiting":[],"failures":[{"resource":"gex/spx","reason":"upstream_unreachable"}],"unfed":["sectors/rotation"],"degraded":[]}`: unfedSectors,
		`{"ready":true,"source":"simulated","role":"edge","waiting":[],"failures":[],"unfed":[],"degraded":["fleet"],"history":"41 of 250"}`:                              fleet,
	} {
		c := clientOf(t, newServer(newFinder(t), change))
		if resp, body := do(t, c, "GET", "/readyz"); resp.StatusCode != 200 || string(body) != want || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
		_, page := do(t, c, "GET", "/") // it has a place for the role in a fleet
		equal(t, strings.Contains(string(page), `id="role"`), strings.Contains(want, "role"), "a place for the role")
	}
}

// TestLists shows the forms of the conditions.
func TestConditionalRequests(t *testing.T) {
	s := newFinder(t)
	c := clientOf(t, newServer(s))
	gamma, other := s.editions["gex/spx"].Default, s.past["gex/spx"]["2026-11-17"]
	tag := func(c snapshots.Coding) string { return gamma.ETag(c) }
	modified, err := http.ParseTime(gamma.LastModified())
	must(t, err)
	at := func(d time.Duration) string { return modified.Add(d).Format(http.TimeFormat) }
	for _, e := range []struct {
		name, noneMatch, modifiedSince string
		status                         int
	}{
		{"own tag", tag(snapshots.Identity), "", 304},
		{"weak tag", "W/" + tag(snapshots.Gzip), "", 304},
		{"tag of another snapshot", other.ETag(snapshots.Identity), "", 200},
		{"a date is ignored", "", at(0), 200}, // two answers of one second have the same
		{"a date beside a tag is ignored", `"a"`, at(0), 200},
		{"a date beside a tag that matches is ignored", tag(snapshots.Identity), at(-time.Hour), 304},
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
			// RFC 9110 §15.4.5: a 304 has these fields of the 200.
			for name, want := range map[string]string{
				"ETag": tag(snapshots.Identity), "Last-Modified": at(0), "Vary": "Accept-Encoding, X-API-Key",
				"Cache-Control": "public, max-age=25, stale-while-revalidate=25, stale-if-error=86400", "Access-Control-Allow-Origin": "*",
			} {
				equal(t, resp.Header.Get(name), want, "%s %s: %s", method, e.name, name)
			}
			if resp.Header.Get("Date") == "" || e.status == 304 && resp.Header.Get("Content-Length") != "" {
				t.Errorf("%s %s: %v", method, e.name, resp.Header)
			}
		}
	}
}

// Where the market's clock is ahead, Last-Modified is the Date (RFC 9110 §8.8.2.1), and If-Unmodified-Since is compared with the change.
func TestModifiedInTheFuture(t *testing.T) {
	f := newFinder(t)
	ahead := time.Now().Add(24 * time.Hour)
	s, err := snapshots.Seal([]byte("{}"), snapshots.Meta{AsOf: ahead, ComputedAt: ahead, Quality: json.RawMessage("{}")})
	must(t, err)
	f.editions["gex/spx"] = &snapshots.Edition{Default: s}
	c := clientOf(t, newServer(f))
	for _, e := range []struct {
		method, name, value string
		status              int
	}{{"GET", "X", "", 200}, {"HEAD", "X", "", 200}, {"GET", "If-None-Match", "*", 304}, {"GET", "If-Unmodified-Since", ahead.UTC().Format(http.TimeFormat), 200}} {
		resp, _ := do(t, c, e.method, "/api/v1/gex/spx", e.name, e.value)
		if h := resp.Header; resp.StatusCode != e.status || h.Get("Date") == "" || h.Get("Last-Modified") != h.Get("Date") {
			t.Errorf("%v: %d %v", e, resp.StatusCode, h)
		}
	}
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

// The answer to a key has the same data, the usage of the key, and a Cache-Control that forbids shared caches to store it.
func TestKeyedAnswers(t *testing.T) {
	s := newFinder(t)
	web, secrets := withKeys(t, s, nil, keys.Key{Name: "free"}, keys.Key{Name: "metered", PerMinute: 600, PerDay: 8})
	c := clientOf(t, web)
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
	if h := resp.Header; h.Get("ETag") != tagFor(u.Key, gamma, snapshots.Identity) || !strings.HasPrefix(h.Get("Cache-Control"), "private, max-age=25") ||
		h.Get("RateLimit") != "" {
		t.Errorf("%v", h)
	}
	for n := 1; n <= 7; n++ {
		resp, body = ask("GET", secrets["metered"])
		u, h := usageOf(t, body), resp.Header
		if u.RequestsToday != n || *u.LimitPerDay != 8 || *u.Remaining != 8-n {
			t.Errorf("request %d: %+v", n, u)
		}
		if h.Get("RateLimit-Policy") != `"minute";q=600;w=60, "day";q=8;w=86400` || !strings.Contains(h.Get("RateLimit"), fmt.Sprintf(`"day";r=%d;t=`, 8-n)) ||
			h.Get("X-RateLimit-Limit") != "8" || h.Get("X-RateLimit-Remaining") != fmt.Sprint(8-n) || h.Get("X-RateLimit-Reset") == "" {
			t.Errorf("request %d: %v", n, h)
		}
	}
	resp, _ = ask("GET", secrets["metered"], "If-None-Match", tagFor(usageOf(t, body).Key, gamma, snapshots.Gzip)) // counts too
	if resp.StatusCode != 304 || resp.Header.Get("X-RateLimit-Remaining") != "0" || resp.Header.Get("ETag") != tagFor(usageOf(t, body).Key, gamma, snapshots.Identity) {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	resp, body = ask("GET", secrets["metered"])
	if resp.StatusCode != 429 || !bytes.Contains(body, []byte(`"code":"quota_exceeded"`)) || resp.Header.Get("Retry-After") == "" || usageOf(t, body).RequestsToday != 8 {
		t.Errorf("%d %s %v", resp.StatusCode, body, resp.Header)
	}
	resp, body = ask("GET", secrets["free"]+"x")
	if resp.StatusCode != 401 || usageOf(t, body).Tier != "anonymous" || !bytes.Contains(body, []byte("invalid_api_key")) || resp.Header.Get("WWW-Authenticate") != "ApiKey" {
		t.Errorf("%d %s %v", resp.StatusCode, body, resp.Header)
	}
	for _, coding := range []snapshots.Coding{snapshots.Gzip, snapshots.Brotli, snapshots.Zstd} {
		resp, body := ask("GET", secrets["free"], "Accept-Encoding", coding.String())
		if resp.Header.Get("Content-Encoding") != coding.String() || !bytes.HasPrefix(body[10:], gamma.Prefix(coding)[10:]) { // a zstd frame has 10 bytes with its size first
			t.Errorf("%v: %v", coding, resp.Header)
		}
		resp, _ = ask("HEAD", secrets["free"], "Accept-Encoding", coding.String())
		equal(t, resp.ContentLength, int64(len(body)), "%v: length to HEAD", coding)
	}
}

// tagFor is the tag of an answer to the key with an id.
func tagFor(id string, s *snapshots.Snapshot, c snapshots.Coding) string {
	return `W/"` + id + "." + s.ETag(c)[1:]
}

// The tag of an answer to a caller, with one of two keys or with none, matches for this caller alone, because the answer has
// the caller's usage. So does the date, which answers to keys never match.
func TestTagsMatchForTheirCallerAlone(t *testing.T) {
	web, secrets := withKeys(t, newFinder(t), nil, keys.Key{Name: "a"}, keys.Key{Name: "b"})
	c := clientOf(t, web)
	callers := []string{"", secrets["a"], secrets["b"]}
	ask := func(key, name, value string) *http.Response {
		t.Helper()
		headers := []string{"Accept-Encoding", "gzip"}
		if key != "" {
			headers = append(headers, "X-API-Key", key)
		}
		if name != "" {
			headers = append(headers, name, value)
		}
		resp, _ := do(t, c, "GET", "/api/v1/gex/spx", headers...)
		return resp
	}
	for i, own := range callers {
		first := ask(own, "", "")
		for j, asking := range callers {
			tag := first.Header.Get("ETag")
			for _, list := range []string{tag, strings.TrimPrefix(tag, "W/"), `"x", ` + tag} {
				equal(t, ask(asking, "If-None-Match", list).StatusCode == 304, i == j, "304 to caller %d for the tag %s of caller %d", j, list, i)
			}
		}
	}
	long := `"` + strings.TrimPrefix(ask(callers[1], "", "").Header.Get("ETag"), `W/"`)[:30] + strings.Repeat("x", 4000) + `"`
	equal(t, ask(callers[1], "If-None-Match", long).StatusCode, 200, "a long tag")
}

func TestRateLimits(t *testing.T) {
	proxies, err := limits.ParseProxies("127.0.0.0/8")
	must(t, err)
	web, secrets := withKeys(t, newFinder(t), func(c *server.Config) {
		c.Addresses, c.Proxies = limits.NewAddresses(3), proxies
	}, keys.Key{Name: "slow", PerMinute: 2})
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

// A date whose answer may not be the last one is not served as immutable: the newest one while the clock is a day ahead, and every date of a
// member of a fleet that lacks files.
func TestDatesThatMayChange(t *testing.T) {
	const immutable, changes = "public, max-age=31536000, immutable", "public, max-age=25, stale-while-revalidate=25, stale-if-error=86400"
	ahead := func(c *server.Config) { c.Now = func() time.Time { return now.Add(25 * time.Hour) } }
	whole := func(c *server.Config) { c.Complete = func() bool { return true } }
	lacks := func(c *server.Config) { c.Complete = func() bool { return false } }
	for i, x := range []struct {
		change     func(*server.Config)
		date, want string
	}{{ahead, "2026-11-19", immutable}, {ahead, "2026-11-20", changes}, {whole, "2026-11-17", immutable}, {lacks, "2026-11-17", changes}} {
		resp, _ := do(t, clientOf(t, newServer(newFinder(t), x.change)), "GET", "/api/v1/gex/spx/historical?date="+x.date)
		equal(t, resp.Header.Get("Cache-Control"), x.want, "%d: %s", i, x.date)
	}
}
