package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/goccy/go-json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"strikecache/snapshots"
)

// lease is the lease that this member holds.
type lease struct {
	began   time.Time       // when it was taken
	number  uint64          // sequence number of the message that it began with
	valid   context.Context // ends when the lease is lost
	lose    context.CancelFunc
	ctx     context.Context // of the refreshes; ends with valid, or when this process stops
	cancel  context.CancelFunc
	expiry  *time.Timer    // calls lose
	begun   bool           // this member has all files of the fleet, and refreshes
	running sync.WaitGroup // the refreshes
	last    uint64         // sequence number of the last message of the stream
	synced  bool           // last is known
	current uint64         // sequence number of the last "current" that this member published
	serving []byte         // [Current.Resources] that were published last, in JSON
	warned  bool           // the log says that the stream is nearly full
}

// beginning is the message of a member that has taken the lease.
type beginning struct {
	Member string `json:"member"`
	Origin Origin `json:"origin"`
}

// errLost says that another member has the lease.
var errLost = errors.New("the lease is lost")

// look renews the lease, or looks whether it is free, and looks whether the watch has missed something. If the lease is free and
// this member has all files, it takes the lease. A member whose clock is behind neither takes nor keeps it, and one whose clock is
// ahead, or whose refreshes fail, leaves it to others for a while.
func (s *link) look(ctx context.Context) error {
	reason := s.yields()
	if reason != nil && !s.yielding {
		s.cfg.Log.Warn("fleet: this member does not refresh for now", "err", reason)
	}
	s.yielding = reason != nil
	if s.lease != nil {
		if reason != nil {
			s.release(ctx)
			return errLost
		}
		if err := s.hold(ctx); err != nil {
			return err
		}
	}
	info, err := s.stream.Info(ctx) // first: a message from now on lets take fail
	if err != nil {
		return err
	}
	s.room(info)
	newest, err := s.newestOf(ctx, ">")
	if err != nil {
		return err
	}
	if s.stuck++; s.seen >= s.newest || s.seen > s.seenBefore {
		s.stuck = 0
	}
	s.newest, s.seenBefore = newest.Sequence, s.seen
	if s.stuck > 2 {
		return errors.New("the watch has missed messages")
	}
	if s.lease != nil {
		return nil
	}
	maps.DeleteFunc(s.objects, func(path string, _ object) bool { // no message says that the refresher has removed an object
		return snapshots.IsObject(path) && !s.backlog[path] && s.cfg.Store.Digest(path) == ""
	})
	free := s.silent(info.State.LastSeq) || newest.Subject == s.subject(aliveSubject) && len(newest.Data) == 0
	if err := s.apply(ctx); err != nil {
		return err
	}
	if free && reason == nil && !s.cfg.Edge && s.complete && s.seen >= s.newest && len(s.backlog) == 0 {
		return s.take(ctx, info.State.LastSeq)
	}
	return nil
}

// room warns once while this member holds the lease that the stream is nearly full. When it is full, no member refreshes.
func (s *link) room(info *jetstream.StreamInfo) {
	if limit := info.Config.MaxBytes; s.lease != nil && !s.lease.warned && limit > 0 && float64(info.State.Bytes) > 0.8*float64(limit) {
		s.lease.warned = true
		s.cfg.Log.Warn("fleet: the stream is over 80 % full, raise its limit", "bytes", info.State.Bytes, "limit", limit)
	}
}

// silent says whether nobody has published for so long that no member holds the lease. last is the sequence number of the last
// message of the stream, 0 for none.
func (m *Member) silent(last uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last != m.heardOf {
		m.heard, m.heardOf = time.Now(), last
	}
	return time.Since(m.heard) > leaseTTL || last == 0 && m.status.Lease == 0 // a new fleet
}

const (
	// yieldFor is how long a member whose refreshes fail leaves the lease to others. If none of them takes it, the member takes
	// it again.
	yieldFor = 15 * time.Second
	// keepFor is how long a member keeps a lease that it has taken, also if its refreshes fail. Each member of a fleet without
	// an upstream gets its turn, and serves meanwhile what there is.
	keepFor = 2 * time.Minute
	// maxSkew is how far the clock of a member that refreshes may be from that of the NATS server.
	maxSkew = 10 * time.Minute
	// yieldAheadEvery is the shortest time between two offers of a member because its clock is ahead of that of the NATS server. If the
	// server's clock is the wrong one, all members are ahead, and would pass the lease on every two minutes.
	yieldAheadEvery = time.Hour
)

// yields returns why this member leaves the lease to others now, nil if it may refresh.
func (m *Member) yields() error {
	if err := m.cfg.Process.ClockError(); err != nil && m.clockBehind > maxSkew { // else the clock that made the last answer was ahead
		return err
	}
	if left := time.Until(m.yieldUntil); left > 0 {
		return fmt.Errorf("for %v another member may take the lease", left.Round(time.Second))
	}
	if !m.refreshing() {
		return nil
	}
	err := m.cfg.Process.Failing()
	ahead := m.clockBehind < -maxSkew && time.Since(m.yieldedAhead) > yieldAheadEvery // of the message that has just renewed the lease
	if ahead {
		err = fmt.Errorf("the clock is %v ahead of that of the NATS server", -m.clockBehind.Round(time.Minute))
	}
	if err == nil || time.Since(m.lease.began) < m.keepFor {
		return nil
	}
	if ahead {
		m.yieldedAhead = time.Now()
	}
	m.yieldUntil = time.Now().Add(m.yieldFor)
	return fmt.Errorf("another member may take the lease: %w", err)
}

