package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/goccy/go-json"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"strikecache/snapshots"
)

// lease is the lease that a member holds, and what it has published under it.
type lease struct {
	*Member
	bucket *bucket
	stop   context.CancelFunc // ends the refreshes
	ended  chan struct{}      // closed when they have ended

	writing  sync.Mutex // held while the bucket is written; guards the fields below
	pointer  pointer
	manifest manifest
	saving   int             // publications whose files are not yet stored
	failed   error           // of the last publication
	surveyed time.Time       // when the bucket was last compared with the store
	todo     []string        // dates whose files are to be compared, newest last
	blobs    map[string]bool // whether the bucket has a whole blob, by digest
	unused   map[string]bool // what nothing named at the last survey: a member may be fetching it
}

const (
	// yieldFor is how long a member whose refreshes fail leaves the lease to others. If none takes it, the member takes it again.
	yieldFor = 15 * time.Second
	// keepFor is how long a member keeps a lease that it has taken, also if its refreshes fail: each gets its turn.
	keepFor = 2 * time.Minute
	// maxSkew is how far the clock of a member that refreshes may be from that of the NATS server. If the server's clock is the wrong one, all
	// members are ahead: each offers the lease once in offerEvery.
	maxSkew    = 10 * time.Minute
	offerEvery = time.Hour
	// surveyEvery is the time between two comparisons of the bucket with the store.
	surveyEvery = time.Minute
)

// unfit returns why this member leaves the lease to others now, nil if it may refresh.
func (m *Member) unfit(p pointer) error {
	behind := p.at.Sub(m.now()) // the holder wrote it a second ago
	err := m.cfg.Process.ClockError()
	switch {
	case err != nil && behind > maxSkew: // else the clock that made the last answer was ahead
		return err
	case time.Now().Before(m.turn):
		return m.left
	case m.lease == nil:
		return nil
	}
	err = m.cfg.Process.Failing()
	if behind < -maxSkew && time.Since(m.offered) > offerEvery {
		m.offered, err = time.Now(), fmt.Errorf("the clock is %v ahead of that of the NATS server", -behind.Round(time.Minute))
	}
	if err != nil {
		m.turn, m.left = time.Now().Add(yieldFor), fmt.Errorf("another member may take the lease: %w", err)
		return m.left
	}
	return nil
}

// take takes the free lease, unless another member is quicker, and begins to refresh.
func (m *Member) take(ctx context.Context, p pointer) (err error) {
	l := &lease{Member: m, bucket: m.bucket, ended: make(chan struct{}), manifest: manifest{Origin: m.cfg.Process.Origin(), Dates: m.followed.last.Dates}}
	if err := l.survey(); err != nil { // before it has the lease: it may take long
		return err
	}
	asked := time.Now()
	p.Holder, p.Term = m.name, max(p.Term, m.Status().Lease)+1
	if p.sequence, err = m.bucket.swap(ctx, p); errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return nil
	} else if err != nil {
		return fmt.Errorf("take the lease: %w", err)
	}
	m.turn, m.left = asked.Add(m.keepFor), nil
	refreshing, stop := context.WithCancel(ctx)
	l.stop = stop
	m.update(func(*Status) { m.lease = l })
	l.extend(asked, p)
	m.cfg.Log.Info("fleet: this member holds the lease and refreshes", "lease", p.Term)
	go func() {
		defer close(l.ended)
		m.cfg.Process.Refresh(refreshing)
	}()
	return l.renew()
}

// extend says that this member has written the pointer by a request that was sent at the given instant.
func (l *lease) extend(asked time.Time, p pointer) {
	p.at = asked
	l.pointer = p
	l.update(func(s *Status) {
		l.holds, l.heard, l.seen, s.Lease = asked.Add(leaseUse), time.Now(), p.sequence, p.Term
	})
}

// renew renews the lease and publishes what has changed, or gives the lease up: at the end of the process when the last refresh has published its
// answers.
func (l *lease) renew() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	p, err := l.look(context.Background())
	was := l.pointer
	was.sequence, was.at = p.sequence, p.at
	if err == nil && (p != was || p.sequence < l.pointer.sequence) { // another member has it, NATS has lost its last messages, or the answer to a write was lost
		l.lose()
		return errLost
	}
	if err == nil {
		l.pointer.sequence = p.sequence
		if unfit := l.unfit(p); unfit != nil {
			l.lose()
			return unfit
		}
		err = l.publishStored()
	}
	select {
	case <-l.ended:
		l.lose()
		return err
	default:
	}
	if err != nil {
		_ = l.write(l.pointer)
	}
	return cmp.Or(err, l.failed)
}

