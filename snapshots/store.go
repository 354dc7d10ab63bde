package snapshots

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
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
	Follower     Follower // nil: nobody
}

// Store keeps editions hot and on disk. All methods are safe for concurrent use. Reads never wait for writes.
type Store struct {
	opts   Options
	dir    string // <Dir>/<Source>
	lock   *os.File
	writer *writer
	latest *latest
	past                // of HistoricalProduct
	bad    atomic.Int64 // stored files found that can never be served

	disk sync.Mutex // held while files are written or removed; never waited for with mu held

	mu      sync.Mutex          // guards what follows, for moments only
	index   map[string][]string // file name → dates that have it, rising
	pending map[string]write    // writes that failed, by path, waiting for the disk
	named   map[string]bool     // bad files already logged
	diskErr error               // of the last write that failed
	again   *time.Timer         // of the next retry; nil: none is due
	closed  bool
}

const (
	lateSuffix   = "@late"
	stateProduct = "state/"
	lockName     = ".lock"
)

// ErrLocked says that another process has taken the directory.
var ErrLocked = errors.New("another process uses this directory")

// Open opens or creates the directory of a source, takes it for this process, removes what a crash left behind,
// checks every dated file, names the bad ones in the log and indexes the others. Close must be called.
func Open(opts Options) (*Store, error) { return openOn(system, opts) }

func openOn(d disk, opts Options) (*Store, error) {
	if opts.Follower == nil {
		opts.Follower = noFollower{}
	}
	s := &Store{
		opts: opts, dir: filepath.Join(opts.Dir, opts.Source), writer: &writer{disk: d, log: opts.Log},
		index: map[string][]string{}, pending: map[string]write{}, named: map[string]bool{},
	}
	if err := s.open(); err != nil {
		err = errors.Join(err, s.release())
		return nil, fmt.Errorf("open data directory %s: %w", s.dir, err)
	}
	return s, nil
}

func (s *Store) open() (err error) {
	if err = s.writer.makeDir(s.dir); err != nil {
		return err
	}
	if err = s.writer.probe(s.dir); err != nil {
		return err
	}
	if s.lock, err = lockDir(filepath.Join(s.dir, lockName)); err != nil {
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

// Close tries once more to write what waits for the disk, and releases the directory. Snapshots already taken
// stay valid.
func (s *Store) Close() error {
	s.disk.Lock()
	defer s.disk.Unlock()
	s.mu.Lock()
	s.closed = true
	if s.again != nil {
		s.again.Stop()
	}
	s.mu.Unlock()
	s.retry()
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
	return s.lock.Close()
}

// scan removes orphaned temporary files and fills the index.
func (s *Store) scan() error {
	days, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, day := range days {
		if strings.HasPrefix(day.Name(), tempPrefix) {
			err = s.orphan(day.Name())
		} else if day.IsDir() && isDate(day.Name()) {
			err = s.scanDay(day.Name())
		}
		if err != nil {
			return err
		}
	}
	s.publishDates()
	return nil
}

func (s *Store) scanDay(date string) error {
	files, err := os.ReadDir(filepath.Join(s.dir, date))
	if err != nil {
		return err
	}
	for _, f := range files {
		switch {
		case strings.HasPrefix(f.Name(), tempPrefix):
			if err := s.orphan(filepath.Join(date, f.Name())); err != nil {
				return err
			}
		case f.Type().IsRegular():
			s.index[f.Name()] = append(s.index[f.Name()], date)
			_, _, err := readStored(s.path(date, f.Name()))
			s.passOver(f.Name(), date, err)
		}
	}
	return nil
}

// orphan removes a temporary file that a crash left.
func (s *Store) orphan(name string) error {
	if err := os.Remove(filepath.Join(s.dir, name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil && len(s) == len(time.DateOnly)
}

// Publish makes the editions of a feed current, all at the same instant.
func (s *Store) Publish(feed string, editions map[string]*Edition) error {
	if err := s.latest.publish(feed, editions); err != nil {
		return err
	}
	s.opts.Follower.Published(feed, editions)
	return nil
}

// Current returns what a resource serves now, nil before its first publication. It does not allocate.
func (s *Store) Current(resource string) *Edition { return s.latest.current(resource) }

// Save stores a product's answer of a UTC date (YYYY-MM-DD) durably, in place of the date's older one. When the
// disk refuses, the error is returned, the answer is still served from memory, and the write is tried again after
// every later one that succeeds, every few seconds and at Close.
func (s *Store) Save(product, date string, f File) error {
	body, err := encodeFile(product, date, f)
	if err != nil {
		return fmt.Errorf("save %s of %s: %w", product, date, err)
	}
	s.disk.Lock()
	defer s.disk.Unlock()
	err = s.write(write{date, fileName(product), body})
	if product == s.opts.HistoricalProduct {
		s.renew(date, f.Edition.Default)
		s.opts.Follower.Renewed(date, f.Edition.Default, err == nil)
	}
	return err
}

// SaveLate stores an answer that arrived after its date closed. A restart serves it, the history never does.
func (s *Store) SaveLate(product, date string, f File) error {
	body, err := encodeFile(product, date, f)
	if err != nil {
		return fmt.Errorf("save %s of %s: %w", product, date, err)
	}
	s.disk.Lock()
	defer s.disk.Unlock()
	return s.write(write{date, fileName(product) + lateSuffix, body})
}

// SaveState stores what a later session needs of a date beside its snapshots.
func (s *Store) SaveState(name, date string, state []byte) error {
	body, err := frame(fileHeader{Product: stateProduct + name, Date: date}, state)
	if err != nil {
		return fmt.Errorf("save state %s of %s: %w", name, date, err)
	}
	s.disk.Lock()
	defer s.disk.Unlock()
	return s.write(write{date, fileName(stateProduct + name), body})
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
	if file == fileName(s.opts.HistoricalProduct) {
		s.history.Del(date)
	}
}

// publishDates refreshes the lock-free copy of the historical product's dates. s.mu is held, or s is new.
func (s *Store) publishDates() {
	dates := slices.Clone(s.index[fileName(s.opts.HistoricalProduct)])
	s.dates.Store(&dates)
	s.opts.Follower.Listed(dates)
}
