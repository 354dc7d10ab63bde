package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// total is the number of requests that are counted.
func (c *loadCommand) total() int64 {
	return max(int64(c.Rate*c.Duration.Seconds()), 1)
}

// dueAt returns when request i is due, counted from the start. Requests of the warm-up have negative numbers.
func (c *loadCommand) dueAt(i int64) time.Duration {
	return time.Duration(float64(i) / c.Rate * float64(time.Second))
}

// redialAfter is how long a connection rests after a failure.
const redialAfter = 10 * time.Millisecond

var errUnsent = errors.New("not sent: all connections were busy until the end")

// openLoop is the state of a running load.
type openLoop struct {
	*loadCommand
	requests  []request
	start     time.Time // after the warm-up
	report    *report
	mu        sync.Mutex
	next      int64         // number of the next request
	cpuBefore time.Duration // of the server, at the start
}

// load sends randomly chosen requests and returns the report. With --pid, it also measures the CPU time of that process.
//
// Request i is due at start + i/rate, even if earlier requests have no answer yet, and its latency counts from that
// instant. So each request that falls due during a stall of the server has a high latency: none is left out because the
// generator waits, too (coordinated omission). A server that is too slow for the rate has one timeout after the last
// request was due. A request that could not be sent by then counts as failed, with the time that it has waited.
func (c *loadCommand) load(ctx context.Context, requests []request) *report {
	// pause occupies one scheduler context. With one core and without a second context, no answer would be read meanwhile:
	// p50 was 15 ms in place of 0.17 (2026-11-24).
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), 2)))
	warmup := int64(c.Rate * c.Warmup.Seconds())
	l := &openLoop{loadCommand: c, requests: requests, report: newReport(c), next: -warmup, start: time.Now().Add(c.dueAt(warmup))}
	loaded, cancel := context.WithDeadlineCause(ctx, l.start.Add(c.dueAt(c.total())+c.Timeout), errUnsent)
	defer cancel()
	var connections sync.WaitGroup
	for id := range c.Connections {
		connections.Go(func() { l.connection(loaded, uint64(id)) })
	}
	connections.Wait()
	l.report.took = time.Since(l.start)
	if after, err := cpuTime(c.PID); err == nil {
		l.report.cpu = after - l.cpuBefore
	}
	if errors.Is(context.Cause(loaded), errUnsent) {
		for i := max(l.next, 0); i < c.total(); i++ {
			l.report.add(outcome{due: c.dueAt(i), latency: l.report.took - c.dueAt(i), err: errUnsent})
		}
	}
	return l.report
}

// take waits until the next request is due and returns its number, or false at the end of the load. One idle connection
// holds the lock and waits for that instant. The other idle connections wait for the lock. If all connections are busy,
// the request is sent late, and its latency still counts from the instant at which it was due.
func (l *openLoop) take(ctx context.Context) (i int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == l.total() {
		return 0, false
	}
	at := l.start.Add(l.dueAt(l.next))
	for wait := time.Until(at); wait > 0 && ctx.Err() == nil; wait = time.Until(at) {
		pause(min(wait, 100*time.Millisecond)) // then check whether the load was interrupted
	}
	if ctx.Err() != nil {
		return 0, false
	}
	if l.next == 0 {
		l.cpuBefore, _ = cpuTime(l.PID) // load meets the same error at the end
	}
	l.next++
	return l.next - 1, true
}

// connection sends requests that are due, until the end of the load.
func (l *openLoop) connection(ctx context.Context, id uint64) {
	client := l.target.connect()
	defer client.CloseIdleConnections()
	choices := rand.New(rand.NewPCG(id, 0)) // the same choices in each run
	messages := make([]fasthttp.Request, len(l.requests))
	for n, q := range l.requests {
		l.target.prepare(&messages[n], q)
	}
	var response fasthttp.Response
	for i, ok := l.take(ctx); ok; i, ok = l.take(ctx) {
		n, sent := choices.IntN(len(l.requests)), time.Since(l.start)
		err := client.Do(&messages[n], &response)
		done := time.Since(l.start)
		o := outcome{due: l.dueAt(i), latency: done - l.dueAt(i), service: done - sent, err: err}
		if err == nil {
			o.status, o.bytes = response.StatusCode(), len(response.Body())
		}
		if i >= 0 {
			l.report.add(o)
		}
		if err != nil {
			time.Sleep(redialAfter)
			continue
		}
		if etag := response.Header.Peek("ETag"); l.requests[n].revalidate && len(etag) > 0 {
			messages[n].Header.SetBytesV("If-None-Match", etag)
		}
	}
}
