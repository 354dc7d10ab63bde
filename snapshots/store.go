package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/ristretto/v2"
	"golang.org/x/sync/singleflight"
)

// Options say how to open a [Store].
type Options struct {
	Dir    string // data directory; the store uses its subdirectory Source
	Source string // name of the upstream
	// DatedProducts are the products whose past dates are served.
	DatedProducts []string
	// Deltas has the parameter values whose answers come with deltas against the last four answers before them, by product.
	// "" stands for the default answer.
	Deltas map[string][]string
	// HistoryBytes bounds the memory for past answers.
	HistoryBytes int64
	// Changed, unless nil, is called with the path of each file that was written, is pending, or was removed: after reads
	// see the change. It must return soon and not call the store.
	Changed func(path string)
	Log     *slog.Logger
}

// Store keeps editions in memory and on disk. All methods are safe for concurrent use. Reads never wait for the disk to
// take a write.
//
// The steps of a write: 1. The files of a batch are written. 2. The bytes of those that the disk refuses become pending. 3. The
// dates are indexed, whether the writes failed or not: from now on, reads find the files or the pending bytes. 4. The snapshots
// of dated products replace those in memory. 5. After a success, the pending files are written.
//
// The index says which dates exist. A file that is not indexed is not read.
type Store struct {
	opts         Options
	dir          string      // <Dir>/<Source>
	dated        []string    // file names of the dated products
	locks        []io.Closer // keep other processes out of dir
	writer       *writer
	latest       *ristretto.Cache[string, generation] // current answers
	history      *ristretto.Cache[int, *Snapshot]     // past answers, by historyKey
	publications atomic.Uint64                        // see Publications
	pastReads    singleflight.Group                   // reads of past answers, by path
	reading      chan struct{}                        // bounds concurrent file reads of requests
	bad          atomic.Int64                         // stored files found that can never be served
	stop         func()                               // ends the goroutine that writes pending files
	retry        sync.WaitGroup                       // that goroutine

	bases map[kind][]base // last answers of each kind in Options.Deltas, newest first; guarded by publishing

	// A goroutine that holds one of these locks may wait for one further down, never for one further up.
	publishing sync.Mutex   // held while current answers are replaced
	disk       sync.Mutex   // held while files are written or removed
	reads      sync.RWMutex // read-locked while a file is read, locked while a written file becomes visible to reads
	mu         sync.Mutex   // guards the fields below; held only briefly

	index     map[string][]string // file name → dates that have it, rising; the slices are never changed
	hidden    map[string][]string // as index: the dates that HideAfter took out of it
	pending   map[key][]byte      // last write of each file that the disk refused
	loggedBad map[key]bool        // files already logged as passed over
	diskErr   error               // of the last write that failed
	refused   int                 // writes that the disk has refused since the outage began, retries included
}

// Open opens or creates the directory of a source, takes it for this process, removes temporary files that a crash left,
// checks every dated file, logs the bad ones and indexes the others. If another process holds the directory, Open returns
// ErrLocked at once. The caller must call Close.
func Open(opts Options) (*Store, error) {
	s := &Store{
		opts: opts, dir: filepath.Join(opts.Dir, opts.Source), writer: &writer{log: opts.Log},
		reading: make(chan struct{}, concurrentReads), bases: map[kind][]base{},
		index: map[string][]string{}, hidden: map[string][]string{}, pending: map[key][]byte{}, loggedBad: map[key]bool{},
	}
	for _, product := range opts.DatedProducts {
		s.dated = append(s.dated, FileName(product))
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
	if err = s.lockDir(); err != nil {
		return err
	}
	if s.latest, err = newCache[string, generation](latestRoom); err != nil {
		return err
	}
	if s.history, err = newCache[int, *Snapshot](s.opts.HistoryBytes); err != nil {
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

func (s *Store) release() (err error) {
	s.latest.Close()
	s.history.Close()
	for _, l := range s.locks {
		err = errors.Join(err, l.Close())
	}
	return err
}

// scan removes temporary files and fills the index. No other goroutine uses the store yet.
func (s *Store) scan() error {
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		if Temporary(e.Name()) {
			err = errors.Join(err, os.Remove(filepath.Join(s.dir, e.Name())))
		}
	}
	walked := walkDates(s.dir, func(k key, _ fs.DirEntry) {
		if Temporary(k.file) {
			err = errors.Join(err, os.Remove(s.path(k)))
			return
		}
		s.index[k.file] = append(s.index[k.file], k.date)
		if _, _, err := readStored(s.path(k), k); err != nil {
			s.passOver(k, err)
		}
	})
	return errors.Join(err, walked)
}

// Stats says what a [Store] has done since it was opened, and how much is pending now.
type Stats struct {
	FilesWritten int64
	BytesWritten int64
	DiskErrors   DiskErrors
	// FilesWaiting is the number of pending files, which the disk has refused and the store serves from memory.
	FilesWaiting int
	// BadFiles is the number of stored files found torn, altered, foreign or of a newer format.
	BadFiles int64
	// Latest is of the cache of current answers, which must never refuse or evict; History is of the cache of past answers,
	// which may.
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

// CacheStats counts what a cache rejected, dropped or evicted.
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
		Latest: cacheStats(s.latest.Metrics), History: cacheStats(s.history.Metrics),
	}
}

func cacheStats(m *ristretto.Metrics) CacheStats {
	return CacheStats{
		SetsRejected: int64(m.SetsRejected()), SetsDropped: int64(m.SetsDropped()), Evictions: int64(m.KeysEvicted()),
	}
}
