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

	"github.com/goccy/go-json"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"strikecache/snapshots"
)

// followed is what a member has of the fleet.
type followed struct {
	last    manifest  // whose answers are current
	refuses error     // which answers of it this member refuses
	done    sync.Map  // the digest of the last manifest and, by date, of the last list of which it has all files; by path, of the file that it refuses
	checked time.Time // when done was last emptied: a file may have been damaged, or repaired, since
}

const (
	complete = "complete" // the key of the last manifest
	fetchers = 4          // of the files of a date
)

// refusals are the reasons for which a member refuses a file, a list or a manifest.
var refusals = map[error]string{
	snapshots.ErrPath:        "path",    // it does not belong into the directory
	errSize:                  "size",    // over [snapshots.MaxTransfer], or a list or manifest over 1 MiB
	snapshots.ErrTorn:        "corrupt", // cut off, altered or not what its name says
	errCorrupt:               "corrupt",
	snapshots.ErrNewerFormat: "format",  // of a newer version
	snapshots.ErrForeign:     "foreign", // of another source or product
	snapshots.ErrOlder:       "older",   // older than the stored answer, or without rows that it has
}

func (f *followed) is(name, digest string) bool {
	done, _ := f.done.Load(name)
	return done == digest
}

// follow stores the files that a manifest names, and makes its answers current. The next tick tries again what failed.
func (m *Member) follow(ctx context.Context, digest string) error {
	f := &m.followed
	if time.Since(f.checked) > time.Hour {
		f.checked = time.Now()
		f.done.Clear()
	}
	if digest == "" || f.is(complete, digest) {
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
	for _, date := range slices.Backward(slices.Sorted(maps.Keys(next.Dates))) {
		if f.is(date, next.Dates[date]) {
			continue
		}
		if err := m.getDate(ctx, date, next.Dates[date]); err != nil {
			return err
		}
		f.done.Store(date, next.Dates[date])
		if p, err := m.look(ctx); err != nil || p.Manifest != digest {
			return err // the current answers come first
		}
	}
	f.done.Store(complete, digest)
	return nil
}

// getJSON gets a list or a manifest. One that is not valid is refused, and stays an error until the fleet names another.
func (m *Member) getJSON(ctx context.Context, name, digest string, value any) error {
	body, err := m.bucket.get(ctx, digest, maxJSON)
	if err == nil && (snapshots.Digest(body) != digest || json.Unmarshal(body, value) != nil) {
		err = errCorrupt
	}
	if err == nil {
		return nil
	}
	m.refused(name, digest, err)
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
	if digest == "" || m.cfg.Store.Digest(path) == digest || m.followed.is(path, digest) {
		return nil
	}
	var file []byte
	if current := snapshots.SameCurrent(path); m.cfg.Store.Digest(current) == digest { // a file of a date is often the current one
		file, _, _ = m.cfg.Store.Bytes(current)
	}
	var named []string
	var err error
	if file == nil {
		file, err = m.bucket.get(ctx, digest, snapshots.MaxTransfer)
	}
	if err == nil {
		named, err = snapshots.Named(path, file)
	}
	for _, sum := range named {
		object := snapshots.ObjectPath(sum)
		if err != nil || m.cfg.Edge || m.cfg.Store.Digest(object) != "" { // an edge takes no documents
			continue
		}
		body, missing := m.bucket.get(ctx, sum, snapshots.MaxTransfer)
		if missing == nil {
			err = m.cfg.Process.Accept(object, sum, body)
		} else if !errors.Is(missing, jetstream.ErrKeyNotFound) { // else the refresher has removed it for its age
			err = missing
		}
	}
	if err == nil {
		err = m.cfg.Process.Accept(path, digest, file)
	}
	if err == nil {
		m.update(func(s *Status) { s.Applied++ })
	} else if !m.refused(path, digest, err) {
		return fmt.Errorf("get %s: %w", path, err)
	}
	return nil
}

// refused says whether an error is a reason to refuse a file, and then counts and logs it once.
func (m *Member) refused(path, digest string, err error) bool {
	for cause, reason := range refusals {
		if !errors.Is(err, cause) {
			continue
		}
		if known, _ := m.followed.done.Swap(path, digest); known != digest {
			m.update(func(s *Status) { s.Refused[reason]++ })
			m.cfg.Log.Warn("fleet: object refused", "object", fmt.Sprintf("%.200s", path), "reason", reason, "err", err)
		}
		return true
	}
	return false
}
