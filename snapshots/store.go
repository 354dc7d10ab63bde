package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// Options say how to open a [Store].
type Options struct {
	Dir    string              // data directory; the store keeps to its subdirectory Source
	Source string              // name of the upstream
	Feeds  map[string][]string // feed → resources
	// HistoricalProduct is the product whose past dates are served.
	HistoricalProduct string
	// HistoryBytes bounds the memory for past answers.
	HistoryBytes int64
	Log          *slog.Logger
}

// Store keeps editions in memory and on disk. All methods are safe for concurrent use. Reads never wait for writes.
//
// A write goes this way: 1. The file is written, with the disk lock held. 2. If that failed, the bytes become pending.
// 3. The date is indexed, whether the write failed or not: from now on a read finds the file or the pending bytes. 4. For
// the historical product, the snapshot replaces the one in memory. 5. After a success, the pending files are written.
type Store struct {
	opts   Options
	dir    string // <Dir>/<Source>
	lock   *dirLock
	writer *writer
	latest *latest
	past                  // of HistoricalProduct
	bad    atomic.Int64   // stored files found that can never be served
	stop   func()         // ends the goroutine that writes pending files
	retry  sync.WaitGroup // that goroutine

	disk sync.Mutex // held while files are written or removed; never waited for with mu held

	mu       sync.Mutex          // guards what follows, for moments only
	index    map[string][]string // file name → dates that have it, rising
	pending  map[string]write    // last write of each path that the disk refused
	named    map[string]bool     // bad files already logged
	diskErr  error               // of the last write that failed
	refusing bool                // the log says that the disk refuses writes
	identity string              // as bound; "" before Bind
}

const (
	lateSuffix   = "@late"
	stateProduct = "state/"
)

// Open opens or creates the directory of a source, takes it for this process, removes temporary files that a crash left,
// checks every dated file, logs the bad ones and indexes the others. If another process has the directory, Open returns
// ErrLocked at once. Close must be called.
func Open(opts Options) (*Store, error) { return openOn(system, opts) }

func openOn(d disk, opts Options) (*Store, error) {
	s := &Store{
		opts: opts, dir: filepath.Join(opts.Dir, opts.Source), writer: &writer{disk: d, log: opts.Log},
		index: map[string][]string{}, pending: map[string]write{}, named: map[string]bool{},
	}
	if err := s.open(); err != nil {
		err = errors.Join(err, s.release())
		return nil, fmt.Errorf("open data directory %s: %w", s.dir, err)
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	s.retry.Go(func() { s.retryPending(ctx) })
	return s, nil
}

func (s *Store) open() (err error) {
	if err = s.writer.makeDir(s.dir); err != nil {
		return err
	}
	if err = s.writer.probe(s.dir); err != nil {
		return err
	}
	if s.lock, err = lockDir(s.opts.Dir, s.opts.Source); err != nil {
		return err
	}
	if s.latest, err = newLatest(s.opts.Feeds); err != nil {
		return err
	}
	if err = s.past.init(s.opts.HistoryBytes, s.pastAnswer); err != nil {
		return err
	}
	return s.scan()
}

// Close tries once more to write the pending files, and releases the directory. Snapshots already taken stay valid.
func (s *Store) Close() error {
	s.stop()
	s.retry.Wait()
	s.disk.Lock()
	defer s.disk.Unlock()
	s.writePending()
	return errors.Join(s.DiskError(), s.release())
}

func (s *Store) release() error {
	if s.latest != nil {
		s.latest.cache.Close()
	}
	s.past.close()
	if s.lock == nil {
		return nil
	}
	return s.lock.release()
}

// scan removes temporary files and fills the index. The store is new: nobody else uses it yet.
func (s *Store) scan() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if Temporary(e.Name()) {
			if err := s.removeTemporary("", e.Name()); err != nil {
				return err
			}
		}
	}
	err = walkDates(s.dir, func(date string, e fs.DirEntry) error {
		if Temporary(e.Name()) {
			return s.removeTemporary(date, e.Name())
		}
		bad := checkEntry(date, e)
		if bad == nil {
			s.index[e.Name()] = append(s.index[e.Name()], date)
			_, _, bad = readStored(s.path(date, e.Name()))
		}
		s.passOver(e.Name(), date, bad)
		return nil
	})
	s.publishDates()
	return err
}

