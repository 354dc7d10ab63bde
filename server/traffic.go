package server

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"strikecache/snapshots"
)

// traffic counts responses. Its methods never allocate.
type traffic struct {
	// requests counts by resource, status and coding; the last row is of everything that is no resource.
	requests [rows][statuses][snapshots.Codings]atomic.Uint64
	bytes    atomic.Uint64 // of bodies
	sampled  atomic.Uint64
	samples  chan sample
}

const (
	rows        = 8   // of the routes, and one more
	sampleRoom  = 256 // sampled requests that wait for the log
	reportEvery = time.Minute
)

// The statuses that are counted apart; the others together.
const (
	status200 = iota
	status304
	status4xx
	status5xx
	statuses
)

func statusIndex(status int) int {
	switch {
	case status == 200:
		return status200
	case status == 304:
		return status304
	case status >= 500:
		return status5xx
	}
	return status4xx
}

// sample is what the log says about a request: never a secret, an address or a parameter.
type sample struct {
	endpoint, key string
	status, bytes int
	coding        snapshots.Coding
}

// counted notes a response that was sent.
func (s *Server) counted(rep *reply, q *request) {
	t := &s.traffic
	row, endpoint := rows-1, ""
	if rep.route != nil {
		row, endpoint = rep.route.row, rep.route.endpoint
	}
	t.requests[row][statusIndex(rep.status)][rep.coding].Add(1)
	n := 0
	if !q.head {
		body, tail := rep.body()
		n = len(body) + len(tail)
		t.bytes.Add(uint64(n))
	}
	if s.cfg.LogEvery == 0 || t.sampled.Add(1)%uint64(s.cfg.LogEvery) != 0 {
		return
	}
	one := sample{endpoint: endpoint, status: rep.status, bytes: n, coding: rep.coding}
	if rep.entry != nil {
		one.key = rep.entry.ID
	}
	select {
	case t.samples <- one:
	default: // the log is behind: a request never waits for it
	}
}

// report logs the sampled requests, and once a minute what was served in it, until done is closed.
func (s *Server) report(done <-chan struct{}) {
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	var before summary
	for {
		select {
		case one := <-s.traffic.samples:
			s.cfg.Log.Info("request", "endpoint", one.endpoint, "status", one.status, "coding", one.coding.String(), "bytes", one.bytes, "key", one.key)
		case <-ticker.C:
			now := s.traffic.sum()
			if now.total() > before.total() {
				s.cfg.Log.LogAttrs(context.Background(), slog.LevelInfo, "served", now.since(before)...)
			}
			before = now
		case <-done:
			return
		}
	}
}

// summary is the counts of responses by status, and the bytes of their bodies.
type summary struct {
	requests [statuses]uint64
	bytes    uint64
}

func (t *traffic) sum() (s summary) {
	for row := range t.requests {
		for status := range t.requests[row] {
			for coding := range t.requests[row][status] {
				s.requests[status] += t.requests[row][status][coding].Load()
			}
		}
	}
	s.bytes = t.bytes.Load()
	return s
}

func (s summary) total() (n uint64) {
	for _, count := range s.requests {
		n += count
	}
	return n
}

func (s summary) since(before summary) []slog.Attr {
	attrs := []slog.Attr{}
	for i, name := range []string{"ok", "not_modified", "refused", "failed"} {
		attrs = append(attrs, slog.Uint64(name, s.requests[i]-before.requests[i]))
	}
	return append(attrs, slog.Uint64("bytes", s.bytes-before.bytes))
}
