package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"strikecache/server/limits"
)

// pollEvery is how often the key file is looked at. A look that finds nothing new costs one lstat.
const pollEvery = time.Second

// settled is how old a file must be before an unchanged stamp is believed: a second write within the resolution of
// the file system's times, with the same size, leaves the same stamp.
const settled = 2 * time.Second

// Table is the live set of keys. Create it with [Open]. Its methods may be called at the same time.
type Table struct {
	path   string
	log    *slog.Logger
	ledger *Ledger

	entries atomic.Pointer[map[[sha256.Size]byte]*Entry] // never nil, never changed once stored
	failure atomic.Pointer[error]                        // of the last look at the file; nil: none

	mu    sync.Mutex        // held while looking at the file
	stamp os.FileInfo       // of the file that was read last; nil: none
	bad   error             // what was wrong with what it held
	sum   [sha256.Size]byte // of the text in force

	stop func()
}

// Open removes what a crashed writer left beside the key file, reads the file, and looks at it every second until
// [Table.Close]. A missing file is an empty table, which the file fills when it appears; any other file that cannot be
// used is an error. The ledger, which may be nil, keeps the counts of keys; it must outlive the table.
func Open(path string, ledger *Ledger, log *slog.Logger) (*Table, error) {
	sweep(path)
	t := &Table{path: path, log: log, ledger: ledger}
	t.entries.Store(&map[[sha256.Size]byte]*Entry{})
	if err := t.check(time.Now()); errors.Is(err, fs.ErrNotExist) {
		log.Info("no key file: no key is known until it appears", "file", path)
	} else if err != nil {
		return nil, err
	}
	t.stop = every(pollEvery, func() { _ = t.check(time.Now()) }) // check logs what is new
	return t, nil
}

// Close stops looking at the file. Lookup goes on with what was read last.
func (t *Table) Close() { t.stop() }

// Len returns the number of keys, the expired and revoked ones included.
func (t *Table) Len() int { return len(*t.entries.Load()) }

// Err returns why the key file as it is now is not in force, nil if it is.
func (t *Table) Err() error {
	if err := t.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// Lookup finds the key of a secret that was presented at a Unix time in nanoseconds. It is not found when it is
// unknown, longer than 128 bytes, expired or revoked. It keeps nothing of secret and never allocates.
//
// The secret is compared by its digest: what the time of a lookup tells about a digest says nothing about a secret.
func (t *Table) Lookup(secret []byte, nowNanos int64) (*Entry, bool) {
	if len(secret) == 0 || len(secret) > MaxSecret {
		return nil, false
	}
	e, ok := (*t.entries.Load())[sha256.Sum256(secret)]
	if !ok || e.revoked || nowNanos >= e.expires {
		return nil, false
	}
	return e, true
}

// check looks at the file and puts a changed one in force. When it is unusable or gone, the keys stay as they are,
// and the error is logged unless it is that of the last look.
func (t *Table) check(now time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed, err := t.reload(now)
	last := t.Err()
	switch {
	case err == nil && changed:
		t.log.Info("keys loaded", "file", t.path, "keys", t.Len())
	case err == nil && last != nil:
		t.log.Info("key file is usable again", "file", t.path)
	case err != nil && last == nil && t.stamp == nil && errors.Is(err, fs.ErrNotExist): // at the start: no error yet
		return err
	case err != nil && (last == nil || last.Error() != err.Error()):
		t.log.Error("key file not loaded: the keys stay as they were", "err", err)
	}
	if err == nil {
		t.failure.Store(nil)
	} else {
		t.failure.Store(&err)
	}
	return err
}

// reload reads the file if it is not the one that was read last.
func (t *Table) reload(now time.Time) (changed bool, err error) {
	info, err := inspect(t.path, checkPrivate)
	if err != nil {
		return false, fmt.Errorf("key file: %w", err)
	}
	if t.stamp != nil && sameStamp(t.stamp, info) && now.Sub(info.ModTime()).Abs() > settled {
		return false, t.bad
	}
	text, info, err := read(t.path, maxFile, checkPrivate)
	if err != nil {
		return false, fmt.Errorf("key file: %w", err)
	}
	t.stamp, t.bad = info, nil
	sum := sha256.Sum256(text)
	if sum == t.sum {
		return false, nil
	}
	keys, err := decode(text)
	if err != nil {
		t.bad = fmt.Errorf("key file %s: %w", t.path, err)
		return false, t.bad
	}
	t.sum = sum
	t.replace(keys, now)
	return true, nil
}

// replace puts keys in force. A key that was there before keeps its bucket and its counter.
func (t *Table) replace(keys []Key, now time.Time) {
	old := *t.entries.Load()
	next := make(map[[sha256.Size]byte]*Entry, len(keys))
	live := make(map[string]bool, len(keys))
	for _, k := range keys {
		var digest [sha256.Size]byte
		_, _ = hex.Decode(digest[:], []byte(k.SHA256)) // decode has checked it
		live[k.ID] = true
		switch before := old[digest]; {
		case before == nil:
			next[digest] = newEntry(k, &limits.Bucket{}, t.ledger.counter(k.ID))
		case before.Key == k:
			next[digest] = before
		default:
			next[digest] = newEntry(k, before.bucket, before.day)
		}
	}
	t.entries.Store(&next)
	t.ledger.forget(live, now)
}

// every calls f at an interval, from one goroutine, until the returned function is called; that waits for a call
// in progress, and may be called again.
func every(interval time.Duration, f func()) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				f()
			case <-done:
				return
			}
		}
	})
	var once sync.Once
	return func() {
		once.Do(func() { close(done) })
		running.Wait()
	}
}
