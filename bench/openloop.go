package main

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"time"
)

// closed says whether the load is a closed loop: a connection sends its next request when it has the answer to the last.
func (c *loadCommand) closed() bool { return c.Rate == 0 }

// total is the number of requests that are counted, 0 for a closed loop, which has no number beforehand.
func (c *loadCommand) total() int64 {
	if c.closed() {
		return 0
	}
	return max(int64(c.Rate*c.Duration.Seconds()), 1)
}

// dueAt returns when request i is due, counted from the start. Requests of the warm-up have negative numbers.
func (c *loadCommand) dueAt(i int64) time.Duration {
	return time.Duration(float64(i) / c.Rate * float64(time.Second))
}

// redialAfter is how long a connection rests after a failure. Timeouts are up to as much longer.
const redialAfter = 10 * time.Millisecond

var (
	errUnsent  = errors.New("not sent: all connections were busy until the end")
	errTimeout = errors.New("timeout")
)

// openLoop is the state of a running load. Instants are counted from the start, after the warm-up.
type openLoop struct {
	*loadCommand
	sockets
	requests    []request
	heads       [][]byte   // of the requests, without their last line break
	rows        []*pathRow // of the requests, in the report
	start       time.Time
	report      *report
	connections []connection
	idle        chan *connection // those that can carry a request, the longest idle one first
	busy        int              // connections that carry a request
	number      int64            // of the next request
	stopped     bool             // the context has ended
	choices     *rand.Rand
	out         []byte
	counts      bool          // the warm-up is over
	cpu, ownCPU time.Duration // CPU time of the server and of this process when counts became true
	unscheduled time.Duration // runDelay at that time
}

// connection is one connection and the request that it carries. It opens with its first request.
type connection struct {
	id        int
	open      bool // or opening
	busy      bool
	request   int // index of the request
	due, sent time.Duration
	delay     time.Duration // by which the generator itself sent the request late
	since     time.Duration // when it became idle
	end       time.Duration // of the time for the answer, or of the rest after a failure; 0: neither
	answer    answerReader
	tags      [][]byte // last ETag of each request
}

// load sends randomly chosen requests and returns the report. With --pid, it also measures the CPU time of that process.
//
// Request i is due at start + i/rate, even if earlier requests have no answer yet, and its latency counts from that
// instant. So each request that falls due during a stall of the server has a high latency: none is left out because the
// generator waits, too (coordinated omission). A server that is too slow for the rate has one timeout after the last
// request was due. A request that could not be sent by then counts as failed, with the time that it has waited.
//
// In a closed loop a request is due when it is sent. Then a stall of the server also stops the requests.
//
// One thread sends and receives everything: Go's scheduler doubled p99 at 10,000 requests a second (2026-11-25).
func (c *loadCommand) load(ctx context.Context, requests []request) *report {
	// That thread keeps its scheduler context while it waits. The goroutines of netSockets need another one.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), 2)))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l := &openLoop{loadCommand: c, requests: requests, report: newReport(c), number: -int64(c.Rate * c.Warmup.Seconds()),
		connections: make([]connection, c.Connections), idle: make(chan *connection, c.Connections),
		choices: rand.New(rand.NewPCG(0, 0))} // the same choices in each run
	l.sockets = newSockets(c.target, c.Connections)
	defer l.end()
	for _, q := range requests {
		l.heads = append(l.heads, c.target.head(q))
		l.rows = append(l.rows, l.report.path(q.name))
	}
	for id := range l.connections {
		l.connections[id] = connection{id: id, since: -c.Warmup, tags: make([][]byte, len(requests))}
		l.idle <- &l.connections[id]
	}
	l.start = time.Now().Add(c.Warmup)
	l.run(ctx)
	took := l.elapsed()
	cpu, _ := cpuTime(c.PID) // 0 if the server has ended
	own, _ := cpuTime(os.Getpid())
	for i := max(l.number, 0); i < c.total() && !l.stopped; i++ {
		l.report.add(outcome{due: c.dueAt(i), latency: took - c.dueAt(i), path: l.rows[l.choices.IntN(len(requests))], err: errUnsent})
	}
	l.report.finish(took, max(cpu-l.cpu, 0), own-l.ownCPU, runDelay()-l.unscheduled)
	return l.report
}

func (l *openLoop) elapsed() time.Duration { return time.Since(l.start) }

