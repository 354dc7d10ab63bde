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

	"strikecache/snapshots"
)

// lease is the lease that a member holds, and what it has published under it.
type lease struct {
	*Member
	bucket *bucket
	began  time.Time
	ctx    context.Context    // of the refreshes
	stop   context.CancelFunc // ends them
	ended  chan struct{}      // closed when they have ended
	todo   []string           // dates whose files are to be compared with the bucket, newest first
	swept  time.Time          // when old blobs were last looked for
	old    []string           // those that are to be removed

	writing  sync.Mutex // held while the bucket is written; guards the fields below
	pointer  pointer
	unsure   bool // the answer to the last write may be lost
	manifest manifest
	blobs    map[string]time.Time // when each blob that the bucket has was last needed, by digest
	ahead    []snapshots.Packed   // files that are published and not yet stored
	failed   error                // of the last publication of such files
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
	// unusedFor is how long a blob stays that nothing names: a member may be fetching it.
	unusedFor = 2 * time.Minute
)

// yields returns why this member leaves the lease to others now, nil if it may refresh.
func (m *Member) yields(p pointer) error {
	behind := p.at.Sub(m.now())                                            // the holder wrote it a second ago
	if err := m.cfg.Process.ClockError(); err != nil && behind > maxSkew { // else the clock that made the last answer was ahead
		return err
	}
	if left := time.Until(m.yieldUntil); left > 0 {
		return fmt.Errorf("for %v another member may take the lease", left.Round(time.Second))
	}
	if m.lease == nil || time.Since(m.lease.began) < m.keepFor {
		return nil
	}
	err := m.cfg.Process.Failing()
	if behind < -maxSkew && time.Since(m.offered) > offerEvery {
		m.offered, err = time.Now(), fmt.Errorf("the clock is %v ahead of that of the NATS server", -behind.Round(time.Minute))
	}
	if err == nil {
		return nil
	}
	m.yieldUntil = time.Now().Add(m.yieldFor)
	return fmt.Errorf("another member may take the lease: %w", err)
}

// take takes the free lease, unless another member is quicker, and begins to refresh.
func (m *Member) take(ctx context.Context, p pointer) (err error) {
	l := &lease{Member: m, bucket: m.bucket, ended: make(chan struct{})}
	if l.blobs, err = l.bucket.list(ctx, nil); err != nil { // before it has the lease: it may take long
		return err
	}
	l.began = time.Now()
	p.Holder, p.Term, p.Released = m.name, max(p.Term, m.Status().Lease)+1, false
	if p.sequence, err = m.bucket.swap(ctx, p); errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return nil
	} else if err != nil {
		return fmt.Errorf("take the lease: %w", err)
	}
	p.at = l.began
	l.pointer, l.manifest = p, manifest{Origin: m.cfg.Process.Origin(), Dates: m.followed.last.Dates}
	l.ctx, l.stop = context.WithCancel(context.Background()) // it outlasts the connection
	m.lease = l
	m.extend(l.began, p)
	m.update(func(s *Status) { s.Role, m.leads = RoleRefresher, l })
	m.cfg.Log.Info("fleet: this member holds the lease and refreshes", "lease", p.Term)
	go func() {
		defer close(l.ended)
		m.cfg.Process.Refresh(l.ctx)
	}()
	return l.renew()
}

// renew renews the lease. Once a minute it also compares the stored files with the bucket, and then removes the blobs that nothing needs.
func (l *lease) renew() error {
	if len(l.todo) == 0 && time.Since(l.swept) > l.unusedFor/2 {
		l.writing.Lock()
		dates := slices.Collect(maps.Keys(l.manifest.Dates))
		l.writing.Unlock()
		for _, file := range l.cfg.Store.Paths() {
			if snapshots.IsDated(file) {
				dates = append(dates, path.Dir(file))
			}
		}
		slices.Sort(dates)
		l.todo = slices.Compact(dates)
		slices.Reverse(l.todo)
	}
	done, err := l.publish(nil, l.todo)
	if l.todo = l.todo[done:]; err == nil && len(l.todo) > 0 {
		l.Announce() // the next ones at once
		return nil
	}
	return cmp.Or(err, l.sweep()) // a full bucket gets room
}

