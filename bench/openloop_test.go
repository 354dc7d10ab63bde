package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"strikecache/bench/testkit"
)

var must = testkit.Must

func serverTarget(t *testing.T, h http.HandlerFunc) *target {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	got, _, err := parseTarget(s.URL, time.Minute)
	must(t, err)
	return got
}

// load runs a load. Without requests it asks for /, and without a timeout it uses that of the target.
func load(ctx context.Context, c loadCommand, requests ...request) *report {
	c.Timeout = cmp.Or(c.Timeout, c.target.timeout)
	if requests == nil {
		requests = []request{{path: "/"}}
	}
	return c.load(ctx, requests)
}

// A server stalls once, and 200 requests on 2 connections fall due meanwhile. Two requests are slow if latency counts from
// their sending. A third of all requests are slow if it counts from the instant at which they were due.
func TestStallIsSeenByWhatWasDueMeanwhile(t *testing.T) {
	const stall = 200 * time.Millisecond
	var count atomic.Int64
	var stalled sync.Mutex
	to := serverTarget(t, func(w http.ResponseWriter, _ *http.Request) {
		stalled.Lock()
		if count.Add(1) == 100 {
			time.Sleep(stall)
		}
		stalled.Unlock()
		fmt.Fprint(w, "{}")
	})
	got := load(t.Context(), loadCommand{target: to, Connections: 2, Rate: 1000, Duration: 600 * time.Millisecond})
	if got.Requests != 600 || got.Status[200] != 600 || got.Failed != 0 || got.bytes != 1200 {
		t.Fatalf("%d requests, statuses %v, errors %v, want every request sent that was due", got.Requests, got.Status, got.Errors)
	}
	if got.ServerCPU != 0 {
		t.Errorf("without a process the server took %v ns of CPU a request", got.ServerCPU)
	}
	us := float64(stall.Microseconds())
	if due, sent := got.Latency, got.Service; due.P99 < us/2 || due.P90 < us/10 || due.P90 < sent.P90 || due.Max < us || got.latency.Min() < got.service.Min() {
		t.Errorf("since due %+v, since sent %+v", due, sent)
	}
}

// If the server is too slow for the rate, requests that were never sent count as failed, with the time that they waited.
func TestUnsentRequestsCount(t *testing.T) {
	to := serverTarget(t, func(http.ResponseWriter, *http.Request) { time.Sleep(50 * time.Millisecond) })
	to.timeout = 500 * time.Millisecond
	got := load(t.Context(), loadCommand{target: to, Connections: 1, Rate: 2000, Duration: 200 * time.Millisecond})
	unsent := got.Errors[errUnsent.Error()]
	if got.Requests != 400 || unsent < 300 || got.Failed < unsent || got.latency.ValueAtPercentile(50) < int64(to.timeout)/2 {
		t.Errorf("%d requests, %d unsent, %+v", got.Requests, unsent, got.Latency)
	}
}

// In a closed loop each connection has one request at a time, and sends the next when it has the answer. On a machine that is too slow for
// more, each connection has sent one.
func TestClosedLoop(t *testing.T) {
	var busy, most, all atomic.Int64
	to := serverTarget(t, func(http.ResponseWriter, *http.Request) {
		most.Store(max(most.Load(), busy.Add(1)))
		all.Add(1)
		busy.Add(-1)
	})
	var out strings.Builder
	got := load(t.Context(), loadCommand{target: to, Connections: 3, Duration: 200 * time.Millisecond})
	if err := got.print(&out); err != nil || got.Requests < 3 || got.Requests != all.Load() || got.Failed > 0 || most.Load() > 3 || got.slow() ||
		got.Latency != got.Service || strings.Contains(out.String(), "since due") {
		t.Errorf("%v: %d requests of %d, %d at once, %v\n%s", err, got.Requests, all.Load(), most.Load(), got.Errors, &out)
	}
}

func TestWarmUpIsNotCounted(t *testing.T) {
	var all atomic.Int64
	to := serverTarget(t, func(http.ResponseWriter, *http.Request) { all.Add(1) })
	got := load(t.Context(), loadCommand{target: to, Connections: 2, Rate: 1000, Warmup: 100 * time.Millisecond, Duration: 50 * time.Millisecond})
	if got.Requests != 50 || all.Load() != 150 || len(got.TimeLine) != 1 || got.Took <= 0 {
		t.Errorf("%d counted of %d, %v", got.Requests, all.Load(), got.Took)
	}
}

