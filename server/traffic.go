package server

import (
	"context"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"strikecache/server/limits"
	"strikecache/snapshots"
)

// traffic counts responses. Its methods never allocate.
type traffic struct {
	rows                 [rows]rowCounts
	errors               map[string]*atomic.Uint64 // by code; never changed after New
	accepted, turnedAway atomic.Uint64             // connections
	unshaken             atomic.Uint64             // failed handshakes of TLS
	sampled              atomic.Uint64
	dropped              atomic.Uint64 // samples that the log had no time for
	samples              chan sample
}

// rowCounts is what one row of the route table has sent.
type rowCounts struct {
	responses [len(statuses)][snapshots.Codings]atomic.Uint64
	bytes     [snapshots.Codings]atomic.Uint64 // of bodies
	durations [len(durationBounds) + 1]atomic.Uint64
	nanos     atomic.Int64 // sum of the durations
}

// The rows: first those of the routes, last these.
const (
	rowOther  = rows - 1 - iota // everything else
	rowPage                     // the pages for people
	rowReadyz                   // probes
	rowHealthz
	ownRows = iota

	rows = 16
)

const (
	sampleRoom  = 256 // sampled requests that wait for the log
	reportEvery = time.Minute
	// timedEvery is how many responses of a row, status and coding have one that is timed, the first among them: a
	// clock read and two more adds for each of the others would tell the same.
	timedEvery = 64
)

// statuses are those that are counted apart, the frequent ones first; 0 stands for every other.
var statuses = [...]int{200, 304, 0, 204, 400, 401, 404, 405, 408, 413, 414, 429, 431, 500, 503, 505}

const anyStatus = 2 // in statuses

// durationBounds are the upper bounds of a duration's bucket.
var durationBounds = [...]time.Duration{
	5 * time.Microsecond, 10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond,
	time.Millisecond, 5 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second,
}

func statusIndex(status int) int {
	for i, s := range statuses {
		if s == status {
			return i
		}
	}
	return anyStatus
}

// sample is what the log says about a request: never a secret or a parameter, and an address only if asked to.
type sample struct {
	endpoint, key string
	status, bytes int
	coding        snapshots.Coding
	client        netip.Addr
}

// add counts a response with a body of n bytes, and returns how many of its kind there have been.
func (t *traffic) add(row, status int, coding snapshots.Coding, n int) uint64 {
	r := &t.rows[row]
	r.bytes[coding].Add(uint64(max(n, 0)))
	return r.responses[statusIndex(status)][coding].Add(1)
}

// timed notes how long a response took.
func (r *rowCounts) timed(took time.Duration) {
	i := 0
	for i < len(durationBounds) && took > durationBounds[i] {
		i++
	}
	r.durations[i].Add(1)
	r.nanos.Add(int64(took))
}

// counted notes a response that was sent. began is when its request was whole, zero when that is not known.
func (s *Server) counted(rep *reply, q *request, began time.Time) {
	t := &s.traffic
	row, endpoint := rowOther, ""
	if rep.route != nil {
		row, endpoint = rep.route.row, rep.route.endpoint
	}
	n := 0
	if !q.head {
		body, tail := rep.body()
		n = len(body) + len(tail)
	}
	if nth := t.add(row, rep.status, rep.coding, n); nth%timedEvery == 1 && rep.route != nil && !began.IsZero() {
		t.rows[row].timed(time.Since(began))
	}
	if rep.err != nil {
		if count := t.errors[rep.err.code]; count != nil {
			count.Add(1)
		}
	}
	if s.cfg.LogEvery <= 0 || t.sampled.Add(1)%uint64(s.cfg.LogEvery) != 0 {
		return
	}
	one := sample{endpoint: endpoint, status: rep.status, bytes: n, coding: rep.coding}
	if rep.entry != nil {
		one.key = rep.entry.ID
	}
	if s.cfg.LogClientAddr {
		one.client = limits.ClientAddr(q.remote, [][]byte{q.forwarded}, s.cfg.Proxies)
	}
	select {
	case t.samples <- one:
	default: // the log is behind: a request never waits for it
		t.dropped.Add(1)
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
			attrs := []slog.Attr{
				slog.String("endpoint", one.endpoint), slog.Int("status", one.status), slog.String("coding", one.coding.String()),
				slog.Int("bytes", one.bytes), slog.String("key", one.key),
			}
			if s.cfg.LogClientAddr {
				attrs = append(attrs, slog.String("client", one.client.String()))
			}
			s.cfg.Log.LogAttrs(context.Background(), slog.LevelInfo, "request", attrs...)
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

// summary is the counts of responses by kind of status, and the bytes of their bodies.
type summary struct {
	ok, notModified, refused, failed uint64
	bytes                            uint64
}

func (t *traffic) sum() (s summary) {
	for row := range t.rows {
		for i, status := range statuses {
			for coding := range t.rows[row].responses[i] {
				n := t.rows[row].responses[i][coding].Load()
				switch {
				case status == 304:
					s.notModified += n
				case status >= 500:
					s.failed += n
				case status >= 400 || status == 0:
					s.refused += n
				default:
					s.ok += n
				}
			}
		}
		for coding := range t.rows[row].bytes {
			s.bytes += t.rows[row].bytes[coding].Load()
		}
	}
	return s
}

func (s summary) total() uint64 { return s.ok + s.notModified + s.refused + s.failed }

func (s summary) since(before summary) []slog.Attr {
	return []slog.Attr{
		slog.Uint64("ok", s.ok-before.ok), slog.Uint64("not_modified", s.notModified-before.notModified),
		slog.Uint64("refused", s.refused-before.refused), slog.Uint64("failed", s.failed-before.failed),
		slog.Uint64("bytes", s.bytes-before.bytes),
	}
}