// Publish publishes files, and names the answers in current/ among them as what the fleet serves. When it returns nil, the fleet
// has all of it, and this process may store and serve the answers: so it never serves what the others do not get, even if it is
// killed. It fails unless this member holds the lease. The caller calls stored when the files are stored.
func (m *Member) Publish(files []snapshots.Packed) (stored func(), err error) {
	m.mu.Lock()
	l := m.leads
	m.mu.Unlock()
	if l == nil {
		return nil, errLost
	}
	var dates []string
	for _, f := range files {
		if date := path.Dir(f.Path); snapshots.IsDated(f.Path) && !slices.Contains(dates, date) {
			dates = append(dates, date)
		}
	}
	if _, err := l.publish(files, dates); err != nil {
		return nil, m.explain(err)
	}
	return func() {
		l.writing.Lock()
		l.ahead = nil
		l.writing.Unlock()
		m.Announce()
	}, nil
}

// publish brings the bucket to the current answers and to the files of dates, with those that are not stored yet, and renews the lease
// in any case. Of the dates it does what it can within a second, at least one, and returns how many.
func (l *lease) publish(ahead []snapshots.Packed, dates []string) (done int, err error) {
	serving := l.cfg.Process.Serving()
	ctx := context.Background()
	l.writing.Lock()
	defer l.writing.Unlock()
	if ahead == nil {
		ahead, err = l.ahead, l.failed
	}
	next, digest, failed := l.manifest, l.pointer.Manifest, error(nil)
	if next.Resources, failed = l.putCurrent(ctx, serving, ahead); failed == nil {
		next.Dates = maps.Collect(maps.All(next.Dates))
		for began := time.Now(); done < len(dates) && failed == nil && (done == 0 || time.Since(began) < tickEvery); done++ {
			failed = l.putDate(ctx, dates[done], ahead, next.Dates)
		}
	}
	if failed == nil && !reflect.DeepEqual(next, l.manifest) {
		next.PublishedAt = time.Now().UTC()
		digest, failed = l.putJSON(ctx, "manifest", next)
	}
	p := l.pointer
	if p.Manifest = digest; failed != nil {
		p, next, ahead, done = l.pointer, l.manifest, l.ahead, 0
	}
	lost := l.write(p)
	if lost == nil {
		l.manifest, l.ahead = next, ahead
	}
	l.failed = cmp.Or(failed, err)
	return done, cmp.Or(failed, lost, err)
}

// putCurrent puts the current answers, and returns what the fleet serves.
func (l *lease) putCurrent(ctx context.Context, serving map[string]Served, ahead []snapshots.Packed) (map[string]Served, error) {
	for name, s := range serving {
		file := snapshots.CurrentPath(name)
		if stored := l.cfg.Store.Digest(file); stored != "" && stored != s.SHA256 {
			s = l.manifest.Resources[name] // it will be served soon
		}
		has, err := l.putFile(ctx, file, s.SHA256)
		if err != nil {
			return nil, err
		}
		if serving[name] = s; !has { // there is no answer, or it cannot be read
			serving[name] = Served{}
		}
	}
	for _, f := range ahead {
		if err := l.putBlob(ctx, f.Path, f.SHA256, f.Body); err != nil {
			return nil, err
		}
		if f.Answer != nil && f.Path == snapshots.CurrentPath(f.Answer.Meta.Endpoint) {
			serving[f.Answer.Meta.Endpoint] = Served{f.SHA256, f.Answer.Meta.Freshness}
		}
	}
	return serving, nil
}

// putDate puts the files of a date and their list, and names it.
func (l *lease) putDate(ctx context.Context, date string, ahead []snapshots.Packed, dates map[string]string) (err error) {
	list := l.cfg.Store.Files(date)
	for _, f := range ahead {
		if path.Dir(f.Path) == date {
			list[f.Path] = f.SHA256
		}
	}
	for file, digest := range list {
		if has, err := l.putFile(ctx, file, digest); err != nil {
			return err
		} else if !has {
			delete(list, file)
		}
	}
	if dates[date], err = l.putJSON(ctx, "list of "+date, list); len(list) == 0 {
		delete(dates, date)
	}
	return err
}

