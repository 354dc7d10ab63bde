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
	Open              atomic.Int64 // connections for which Enter returned true and Exit was not called
	Accepted, Refused atomic.Uint64
	rejecting         atomic.Int32 // see MaxRejecting
}

// Enter counts a new connection. It returns false if Max connections are open: then the caller must refuse the connection.
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

// BeginRejecting says whether a connection over the limit may send its request before it is refused. If so, the caller must call
// EndRejecting when the connection has ended.
func (c *Connections) BeginRejecting() bool {
	if c.rejecting.Add(1) > MaxRejecting {
		c.rejecting.Add(-1)
		return false
	}
	return true
}

// EndRejecting counts the end of a connection for which BeginRejecting returned true.
func (c *Connections) EndRejecting() { c.rejecting.Add(-1) }

const (
	// acceptPause is the pause after a temporary error of accept.
	acceptPause = 100 * time.Millisecond
	warnEvery   = time.Minute
)

// Accept calls accept, which accepts one or more connections, again and again until the engine stops. Then Accept goes on for
// [DrainTimeout] and returns nil: the kernel has already accepted connections that the engine has not, and closing the listener
// would reset them and lose their requests. For a [Passed] listener, Accept returns at once: the kernel keeps these connections for
// the next process. After a lack of descriptors or memory, or an error of one connection, Accept pauses and calls accept again. It
// returns an error if the listener is closed or unusable. setDeadline makes accept fail at an instant.
func (l *Lifecycle) Accept(ln Listener, accept func() error, setDeadline func(time.Time) error, log *slog.Logger) error {
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-l.Stop:
			_ = setDeadline(time.Now()) // fails only on a closed listener
		case <-done:
		}
	}()
	// On a busy machine, the first deadline may pass before this goroutine has accepted all connections. So there is a second one.
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
