// Package fleet lets many processes serve the same answers. One member of the fleet, the refresher, holds the lease and asks
// the upstream. The others follow: they serve the files that the refresher writes. NATS JetStream carries them.
//
// A fleet of the source cboe has the key-value buckets strikecache-cboe and strikecache-cboe-files. A file, the list of the files of a date, and the
// manifest are blobs in the second, by digest. The manifest names the current answers with their freshness, and the lists. One key of the first,
// the pointer, names the manifest and the holder of the lease. The holder replaces it each second by compare-and-set: one write is
// the lease, the publication, and the fence against a holder that was deposed.
//
// Every member looks at the pointer each second, and fetches what it lacks. One that has seen the same pointer for seven seconds
// takes the lease. The holder stops when it has written nothing for six seconds. Who finds no manifest, because the fleet is
// new or NATS has lost its files, waits up to eight seconds longer: the longer, the older its newest answer is.
//
// A refresher publishes an answer before it stores and serves it. So a member that is killed at any instant has nothing that the
// others do not get. The files on the disk of each member stay the record: the next refresher fills a lost bucket again.
//
// Whoever may write to the bucket can change what the fleet serves. But a member stores only files that are whole, not older
// than its own, of its source and of a known product.
package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/bits"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"strikecache/snapshots"
)

// Origin says what a fleet serves. The first refresher decides it.
type Origin struct {
	// Identity names the market, such as "simulated market, seed 1".
	Identity string `json:"identity"`
	// The market's time is Market when the machine's clock shows Wall, and advances by Speed seconds a second. A zero Market
	// says that the market's time is the machine's.
	Market time.Time `json:"market"`
	Wall   time.Time `json:"wall"`
	Speed  float64   `json:"speed"`
}

// Served is what the fleet serves of one resource: the answer in [snapshots.CurrentPath].
type Served struct {
	SHA256    string              `json:"sha256"`    // the digest in the header of the file; "": there is no answer yet
	Freshness snapshots.Freshness `json:"freshness"` // the file may have an earlier one
}

// Process is the part of this process that makes answers. UpdateFreshness, Refresh and Accept may run beside each other and beside the
// other methods. Only Accept, Apply and Refresh may wait for the disk.
type Process interface {
	// Origin returns what this process serves: its own market, or the one that it has joined.
	Origin() Origin
	// Join adopts what the fleet serves. The error says why this process cannot serve it.
	Join(Origin) error
	// ClockError returns why the clock of this process may be behind, nil if nothing says so. A [Member] asks the NATS server's clock, too.
	ClockError() error
	// Failing returns why Refresh cannot keep the answers fresh, or makes no progress, nil while it can.
	Failing() error
	// Behind returns how long ago, by the market's clock, the newest stored answer was computed.
	Behind() time.Duration
	// Accept checks a file of the fleet and stores it; see [snapshots.Store.Accept]. It may wait for the disk.
	Accept(path, digest string, file []byte) error
	// Refresh refreshes the answers until ctx ends, and returns when it has written the last file.
	Refresh(ctx context.Context)
	// Serving returns what Refresh serves at this moment, or served at its end, of the resources that have an answer or that the source can feed.
	Serving() map[string]Served
	// Apply makes answers current whose files are stored. It is not called while Refresh runs.
	Apply(map[string]Served) error
	// UpdateFreshness is called about every second while this member does not hold the lease; Refresh may still be ending. since is when
	// the last refresher was heard of, the zero time while one is heard of.
	UpdateFreshness(since time.Time) error
}

// The roles of a member.
const (
	RoleRefresher = "refresher" // holds the lease
	RoleFollower  = "follower"  // takes the lease when it is free
	RoleEdge      = "edge"      // never takes the lease
)

// Config configures a [Member].
type Config struct {
	Flags
	Source  string
	Store   *snapshots.Store
	Process Process
	Log     *slog.Logger
}

// Status says how a member is doing.
type Status struct {
	Role      string
	Connected bool
	Lease     uint64 // number of the newest lease that this member knows, 0 for none
	// SilentSince is when the last refresher was heard of, the zero time while one is heard of.
	SilentSince time.Time
	Lag         time.Duration // of the answers that were made current last, from published to current; 0 before the first
	Put         int64         // blobs that this member put into the bucket
	Applied     int64         // files of the fleet that this member stored
	Refused     map[string]int64
	Reconnects  int64
	complete    bool  // at the last look, this member had all files
	Err         error // why this member cannot take part, or what it refuses of the fleet; nil while all is well
}