// publishStored brings the bucket to the current answers and the stored files, and renews the lease. Of the dates it does what it can within a second.
func (l *lease) publishStored() error {
	if l.saving > 0 { // the manifest names more than the process serves
		return l.write(l.pointer)
	}
	if time.Since(l.surveyed) > l.surveyEvery { // first, so that a full bucket gets room
		if err := l.survey(); err != nil {
			return err
		}
	}
	next := l.manifest
	next.Resources, next.Dates = l.cfg.Process.Serving(), maps.Collect(maps.All(next.Dates))
	for name, s := range next.Resources {
		file := snapshots.CurrentPath(name)
		if stored := l.cfg.Store.Digest(file); stored != "" && stored != s.SHA256 {
			s = l.manifest.Resources[name] // the stored one will be served soon
		}
		has, err := l.putFile(file, s.SHA256)
		if err != nil {
			return err
		}
		if next.Resources[name] = s; !has { // there is no answer, or it cannot be read
			next.Resources[name] = Served{}
		}
	}
	for began := time.Now(); len(l.todo) > 0 && time.Since(began) < tickEvery; l.todo = l.todo[:len(l.todo)-1] {
		date := l.todo[len(l.todo)-1]
		if err := l.putDate(next.Dates, date, l.cfg.Store.Files(date)); err != nil {
			return err
		}
	}
	return l.publish(next)
}

