package server

import (
	"sync/atomic"
	"time"

	"strikecache/snapshots"
)

// Stats is what a server has done since its start, as far as it is counted. Names are those of the route table.
type Stats struct {
	Responses []Responses
	Bytes     []Bytes
	Durations []Durations
	// Errors are the counts of every error code of the interface.
	Errors map[string]uint64

	ConnectionsOpen                         int
	ConnectionsAccepted, ConnectionsRefused uint64
	TLSHandshakesFailed                     uint64
	AddressesHeld                           int // that have a bucket of --anonymous-rate
	KeysKnown                               int
	LogSamplesDropped                       uint64 // sampled requests that the log had no time for
}

// Responses counts the responses of a resource with a status, 0 for a rare one, in a coding.
type Responses struct {
	Resource string
	Status   int
	Coding   string
	Count    uint64
}

// Bytes counts the bytes of the bodies of a resource in a coding.
type Bytes struct {
	Resource, Coding string
	Count            uint64
}

// Durations is the distribution of the time from a whole request head to a response in the kernel's hands, of one in
// 64 responses that the gate sent.
type Durations struct {
	Resource string
	Buckets  map[float64]uint64 // cumulative, by upper bound in seconds
	Count    uint64
	Sum      float64 // seconds
}

// Resources returns the names of the public resources.
func Resources() []string {
	names := make([]string, len(routes))
	for i := range routes {
		names[i] = routes[i].endpoint
	}
	return names
}

// rowName names a row of the counts, "" one that is not in use.
func rowName(row int) string {
	switch row {
	case rowHealthz:
		return "healthz"
	case rowReadyz:
		return "readyz"
	case rowPage:
		return "page"
	case rowOther:
		return "other"
	}
	for i := range routes {
		if routes[i].row == row {
			return routes[i].endpoint
		}
	}
	return ""
}

// Stats reads the counts. They go on meanwhile: each is right, and no two are of the very same instant.
func (s *Server) Stats() Stats {
	t := &s.traffic
	out := Stats{
		Errors: map[string]uint64{}, ConnectionsOpen: s.conns.count(), ConnectionsAccepted: t.accepted.Load(),
		ConnectionsRefused: t.turnedAway.Load(),
		LogSamplesDropped:  t.dropped.Load(), TLSHandshakesFailed: t.unshaken.Load(),
	}
	if s.cfg.Addresses != nil {
		out.AddressesHeld = s.cfg.Addresses.Held()
	}
	if s.cfg.Keys != nil {
		out.KeysKnown = s.cfg.Keys.Len()
	}
	for code, n := range t.errors {
		out.Errors[code] = n.Load()
	}
	for row := range t.rows {
		t.rows[row].appendTo(&out, rowName(row))
	}
	return out
}

// appendTo appends what is not zero.
func (r *rowCounts) appendTo(out *Stats, resource string) {
	for c := range snapshots.Codings {
		for i, status := range statuses {
			if n := r.responses[i][c].Load(); n > 0 {
				out.Responses = append(out.Responses, Responses{resource, status, c.String(), n})
			}
		}
		if n := r.bytes[c].Load(); n > 0 {
			out.Bytes = append(out.Bytes, Bytes{resource, c.String(), n})
		}
	}
	d := Durations{Resource: resource, Buckets: map[float64]uint64{}}
	for i := range r.durations {
		d.Count += r.durations[i].Load()
		if i < len(durationBounds) {
			d.Buckets[durationBounds[i].Seconds()] = d.Count
		}
	}
	if d.Count > 0 {
		d.Sum = time.Duration(r.nanos.Load()).Seconds()
		out.Durations = append(out.Durations, d)
	}
}

// errorCounts returns a counter for every code of an error.
func errorCounts() map[string]*atomic.Uint64 {
	counts := map[string]*atomic.Uint64{codeNoSnapshot: {}, codeNoExpiration: {}}
	for _, e := range fixedErrors() {
		counts[e.code] = &atomic.Uint64{}
	}
	return counts
}
