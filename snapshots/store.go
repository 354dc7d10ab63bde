package snapshots

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
	"golang.org/x/sync/singleflight"
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

// Store keeps editions hot and on disk. All methods are safe for concurrent use. Reads never wait for writes.
type Store struct {
	opts    Options
	dir     string // <Dir>/<Source>
	lock    *os.File
	writer  *writer
	latest  *latest
	history *ristretto.Cache[string, *Snapshot]
	reads   singleflight.Group
	reading chan struct{}            // bounds concurrent file reads of requests
	newest  atomic.Pointer[dated]    // newest of HistoricalProduct, once it was saved or read
	dates   atomic.Pointer[[]string] // of HistoricalProduct, rising
	bad     atomic.Int64             // stored files found that can never be served

	disk sync.Mutex // held while files are written or removed; never waited for with mu held

	mu       sync.Mutex          // guards what follows, for moments only
	index    map[string][]string // file name → dates that have it, rising
	versions map[string]int      // how often a historical date was saved
	pending  map[string]write    // writes that failed, by path, waiting for the disk
	named    map[string]bool     // bad files already logged
	diskErr  error               // of the last write that failed
	again    *time.Timer         // of the next retry; nil: none is due
	closed   bool
}

type dated struct {
	date     string
	snapshot *Snapshot
}

const (
	// concurrentReads is how many files are read for requests at a time; every further miss is ErrBusy.
	concurrentReads = 4
	lateSuffix      = "@late"
	stateProduct    = "state/"
	lockName        = ".lock"
)

// Open opens or creates the directory of a source, takes it for this process, removes what a crash left behind,
// checks every dated file, names the bad ones in the log and indexes the others. Close must be called.
func Open(opts Options) (*Store, error) { return openOn(system, opts) }

func openOn(d disk, opts Options) (*Store, error) {
	s := &Store{
		opts: opts, dir: filepath.Join(opts.Dir, opts.Source), reading: make(chan struct{}, concurrentReads),
		writer: &writer{disk: d, log: opts.Log},
		index:  map[string][]string{}, versions: map[string]int{}, pending: map[string]write{}, named: map[string]bool{},
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
	if s.history, err = newHistory(s.opts.HistoryBytes); err != nil {
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
	if s.history != nil {
		s.history.Close()
	}
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
			err = os.Remove(filepath.Join(s.dir, day.Name()))
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
			if err := os.Remove(filepath.Join(s.dir, date, f.Name())); err != nil {
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

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil && len(s) == len(time.DateOnly)
}

// Publish makes the editions of a feed current, all at the same instant.
func (s *Store) Publish(feed string, editions map[string]*Edition) error {
	return s.latest.publish(feed, editions)
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
	}
	return err
}

// renew makes a snapshot the historical answer of its date, for requests that come and for those under way.
// Ristretto applies a first Set in the background, also after a later Del: the Wait lets no older answer return.
func (s *Store) renew(date string, snapshot *Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions[date]++
	s.reads.Forget(date)
	s.history.Del(date)
	s.history.Wait()
	if dates := s.Dates(); date == dates[len(dates)-1] {
		s.newest.Store(&dated{date, snapshot})
	}
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
}
