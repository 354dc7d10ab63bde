package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"strikecache/snapshots"
)

// followed is what a member has of the fleet.
type followed struct {
	digest  string            // of the last manifest of which it has all files, but for those that it refuses
	last    manifest          // whose answers are current
	refuses error             // which answers of it this member refuses
	done    map[string]string // by date, the digest of the list of which it has all files
	checked time.Time         // when done and refused were last emptied: a file may have been damaged, or repaired, since

	mu      sync.Mutex        // guards refused
	refused map[string]string // by path, the digest of the file that is refused
}

const fetchers = 4 // of the files of a date

var errNewer = errors.New("a newer manifest is published")

// follow stores the files that a manifest names, and makes its answers current. The next tick tries again what failed.
func (m *Member) follow(ctx context.Context, digest string) error {
	f := &m.followed
	if digest == "" || digest == f.digest && time.Since(f.checked) < time.Hour {
		return nil
	}
	var next manifest
	if err := m.getJSON(ctx, "manifest", digest, &next); err != nil {
		return err
	}
	if f.last.Resources == nil {
		if err := m.cfg.Process.Join(next.Origin); err != nil {
			return err
		}
	}
	var refused []string
	for name, served := range next.Resources {
		path := snapshots.CurrentPath(name)
		if err := m.getFile(ctx, path, served.SHA256); err != nil {
			return err
		}
		if served.SHA256 != "" && m.cfg.Store.Digest(path) != served.SHA256 {
			next.Resources[name] = Served{}
			refused = append(refused, name)
		}
	}
	if err := m.cfg.Process.Apply(next.Resources); err != nil {
		return fmt.Errorf("make the answers of the fleet current: %w", err)
	}
	if f.last.Resources != nil { // else the answers were there before this member looked
		m.update(func(s *Status) { s.Lag = max(0, time.Since(next.PublishedAt.Local())) })
	}
	if f.last, f.refuses = next, nil; refused != nil {
		f.refuses = fmt.Errorf("%d answers of the refresher are refused, such as %s: see object refused; if they are older than those here, stop the refresher, so that another member leads", len(refused), slices.Min(refused))
	}
	if time.Since(f.checked) > time.Hour {
		f.checked = time.Now()
		clear(f.done)
		clear(f.refused)
	}
	for _, date := range slices.Backward(slices.Sorted(maps.Keys(next.Dates))) {
		if f.done[date] == next.Dates[date] {
			continue
		}
		if err := m.getDate(ctx, date, next.Dates[date]); err != nil {
			return err
		}
		f.done[date] = next.Dates[date]
		if p, err := m.look(ctx); err != nil || p.Manifest != digest { // the current answers come first
			return cmp.Or(err, errNewer)
		}
	}
	f.digest = digest
	return nil
}

// getJSON gets a list or a manifest. One that is not valid is refused, and stays an error until the fleet names another.
func (m *Member) getJSON(ctx context.Context, name, digest string, value any) error {
	err := m.bucket.getJSON(ctx, digest, value)
	if err == nil {
		return nil
	}
	m.refuseFile(name, digest, err)
	return fmt.Errorf("get the %s: %w", name, err)
}

// getDate stores the files of a date, several at the same time.
func (m *Member) getDate(ctx context.Context, date, digest string) error {
	var list map[string]string
	if err := m.getJSON(ctx, "list of "+date, digest, &list); err != nil {
		return err
	}
	var fetching errgroup.Group
	fetching.SetLimit(fetchers)
	for path, digest := range list {
		if err := cmp.Or(ctx.Err(), m.cfg.Store.DiskError()); err != nil { // what the disk refuses must not fill the memory
			return errors.Join(fetching.Wait(), err)
		}
		fetching.Go(func() error { return m.getFile(ctx, path, digest) })
	}
	return fetching.Wait()
}

// getFile stores a file of the fleet and the documents that it names, unless it is stored, or must be refused. The error is that of the connection.
func (m *Member) getFile(ctx context.Context, path, digest string) error {
	m.followed.mu.Lock()
	refused := m.followed.refused[path] == digest
	m.followed.mu.Unlock()
	if refused || digest == "" || m.cfg.Store.Digest(path) == digest {
		return nil
	}
	file, err := m.fetch(ctx, path, digest)
	var named []string
	if err == nil {
		named, err = snapshots.Named(path, file)
	}
	for _, sum := range named {
		if object := snapshots.ObjectPath(sum); err == nil && !m.cfg.Edge && m.cfg.Store.Digest(object) == "" { // an edge takes no documents
			body, missing := m.bucket.get(ctx, sum, snapshots.MaxTransfer)
			if errors.Is(missing, jetstream.ErrObjectNotFound) {
				continue // the refresher has removed it for its age
			}
			if err = missing; err == nil {
				err = m.cfg.Process.Accept(object, sum, body)
			}
		}
	}
	if err == nil {
		err = m.cfg.Process.Accept(path, digest, file)
	}
	if err == nil {
		m.update(func(s *Status) { s.Applied++ })
	}
	if m.refuseFile(path, digest, err) {
		return nil
	}
	return err
}

// fetch gets a file. That of a date is often the current one.
func (m *Member) fetch(ctx context.Context, path, digest string) ([]byte, error) {
	if current := snapshots.SameCurrent(path); m.cfg.Store.Digest(current) == digest {
		if file, has, err := m.cfg.Store.Bytes(current); err == nil && has == digest {
			return file, nil
		}
	}
	file, err := m.bucket.get(ctx, digest, snapshots.MaxTransfer)
	if err != nil {
		err = fmt.Errorf("get %s: %w", path, err)
	}
	return file, err
}

// refuseFile says whether an error is a reason to refuse a file, and then counts and logs it once.
func (m *Member) refuseFile(path, digest string, err error) bool {
	for cause, reason := range map[error]string{
		snapshots.ErrPath: reasonPath, snapshots.ErrNewerFormat: reasonFormat, snapshots.ErrForeign: reasonForeign,
		snapshots.ErrOlder: reasonOlder, snapshots.ErrTorn: reasonCorrupt, errCorrupt: reasonCorrupt, errSize: reasonSize,
	} {
		if !errors.Is(err, cause) {
			continue
		}
		m.followed.mu.Lock()
		known := m.followed.refused[path] == digest
		m.followed.refused[path] = digest
		m.followed.mu.Unlock()
		if !known {
			m.update(func(*Status) { m.refuse(path, reason, err) })
		}
		return true
	}
	return false
}

// refuse counts and logs what is refused. m.mu is held.
func (m *Member) refuse(name, reason string, err error) {
	m.cfg.Log.Warn("fleet: object refused", "object", fmt.Sprintf("%.200s", name), "reason", reason, "err", err)
	m.status.Refused[reason]++
}
