package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// plan is how a workload is run.
type plan struct {
	connections int
	rate        float64 // requests a second, at instants fixed beforehand; 0: each connection as fast as it is answered
	duration    time.Duration
	warmup      time.Duration // of the same load, not counted
	samples     bool          // keep every request's instant
	started     func() error  // called when the counting begins
	progress    func(elapsed time.Duration, so *tally, connections int)
}

// run is a load while it is on.
type run struct {
	target   *target
	requests []request
	plan     plan
	start    time.Time
	due      chan int64 // open loop: the next request's number
	tallies  []*tally
	ended    atomic.Bool
	failures atomic.Int64 // in a row

	seenLock sync.Mutex
	seen     map[string]bool // ETags of the polled document
}

const (
	shards      = 8
	maxFailures = 100 // in a row, before the run is given up
	maxSamples  = 5_000_000
	redialAfter = 10 * time.Millisecond
)

var errGivenUp = errors.New("given up: 100 requests in a row failed")

// load runs requests against a target and returns what happened and how long it took.
//
// Open loop: request i is due at start + i/rate, whatever became of those before it, and its latency counts from
// that instant. When the server stalls, everything that was due meanwhile waits and shows it: nothing is left out
// because the generator was waiting too (coordinated omission).
func load(ctx context.Context, t *target, requests []request, p plan) (*tally, time.Duration, error) {
	if p.warmup > 0 {
		warm := p
		warm.duration, warm.warmup, warm.progress, warm.started, warm.samples = p.warmup, 0, nil, nil, false
		if _, _, err := load(ctx, t, requests, warm); err != nil {
			return nil, 0, err
		}
	}
	r := &run{target: t, requests: requests, plan: p, due: make(chan int64, 1<<14), seen: map[string]bool{}}
	for range min(shards, p.connections) {
		r.tallies = append(r.tallies, newTally())
	}
	clients := make([]*client, p.connections)
	for i := range clients {
		c, err := t.dial(ctx)
		if err != nil {
			return nil, 0, fmt.Errorf("connection %d of %d: %w", i+1, p.connections, err)
		}
		clients[i] = c
	}
	if p.started != nil {
		if err := p.started(); err != nil {
			return nil, 0, err
		}
	}
	r.start = time.Now()
	var workers sync.WaitGroup
	for i, c := range clients {
		workers.Go(func() { r.work(ctx, i, c) })
	}
	stop := r.reportProgress()
	if p.rate > 0 {
		r.pace(ctx)
	}
	workers.Wait()
	took := time.Since(r.start)
	stop()
	total := newTally()
	for _, t := range r.tallies {
		total.add(t)
	}
	if r.failures.Load() >= maxFailures {
		return total, took, fmt.Errorf("%w; errors were %v", errGivenUp, total.errors)
	}
	return total, took, nil
}

// pace hands out the numbers of the requests as they fall due. When all connections are busy it waits, and what is
// late keeps the instant at which it was due.
func (r *run) pace(ctx context.Context) {
	defer close(r.due)
	total := int64(r.plan.rate * r.plan.duration.Seconds())
	for i := range total {
		at := r.start.Add(r.dueAt(i))
		for wait := time.Until(at); wait > 0 && ctx.Err() == nil; wait = time.Until(at) {
			pause(wait)
		}
		if r.ended.Load() || ctx.Err() != nil {
			return
		}
		select {
		case r.due <- i:
		case <-ctx.Done():
			return
		}
	}
}

func (r *run) dueAt(i int64) time.Duration {
	return time.Duration(float64(i) / r.plan.rate * float64(time.Second))
}

// worker is one connection's state.
type worker struct {
	*run
	client *client
	tally  *tally
	wires  [][]byte // by request
	etags  [][]byte // by request, the last seen
	random uint64
}