// Publish publishes files, and names the answers in current/ among them as what the fleet serves. When it returns nil, the fleet
// has all of it, and this process may store and serve the answers: so it never serves what the others do not get, even if it is
// killed. It fails unless this member holds the lease. The caller calls stored when the files are stored.
func (m *Member) Publish(files []snapshots.Packed) (stored func(), err error) {
	m.mu.Lock()
	l, holds := m.lease, m.holding()
	m.mu.Unlock()
	if !holds {
		return nil, errLost
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.failed = l.publishAhead(files); l.failed != nil {
		return nil, m.explain(l.failed)
	}
	l.saving++
	return func() {
		l.writing.Lock()
		defer l.writing.Unlock()
		l.saving--
	}, nil
}

func (l *lease) publishAhead(files []snapshots.Packed) error {
	next, dates := l.manifest, map[string]map[string]string{}
	next.Resources, next.Dates = maps.Collect(maps.All(next.Resources)), maps.Collect(maps.All(next.Dates))
	for _, f := range files {
		if err := l.putBlob(f.Path, f.SHA256, f.Body); err != nil {
			return err
		}
		if date := path.Dir(f.Path); snapshots.IsDated(f.Path) {
			if dates[date] == nil {
				dates[date] = l.cfg.Store.Files(date)
			}
			dates[date][f.Path] = f.SHA256
		} else if f.Answer != nil {
			next.Resources[f.Answer.Default.Meta.Endpoint] = Served{f.SHA256, f.Answer.Default.Meta.Freshness}
		}
	}
	for date, list := range dates {
		if err := l.putDate(next.Dates, date, list); err != nil {
			return err
		}
		l.todo = append(l.todo, date) // another publication may not have been stored yet
	}
	return l.publish(next)
}

// publish makes a manifest the one of the fleet, and renews the lease.
func (l *lease) publish(next manifest) (err error) {
	p := l.pointer
	if !reflect.DeepEqual(next, l.manifest) || !l.blobs[p.Manifest] {
		next.PublishedAt = time.Now().UTC()
		if p.Manifest, err = l.putJSON("manifest", next); err != nil {
			return err
		}
	}
	if err = l.write(p); err == nil {
		l.manifest = next
	}
	return err
}

// putDate puts the files of a date and their list, and names it.
func (l *lease) putDate(dates map[string]string, date string, list map[string]string) (err error) {
	for file, digest := range list {
		if has, err := l.putFile(file, digest); err != nil {
			return err
		} else if !has {
			delete(list, file)
		}
	}
	if dates[date], err = l.putJSON("list of "+date, list); len(list) == 0 {
		delete(dates, date)
	}
	return err
}

// putFile puts a stored file and the documents that it names, and says whether the bucket has the file. One that cannot be read is left out.
func (l *lease) putFile(file, digest string) (has bool, err error) {
	if digest == "" || l.blobs[digest] {
		return digest != "", nil
	}
	var all []string
	for _, sum := range l.cfg.Store.Named(file) {
		all = append(all, snapshots.ObjectPath(sum))
	}
	for _, one := range append(all, file) {
		body, sum, err := l.cfg.Store.Bytes(one)
		if err == nil {
			if err := l.putBlob(one, sum, body); err != nil {
				return false, err
			}
			has = sum == digest
		} else if !errors.Is(err, snapshots.ErrNoSnapshot) {
			l.cfg.Log.Error("fleet: file not published", "file", one, "err", err) // permanent: do not retry
		}
	}
	return has, nil
}

func (l *lease) putJSON(name string, value any) (digest string, err error) {
	body, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	digest = snapshots.Digest(body)
	return digest, l.putBlob(name, digest, body)
}

// putBlob puts a blob, unless the bucket has it. It renews the lease: a publication may have hundreds of blobs.
func (l *lease) putBlob(name, digest string, body []byte) error {
	if l.blobs[digest] {
		return nil
	}
	err := l.bucket.put(digest, body, func() error {
		if time.Since(l.pointer.at) < tickEvery {
			return nil
		}
		return l.write(l.pointer)
	})
	if err != nil {
		return fmt.Errorf("put %s: %w", name, err)
	}
	l.blobs[digest] = true
	l.update(func(s *Status) { s.Put++ })
	return nil
}

// write replaces the pointer, and so renews the lease. If the answer is lost, the next look finds out what it was.
func (l *lease) write(p pointer) (err error) {
	if !l.Holds() {
		return errLost
	}
	asked := time.Now()
	if p.sequence, err = l.bucket.swap(context.Background(), p); err != nil {
		return fmt.Errorf("write the pointer: %w", err)
	}
	l.extend(asked, p)
	return nil
}

// survey compares the bucket with the store: it finds the blobs that are lost, and the dates, and removes what nothing named at the last survey either.
func (l *lease) survey() (err error) {
	if l.blobs, err = l.bucket.list(); err != nil {
		return err
	}
	l.surveyed = time.Now()
	before := l.unused
	l.unused = maps.Clone(l.blobs)
	delete(l.unused, l.pointer.Manifest)
	for date, digest := range l.manifest.Dates {
		delete(l.unused, digest)
		l.todo = append(l.todo, date)
	}
	for _, s := range l.manifest.Resources {
		delete(l.unused, s.SHA256)
	}
	for _, file := range l.cfg.Store.Paths() {
		delete(l.unused, l.cfg.Store.Digest(file))
		if snapshots.IsDated(file) {
			l.todo = append(l.todo, path.Dir(file))
		}
	}
	slices.Sort(l.todo)
	l.todo = slices.Compact(l.todo)
	var removing errgroup.Group
	removing.SetLimit(2 * fetchers)
	for digest := range l.unused {
		if _, twice := before[digest]; twice && time.Since(l.surveyed) < tickEvery { // publications wait meanwhile
			delete(l.blobs, digest)
			removing.Go(func() error { return l.bucket.remove(digest) })
		}
	}
	return removing.Wait()
}

// lose ends the lease: from now on this process publishes nothing and asks for nothing.
func (m *Member) lose() { m.update(func(*Status) { m.holds = time.Time{} }) }

// end ends the refreshes of a lost lease, and lets this member follow again when they have ended.
func (m *Member) end() error {
	l := m.lease
	if l == nil || m.Holds() {
		return nil
	}
	l.stop()
	select {
	case <-l.ended:
	default:
		return errors.New("the refreshes of the lost lease have not ended yet")
	}
	m.update(func(*Status) { m.lease = nil })
	m.followed.done.Delete(complete)
	m.cfg.Log.Info("fleet: this member no longer holds the lease", "lease", l.pointer.Term)
	return nil
}
