package snapshots

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// Options say how to open a [Store].
type Options struct {
	Dir    string // data directory; the store uses its subdirectory Source
	Source string // name of the upstream
	// DatedProducts are the products whose past dates are served.
	DatedProducts []string
	// Deltas has the parameter values whose answers come with deltas against the last four answers before them, by product.
	// "" stands for the default answer, and comes first.
	Deltas map[string][]string
	// HistoryBytes bounds the memory for past answers.
	HistoryBytes int64
	// Publish, unless nil, is called by Save with all that Save is to write, objects first and files of dates last, before
	// anything is written. If it fails, Save writes nothing. Otherwise Save calls stored when reads find the files. Neither may
	// call the store.
	Publish func([]Packed) (stored func(), err error)
	// Removed, unless nil, is called with the path of each file and object that was removed after Open. It must return soon and
	// not call the store.
	Removed func(path string)
	Log     *slog.Logger
}

// Store keeps the answers of a source in memory and on disk:
//
//	<Dir>/<Source>/objects/<sha256>.gz      the documents and states that the answers were computed from
//	<Dir>/<Source>/current/<product>        the answer that was published last
//	<Dir>/<Source>/<YYYY-MM-DD>/<product>   the last answer of that UTC date
//
// [Store.Save] writes in this order, so that after a crash at any instant every file on the disk has its objects. What a crash
// leaves without a name is removed by the next [Open]. All methods are safe for concurrent use. Reads never wait for the disk
// to take a write. A file that is not indexed is not read.
type Store struct {
	opts         Options
	dir          string   // <Dir>/<Source>
	dated        []string // file names of the dated products
	lock         *os.File // keeps other processes out of dir
	writer       *writer
	current      atomic.Pointer[generation]       // never nil
	history      *ristretto.Cache[int, *Snapshot] // past answers, by the id of their entry
	publications atomic.Uint64                    // see Publications
	hangs        atomic.Bool                      // a request has waited in vain for a file, and no read has ended since
	bad          atomic.Int64                     // stored files found that can never be served
	stop         func()                           // ends the goroutine that writes the queue
	retrying     sync.WaitGroup                   // that goroutine

	bases map[kind][]base // last answers of each kind in Options.Deltas, newest first; guarded by publishing

	// A goroutine that holds one of these locks may wait for one further down, never for one further up.
	publishing sync.Mutex // held while current answers are replaced
	disk       sync.Mutex // held while files are written or removed
	mu         sync.Mutex // guards the fields below; held only briefly

	index         map[key]*entry       // the files and objects that may be read
	lastID        int                  // of an entry
	dates         map[string][]string  // by name, the dates that have a file in index, rising; the slices are never changed
	waiting       map[string]time.Time // accepted objects that no file has named yet, with the time until which they stay
	objectsBefore string               // [Ages.ObjectsBefore]
	unread        bool                 // a file could not be read at the start, so it may name any object
	reads         map[int]*pastRead    // those under way for requests, by the id of their entry; at most concurrentReads
	queue         map[key][]byte       // last write of each file that the disk refused
	diskErr       error                // of the last write that failed
}

