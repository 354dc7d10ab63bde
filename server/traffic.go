package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"strikecache/snapshots"
)

// traffic counts responses and connections. Counting never allocates.
type traffic struct {
	resources                    []*counts
	other, page, healthz, readyz *counts                   // elements of resources; other counts errors without a route
	errors                       map[string]*atomic.Uint64 // by code; never changed after New

	accepted, refused atomic.Uint64 // connections
	handshakesFailed  atomic.Uint64
	loggable          atomic.Uint64 // responses of resources and errors, for --log-every
	lines             chan logLine
	linesDropped      atomic.Uint64
}

// counts counts the responses of one resource, or of one kind of path that is not a resource.
type counts struct {
	resource  string
	responses [maxStatus - minStatus + 1][snapshots.Codings + 1]atomic.Uint64 // the last coding is DCZ
	bytes     [snapshots.Codings + 1]atomic.Uint64                            // of bodies
	durations [len(durationBounds) + 1]atomic.Uint64
	nanos     atomic.Int64 // sum of the durations
}

const (
	// The statuses of responses are in this range.
	minStatus, maxStatus = 200, 505
	// maxLines is how many lines of --log-every may wait for the log.
	maxLines = 256
	// Of each resource, status and coding, the first response and then one in timedEvery is timed. Timing every response
	// would cost a clock read and two additions more, for the same distribution.
	timedEvery = 64
)

// durationBounds are the upper bounds of the buckets of durations.
var durationBounds = [...]time.Duration{
	5 * time.Microsecond, 10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond,
	time.Millisecond, 5 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second,
}

// logLine is a line of --log-every. It has neither a secret nor a parameter, nor an address.
type logLine struct {
	endpoint, key string
	status, bytes int
	coding        snapshots.Coding
}

func newTraffic() *traffic {
	t := &traffic{errors: map[string]*atomic.Uint64{}, lines: make(chan logLine, maxLines)}
	t.other, t.page, t.healthz, t.readyz = t.newCounts("other"), t.newCounts("page"), t.newCounts("healthz"), t.newCounts("readyz")
	for _, code := range codes {
		t.errors[code] = &atomic.Uint64{}
	}
	return t
}

func (t *traffic) newCounts(resource string) *counts {
	c := &counts{resource: resource}
	t.resources = append(t.resources, c)
	return c
}

// add counts a response with a body of n bytes, and returns the count of its status and coding.
func (c *counts) add(status int, coding snapshots.Coding, n int) uint64 {
	c.bytes[coding].Add(uint64(max(n, 0)))
	return c.responses[status-minStatus][coding].Add(1)
}

// addDuration counts how long a response took.
func (c *counts) addDuration(took time.Duration) {
	i := 0
	for i < len(durationBounds) && took > durationBounds[i] {
		i++
	}
	c.durations[i].Add(1)
	c.nanos.Add(int64(took))
}

// count counts a response of a resource or an error, and passes every n-th one to the log for --log-every. If the response is
// one of those that are timed, count returns where its duration counts, else nil.
func (s *Server) count(rep *response, q *request) (timed *counts) {
	t := s.traffic
	c, endpoint, n := t.other, "", 0
	if rep.route != nil {
		c, endpoint = rep.route.counts, rep.route.endpoint
	}
	if !q.head {
		body, tail := rep.body()
		n = len(body) + len(tail)
	}
	if nth := c.add(rep.status, rep.coding, n); nth%timedEvery == 1 && rep.route != nil {
		timed = c
	}
	if rep.err != nil {
		t.errors[rep.err.code].Add(1)
	}
	if s.cfg.LogEvery <= 0 || t.loggable.Add(1)%uint64(s.cfg.LogEvery) != 0 {
		return timed
	}
	line := logLine{endpoint: endpoint, status: rep.status, bytes: n, coding: rep.coding}
	if rep.entry != nil {
		line.key = rep.entry.ID
	}
	select {
	case t.lines <- line:
	default: // a request never waits for the log
		t.linesDropped.Add(1)
	}
	return timed
}

// logSamples logs the lines of --log-every until done is closed.
func (s *Server) logSamples(done <-chan struct{}) {
	for {
		select {
		case line := <-s.traffic.lines:
			attrs := []slog.Attr{
				slog.String("endpoint", line.endpoint), slog.Int("status", line.status), slog.String("coding", line.coding.String()),
				slog.Int("bytes", line.bytes), slog.String("key", line.key),
			}
			s.cfg.Log.LogAttrs(context.Background(), slog.LevelInfo, "request", attrs...)
		case <-done:
			return
		}
	}
}

// logPanic logs a panic and its stack. No response contains them.
func (s *Server) logPanic(value any) {
	s.cfg.Log.Error("request panicked", "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
}