// newestOf returns the newest message of a subject, as the server knows it that leads the stream: others may be behind. The
// sequence number is 0 if there is none.
func (s *link) newestOf(ctx context.Context, name string) (*nats.RawStreamMsg, error) {
	msg, err := s.reads.GetLastMsg(s.stream.CachedInfo().Config.Name, s.subject(name), nats.Context(ctx))
	if errors.Is(err, nats.ErrMsgNotFound) {
		return &nats.RawStreamMsg{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if name == ">" {
		s.clockBehind = msg.Time.Sub(s.now())
	}
	return msg, nil
}

// hold renews the lease. It first looks whether somebody has removed or replaced the message that the lease began with. While
// JetStream does not answer, the lease stays until it expires.
func (s *link) hold(ctx context.Context) error {
	s.lease.synced = false
	_, err := s.send(ctx, aliveSubject, nats.Header{}, []byte(s.name))
	return err
}

// take takes the free lease, unless somebody has published after the given message. From the message "lease" on, the member
// before can publish nothing. This member refreshes when it has all files that were published before; see begin.
func (s *link) take(ctx context.Context, last uint64) error {
	value, err := json.Marshal(beginning{Member: s.name, Origin: s.cfg.Process.Origin()})
	if err != nil {
		return err
	}
	asked := time.Now()
	ack, err := s.js.Publish(ctx, s.subject(leaseSubject), value, jetstream.WithExpectLastSequence(last))
	if isWrongSequence(err) {
		return nil // another member was quicker
	}
	if err != nil {
		return fmt.Errorf("take the lease: %w", err)
	}
	l := &lease{began: asked, number: ack.Sequence}
	valid, end := context.WithCancel(context.Background()) // it outlasts the connection
	l.valid, l.lose = valid, func() {
		end()
		s.update(func(*Status) { s.holds = time.Time{} })
	}
	l.ctx, l.cancel = context.WithCancel(l.valid)
	l.expiry = time.AfterFunc(leaseUse-time.Since(asked), l.lose)
	s.lease, s.joined = l, true
	s.extend(asked, ack.Sequence)
	return nil
}

// begin lets this link publish, as soon as the watch has delivered what is in the stream. It starts the refreshes if this member
// has taken the lease and has all files of the member before.
func (s *link) begin() {
	l := s.lease
	s.complete = s.complete || s.seen >= s.newest
	if l == nil || s.publishes || !s.complete || s.seen < l.number || len(s.backlog) > 0 || l.ctx.Err() != nil {
		return
	}
	s.publishes = true
	s.update(func(status *Status) { status.Role, s.publishing = RoleRefresher, l.valid })
	for _, path := range s.cfg.Store.Paths() {
		if !s.has(path, s.cfg.Store.Digest(path)) {
			s.mark(path)
		}
	}
	s.Announce()
	if !l.begun {
		l.begun = true
		s.cfg.Log.Info("fleet: this member holds the lease and refreshes", "lease", l.number)
		l.running.Go(func() { s.cfg.Process.Refresh(l.ctx) })
	}
}

// refreshing says whether this member refreshes.
func (m *Member) refreshing() bool { return m.lease != nil && m.lease.begun }

// extend says that the lease was taken or renewed by a message, which was sent at the given instant.
func (m *Member) extend(asked time.Time, seq uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holds, m.heard, m.heardOf = asked.Add(leaseUse), time.Now(), seq
}

func isWrongSequence(err error) bool {
	var e *jetstream.APIError
	return errors.As(err, &e) && e.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

// end waits until the refreshes have ended if the lease is lost, and says whether it is. From then on, this member follows.
func (m *Member) end() (lost bool) {
	l := m.lease
	if l == nil || l.ctx.Err() == nil {
		return false
	}
	l.lose() // no publication waits for this goroutine any more
	l.running.Wait()
	l.expiry.Stop()
	m.lease = nil
	m.update(func(s *Status) { s.Role, m.dirty = RoleFollower, map[string]bool{} })
	m.cfg.Log.Info("fleet: this member no longer holds the lease", "lease", l.number)
	return true
}

// release gives the lease up. If JetStream does not answer, the lease expires.
func (s *link) release(ctx context.Context) {
	err := s.sync(ctx)
	s.lease.lose() // before another member takes it
	if err == nil {
		_, err = s.js.Publish(ctx, s.subject(aliveSubject), nil, jetstream.WithExpectLastSequence(s.lease.last))
	}
	if err != nil {
		s.cfg.Log.Warn("fleet: the lease was not released, it expires", "err", err)
	}
}

// finish ends the refreshes, publishes what is not published yet, and releases the lease. It keeps the lease while a refresh
// that has begun comes to its end, and publishes its answers.
func (s *link) finish(calls context.Context) {
	l := s.lease
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
		case p := <-s.publications:
			if err := s.publish(calls, p); err != nil {
				l.lose()
			}
		case <-ticks.C:
			if err := s.hold(calls); err != nil {
				s.cfg.Log.Warn("fleet: the lease was not renewed", "err", err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(calls, 2*callTimeout)
	defer cancel()
	err := s.put(ctx)
	for err == nil && s.publishes && s.busy() {
		err = s.putOne(ctx)
	}
	if err != nil {
		s.cfg.Log.Warn("fleet: the last files were not published", "err", err)
	}
	if s.Holds() {
		s.release(ctx)
	}
	s.end()
}