func (r *run) work(ctx context.Context, id int, c *client) {
	w := &worker{run: r, client: c, tally: r.tallies[id%len(r.tallies)], random: uint64(id)*0x9e3779b97f4a7c15 + 1}
	w.wires, w.etags = make([][]byte, len(r.requests)), make([][]byte, len(r.requests))
	for i, q := range r.requests {
		w.wires[i] = r.target.wire(http.MethodGet, q.path, q.headers...)
	}
	defer func() {
		if w.client != nil {
			w.client.close()
		}
	}()
	if r.plan.rate > 0 {
		for i := range r.due {
			w.request(ctx, r.dueAt(i))
		}
		return
	}
	for ctx.Err() == nil && !r.ended.Load() && time.Since(r.start) < r.plan.duration {
		w.request(ctx, time.Since(r.start))
	}
}

// request sends one request and counts what comes back.
func (w *worker) request(ctx context.Context, due time.Duration) {
	if w.ended.Load() {
		return
	}
	if w.client == nil {
		c, err := w.target.dial(ctx)
		if err != nil {
			w.fail(err)
			return
		}
		w.client = c
	}
	n := w.pick()
	sent := time.Since(w.start)
	reply, err := w.client.do(w.wires[n], nil)
	done := time.Since(w.start)
	if err != nil || reply.closes {
		w.client.close()
		w.client = nil
	}
	if err != nil {
		w.fail(err)
		return
	}
	if w.failures.Load() > 0 {
		w.failures.Store(0)
	}
	changed := w.remember(n, reply)
	t := w.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	record(t.latency, done-due)
	record(t.service, done-sent)
	t.status[reply.status]++
	t.bytes += int64(reply.received)
	if w.plan.samples && len(t.samples) < maxSamples/shards {
		t.samples = append(t.samples, sample{due, done - due})
		if changed {
			t.changes = append(t.changes, done)
		}
	}
}

// pick chooses the next request, evenly and repeatably.
func (w *worker) pick() int {
	if len(w.requests) == 1 {
		return 0
	}
	w.random ^= w.random << 13
	w.random ^= w.random >> 7
	w.random ^= w.random << 17
	return int(w.random % uint64(len(w.requests)))
}

// remember keeps the answer's ETag, for the next If-None-Match, and says whether the polled document changed and
// this is the first answer to show it.
func (w *worker) remember(n int, r reply) bool {
	if len(r.etag) == 0 || bytes.Equal(r.etag, w.etags[n]) {
		return false
	}
	w.etags[n] = bytes.Clone(r.etag)
	if q := w.requests[n]; q.revisit {
		headers := append(slices.Clone(q.headers), "If-None-Match: "+string(w.etags[n]))
		w.wires[n] = w.target.wire(http.MethodGet, q.path, headers...)
	}
	if w.requests[n].path != gamma {
		return false
	}
	w.seenLock.Lock()
	defer w.seenLock.Unlock()
	if w.seen[string(r.etag)] {
		return false
	}
	w.seen[string(r.etag)] = true
	return len(w.seen) > 1
}

func (w *worker) fail(err error) {
	w.tally.mu.Lock()
	w.tally.errors[reason(err)]++
	w.tally.mu.Unlock()
	if w.failures.Add(1) >= maxFailures {
		w.ended.Store(true)
	}
	time.Sleep(redialAfter)
}

// reason is an error without what differs from connection to connection.
func reason(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}

// reportProgress calls back once a second until the returned function is called.
func (r *run) reportProgress() (stop func()) {
	if r.plan.progress == nil {
		return func() {}
	}
	done := make(chan struct{})
	var reporter sync.WaitGroup
	reporter.Go(func() {
		ticks := time.NewTicker(time.Second)
		defer ticks.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticks.C:
				so := newTally()
				for _, t := range r.tallies {
					t.mu.Lock()
					so.latency.Merge(t.latency)
					for k, n := range t.errors {
						so.errors[k] += n
					}
					t.mu.Unlock()
				}
				r.plan.progress(time.Since(r.start), so, r.plan.connections)
			}
		}
	})
	return func() { close(done); reporter.Wait() }
}