// more says whether the load goes on sending.
func (l *openLoop) more(now time.Duration) bool {
	if l.closed() {
		return !l.stopped && (now < l.Duration || l.number < int64(l.Connections)) // each connection has a request, also on a slow machine
	}
	return !l.stopped && l.number < l.total() && now < l.dueAt(l.total())+l.Timeout
}

// run sends and receives until every request has its answer or has failed.
func (l *openLoop) run(ctx context.Context) {
	look := l.elapsed() // when to look for timeouts next
	for now := look; l.busy > 0 || l.more(now); now = l.elapsed() {
		if now >= look {
			look = now + redialAfter
			l.stopped = ctx.Err() != nil
			l.expire(now)
		}
		until := min(l.sendDue(), look)
		if id, got, err := l.next(until - l.elapsed()); id >= 0 {
			l.handleEvent(&l.connections[id], got, err)
		}
	}
}

// sendDue sends what is due while there are idle connections. It returns when an idle connection must send next. If all
// connections are busy, requests are sent late, and their latency still counts from the instant at which they were due.
func (l *openLoop) sendDue() time.Duration {
	for len(l.idle) > 0 {
		now := l.elapsed()
		if !l.more(now) {
			break
		}
		due := now
		if !l.closed() {
			due = l.dueAt(l.number)
		}
		if due > now {
			return due
		}
		if due >= 0 && !l.counts {
			l.counts = true
			l.cpu, _ = cpuTime(l.PID)
			l.ownCPU, _ = cpuTime(os.Getpid())
			l.unscheduled = runDelay()
		}
		l.number++
		l.send(<-l.idle, due, now)
	}
	return math.MaxInt64
}

func (l *openLoop) send(c *connection, due, now time.Duration) {
	l.busy++
	c.busy, c.request, c.due, c.sent, c.end = true, l.choices.IntN(len(l.requests)), due, now, now+l.Timeout
	if c.delay = now - max(due, c.since); l.closed() {
		c.delay = now - c.since
	}
	c.answer.begin()
	if c.open {
		l.ask(c)
		return
	}
	c.open = true
	if err := l.open(c.id); err != nil {
		l.finish(c, err)
	}
}

// ask writes the request of an open connection.
func (l *openLoop) ask(c *connection) {
	l.out = append(l.out[:0], l.heads[c.request]...)
	if tag := c.tags[c.request]; len(tag) > 0 {
		l.out = append(append(append(l.out, "If-None-Match: "...), tag...), "\r\n"...)
	}
	l.out = append(l.out, "\r\n"...)
	if err := l.write(c.id, l.out); err != nil {
		l.finish(c, err)
	}
}

// handleEvent handles what a connection has received.
func (l *openLoop) handleEvent(c *connection, got []byte, err error) {
	done := false
	switch {
	case !c.busy: // the server has closed the idle connection, or has sent what is no answer
		l.close(c.id)
		c.open = false
		return
	case errors.Is(err, io.EOF):
		err = c.answer.end()
		done = true
	case err == nil && len(got) == 0:
		l.ask(c)
	case err == nil:
		done, err = c.answer.read(got)
	}
	if done || err != nil {
		l.finish(c, err)
	}
}

// finish ends a request, with an error if it has no answer.
func (l *openLoop) finish(c *connection, err error) {
	now := l.elapsed()
	l.busy--
	if c.due >= 0 {
		o := outcome{due: c.due, latency: now - c.due, service: now - c.sent, delay: c.delay, path: l.rows[c.request], err: err}
		if err == nil {
			o.status, o.bytes = c.answer.status, c.answer.body
		}
		l.report.add(o)
	}
	if err != nil || c.answer.closes {
		l.close(c.id)
		c.open = false
	}
	if c.busy = false; err != nil {
		c.end = now + redialAfter
		return
	}
	if tag := c.answer.etag; len(tag) > 0 && l.requests[c.request].revalidate {
		c.tags[c.request] = append(c.tags[c.request][:0], tag...)
	}
	c.end, c.since = 0, now
	l.idle <- c
}

// expire ends the requests whose time is over, and the rests of failed connections.
func (l *openLoop) expire(now time.Duration) {
	for i := range l.connections {
		switch c := &l.connections[i]; {
		case c.end == 0 || now < c.end:
		case c.busy:
			l.finish(c, errTimeout)
		default:
			c.end, c.since = 0, now
			l.idle <- c
		}
	}
}
