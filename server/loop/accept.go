package loop

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"strikecache/server/limits"
)

// Connections counts connections and limits their number, also of one address. It is safe for concurrent use.
type Connections struct {
	Max int // how many may be open, and a quarter of them from one IPv4 address or IPv6 /64; set it before the first use
	// Exempt says of which addresses more than a quarter may be open; nil: of all. Set it before the first use.
	Exempt            func(netip.Addr) bool
	Open              atomic.Int64 // connections for which Enter returned true and Exit was not called
	Accepted, Refused atomic.Uint64
	rejecting         atomic.Int32 // see MaxRejecting

	mu   sync.Mutex
	held map[uint64]int // open connections by the number of their address, without exempt addresses and zeros
}

// Enter counts a new connection from an address. It returns false if as many connections are open as Max allows: then the caller must
// refuse the connection.
func (c *Connections) Enter(from netip.Addr) bool {
	if c.Open.Add(1) > int64(c.Max) || !c.hold(from, 1) {
		c.Open.Add(-1)
		c.Refused.Add(1)
		return false
	}
	c.Accepted.Add(1)
	return true
}

// Exit counts the end of a connection for which Enter returned true.
func (c *Connections) Exit(from netip.Addr) {
	c.hold(from, -1)
	c.Open.Add(-1)
}

// hold adds to the connections of an address. It returns false, and adds nothing, if they would be more than a quarter of Max.
func (c *Connections) hold(from netip.Addr, more int) bool {
	if c.Exempt == nil || c.Exempt(from) {
		return true
	}
	address := limits.Client(from)
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.held[address] + more
	if n > max(c.Max/4, 1) {
		return false
	}
	if c.held == nil {
		c.held = map[uint64]int{}
	}
	if c.held[address] = n; n == 0 {
		delete(c.held, address)
	}
	return true
}

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