func (s *Store) removeTemporary(date, name string) error {
	if err := os.Remove(s.path(date, name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// walkDates calls visit for every entry, but not for folders, in the date directories of a source's directory, dates
// rising. It also visits, with date "", what has the name of a date and is no directory.
func walkDates(dir string, visit func(date string, e fs.DirEntry) error) error {
	days, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return err
	}
	for _, day := range days {
		if !isDate(day.Name()) {
			continue
		}
		if !day.IsDir() {
			if err := visit("", day); err != nil {
				return err
			}
			continue
		}
		files, err := os.ReadDir(filepath.Join(dir, day.Name()))
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.IsDir() {
				continue
			}
			if err := visit(day.Name(), f); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkEntry says why an entry that walkDates visits can be no stored file, nil if it can be one.
func checkEntry(date string, e fs.DirEntry) error {
	switch {
	case date == "":
		return fmt.Errorf("%w: ignored: its name is a date, but it is not a directory", ErrTorn)
	case !e.Type().IsRegular():
		return fmt.Errorf("%w: ignored: not a regular file but %v", ErrTorn, e.Type())
	}
	return nil
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil && len(s) == len(time.DateOnly)
}

func (s *Store) path(date, file string) string { return filepath.Join(s.dir, date, file) }

// remember indexes a date. s.mu is held.
func (s *Store) remember(file, date string) {
	if i, found := slices.BinarySearch(s.index[file], date); !found {
		s.index[file] = slices.Insert(s.index[file], i, date)
		s.publishDates()
	}
}

// forget takes a date out of the index. s.mu is held.
func (s *Store) forget(file, date string) {
	if i, found := slices.BinarySearch(s.index[file], date); found {
		s.index[file] = slices.Delete(s.index[file], i, i+1)
		s.publishDates()
	}
	if file == FileName(s.opts.HistoricalProduct) {
		s.history.Del(date)
	}
}

// publishDates refreshes the lock-free copy of the historical product's dates. s.mu is held, or s is new.
func (s *Store) publishDates() {
	s.dates.Store(new(slices.Clone(s.index[FileName(s.opts.HistoricalProduct)])))
}

// Publish makes the editions of a feed current, all at the same instant. It keeps the editions but not the map.
func (s *Store) Publish(feed string, editions map[string]*Edition) error {
	return s.latest.publish(feed, editions)
}

// Current returns what a resource serves now, nil before its first publication. It does not allocate.
func (s *Store) Current(resource string) *Edition { return s.latest.current(resource) }

// Usage returns the bytes that all files of the source take.
func (s *Store) Usage() (bytes int64, err error) {
	err = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if path != s.dir && errors.Is(err, fs.ErrNotExist) {
			return nil // replaced meanwhile
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	return bytes, err
}

// FileSize returns the bytes of a product's newest file, 0 if there is none.
func (s *Store) FileSize(product string) int64 {
	dates := s.DatesOf(product)
	if len(dates) == 0 {
		return 0
	}
	info, err := os.Stat(s.path(dates[len(dates)-1], FileName(product)))
	if err != nil {
		return 0
	}
	return info.Size()
}

// Stats are what a [Store] has done since it was opened, and what is pending now.
type Stats struct {
	FilesWritten int64
	BytesWritten int64
	DiskErrors   DiskErrors
	// FilesWaiting are the pending files: the disk refused them, and they are served from memory until it takes them.
	FilesWaiting int
	// BadFiles are the stored files found torn, altered, foreign or of a newer format.
	BadFiles int64
	// Latest is the cache of current answers, which must never refuse or evict; History that of past ones, which may.
	Latest, History CacheStats
}

// DiskErrors counts the writes that failed, by the step that failed, retries included.
type DiskErrors struct {
	Create  int64 // of a directory or a temporary file
	Write   int64
	Sync    int64
	Rename  int64
	SyncDir int64
}

// CacheStats counts what a cache did not take or keep.
type CacheStats struct {
	SetsRejected int64
	SetsDropped  int64
	Evictions    int64
}

// Stats returns the counts.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	waiting := len(s.pending)
	s.mu.Unlock()
	w := s.writer
	return Stats{
		FilesWritten: w.files.Load(), BytesWritten: w.bytes.Load(),
		DiskErrors: DiskErrors{
			Create: w.failed[stepCreate].Load(), Write: w.failed[stepWrite].Load(), Sync: w.failed[stepSync].Load(),
			Rename: w.failed[stepRename].Load(), SyncDir: w.failed[stepSyncDir].Load(),
		},
		FilesWaiting: waiting, BadFiles: s.bad.Load(),
		Latest: cacheStats(s.latest.cache.Metrics), History: cacheStats(s.history.Metrics),
	}
}

func cacheStats(m *ristretto.Metrics) CacheStats {
	return CacheStats{
		SetsRejected: int64(m.SetsRejected()), SetsDropped: int64(m.SetsDropped()), Evictions: int64(m.KeysEvicted()),
	}
}