// Open opens or creates the directory of a source, takes it for this process, checks every file, logs the bad ones and
// indexes the others. It removes what a crash left: temporary files, and objects that no file names. If a crash came between
// a file in current/ and its link under its date, Open makes the link. If another process holds the directory, Open returns
// ErrLocked at once. The caller must call Close.
func Open(opts Options) (*Store, error) {
	s := &Store{
		opts: opts, dir: filepath.Join(opts.Dir, opts.Source), writer: &writer{log: opts.Log},
		reads: map[int]*pastRead{}, bases: map[kind][]base{}, index: map[key]*entry{},
		dates: map[string][]string{}, waiting: map[string]time.Time{}, queue: map[key][]byte{},
	}
	s.current.Store(&generation{})
	for _, product := range opts.DatedProducts {
		s.dated = append(s.dated, FileName(product))
	}
	s.opts.Removed = func(string) {}
	err := s.open()
	if opts.Removed != nil {
		s.opts.Removed = opts.Removed
	}
	if err != nil {
		err = errors.Join(err, s.release())
		return nil, fmt.Errorf("open data directory %s: %w", s.dir, err)
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	s.retrying.Go(func() { s.retry(ctx) })
	return s, nil
}

func (s *Store) open() (err error) {
	if err = s.writer.makeDir(s.dir); err != nil {
		return err
	}
	if err = s.lockDir(); err != nil {
		return err
	}
	for _, dir := range []string{objectsDir, currentDir} {
		if err = s.writer.makeDir(filepath.Join(s.dir, dir)); err != nil {
			return err
		}
	}
	if s.history, err = newHistory(s.opts.HistoryBytes); err != nil {
		return err
	}
	return s.scan()
}

// Close tries once more to write what the disk has refused, and releases the directory. Snapshots already taken stay valid.
func (s *Store) Close() error {
	s.stop()
	s.retrying.Wait()
	s.disk.Lock()
	defer s.disk.Unlock()
	s.flush(nil)
	s.sweep()
	return errors.Join(s.DiskError(), s.release())
}

func (s *Store) release() (err error) {
	if s.history != nil {
		s.history.Close()
	}
	if s.lock != nil {
		err = s.lock.Close()
	}
	return err
}

// scan removes temporary files, fills the index, makes the links that a crash prevented, and removes objects without a name.
// No other goroutine uses the store yet.
func (s *Store) scan() error {
	linked := map[key]Packed{} // by the place under a date: the file in current/ that belongs there, too
	err := walk(s.dir, func(k key) error {
		if Temporary(k.name) {
			return os.Remove(s.path(k))
		}
		if k.dir == objectsDir {
			if sum := digestOfObject(k.name); sum != "" {
				s.remember(k, &entry{digest: sum})
			}
			return nil
		}
		file, err := readFile(s.path(k))
		var h fileHeader
		if err == nil {
			h, _, err = unframe(file, k)
		}
		if err != nil {
			s.passOver(k, nil, err)
			s.unread = s.unread || !errors.Is(err, ErrTorn)
			return nil
		}
		s.remember(k, newEntry(h, file))
		if k.dir == currentDir && h.Dated {
			dated := key{h.Date, k.name}
			linked[dated] = packed(dated, file, newEntry(h, file), nil)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for k, p := range linked {
		if stored := s.index[k]; stored == nil || stored.computed.Before(p.entry.computed) {
			s.flush([]Packed{p})
			s.remember(k, p.entry)
		}
	}
	s.sweep()
	return nil
}

// walk calls visit for every entry except folders in the directories of a source that hold its files, sorted by path. A file
// or link that has the name of such a directory, or of a temporary file, is visited with dir "".
func walk(source string, visit func(k key) error) error {
	dirs, err := os.ReadDir(source)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		name := dir.Name()
		switch {
		case name != currentDir && name != objectsDir && !isDate(name) && !Temporary(name):
			continue
		case !dir.IsDir() || Temporary(name):
			if err := visit(key{"", name}); err != nil {
				return err
			}
			continue
		}
		files, err := os.ReadDir(filepath.Join(source, name))
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.IsDir() {
				continue
			}
			if err := visit(key{name, f.Name()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Stats says what a [Store] has done since it was opened, and how much is pending now.
type Stats struct {
	FilesWritten int64
	BytesWritten int64
	// DiskErrors counts the writes that failed, by the step that failed, retries included. The steps are create (of a directory
	// or a temporary file), write, sync, rename and sync_dir.
	DiskErrors map[string]int64
	// FilesWaiting is the number of pending files, which the disk has refused and the store serves from memory.
	FilesWaiting int
	// BadFiles is the number of stored files found torn, altered, foreign or of a newer format.
	BadFiles int64
	// What the cache of past answers refused, dropped for a full buffer, and evicted.
	HistoryRejected, HistoryDropped, HistoryEvicted int64
}

// Stats returns the counts.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	waiting := len(s.queue)
	s.mu.Unlock()
	w, m := s.writer, s.history.Metrics
	failed := map[string]int64{}
	for at := range steps {
		failed[at.String()] = w.failed[at].Load()
	}
	return Stats{
		FilesWritten: w.files.Load(), BytesWritten: w.bytes.Load(), DiskErrors: failed, FilesWaiting: waiting, BadFiles: s.bad.Load(),
		HistoryRejected: int64(m.SetsRejected()), HistoryDropped: int64(m.SetsDropped()), HistoryEvicted: int64(m.KeysEvicted()), //nolint:gosec // G115: counts
	}
}
