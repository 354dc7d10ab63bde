package loop

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// Connections counts connections and limits their number. It is safe for concurrent use.
type Connections struct {
	Max               int          // how many may be open; set it before the first use
	Open              atomic.Int64 // without those that are refused
	Accepted, Refused atomic.Uint64
	patient           atomic.Int32 // connections over the limit that may send their request
}

// Enter counts a connection. It returns false if there are too many: then the connection must be refused.
func (c *Connections) Enter() bool {
	if c.Open.Add(1) > int64(c.Max) {
		c.Open.Add(-1)
		c.Refused.Add(1)
		return false
	}
	c.Accepted.Add(1)
	return true
}

// Exit counts the end of a connection for which Enter returned true.
func (c *Connections) Exit() { c.Open.Add(-1) }

// EnterPatient says whether a connection over the limit may send its request before it is refused. If so, ExitPatient must be
// called at its end.
func (c *Connections) EnterPatient() bool {
	if c.patient.Add(1) > PatientRefusals {
		c.patient.Add(-1)
		return false
	}
	return true
}

// ExitPatient counts the end of a connection for which EnterPatient returned true.
func (c *Connections) ExitPatient() { c.patient.Add(-1) }

const (
	// acceptPause is the pause between two tries to accept, after an error that may pass.
	acceptPause = 100 * time.Millisecond
	warnEvery   = time.Minute
)

// Accept calls accept, which accepts connections and returns an error, nil or not, until the engine stops. Then it accepts for
// [DrainTimeout] the connections that the kernel has accepted by now, and returns nil: closing the listener would reset
// them, with the requests that were sent on them. Those of a [Passed] listener are not reset: Accept leaves them to the next
// process. After a lack of descriptors or memory, or an error of one connection, it pauses and tries again. It returns the error of a
// listener that is none any more. setDeadline makes accept fail at an instant.
func (l *Life) Accept(ln Listener, accept func() error, setDeadline func(time.Time) error, log *slog.Logger) error {
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-l.Stop:
			_ = setDeadline(time.Now()) // fails only on a closed listener
		case <-done:
		}
	}()
	// If this goroutine had to wait for a processor, connections may be left after the first time.
	drains, warned := []time.Duration{DrainTimeout, time.Millisecond}, time.Time{}
	if _, passed := ln.(Passed); passed {
		drains = nil
	}
	for {
		err, stopping := accept(), l.Stopping.Load()
		switch {
		case err == nil:
		case stopping && errors.Is(err, os.ErrDeadlineExceeded) && len(drains) > 0:
			if setDeadline(time.Now().Add(drains[0])) != nil {
				return nil
			}
			drains = drains[1:]
		case stopping && (errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed)):
			return nil
		case errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EBADF) || errors.Is(err, syscall.EINVAL):
			return err
		default:
			if now := time.Now(); now.Sub(warned) >= warnEvery {
				warned = now
				log.Warn("connections are not accepted for now", "next_try", acceptPause, "err", err)
			}
			time.Sleep(acceptPause)
		}
	}
}
