package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goccy/go-json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// leaseKey is the key of the lease. Its value is the name of the member that holds it.
const leaseKey = "holder"

// lead is the time in which this member holds the lease.
type lead struct {
	began    time.Time       // when it was taken
	number   uint64          // of the lease
	revision uint64          // of the key
	held     context.Context // ends when the lease is lost
	lose     context.CancelFunc
	ctx      context.Context // of the refresher; ends with held, or when this process stops
	cancel   context.CancelFunc
	expiry   *time.Timer    // calls lose
	begun    bool           // this member has all files of the fleet, and refreshes
	running  sync.WaitGroup // the refresher
	last     uint64         // sequence number of the last message of the stream
	synced   bool           // last is known
	current  uint64         // sequence number of the last "current" that this member published
	serving  []byte         // [Current.Resources] that were published last, in JSON
}

// term is the message of a member that has taken the lease.
type term struct {
	Member string `json:"member"`
	Origin Origin `json:"origin"`
}

// errLost says that another member has the lease.
var errLost = errors.New("the lease is lost")

// look reads or renews the lease, and looks whether the watch has missed something. If the lease is free and this member has
// all files, it takes the lease. A member that doubts its clock, or whose refreshes fail, neither takes nor keeps it.
func (s *link) look(ctx context.Context) error {
	m := s.m
	unfit := m.unfit()
	if unfit != nil && !m.rests {
		m.cfg.Log.Warn("fleet: this member does not refresh for now", "err", unfit)
	}
	m.rests = unfit != nil
	if m.lead != nil {
		if unfit != nil {
			s.release(ctx)
			return errLost
		}
		if err := s.hold(ctx); err != nil || m.leads() {
			return err
		}
	}
	newest, err := s.last(ctx, ">")
	if err != nil {
		return err
	}
	if s.missed++; m.seen >= s.newest {
		s.missed = 0
	}
	s.newest, s.upTo = newest.Sequence, min(s.upTo, newest.Sequence)
	if s.missed > 2 {
		return errors.New("the watch has missed messages")
	}
	if m.lead != nil {
		return nil
	}
	_, err = s.lease.Get(ctx, leaseKey)
	free := errors.Is(err, jetstream.ErrKeyNotFound)
	if err != nil && !free {
		return fmt.Errorf("read the lease: %w", err)
	}
	if !free {
		m.mu.Lock()
		m.heard = time.Now()
		m.mu.Unlock()
	}
	if err := s.apply(ctx); err != nil {
		return err
	}
	if free && unfit == nil && !m.cfg.Edge && m.seen >= s.newest && len(m.backlog) == 0 && m.wanted == nil {
		return s.take(ctx)
	}
	return nil
}

const (
	// restFor is how long a member whose refreshes fail leaves the lease to others. If none of them takes it, the member takes
	// it again.
	restFor = 15 * time.Second
	// holdFor is how long a member keeps a lease that it has taken, also if its refreshes fail. Each member of a fleet without
	// an upstream gets its turn, and serves meanwhile what there is.
	holdFor = 2 * time.Minute
)

// unfit returns why this member should not refresh now, nil if it may.
func (m *Member) unfit() error {
	if err := m.cfg.Process.Doubt(); err != nil {
		return err
	}
	if left := time.Until(m.restUntil); left > 0 {
		return fmt.Errorf("for %v another member may take the lease", left.Round(time.Second))
	}
	if !m.leads() {
		return nil
	}
	err := m.cfg.Process.Failing()
	if err == nil || time.Since(m.lead.began) < m.patience {
		return nil
	}
	m.restUntil = time.Now().Add(m.rest)
	return fmt.Errorf("another member may take the lease: %w", err)
}

