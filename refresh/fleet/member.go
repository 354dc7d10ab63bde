package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Member is this process in a fleet. Create it with [New]. Publish, Announce, Holds, Complete and Status are safe for concurrent use.
type Member struct {
	cfg      Config
	name     string        // unique to this process
	announce chan struct{} // has an element when there is a reason to look at the pointer at once

	// The next fields are of the goroutine of Run.
	conn       *nats.Conn
	bucket     *bucket // nil until it is open
	followed   followed
	lease      *lease           // nil while this member does not hold it and its refreshes have ended
	yielding   bool             // this member left the lease to others at the last look
	yieldUntil time.Time        // until when it does so
	offered    time.Time        // when it last did so because of its clock
	now        func() time.Time // the clock that is compared with that of the NATS server

	yieldFor, keepFor, unusedFor time.Duration // the constants, but in tests

	mu     sync.Mutex // guards the fields below; held only briefly
	status Status
	down   error     // of the last attempt to connect, nil after a success
	denied error     // what the NATS user may not do, as the server said last
	seen   uint64    // sequence number of the pointer at the last look, 0 for none
	heard  time.Time // when this member first saw it, by the machine's clock
	holds  time.Time // until when this member may publish and ask the upstream
	leads  *lease    // nil unless this member refreshes
}

// New returns a member. Call [Member.Run] to take part in the fleet.
func New(cfg Config) *Member {
	host, _ := os.Hostname() // only for people to read
	m := &Member{
		cfg: cfg, name: fmt.Sprintf("%s-%d-%s", cmp.Or(host, "host"), os.Getpid(), rand.Text()[:6]), announce: make(chan struct{}, 1),
		followed: followed{done: map[string]string{}, refused: map[string]string{}},
		yieldFor: yieldFor, keepFor: keepFor, unusedFor: unusedFor, now: time.Now, heard: time.Now(),
	}
	m.status = Status{Role: RoleFollower, Refused: map[string]int64{}}
	if cfg.Edge {
		m.status.Role = RoleEdge
	}
	for _, reason := range reasons {
		m.status.Refused[reason] = 0
	}
	return m
}

// Status returns how the member is doing.
func (m *Member) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.status
	s.Refused = maps.Clone(s.Refused)
	if now := time.Now(); !now.Before(m.holds) && now.Sub(m.heard) >= 5*tickEvery {
		s.SilentSince = m.heard
	}
	return s
}

func (m *Member) update(change func(*Status)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.status)
}

// Holds says whether this member holds the lease at this instant, by its own clocks. They run on while the process is
// stopped.
func (m *Member) Holds() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	return now.Before(m.holds) && now.Round(0).Before(m.holds.Round(0)) // also by the wall clock, which a sleeping machine does not stop
}

// extend says that this member has written the pointer by a request that was sent at the given instant.
func (m *Member) extend(asked time.Time, p pointer) {
	m.update(func(s *Status) {
		m.holds, m.heard, m.seen, s.Lease = asked.Add(leaseUse), time.Now(), p.sequence, p.Term
	})
}

// Complete says whether this member had all files of the fleet at its last look.
func (m *Member) Complete() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status.Connected && m.status.complete
}

// Announce says that the freshness in [Process.Serving] may have changed.
func (m *Member) Announce() {
	select {
	case m.announce <- struct{}{}:
	default:
	}
}

// Run takes part in the fleet until ctx ends. Then it publishes what the last refresh gives and releases the lease, within seconds.
func (m *Member) Run(ctx context.Context) {
	var judging sync.WaitGroup
	judging.Go(func() { m.updateFreshness(ctx) })
	defer judging.Wait()
	var err error
	if m.conn, err = m.connect(); err != nil {
		m.report(err)
		<-ctx.Done()
		return
	}
	defer m.conn.Close()
	ticks := time.NewTicker(tickEvery)
	defer ticks.Stop()
	for ctx.Err() == nil {
		err := m.tick(ctx)
		for _, gone := range []error{nats.ErrStreamNotFound, jetstream.ErrStreamNotFound, jetstream.ErrBucketNotFound, nats.ErrNoResponders} {
			if errors.Is(err, gone) {
				m.bucket = nil // somebody has deleted it, or NATS has lost its files
				m.lose()
			}
		}
		m.report(err)
		select {
		case <-ctx.Done():
		case <-ticks.C:
		case <-m.announce:
		}
	}
	if m.lease != nil {
		m.lease.finish()
	}
}

