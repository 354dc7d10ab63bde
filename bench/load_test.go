package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func serverTarget(t *testing.T, h http.HandlerFunc) *target {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	got, err := parseTarget(server.URL, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A server that stalls once: 200 requests fall due meanwhile on 2 connections. Who measures from the sending sees
// two slow requests; measured from when they were due, a third of all are.
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
	p := plan{connections: 2, rate: 1000, duration: 600 * time.Millisecond}
	got, _, err := load(t.Context(), to, []request{{path: "/"}}, p)
	if err != nil {
		t.Fatal(err)
	}
	if n := got.latency.TotalCount(); n != 600 || got.status[200] != 600 {
		t.Fatalf("%d requests, statuses %v, errors %v: every due request is sent", n, got.status, got.errors)
	}
	slow := func(p float64) (due, sent time.Duration) {
		return time.Duration(got.latency.ValueAtPercentile(p)), time.Duration(got.service.ValueAtPercentile(p))
	}
	if due, _ := slow(99); due < stall/2 {
		t.Errorf("p99 from the due instant is %s: the stall of %s is not in it", due, stall)
	}
	if due, sent := slow(90); due < sent || due < stall/10 {
		t.Errorf("p90 from the due instant %s, from the sending %s", due, sent)
	}
	if got.latency.Min() < got.service.Min() {
		t.Error("a request was sent before it was due")
	}
	if got.latency.Max() < int64(stall) {
		t.Errorf("longest %s", time.Duration(got.latency.Max()))
	}
}

func TestClosedLoopRevisitsWithTheLastTag(t *testing.T) {
	to := serverTarget(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"a"`)
		if r.Header.Get("If-None-Match") == `"a"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, "{}")
	})
	p := plan{connections: 3, duration: 100 * time.Millisecond}
	got, took, err := load(t.Context(), to, []request{{path: "/", revisit: true}}, p)
	if err != nil || got.status[200] != 3 || got.status[304] == 0 || len(got.errors) > 0 {
		t.Fatalf("%v %v %v: one 200 a connection, then 304", got.status, got.errors, err)
	}
	o := newOutcome(workload{name: "x"}, p, got, took, usage{})
	if o.Mode != "closed" || o.Requests != got.status[200]+got.status[304] || o.Failed() != 0 || len(o.Curve) < 2 {
		t.Errorf("%+v", o)
	}
}

func TestReconnectsAndCountsFailures(t *testing.T) {
	var n atomic.Int64
	to := serverTarget(t, func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) % 10 {
		case 0:
			panic(http.ErrAbortHandler)
		case 5:
			w.Header().Set("Connection", "close")
		case 7:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	got, _, err := load(t.Context(), to, []request{{path: "/"}}, plan{connections: 2, rate: 500, duration: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var failed int64
	for _, count := range got.errors {
		failed += count
	}
	if failed != 10 || got.status[200] != 80 || got.status[503] != 10 {
		t.Errorf("%v %v", got.status, got.errors)
	}
}

func TestGivesUpOnAServerThatAnswersNothing(t *testing.T) {
	to := serverTarget(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, _, err := load(t.Context(), to, []request{{path: "/"}}, plan{connections: 8, duration: time.Minute})
	if !errors.Is(err, errGivenUp) {
		t.Error(err)
	}
}

func TestInterruptEndsTheLoad(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	to := serverTarget(t, func(http.ResponseWriter, *http.Request) { cancel() })
	for _, rate := range []float64{0, 1000} {
		if _, _, err := load(ctx, to, []request{{path: "/"}}, plan{connections: 2, rate: rate, duration: time.Minute}); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("rate %v: %v", rate, err)
		}
	}
}

func TestChangesOfThePolledDocumentAreSeenOnce(t *testing.T) {
	var n atomic.Int64
	to := serverTarget(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, n.Add(1)/100))
	})
	got, _, err := load(t.Context(), to, []request{{path: gamma}, {path: flow}}, plan{connections: 4, rate: 3000, duration: 100 * time.Millisecond, samples: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.changes) < 2 || len(got.changes) > 3 || len(got.samples) != 300 {
		t.Errorf("%d changes, %d samples", len(got.changes), len(got.samples))
	}
	if a := splitAround(got.samples, got.changes); a.Changes != len(got.changes) || a.During.Max == 0 {
		t.Errorf("%+v", a)
	}
}

// stranger is a server with just the documents from which workloads learn what there is.
func stranger(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"a"`)
	switch {
	case r.URL.Path == series:
		fmt.Fprint(w, `{"data":{"columns":["x","date"],"rows":[[1,"2026-10-01"],[2,"2026-10-02"]]}}`)
	case r.URL.Path == maxPain:
		fmt.Fprint(w, `{"data":{"expirations":[{"expiration":"2026-12-18"},{"expiration":"2027-01-15"}]}}`)
	case r.Header.Get("X-API-Key") == "wrong":
		w.WriteHeader(http.StatusUnauthorized)
	case strings.Contains(r.Header.Get("Accept-Encoding"), "gzip"):
		w.Header().Set("Content-Encoding", "gzip")
		fmt.Fprint(w, "zipped")
	default:
		fmt.Fprint(w, "{}")
	}
}

func TestWorkloadsAreWellFormed(t *testing.T) {
	to := serverTarget(t, stranger)
	d := &discovery{ctx: t.Context(), target: to, key: "right"}
	want := map[string]int{"hot": 1, "conditional": 1, "gzip": 1, "historical": 2, "expirations": 2, "keyed": 1, "refreshing": 8, "cdn": 44}
	seen := map[string]bool{}
	for _, w := range workloads {
		if seen[w.name] || w.about == "" || strings.ContainsAny(w.name, ", ") {
			t.Errorf("%q: %q", w.name, w.about)
		}
		seen[w.name] = true
		requests, err := w.requests(d)
		if err == nil {
			err = d.check(requests)
		}
		if w.name == "zstd" {
			if !errors.Is(err, errSkip) {
				t.Errorf("zstd from a server without it: %v", err)
			}
			continue
		}
		if err != nil || len(requests) != want[w.name] {
			t.Errorf("%s: %d requests, want %d: %v", w.name, len(requests), want[w.name], err)
		}
	}
	for _, key := range []string{"", "wrong"} {
		d.key = key
		requests, err := withKey(d)
		if err == nil {
			err = d.check(requests)
		}
		if !errors.Is(err, errSkip) {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

func TestChoosingWorkloads(t *testing.T) {
	if w, err := chooseWorkloads("all"); err != nil || len(w) != len(workloads) {
		t.Error(len(w), err)
	}
	if w, err := chooseWorkloads("cdn, hot"); err != nil || len(w) != 2 || w[0].name != "cdn" {
		t.Error(w, err)
	}
	if _, err := chooseWorkloads("hot,cold"); err == nil || !strings.Contains(err.Error(), "conditional") {
		t.Error("an unknown workload must be answered with the known ones:", err)
	}
}