// putFile puts a stored file and the documents that it names, and says whether the bucket has the file. One that cannot be read is left out.
func (l *lease) putFile(ctx context.Context, file, digest string) (has bool, err error) {
	if _, has = l.blobs[digest]; has || digest == "" {
		return has, nil
	}
	for _, sum := range slices.Concat(l.cfg.Store.Named(file), []string{digest}) {
		one := snapshots.ObjectPath(sum)
		if sum == digest {
			one = file
		}
		body, sum, err := l.cfg.Store.Bytes(one)
		if err == nil {
			if err := l.putBlob(ctx, one, sum, body); err != nil {
				return false, err
			}
			has = sum == digest
		} else if !errors.Is(err, snapshots.ErrNoSnapshot) {
			l.cfg.Log.Error("fleet: file not published", "file", one, "err", err) // permanent: do not retry
		}
	}
	return has, nil
}

func (l *lease) putJSON(ctx context.Context, name string, value any) (digest string, err error) {
	body, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	digest = digestOf(body)
	return digest, l.putBlob(ctx, name, digest, body)
}

// putBlob puts a blob, unless the bucket has it. It renews the lease: a publication may have hundreds of blobs.
func (l *lease) putBlob(ctx context.Context, name, digest string, body []byte) error {
	_, has := l.blobs[digest]
	if !has {
		ctx, cancel := context.WithTimeout(ctx, leaseUse)
		defer cancel()
		if _, err := l.bucket.objects.PutBytes(ctx, digest, body); err != nil {
			return fmt.Errorf("put %s: %w", name, err)
		}
		l.update(func(s *Status) { s.Put++ })
	}
	if l.blobs[digest] = time.Now(); !has && time.Since(l.pointer.at) > tickEvery {
		return l.write(l.pointer)
	}
	return nil
}

// write replaces the pointer, and so renews the lease.
func (l *lease) write(p pointer) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if l.unsure {
		there, err := l.bucket.pointer(ctx)
		if err != nil {
			return err
		}
		if there.Holder != p.Holder || there.Term != p.Term || there.Manifest != l.pointer.Manifest || there.sequence < p.sequence { // NATS may have lost its last messages
			l.lose()
		}
		p.sequence = there.sequence
	}
	if !l.Holds() {
		return errLost
	}
	asked := time.Now()
	l.unsure = true
	if p.sequence, err = l.bucket.swap(ctx, p); err != nil {
		return fmt.Errorf("write the pointer: %w", err)
	}
	p.at = asked
	l.pointer, l.unsure = p, false
	l.extend(asked, p)
	return nil
}

// finish ends the refreshes, and releases the lease. It keeps the lease while a refresh that has begun comes to its end, and publishes its answers.
func (l *lease) finish() {
	l.stop()
	for ended := false; !ended; {
		select {
		case <-l.ended:
			ended = true
		case <-time.After(tickEvery):
			l.report(l.renew())
		}
	}
	_, err := l.publish(nil, nil)
	if err == nil {
		err = l.release()
	}
	if err != nil {
		l.cfg.Log.Warn("fleet: the lease was not released, it expires", "err", l.explain(err))
	}
	_ = l.end()
}

// release gives the lease up.
func (l *lease) release() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.stop()
	l.lose() // before another member takes it
	p := l.pointer
	p.Released = true
	_, err := l.bucket.swap(context.Background(), p)
	return err
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
	m.update(func(s *Status) { s.Role, m.leads = RoleFollower, nil })
	select {
	case <-l.ended:
	default:
		return errors.New("the refreshes of the lost lease have not ended yet")
	}
	if m.lease, m.followed.digest = nil, ""; l.failed != nil { // another member may be able to publish
		m.yieldUntil = time.Now().Add(m.yieldFor)
	}
	m.cfg.Log.Info("fleet: this member no longer holds the lease", "lease", l.pointer.Term)
	return nil
}