// updateFreshness lets the process update the freshness of its answers while this member does not hold the lease, until ctx ends. It has its own
// goroutine, because a disk that hangs may stop the one of Run.
func (m *Member) updateFreshness(ctx context.Context) {
	ticks := time.NewTicker(tickEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		if m.Holds() {
			continue
		}
		if err := m.cfg.Process.UpdateFreshness(m.Status().SilentSince); err != nil {
			m.cfg.Log.Error("freshness update failed", "err", err)
		}
	}
}

// report keeps an error, and logs it unless it was the last one.
func (m *Member) report(err error) {
	if errors.Is(err, errNewer) {
		return
	}
	if err != nil {
		err = m.explain(err)
	}
	said := m.Status().Err
	m.update(func(s *Status) {
		if s.Err = err; err == nil {
			m.denied = nil // the permissions may have changed
		}
	})
	if err != nil && (said == nil || said.Error() != err.Error()) {
		m.cfg.Log.Warn("fleet: this member does not take part, or not in all", "err", err)
	}
}

// tick looks at the pointer. Then it renews or takes the lease, or fetches what the pointer names.
func (m *Member) tick(ctx context.Context) error {
	if err := m.end(); err != nil {
		return err
	}
	if m.bucket == nil {
		b, err := m.open(ctx)
		if err != nil {
			return err
		}
		m.bucket = b
		m.update(func(*Status) { m.heard = time.Now() }) // the others may not have seen it yet
	}
	p, err := m.look(ctx)
	if err != nil {
		return err
	}
	reason := m.yields(p)
	if reason != nil && !m.yielding {
		m.cfg.Log.Warn("fleet: this member does not refresh for now", "err", reason)
	}
	m.yielding = reason != nil
	switch l := m.lease; {
	case l != nil && !m.Holds():
		return errLost
	case l != nil && reason != nil:
		return l.release()
	case l != nil:
		return l.renew()
	}
	err = m.follow(ctx, p.Manifest)
	m.update(func(s *Status) { s.complete = err == nil })
	if errors.Is(err, jetstream.ErrObjectNotFound) || errors.Is(err, errCorrupt) || errors.Is(err, errSize) {
		p.Manifest = "" // NATS has lost blobs: who leads next puts those that it has
	} else if err != nil {
		return err
	}
	if !m.cfg.Edge && reason == nil && m.cfg.Store.DiskError() == nil && m.free(p) {
		return m.take(ctx, p)
	}
	return cmp.Or(err, m.followed.refuses)
}

// look reads the pointer.
func (m *Member) look(ctx context.Context) (pointer, error) {
	p, err := m.bucket.pointer(ctx)
	if err != nil {
		return p, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.sequence != m.seen {
		if time.Since(m.heard) >= 5*tickEvery { // the answers may have become stale meanwhile
			m.followed.digest = ""
		}
		m.seen, m.heard = p.sequence, time.Now()
		m.status.Lease = max(m.status.Lease, p.Term)
		if p.Holder == "" && p.sequence > 0 {
			m.refuse(pointerKey, reasonCorrupt, errCorrupt)
		}
	}
	return p, nil
}

// free says whether no member holds the lease. This member has all files that the pointer names.
func (m *Member) free(p pointer) bool {
	wait := leaseTTL
	if p.Manifest == "" { // others may have newer answers
		behind := uint64(max(0, m.cfg.Process.Behind()/time.Minute)) //nolint:gosec // G115: not negative
		wait += min(8*time.Second, time.Duration(bits.Len64(behind))*500*time.Millisecond)
	} else if p.Released {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.heard) > wait
}
