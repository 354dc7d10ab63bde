package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// total is the number of requests that are counted.
func (c *loadCommand) total() int64 {
	n := max(int64(c.Rate*c.Duration.Seconds()), 1)
	if c.Requests > 0 {
		n = min(n, int64(c.Requests))
	}
	return n
}

// dueAt returns when request i is due, counted from the start. Those of the warm-up have negative numbers.
func (c *loadCommand) dueAt(i int64) time.Duration {
	return time.Duration(float64(i) / c.Rate * float64(time.Second))
}

// redialAfter is how long a connection rests after a failure.
const redialAfter = 10 * time.Millisecond

var errUnsent = errors.New("not sent: all connections were busy until the end")

// openLoop is a load while it is on.
type openLoop struct {
	*loadCommand
	requests  []request
	pid       int       // of the server, 0 when it is not known
	start     time.Time // after the warm-up
	report    *report
	mu        sync.Mutex
	next      int64         // number of the next request
	cpuBefore time.Duration // of the server, at the start
}

// load sends requests, each time a random one, and returns what happened. It measures the CPU time of a process meanwhile
// unless pid is 0.
//
// Request i is due at start + i/rate, whatever became of those before it, and its latency counts from that instant.
// When the server stalls, everything that falls due meanwhile waits and shows it: no request is left out because the
// generator was waiting, too (coordinated omission). A server that is too slow for the rate is given one timeout
// after the last request was due. What could not be sent by then counts as failed, with the time it has waited.
func (c *loadCommand) load(ctx context.Context, requests []request, pid int) *report {
	warmup := int64(c.Rate * c.Warmup.Seconds())
	l := &openLoop{loadCommand: c, requests: requests, pid: pid, report: newReport(c), next: -warmup, start: time.Now().Add(c.dueAt(warmup))}
	loaded, cancel := context.WithDeadlineCause(ctx, l.start.Add(c.dueAt(c.total())+c.Timeout), errUnsent)
	defer cancel()
	var connections sync.WaitGroup
	for id := range c.Connections {
		connections.Go(func() { l.connection(loaded, uint64(id)) })
	}
	connections.Wait()
	took := time.Since(l.start)
	var used time.Duration
	if after, err := cpuTime(pid); err == nil {
		used = after - l.cpuBefore
	}
	if errors.Is(context.Cause(loaded), errUnsent) {
		for i := max(l.next, 0); i < c.total(); i++ {
			l.report.add(outcome{due: c.dueAt(i), latency: took - c.dueAt(i), err: errUnsent})
		}
	}
	l.report.finish(took, pid, used)
	return l.report
}

// take waits until a request is due and returns its number, or false at the end of the load. One connection waits for
// the instant and the other idle ones for their turn. While all are busy, what is late keeps the instant at which it
// was due.
func (l *openLoop) take(ctx context.Context) (i int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == l.total() {
		return 0, false
	}
	at := l.start.Add(l.dueAt(l.next))
	for wait := time.Until(at); wait > 0 && ctx.Err() == nil; wait = time.Until(at) {
		pause(min(wait, 100*time.Millisecond)) // and look whether the load was interrupted
	}
	if ctx.Err() != nil {
		return 0, false
	}
	if l.next == 0 {
		l.cpuBefore, _ = cpuTime(l.pid) // the same error comes at the end
	}
	l.next++
	return l.next - 1, true
}

// connection sends what is due until the end of the load.
func (l *openLoop) connection(ctx context.Context, id uint64) {
	client := l.target.connect()
	defer client.CloseIdleConnections()
	choices := rand.New(rand.NewPCG(id, 0)) // the same ones in each run
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
