package server

import (
	"time"

	"strikecache/snapshots"
)

// Stats has the counts of a server since its start. A resource is one of [Server.Resources], or page, healthz, readyz, other.
type Stats struct {
	Responses []Responses
	Bytes     []Bytes
	Durations []Durations
	Errors    map[string]uint64 // by code, with every code of the interface

	ConnectionsOpen                         int
	ConnectionsAccepted, ConnectionsRefused uint64
	TLSHandshakesFailed                     uint64
	AddressesHeld                           int // client addresses with a rate limit of --anonymous-rate in memory
	KeysKnown                               int
	KeysRefused                             map[string]uint64 // requests, see [keys.Table.Refused]
}

// Responses counts the responses of a resource with one status and one coding.
type Responses struct {
	Resource string
	Status   int
	Coding   string
	Count    uint64
}

// Bytes counts the bytes of the response bodies of a resource in one coding.
type Bytes struct {
	Resource, Coding string
	Count            uint64
}

// Durations is the distribution of the time from a complete request head until its response is made, measured for one in 64
// responses. In a loop, the time starts at the call of epoll_wait, which returns at once while requests wait.
type Durations struct {
	Resource string
	Buckets  map[float64]uint64 // cumulative, by upper bound in seconds
	Count    uint64
	Sum      float64 // seconds
}

// Stats returns the counts since the start. They change while Stats reads them, so two counts may be of different instants.
func (s *Server) Stats() Stats {
	t := s.traffic
	out := Stats{
		Errors: map[string]uint64{}, ConnectionsOpen: int(s.connections.Open.Load()), ConnectionsAccepted: s.connections.Accepted.Load(),
		ConnectionsRefused: s.connections.Refused.Load(), TLSHandshakesFailed: t.handshakesFailed.Load(),
	}
	if s.cfg.Addresses != nil {
		out.AddressesHeld = s.cfg.Addresses.Held()
	}
	if s.cfg.Keys != nil {
		out.KeysKnown, out.KeysRefused = s.cfg.Keys.Len(), s.cfg.Keys.Refused()
	}
	for code, n := range t.errors {
		out.Errors[code] = n.Load()
	}
	for _, c := range t.resources {
		c.appendTo(&out)
	}
	return out
}

func (c *counts) appendTo(out *Stats) {
	for coding := range snapshots.DCZ + 1 {
		for i := range c.responses {
			if n := c.responses[i][coding].Load(); n > 0 {
				out.Responses = append(out.Responses, Responses{c.resource, minStatus + i, coding.String(), n})
			}
		}
		if n := c.bytes[coding].Load(); n > 0 {
			out.Bytes = append(out.Bytes, Bytes{c.resource, coding.String(), n})
		}
	}
	d := Durations{Resource: c.resource, Buckets: map[float64]uint64{}}
	for i := range c.durations {
		d.Count += c.durations[i].Load()
		if i < len(durationBounds) {
			d.Buckets[durationBounds[i].Seconds()] = d.Count
		}
	}
	if d.Count > 0 {
		d.Sum = time.Duration(c.nanos.Load()).Seconds()
		out.Durations = append(out.Durations, d)
	}
}
