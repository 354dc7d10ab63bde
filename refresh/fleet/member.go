package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccy/go-json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"strikecache/snapshots"
)

// Member is this process in a fleet. Create it with [New]. Publish, Announce, Removed, Holds, Complete and Status are safe for concurrent use.
type Member struct {
	cfg  Config
	name string // unique to this process

	complete     atomic.Bool   // see Complete
	renewed      chan struct{} // has an element when a connection was made
	announce     chan struct{} // has an element when the current answers may have changed
	publications chan publication

	// The next fields are of the goroutine of Run.
	conn         *nats.Conn
	lease        *lease           // nil while this member does not hold it
	yielding     bool             // this member left the lease to others at the last look
	yieldUntil   time.Time        // until when it does so because its refreshes failed
	yieldFor     time.Duration    // the constant, but in tests
	keepFor      time.Duration    // the constant, but in tests
	yieldedAhead time.Time        // when it last did so because its clock was ahead
	clockBehind  time.Duration    // from the time on this machine's clock to that of the newest message at the last look
	now          func() time.Time // the clock that clockBehind is of; time.Now, but in tests

	mu         sync.Mutex      // guards the fields below; held only briefly
	publishing context.Context // [lease.valid] of the last lease under which this member refreshed; nil before the first
	ahead      bool            // the fleet has files that this process has not stored yet
	status     Status
	heard      time.Time       // when this member learnt of a new message of the stream, by the machine's clock
	heardOf    uint64          // its sequence number, 0 before the first
	holds      time.Time       // until when this member may publish and ask the upstream
	dirty      map[string]bool // paths of files to publish; only while this member refreshes

	failure error // of the last attempt to connect, nil after a success
}