func TestRevalidationSendsTheLastTag(t *testing.T) {
	to := serverTarget(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"a"`)
		if r.Header.Get("If-None-Match") == `"a"` {
			w.WriteHeader(http.StatusNotModified)
		} else if r.Host != "elsewhere" || r.Header.Get("X-Test") != "1" {
			t.Errorf("%s %v", r.Host, r.Header)
		}
	})
	got := load(t.Context(), loadCommand{target: to, Connections: 3, Rate: 1000, Duration: 100 * time.Millisecond},
		request{"/?a=b", []string{"Host: elsewhere", "X-Test:1"}, true, "/"})
	if got.Status[200] < 1 || got.Status[200] > 3 || got.Status[200]+got.Status[304] != 100 || got.Failed > 0 {
		t.Fatalf("statuses %v, errors %v, want one 200 per connection, then 304", got.Status, got.Errors)
	}
}

func TestReconnectsAndCountsFailures(t *testing.T) {
	var n atomic.Int64
	to := serverTarget(t, func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) % 10 {
		case 0:
			panic(http.ErrAbortHandler)
		case 3:
			w.(http.Flusher).Flush() // chunked
			fmt.Fprint(w, "x")
		case 5:
			w.Header().Set("Connection", "close")
		case 7:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	got := load(t.Context(), loadCommand{target: to, Connections: 2, Rate: 500, Duration: 200 * time.Millisecond})
	if len(got.Errors) == 0 || got.Status[200] != 80 || got.Status[503] != 10 || got.Failed != 20 || got.Requests != 100 || got.bytes != 10 {
		t.Errorf("%v %v %d bytes", got.Status, got.Errors, got.bytes)
	}
}

func TestInterruptEndsTheLoad(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	to := serverTarget(t, func(http.ResponseWriter, *http.Request) { cancel() })
	got := load(ctx, loadCommand{target: to, Connections: 2, Rate: 10, Duration: 10 * time.Minute})
	if got.Requests == 0 || got.Errors[errUnsent.Error()] != 0 {
		t.Error(got.Requests, got.Errors)
	}
}

// someStrikecache serves only the documents that mix reads.
func someStrikecache(w http.ResponseWriter, r *http.Request) {
	switch strings.Replace(strings.Replace(r.URL.Path, "spx", placeholder, 1), "ndx", placeholder, 1) {
	case "/openapi.json":
		fmt.Fprintf(w, `{"paths": {"/api/v1/gex/{u}": {"get": {}}, "/api/v1/gex/{u}/series": {"get": {"description": "as /api/v1/a"}}, "/healthz": {}}}`)
	case series:
		fmt.Fprint(w, `{"data":{"columns":["date","x"],"rows":[["2026-10-01",1],["2026-10-02",2]]}}`)
	case underlyings:
		fmt.Fprint(w, `{"data":{"rows":[{"symbol":"SPX","spot":1},{"symbol":"NDX","spot":2}]}}`)
	case maxPain:
		fmt.Fprint(w, `{"data":{"expirations":[{"expiration":"2026-12-18"},{"expiration":"2027-01-15"}]}}`)
	}
}

func TestWhatIsRequested(t *testing.T) {
	ours, other := serverTarget(t, someStrikecache), serverTarget(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/openapi.json" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, `{"paths": {"/api/other": {}}}`)
	})
	for _, c := range []struct {
		url, mix string
		paths    []string
		requests int
		about    string
	}{
		{ours.base, "spx", nil, 24, "a strikecache: a mix of 24 requests for all its resources, of SPX"},
		{ours.base, "all", nil, 36, "a strikecache: a mix of 36 requests for all its resources, of SPX, NDX"},
		{ours.base + "/x?y=z", "spx", nil, 1, "GET /x?y=z"},
		{ours.base + "/", "spx", []string{"/a", "/b,c"}, 2, "GET /a, /b,c"},
		{other.base, "spx", nil, 1, "GET /; / answers 404"},
	} {
		l := loadCommand{URL: c.url, Mix: c.mix, Path: c.paths, Timeout: time.Minute, Rates: "1", Steps: 2, Connections: 1, Duration: time.Second, Header: []string{"A: b"}}
		must(t, l.Validate())
		requests, about, err := l.choose()
		if err != nil || len(requests) != c.requests || about != c.about {
			t.Errorf("%s: %d requests, %s, %v", c.url, len(requests), about, err)
		}
		for _, q := range requests {
			named := c.mix == "all" && q.name != flow
			if q.headers[len(q.headers)-1] != "A: b" || named != strings.Contains(q.name, placeholder) || strings.Contains(q.path, placeholder) {
				t.Errorf("%s: %v", c.url, q)
			}
		}
	}
}

func TestTarget(t *testing.T) {
	for _, c := range []struct {
		url, address, path string
		local              bool
	}{
		{"http://localhost:8080/", "localhost:8080", "", true},
		{"https://example.org/edge/?a=b", "example.org:443", "/edge/?a=b", false},
		{"http://[::1]/?", "[::1]:80", "", true},
		{"http://10.0.0.1/%20", "10.0.0.1:80", "/%20", false},
	} {
		got, path, err := parseTarget(c.url, time.Second)
		if err != nil || net.JoinHostPort(got.host, got.port) != c.address || path != c.path || got.local() != c.local {
			t.Errorf("%s: %+v %q %v", c.url, got, path, err)
		}
	}
	for _, url := range []string{"", "127.0.0.1:8080", "ftp://a", "http://", "http://u:p@a", "http://a#b", "http://%zz"} {
		if _, _, err := parseTarget(url, time.Second); err == nil {
			t.Errorf("%q is accepted as a URL", url)
		}
	}
}
