package server

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"strikecache/snapshots"
)

// A response whose snapshot the memo has let go of is not found again, also after the clock is set back.
func TestMemoWhenTheClockIsSetBack(t *testing.T) {
	var files atomic.Int32
	m, s := newMemo(&files), New(Config{})
	now := time.Unix(1_000, 0)
	window := []byte("GET /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\n\r\n")
	rep := response{route: s.routeOf["/api/v1/gex/spx"], status: http.StatusNotModified, snapshot: &snapshots.Snapshot{}}
	if m.keep(s, window, &request{}, &rep, now, 0) == nil || m.find(window, now, 0) == nil {
		t.Fatal("the memo does not have the response")
	}
	for _, other := range []time.Time{now.Add(time.Second), now.Add(-time.Second), {}} {
		m.expire(other)
		if m.find(window, now, 0) != nil {
			t.Errorf("the memo has a response that it has let go of at %s", other)
		}
		m.keep(s, window, &request{}, &rep, now, 0)
	}
	if m.expire(now); m.find(window, now, 0) == nil {
		t.Error("the memo has let go of a response of this second")
	}
}