// New returns a member. Call [Member.Run] to take part in the fleet.
func New(cfg Config) *Member {
	host, _ := os.Hostname() // only for people to read
	m := &Member{
		cfg: cfg, name: fmt.Sprintf("%s-%d-%s", cmp.Or(host, "host"), os.Getpid(), rand.Text()[:6]),
		renewed: make(chan struct{}, 1), announce: make(chan struct{}, 1), publications: make(chan publication), heard: time.Now(),
		yieldFor: yieldFor, keepFor: keepFor, now: time.Now, dirty: map[string]bool{},
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

// Removed says that a file was removed. A member that does not refresh ignores it.
func (m *Member) Removed(path string) { m.mark(path) }

// mark says that the fleet does not have a file as this member has it.
func (m *Member) mark(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.status.Role == RoleRefresher {
		m.dirty[path] = true
	}
}

// publication is what a refresher publishes before it stores it.
type publication struct {
	files []snapshots.Packed
	done  chan error
}

// Publish publishes files, and names the answers in current/ among them as what the fleet serves. When it returns nil, the fleet
// has all of it, and this process may store and serve the answers: so it never serves what the others do not get, even if it is
// killed. It fails unless this member holds the lease and refreshes. The caller calls stored when the files are stored. Meanwhile
// the member publishes nothing else: it would publish the files that are stored before.
func (m *Member) Publish(files []snapshots.Packed) (stored func(), err error) {
	m.mu.Lock()
	publishing := m.publishing
	m.mu.Unlock()
	if publishing == nil || publishing.Err() != nil {
		return nil, errLost
	}
	p := publication{files, make(chan error, 1)}
	select {
	case m.publications <- p:
		err = <-p.done
	case <-publishing.Done():
		err = errLost
	}
	if err != nil {
		return nil, err
	}
	return func() {
		m.update(func(*Status) { m.ahead = false })
		m.Announce()
	}, nil
}

// Announce says that the freshness in [Process.Serving] may have changed.
func (m *Member) Announce() { signal(m.announce) }

// Holds says whether this member holds the lease at this instant, by its own clocks. They run on while the process is
// stopped.
func (m *Member) Holds() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	return now.Before(m.holds) && now.Round(0).Before(m.holds.Round(0)) // also by the wall clock, which a sleeping machine does not stop
}

// Complete says whether this member has all files of the fleet, as far as it knows: it is connected, and none is left to store.
func (m *Member) Complete() bool { return m.complete.Load() }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (m *Member) connected(conn *nats.Conn) {
	m.update(func(s *Status) {
		m.failure = nil
		s.Connected, s.Reconnects = true, int64(conn.Stats().Reconnects) //nolint:gosec // G115: a count of reconnects
	})
	m.cfg.Log.Info("fleet: connected", "server", conn.ConnectedUrlRedacted(), "role", m.Status().Role)
	signal(m.renewed)
}

func (m *Member) disconnected(err error) {
	m.update(func(s *Status) { s.Connected = false })
	if err == nil {
		return // closed by this process
	}
	m.cfg.Log.Warn("fleet: connection lost, answers are served from memory", "err", err)
}

// Run takes part in the fleet until ctx ends. Then it puts what is not put yet and releases the lease, within seconds.
func (m *Member) Run(ctx context.Context) {
	var judging sync.WaitGroup
	judging.Go(func() { m.updateFreshness(ctx) })
	defer judging.Wait()
	var err error
	if m.conn, err = m.connect(); err != nil {
		m.update(func(s *Status) { s.Err = err })
		m.cfg.Log.Error("fleet: not joined", "err", err)
		<-ctx.Done()
		return
	}
	defer m.conn.Close()
	said := ""
	for ctx.Err() == nil {
		err := m.takePart(ctx)
		m.update(func(s *Status) {
			if err != nil && !s.Connected {
				err = fmt.Errorf("no connection to NATS: %w", cmp.Or(m.failure, errDisconnected))
			}
			s.Err = err
		})
		logged := errors.Is(err, errLost) || errors.Is(err, errDisconnected) || errors.Is(err, context.Canceled)
		usual := errors.Is(err, jetstream.ErrMsgNotFound) // see fetch
		if err != nil && !logged && !usual && err.Error() != said {
			said = err.Error()
			m.cfg.Log.Warn("fleet: cannot take part, trying again", "err", err)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-m.renewed:
		case <-time.After(tickEvery / 4):
		}
		m.end()
	}
	if m.lease != nil { // there is no connection to release the lease
		m.lease.lose()
		m.end()
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

// link is what a member knows of the stream while one connection lasts. Each link looks at the newest message of every subject
// anew. So it does not matter what was published, deleted or set back before: a NATS server does not sync each message to its
// disk, and loses the last ones when the power fails. Only the goroutine of [Member.Run] uses it.
type link struct {
	*Member
	js     jetstream.JetStream
	reads  nats.JetStreamContext // asks the leading server, not any
	stream jetstream.Stream

	first      uint64 // sequence number of the newest message at the start
	newest     uint64 // of the newest message at the last look
	delivered  uint64 // messages of the watch so far
	seen       uint64 // sequence number of the last of them
	seenBefore uint64 // seen at the last look
	stuck      int    // looks in a row in which the watch delivered nothing, although it had not seen the newest message
	complete   bool   // the watch has delivered all that was in the stream at a look
	publishes  bool   // complete, and this member refreshes

	joined    bool              // the origin of the fleet is adopted
	number    uint64            // of the newest lease that the watch has delivered, 0 before the first
	objects   map[string]object // the newest file of each path that it has delivered
	firstPart uint64            // sequence number of the first part of the file whose parts it delivers
	bytes     int               // of the parts of that file so far
	backlog   map[string]bool   // paths of files to store
	unread    bool              // there may be a "current" to make current
}

var errDisconnected = errors.New("the connection was lost")

// newLink opens the stream, and joins the fleet.
func (m *Member) newLink(ctx context.Context) (s *link, err error) {
	s = &link{Member: m, objects: map[string]object{}, backlog: map[string]bool{}, unread: true}
	if s.js, err = jetstream.New(m.conn, jetstream.WithDefaultTimeout(callTimeout)); err != nil {
		return nil, err
	}
	if s.reads, err = m.conn.JetStream(nats.MaxWait(callTimeout)); err != nil {
		return nil, err
	}
	if s.stream, err = m.open(ctx, s.js); err != nil {
		return nil, err
	}
	if s.joined = m.lease != nil; !s.joined {
		if err := s.join(ctx); err != nil {
			return nil, err
		}
	}
	newest, err := s.newestOf(ctx, ">")
	if err != nil {
		return nil, err
	}
	s.first, s.newest = newest.Sequence, newest.Sequence
	if l := m.lease; l != nil { // the stream may have lost messages, and the answer to the last one may be lost
		l.synced, l.current, l.serving = false, 0, nil
		return s, s.look(ctx)
	}
	return s, nil
}

// takePart takes part in the fleet until the connection was made anew, ctx ends or something fails. A nil error says that a
// new link can begin at once.
func (m *Member) takePart(ctx context.Context) error {
	select {
	case <-m.renewed: // by the connection that this link uses
	default:
	}
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a call has its own end, and that of this process does not cut it off
	defer cancel()
	s, err := m.newLink(calls)
	if err != nil {
		return err
	}
	messages, broken, stop, err := s.watch(calls)
	if err != nil {
		return fmt.Errorf("watch the messages: %w", err)
	}
	defer stop()
	defer m.complete.Store(false)
	m.update(func(status *Status) { status.Err = nil })
	ticks := time.NewTicker(tickEvery / 10) // the first look is soon; what was published meanwhile comes first
	defer ticks.Stop()
	idle := make(chan struct{})
	close(idle)
	for {
		var publications chan publication
		if s.publishes {
			publications = m.publications
		}
		work := idle // there is something to do
		if !s.busy() {
			work = nil
		}
		select {
		case <-ctx.Done():
			s.finish(calls)
			return nil
		case <-m.renewed:
			return nil
		case <-ticks.C:
			ticks.Reset(tickEvery)
			err = s.look(calls)
		case err = <-broken:
			err = fmt.Errorf("the watch has ended: %w", err)
		case msg := <-messages:
			err = s.see(calls, msg)
		case <-m.announce:
			err = s.put(calls)
		case p := <-publications:
			err = s.publish(calls, p)
		case <-work:
			err = s.work(calls)
		}
		if err != nil || m.end() || !m.conn.IsConnected() {
			return err
		}
		s.begin()
		m.complete.Store(s.complete && s.seen >= s.newest && len(s.backlog) == 0)
	}
}

// join adopts the origin of the fleet from the message of the newest refresher, if there is one.
func (s *link) join(ctx context.Context) error {
	newest, err := s.newestOf(ctx, leaseSubject)
	if err != nil || newest.Sequence == 0 {
		return err
	}
	var b beginning
	if err := json.Unmarshal(newest.Data, &b); err != nil {
		s.refuse(leaseSubject, reasonCorrupt, err)
		return nil // the next refresher decides it
	}
	err = s.cfg.Process.Join(b.Origin)
	s.joined = err == nil
	return err
}

// busy says whether there is work to do that no event announces.
func (s *link) busy() bool {
	if s.publishes {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.dirty) > 0 && !s.ahead
	}
	// The current answers come first. A disk that refuses files must not fill the memory with the history.
	return s.joined && s.complete && len(s.backlog) > 0 && (s.lease != nil || s.cfg.Store.DiskError() == nil)
}

// work does a small part of the work, so that a tick is never late.
func (s *link) work(ctx context.Context) error {
	if s.publishes {
		return s.putOne(ctx)
	}
	return s.load(ctx, greatest(s.backlog))
}
