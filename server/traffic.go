package server

import (
	"cmp"
	"sync/atomic"
	"time"

	"strikecache/snapshots"
)

// traffic counts responses and connections. Counting never allocates.
type traffic struct {
	resources []*counts
	other     *counts                   // of responses without a target; an element of resources
	errors    map[string]*atomic.Uint64 // by code; never changed after New

	handshakesFailed atomic.Uint64
}

// counts counts the responses of one resource, or of one kind of other path: page, healthz, readyz, other.
type counts struct {
	resource  string
	index     uint32                                                          // in traffic.resources
	responses [maxStatus - minStatus + 1][snapshots.Codings + 1]atomic.Uint64 // the last coding is DCZ
	bytes     [snapshots.Codings + 1]atomic.Uint64                            // of bodies
	durations [len(durationBounds) + 1]atomic.Uint64
	nanos     atomic.Int64 // sum of the durations
}

const (
	// The statuses of responses are in this range.
	minStatus, maxStatus = 200, 505
	// For each resource, status and coding, the first response is timed, and then one in timedEvery. Timing every response would cost
	// one more clock read and two more additions, for the same distribution.
	timedEvery = 64
)

var durationBounds = [...]time.Duration{
	5 * time.Microsecond, 10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond,
	time.Millisecond, 5 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second,
}

func newTraffic() *traffic {
	t := &traffic{errors: map[string]*atomic.Uint64{}}
	t.other = t.newCounts("other")
	for _, code := range codes {
		t.errors[code] = &atomic.Uint64{}
	}
	return t
}

func (t *traffic) newCounts(resource string) *counts {
	c := &counts{resource: resource, index: uint32(len(t.resources))} //nolint:gosec // G115: a few
	t.resources = append(t.resources, c)
	return c
}

// add counts a response with a body of n bytes, and returns whether the caller must time the response.
func (c *counts) add(status int, coding snapshots.Coding, n int) (timed bool) {
	c.bytes[coding].Add(uint64(max(n, 0)))
	return c.responses[status-minStatus][coding].Add(1)%timedEvery == 1
}

// addDuration counts how long it took to make the response to a request that arrived at an instant.
func (c *counts) addDuration(arrived time.Time) {
	took, i := time.Since(arrived), 0
	for i < len(durationBounds) && took > durationBounds[i] {
		i++
	}
	c.durations[i].Add(1)
	c.nanos.Add(int64(took))
}

// count counts the response to a request that arrived at an instant. It returns a label for [Server.countLabel]: resource, status
// and coding in one number.
func (s *Server) count(rep *response, arrived time.Time) uint32 {
	t := s.traffic
	c, n := cmp.Or(rep.counts, t.other), 0
	if !rep.headOnly {
		body, tail := rep.body()
		n = len(rep.start) + len(body) + len(tail)
	}
	if c.add(rep.status, rep.coding, n) && rep.route != nil && rep.lines == "" {
		c.addDuration(arrived)
	}
	if rep.err != nil {
		t.errors[rep.err.code].Add(1)
	}
	return c.index<<16 | uint32(rep.status-minStatus)<<4 | uint32(rep.coding) //nolint:gosec // G115: a status
}

// countLabel counts one more response with a label of [Server.count] and a body of n bytes, to a request that arrived at an instant.
func (s *Server) countLabel(l uint32, n int, arrived time.Time) {
	c, status, coding := s.traffic.resources[l>>16], minStatus+int(l>>4&0xfff), snapshots.Coding(l&0xf)
	if c.add(status, coding, n) {
		c.addDuration(arrived)
	}
}