// Member is this process in a fleet. Create it with [New]. Publish, Holds, Complete and Status are safe for concurrent use.
type Member struct {
	cfg  Config
	name string // unique to this process

	// The next fields are of the goroutine of Run. Publish reads conn, too: it does not change once there is a lease.
	conn     *nats.Conn
	bucket   *bucket // nil until it is open
	followed followed
	turn     time.Time        // until when this member keeps the lease that it has taken, or leaves it to others
	left     error            // why it leaves it
	offered  time.Time        // when it last did so because of its clock
	now      func() time.Time // the clock that is compared with that of the NATS server

	keepFor, surveyEvery time.Duration // the constants, but in tests

	mu     sync.Mutex // guards the fields below; held only briefly
	status Status
	down   error     // of the last attempt to connect
	seen   uint64    // sequence number of the pointer at the last look, 0 for none
	heard  time.Time // when this member first saw it, by the machine's clock
	holds  time.Time // until when this member may publish and ask the upstream
	lease  *lease    // nil while this member does not hold it and its refreshes have ended; written by Run
}

// New returns a member. Call [Member.Run] to take part in the fleet.
func New(cfg Config) *Member {
	host, _ := os.Hostname() // only for people to read
	m := &Member{
		cfg: cfg, name: fmt.Sprintf("%s-%d-%s", cmp.Or(host, "host"), os.Getpid(), rand.Text()[:6]),
		keepFor: keepFor, surveyEvery: surveyEvery, now: time.Now, heard: time.Now(),
	}
	m.status.Refused = map[string]int64{}
	for _, reason := range refusals {
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
	switch s.Role = RoleFollower; {
	case m.cfg.Edge:
		s.Role = RoleEdge
	case m.holding():
		s.Role = RoleRefresher
	}
	if !m.holding() && m.silent() {
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
	return m.holding()
}

func (m *Member) holding() bool {
	now := time.Now()
	return now.Before(m.holds) && now.Round(0).Before(m.holds.Round(0)) // also by the wall clock, which a sleeping machine does not stop
}

// silent says whether no refresher is heard of. m.mu is held.
func (m *Member) silent() bool { return time.Since(m.heard) >= 5*tickEvery }

// Complete says whether this member had all files of the fleet at its last look.
func (m *Member) Complete() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status.Connected && m.status.complete
}

// Run takes part in the fleet until ctx ends. Then it publishes what the last refresh gives, within seconds, and renews the lease no more.
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
	for ticks := time.NewTicker(tickEvery); ctx.Err() == nil || m.lease != nil; {
		err := m.tick(ctx)
		for _, gone := range []error{nats.ErrStreamNotFound, jetstream.ErrStreamNotFound, jetstream.ErrBucketNotFound, nats.ErrNoResponders} {
			if errors.Is(err, gone) {
				m.bucket = nil // somebody has deleted it, or NATS has lost its files
				m.lose()
			}
		}
		m.report(err)
		stopped := ctx.Done()
		if m.lease != nil {
			stopped = m.lease.ended
		}
		select {
		case <-stopped:
		case <-ticks.C:
		}
	}
}

// updateFreshness lets the process update the freshness of its answers while this member does not hold the lease, until ctx ends. It has its own
// goroutine, because a disk that hangs may stop the one of Run.
func (m *Member) updateFreshness(ctx context.Context) {
	for ticks := time.NewTicker(tickEvery); ; {
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
	if err != nil {
		err = m.explain(err)
	}
	said := m.Status().Err
	if m.update(func(s *Status) { s.Err = err }); err != nil && (said == nil || said.Error() != err.Error()) {
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
	if m.lease != nil {
		return m.lease.renew()
	}
	p, err := m.look(ctx)
	if err != nil {
		return err
	}
	err = m.follow(ctx, p.Manifest)
	m.update(func(s *Status) { s.complete = err == nil && (p.Manifest == "" || m.followed.is(complete, p.Manifest)) })
	if m.cfg.Edge {
		return cmp.Or(err, m.followed.refuses)
	}
	if errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrInvalidKey) || errors.Is(err, errCorrupt) || errors.Is(err, errSize) {
		p.Manifest = "" // NATS has lost blobs: who leads next puts those that it has
	} else if err != nil {
		return err
	}
	unfit := m.unfit(p)
	if unfit == nil && m.cfg.Store.DiskError() == nil && m.free(p) {
		return m.take(ctx, p)
	}
	return cmp.Or(err, unfit, m.followed.refuses)
}

// look reads the pointer.
func (m *Member) look(ctx context.Context) (pointer, error) {
	p, err := m.bucket.pointer(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && p.sequence != m.seen {
		if m.silent() { // the answers may have become stale meanwhile
			m.followed.done.Delete(complete)
		}
		m.seen, m.heard, m.status.Lease = p.sequence, time.Now(), max(m.status.Lease, p.Term)
	}
	return p, err
}

// free says whether no member holds the lease. This member has all files that the pointer names.
func (m *Member) free(p pointer) bool {
	wait := leaseTTL
	if p.Manifest == "" { // others may have newer answers
		behind := uint64(max(0, m.cfg.Process.Behind()/time.Minute)) //nolint:gosec // G115: not negative
		wait += min(8*time.Second, time.Duration(bits.Len64(behind))*500*time.Millisecond)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.heard) > wait
}