// last returns the newest message of a subject, as the server knows it that leads the stream: others may be behind. The
// sequence number is 0 if there is none.
func (s *link) last(ctx context.Context, name string) (*nats.RawStreamMsg, error) {
	msg, err := s.reads.GetLastMsg(s.stream.CachedInfo().Config.Name, s.m.subject(name), nats.Context(ctx))
	if errors.Is(err, nats.ErrMsgNotFound) {
		return &nats.RawStreamMsg{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return msg, nil
}

// hold renews the lease. It gives the lease up if somebody has removed or replaced the message that it began with.
func (s *link) hold(ctx context.Context) error {
	if err := s.renew(ctx); err != nil {
		return err
	}
	begun, err := s.last(ctx, leadSubject)
	if err == nil && begun.Sequence != s.m.lead.number {
		s.release(ctx)
		return errLost
	}
	return err
}

// take takes the free lease. From the message "lead" on, the member before can publish nothing. This member refreshes when it
// has all files that were published before; see begin.
func (s *link) take(ctx context.Context) error {
	m, asked := s.m, time.Now()
	revision, err := s.lease.Create(ctx, leaseKey, []byte(m.name))
	if errors.Is(err, jetstream.ErrKeyExists) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("take the lease: %w", err)
	}
	l := &lead{began: asked, revision: revision}
	l.held, l.lose = context.WithCancel(context.Background()) // it outlasts the connection
	l.ctx, l.cancel = context.WithCancel(l.held)
	l.expiry = time.AfterFunc(leaseUse-time.Since(asked), l.lose)
	m.lead = l
	m.extend(asked)
	value, err := json.Marshal(term{Member: m.name, Origin: m.cfg.Process.Origin()})
	if err == nil {
		l.number, err = s.send(ctx, m.subject(leadSubject), nats.Header{}, value)
	}
	if err != nil {
		s.release(ctx)
		return fmt.Errorf("begin to refresh: %w", err)
	}
	m.joined = true
	return nil
}

// begin starts the refresher, as soon as this member has taken the lease and has all files of the member before.
func (m *Member) begin() {
	l := m.lead
	if l == nil || l.begun || m.seen < l.number || len(m.backlog) > 0 || l.ctx.Err() != nil {
		return
	}
	l.begun, m.wanted = true, nil
	m.update(func(status *Status) { status.Role, m.leading = RoleRefresher, l.held })
	for _, path := range m.cfg.Store.Paths() {
		if !m.has(File{path, m.cfg.Store.Digest(path)}) {
			m.mark(path)
		}
	}
	m.cfg.Log.Info("fleet: this member holds the lease and refreshes", "lease", l.number)
	m.Announce()
	l.running.Go(func() { m.cfg.Process.Lead(l.ctx) })
}

// leads says whether this member refreshes.
func (m *Member) leads() bool { return m.lead != nil && m.lead.begun }

// extend says that the lease was taken or renewed by a request of the given instant; the zero time says that it is lost.
func (m *Member) extend(asked time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holds = time.Time{}
	if !asked.IsZero() {
		m.holds, m.heard = asked.Add(leaseUse), time.Now()
	}
}

// renew renews the lease. While JetStream does not answer, the lease stays until it expires.
func (s *link) renew(ctx context.Context) error {
	l, asked := s.m.lead, time.Now()
	if !s.m.Holds() {
		s.release(ctx) // this process was stopped for a while
		return errLost
	}
	revision, err := s.lease.Update(ctx, leaseKey, []byte(s.m.name), l.revision)
	if errors.Is(err, jetstream.ErrKeyExists) || isWrongSequence(err) {
		// Another member has the lease, or the answer to an earlier renewal was lost.
		entry, failed := s.lease.Get(ctx, leaseKey)
		switch {
		case failed != nil && !errors.Is(failed, jetstream.ErrKeyNotFound):
			return fmt.Errorf("read the lease: %w", failed)
		case failed != nil || string(entry.Value()) != s.m.name:
			l.lose()
			return errLost
		}
		l.revision = entry.Revision()
		return nil // renewed by the next look
	}
	if err != nil {
		return fmt.Errorf("renew the lease: %w", err)
	}
	l.revision = revision
	s.m.extend(asked)
	l.expiry.Reset(leaseUse - time.Since(asked))
	return nil
}

func isWrongSequence(err error) bool {
	var e *jetstream.APIError
	return errors.As(err, &e) && e.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

// endLead waits until the refresher has ended if the lease is lost, and says whether it is. From then on, this member follows.
func (m *Member) endLead() (lost bool) {
	l := m.lead
	if l == nil || l.ctx.Err() == nil {
		return false
	}
	m.extend(time.Time{})
	l.lose() // no publication waits for the refresher any more
	l.running.Wait()
	l.expiry.Stop()
	m.lead = nil
	m.update(func(s *Status) { s.Role, m.dirty = RoleFollower, map[string]bool{} })
	m.cfg.Log.Info("fleet: this member no longer holds the lease", "lease", l.number)
	return true
}

// release gives the lease up. If JetStream does not answer, the lease expires.
func (s *link) release(ctx context.Context) {
	l := s.m.lead
	l.lose()
	s.m.extend(time.Time{})
	if err := s.lease.Delete(ctx, leaseKey, jetstream.LastRevision(l.revision)); err != nil {
		s.m.cfg.Log.Warn("fleet: the lease was not released, it expires", "err", err)
	}
}

// finish ends the refresher, publishes what is not published yet, and releases the lease. It keeps the lease while a refresh
// that has begun comes to its end, and publishes its answers.
func (s *link) finish() {
	m, l := s.m, s.m.lead
	if l == nil {
		return
	}
	l.cancel()
	ended := make(chan struct{})
	go func() {
		l.running.Wait()
		close(ended)
	}()
	ticks := time.NewTicker(tickEvery)
	defer ticks.Stop()
	for waits := true; waits; {
		select {
		case <-ended:
			waits = false
		case p := <-m.publications:
			ctx, cancel := context.WithTimeout(context.Background(), leaseUse)
			if err := s.publish(ctx, p); err != nil {
				l.lose()
			}
			cancel()
		case <-ticks.C:
			ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
			if err := s.renew(ctx); err != nil {
				m.cfg.Log.Warn("fleet: the lease was not renewed", "err", err)
			}
			cancel()
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*callTimeout)
	defer cancel()
	err := s.put(ctx)
	for err == nil && l.begun && s.busy() {
		err = s.putOne(ctx)
	}
	if err != nil {
		m.cfg.Log.Warn("fleet: the last files were not published", "err", err)
	}
	if m.Holds() {
		s.release(ctx)
	}
	m.endLead()
}
