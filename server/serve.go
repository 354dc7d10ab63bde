package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

const (
	// acceptPause is the pause between two tries to accept while descriptors or memory are exhausted.
	acceptPause = 100 * time.Millisecond
	warnEvery   = time.Minute
	// drainTimeout is how long a stopping server accepts connections that the kernel has already accepted, and waits for a
	// request that is already on its way on an idle connection.
	drainTimeout = 100 * time.Millisecond
	// shutdownPoll is the interval at which Shutdown looks whether connections are left.
	shutdownPoll = 5 * time.Millisecond
)

// Serve answers requests on a listener until [Server.Shutdown], and then returns nil. It closes the listener. It keeps
// accepting after errors that may pass, such as a lack of descriptors.
func (s *Server) Serve(ln net.Listener) error {
	s.active.Add(1)
	defer s.active.Add(-1)
	done := make(chan struct{})
	defer close(done)
	go s.logSamples(done)
	defer func() { _ = ln.Close() }() // nothing more can be done
	accept := func() error {
		c, err := ln.Accept()
		if err == nil {
			s.admit(c)
		}
		return err
	}
	loops, err := s.openLoops(ln)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	acceptor := any(ln)
	if loops != nil {
		accept, acceptor = loops.accept, loops
		defer loops.finish()
	}
	go func() {
		select {
		case <-s.stop:
			if loops != nil {
				loops.wake()
			}
			if !interrupt(acceptor, 0) {
				_ = ln.Close() // makes Accept fail, too
			}
		case <-done:
		}
	}()
	// When this goroutine had to wait for a processor, connections may be left after the first time.
	drains, warned := []time.Duration{drainTimeout, time.Millisecond}, time.Time{}
	for {
		switch err := accept(); {
		case err == nil:
		case exhausted(err):
			if now := time.Now(); now.Sub(warned) >= warnEvery {
				warned = now
				s.cfg.Log.Warn("connections are not accepted for now", "next_try", acceptPause, "err", err)
			}
			time.Sleep(acceptPause)
		case s.stopping.Load():
			// The connections that the kernel has accepted by now are served: closing the listener would reset them, with
			// the requests that were sent on them.
			if len(drains) == 0 || !interrupt(acceptor, drains[0]) {
				return nil
			}
			drains = drains[1:]
		default:
			return fmt.Errorf("serve: %w", err)
		}
	}
}

// interrupt makes accepting fail after a time. It returns false if the acceptor has no deadlines.
func interrupt(acceptor any, after time.Duration) bool {
	d, ok := acceptor.(interface{ SetDeadline(time.Time) error })
	return ok && d.SetDeadline(time.Now().Add(after)) == nil
}

// exhausted says whether an accept failed for lack of descriptors or memory, which may be free again in a moment.
func exhausted(err error) bool {
	for _, cause := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// Shutdown stops accepting connections and waits for the requests under way, at most until ctx ends. If ctx ends first,
// Shutdown closes the remaining connections and returns an error with their number.
func (s *Server) Shutdown(ctx context.Context) error {
	if !s.stopping.Swap(true) {
		close(s.stop)
	}
	s.conns.each((*conn).wake)
	ticker := time.NewTicker(shutdownPoll)
	defer ticker.Stop()
	for s.active.Load() > 0 {
		select {
		case <-ctx.Done():
			s.cutOff.Store(true)
			s.conns.each((*conn).cutOff)
			return fmt.Errorf("shut down: %d connections cut off at the time limit: %w", s.open.Load(), ctx.Err())
		case <-ticker.C:
		}
	}
	return nil
}
