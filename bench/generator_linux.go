package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// pause sleeps in the kernel. Go's timers are up to a millisecond late in an idle process, and this delay would count as
// the server's latency.
func pause(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // a signal may end it early: the caller checks the time
}

// processTime returns the CPU time of a process, also of its threads that have ended, from the scheduler's account in
// nanoseconds. (/proc/PID/stat has only hundredths of a second, and the account of a thread goes when the thread ends.)
func processTime(pid int) (time.Duration, error) {
	const scheduled = 2 // the clock of clock_getcpuclockid
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &t); err != nil {
		return 0, fmt.Errorf("no such process: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// generator is the client of rivals. It uses the sockets of load, and does as little work per request as possible, so
// that the server on the other core is the bottleneck. (The client of load speaks HTTP with any server, and uses more CPU
// time than a bare loop.) The first answer is read and compared in full. Of every later answer, the generator checks only
// the status and the length.
//
// The connections take turns. At most 64 requests wait for an answer at a time.
type generator struct {
	*epollSockets
	received []int // bytes of the answer, by connection
	idle     []int // connections; the one that was used last is the last one
	waiting  int   // requests without an answer
	request  []byte
	status   []byte // first bytes of every answer
	length   int    // of every answer, head and body
}

const (
	// longestSilence is the longest time without an answer on any connection.
	longestSilence = time.Minute
	// batch is the number of answers in one poll after which the generator polls again at once.
	batch = 16
	// rest is how long the generator sleeps after a poll with fewer answers. The kernel adds its slack of 50 µs.
	rest = 20 * time.Microsecond
)

var (
	errSilence = errors.New("no answer on any connection for a minute")
	errAnswer  = errors.New("answer differs from the first one")
)

// newGenerator opens connections from an address, and end closes them.
func newGenerator(address string, from [4]byte, connections int, request, first []byte) (*generator, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	s, err := newEpollSockets(to, from, connections)
	g := &generator{epollSockets: s, received: make([]int, connections), request: request, length: len(first), status: first[:12]}
	for id := 0; err == nil && id < connections; id++ {
		if err = g.open(id); err == nil {
			_, _, err = g.next(longestSilence)
		}
		g.idle = append(g.idle, id)
	}
	if err != nil {
		g.end()
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return g, nil
}

// ask sends the request on an idle connection.
func (g *generator) ask() error {
	id := g.idle[0]
	g.idle = g.idle[1:]
	g.received[id] = 0
	g.waiting++
	return g.write(id, g.request)
}

// poll takes the answers that have arrived, and waits for none.
func (g *generator) poll(answered func() error) error {
	for more := true; more; more = len(g.ready) > 0 {
		id, got, err := g.next(0)
		switch {
		case err != nil: // io.EOF if the server has closed the connection
			return err
		case id < 0:
			return nil
		case g.received[id] == 0 && !bytes.HasPrefix(got, g.status):
			return fmt.Errorf("%w: %.40q", errAnswer, got)
		}
		if g.received[id] += len(got); g.received[id] > g.length {
			return fmt.Errorf("%w: %d bytes, longer than %d bytes", errAnswer, g.received[id], g.length)
		}
		if g.received[id] == g.length {
			g.idle = append(g.idle, id)
			g.waiting--
			if err := answered(); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends n requests, less those that wait for an answer, and returns when all are answered. Each connection sends its
// next request soon after its answer.
//
// Answers are taken in batches, because the bare loop is as fast as any generator. If the generator took each answer at once,
// the loop would sleep and wake up for every request, which uses as much CPU time as the request. With batches every server
// always has a queue, and uses CPU time for requests only.
func (g *generator) send(n int) error {
	sent, answered, last := g.waiting, 0, time.Now()
	sendIdle := func() error {
		for ; sent < n && len(g.idle) > 0 && sent-answered < rivalConnections; sent++ {
			if err := g.ask(); err != nil {
				return err
			}
		}
		return nil
	}
	for answered < n {
		before := answered
		err := errors.Join(sendIdle(), g.poll(func() error {
			answered++
			return sendIdle()
		}))
		if err != nil {
			return err
		}
		taken := answered - before
		if taken > 0 {
			last = time.Now()
		} else if time.Since(last) > longestSilence {
			return errSilence
		}
		if taken < batch {
			pause(rest)
		}
	}
	return nil
}
