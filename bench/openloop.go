package main

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// plan is a load.
type plan struct {
	requests    []request
	rate        float64       // requests a second
	warmup      time.Duration // of the same load, not counted
	duration    time.Duration // after the warm-up
	most        int           // requests; 0: as many as rate and duration give
	connections int
	started     func() // called when the warm-up is over, unless it is nil
}

// first is the number of the first request that is counted.
func (p *plan) first() int64 { return int64(p.rate * p.warmup.Seconds()) }

// total is the number of requests of the plan, with those of the warm-up.
func (p *plan) total() int64 {
	n := max(int64(p.rate*p.duration.Seconds()), 1)
	if p.most > 0 {
		n = min(n, int64(p.most))
	}
	return p.first() + n
}

// dueAt returns when request i is due, counted from the start.
func (p *plan) dueAt(i int64) time.Duration {
	return time.Duration(float64(i) / p.rate * float64(time.Second))
}

// redialAfter is how long a connection rests after a failure.
const redialAfter = 10 * time.Millisecond

var errUnsent = errors.New("not sent: all connections were busy until the end")

// openLoop is a load while it is on.
type openLoop struct {
	*target
	plan
	start time.Time
	due   chan int64 // numbers of requests that are due
	tally *tally
}

// load sends the requests of a plan and returns what happened.
//
// Request i is due at start + i/rate, whatever became of those before it, and its latency counts from that instant.
// When the server stalls, everything that falls due meanwhile waits and shows it: no request is left out because the
// generator was waiting, too (coordinated omission). A server that is too slow for the rate is given one timeout
// after the last request was due. What could not be sent by then counts as failed, with the time it has waited.
func (t *target) load(ctx context.Context, p plan) *tally {
	l := &openLoop{target: t, plan: p, due: make(chan int64), tally: newTally(), start: time.Now()}
	loaded, cancel := context.WithDeadlineCause(ctx, l.start.Add(p.dueAt(p.total())+t.timeout), errUnsent)
	defer cancel()
	var workers sync.WaitGroup
	for i := range p.connections {
		workers.Go(func() { l.work(uint64(i)) })
	}
	next := l.pace(loaded)
	close(l.due)
	workers.Wait()
	l.tally.took = time.Since(l.start) - p.dueAt(p.first())
	if errors.Is(context.Cause(loaded), errUnsent) {
		for i := max(next, p.first()); i < p.total(); i++ {
			due := p.dueAt(i) - p.dueAt(p.first())
			l.tally.add(outcome{due: due, latency: l.tally.took - due, err: errUnsent})
		}
	}
	return l.tally
}

// pace hands out the numbers of the requests as they fall due and returns the first one that it did not hand out.
// While all connections are busy it waits, and what is late keeps the instant at which it was due.
func (l *openLoop) pace(ctx context.Context) int64 {
	for i := range l.total() {
		at := l.start.Add(l.dueAt(i))
		for wait := time.Until(at); wait > 0 && ctx.Err() == nil; wait = time.Until(at) {
			pause(min(wait, 100*time.Millisecond)) // and look whether the load was interrupted
		}
		if ctx.Err() != nil {
			return i
		}
		if i == l.first() && l.started != nil {
			l.started()
		}
		select {
		case l.due <- i:
		case <-ctx.Done():
			return i
		}
	}
	return l.total()
}

// worker is one connection.
type worker struct {
	*openLoop
	client   *fasthttp.HostClient
	messages []fasthttp.Request // by request of the plan
	etags    [][]byte           // by request of the plan, the last one
	response fasthttp.Response
	choices  *rand.Rand // the same ones in each run
}

func (l *openLoop) work(id uint64) {
	w := &worker{openLoop: l, client: l.connect(), choices: rand.New(rand.NewPCG(id, 0))}
	defer w.client.CloseIdleConnections()
	w.messages, w.etags = make([]fasthttp.Request, len(l.requests)), make([][]byte, len(l.requests))
	for i, q := range l.requests {
		l.prepare(&w.messages[i], q)
	}
	for i := range l.due {
		w.send(i)
	}
}

// send sends request i and counts what comes back.
func (w *worker) send(i int64) {
	n, due, sent := w.choices.IntN(len(w.requests)), w.dueAt(i), time.Since(w.start)
	err := w.client.Do(&w.messages[n], &w.response)
	done := time.Since(w.start)
	o := outcome{due: due - w.dueAt(w.first()), latency: done - due, service: done - sent, err: err}
	if err == nil {
		o.status, o.bytes = w.response.StatusCode(), len(w.response.Body())
	}
	if i >= w.first() {
		w.tally.add(o)
	}
	if err != nil {
		time.Sleep(redialAfter)
		return
	}
	if etag := w.response.Header.Peek("ETag"); w.requests[n].revalidate && len(etag) > 0 && !bytes.Equal(etag, w.etags[n]) {
		w.etags[n] = bytes.Clone(etag)
		w.messages[n].Header.SetBytesV("If-None-Match", etag)
	}
}
