package loop

import (
	"errors"
	"log/slog"
	"net"
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
	// acceptPause is the pause between two tries to accept while descriptors or memory are exhausted.
	acceptPause = 100 * time.Millisecond
	warnEvery   = time.Minute
)

// Accept calls accept, which accepts connections and returns an error, nil or not, until stop is closed. Then it accepts for
// [DrainTimeout] the connections that the kernel has accepted by now, and returns nil: closing the listener would reset
// them, with the requests that were sent on them. After a lack of descriptors or memory it pauses, and tries again. It returns
// any other error. setDeadline makes accept fail at an instant.
func Accept(accept func() error, setDeadline func(time.Time) error, stop <-chan struct{}, log *slog.Logger) error {
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-stop:
			_ = setDeadline(time.Now()) // a listener without deadlines fails when it is closed
		case <-done:
		}
	}()
	// If this goroutine had to wait for a processor, connections may be left after the first time.
	drains, warned := []time.Duration{DrainTimeout, time.Millisecond}, time.Time{}
	for {
		err := accept()
		stopping := false
		select {
		case <-stop:
			stopping = true
		default:
		}
		switch {
		case err == nil:
		case exhausted(err):
			if now := time.Now(); now.Sub(warned) >= warnEvery {
				warned = now
				log.Warn("connections are not accepted for now", "next_try", acceptPause, "err", err)
			}
			time.Sleep(acceptPause)
		case stopping && (len(drains) == 0 || errors.Is(err, net.ErrClosed)):
			return nil
		case stopping:
			if setDeadline(time.Now().Add(drains[0])) != nil {
				return nil
			}
			drains = drains[1:]
		default:
			return err
		}
	}
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
