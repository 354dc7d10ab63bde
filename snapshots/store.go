package snapshots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"time"
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
	// Reopen returns, by product, what is served of the edition in a file of a date. Of a product that it does not have, that is the edition.
	Reopen map[string]func(stored *Edition) (*Edition, error)
	// HistoryBytes bounds the memory for past answers.
	HistoryBytes int64
	// Publish, unless nil, is called by Save with all that Save is to write, objects first and files of dates last, before
	// anything is written. If it fails, Save writes nothing. Otherwise Save calls stored when reads find the files. Neither function may
	// call the store.
	Publish func([]Packed) (stored func(), err error)
	// Latest, unless nil, returns the latest instant that an answer may describe. An answer after it, from a clock that was ahead, is replaced
	// even by an older one.
	Latest func() time.Time
	// Loses, unless nil, says whether an answer of another store lacks something that the stored one of its place has. Then [Store.Accept] refuses it.
	Loses func(stored, next *Snapshot) bool
	Log   *slog.Logger
}

// Store keeps the answers of a source in memory and on disk:
//
//	<Dir>/<Source>/objects/<sha256>.gz      the documents and states that the answers were computed from
//	<Dir>/<Source>/current/<product>        the answer that was stored last
//	<Dir>/<Source>/<YYYY-MM-DD>/<product>   the last answer of that UTC date
//
// [Store.Save] writes in this order, so that after a crash at any instant every file on the disk has its objects. What a crash
// leaves without a name is removed by the next [Open]. In memory and on disk, an answer never replaces a newer one. All methods
// are safe for concurrent use. Reads never wait for the disk to take a write. A file that is not indexed is not read.
//
// Each part holds its own methods: files what is on the disk, memory what is served, deltas the deltas of what is served.
// Memory reads files. There are no other calls between parts.
type Store struct {
	*files
	memory
	deltas

	opts       Options
	publishing sync.Mutex // held while current answers are replaced; guards deltas
	stop       func()     // ends the goroutine that writes the queue
}

// Open opens or creates the directory of a source, takes it for this process, checks every file, logs the bad ones and
// indexes the others. It removes what a crash left: temporary files, and objects that no file names. If a crash came between
// a file in current/ and its link under its date, Open makes the link. If another process holds the directory, Open returns
// ErrLocked at once. The caller must call Close.
func Open(opts Options) (*Store, error) {
	s := &Store{
		files: newFiles(filepath.Join(opts.Dir, opts.Source), opts.Log), deltas: deltas{opts.Deltas, map[kind][]base{}}, opts: opts,
	}
	err := s.files.open()
	if err == nil {
		err = s.memory.open(s.files, &opts)
	}
	if err != nil {
		err = errors.Join(err, s.release())
		return nil, fmt.Errorf("open data directory %s: %w", s.dir, err)
	}
	s.latest = opts.Latest
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	s.working.Go(func() { s.retry(ctx) })
	return s, nil
}

// Close tries once more to write what the disk has refused, and releases the directory. Snapshots already taken stay valid.
func (s *Store) Close() error {
	s.stop()
	s.working.Wait()
	s.work()
	return errors.Join(s.DiskError(), s.release())
}

func (s *Store) release() error {
	if s.history != nil {
		s.history.Close()
	}
	if s.lock != nil {
		return s.lock.Close()
	}
	return nil
}

// Publish makes editions current, by resource, all at the same instant. Other resources keep theirs. An edition whose default
// is older than the default of the current edition is left out, and deleted from the map. Publish keeps the editions but not the map.
// It first makes the deltas of the answers in Options.Deltas; its error is of these.
func (s *Store) Publish(editions map[string]*Edition) error {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	next := map[string]*Edition{}
	for resource, e := range editions {
		if m := &e.Default.Meta; s.Older(resource, m.AsOf, m.CapturedAt, m.ComputedAt) {
			delete(editions, resource)
			continue
		}
		var err error
		if next[resource], err = s.withDeltas(resource, e); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
	}
	s.replace(next)
	for resource, e := range next {
		s.keepBases(resource, e)
	}
	return nil
}

// Older says whether an answer with this as_of, captured_at and computed_at is older than the current one of the resource, which then stays: it
// describes an earlier instant, or the same one from an earlier document, and was computed earlier, too.
func (s *Store) Older(resource string, asOf time.Time, captured *time.Time, computed time.Time) bool {
	now := s.Current(resource)
	return now != nil && s.keepsOut(now.Default.Meta.age(), (&Meta{AsOf: asOf, CapturedAt: captured, ComputedAt: computed}).age())
}

// Save stores the files of one publication, and the objects that they name and that are not stored yet. In this order it
//
//  1. leaves out each file that is older than the one stored in its place, and logs it,
//  2. queues the objects and files in memory,
//  3. writes the queue: the objects, then the files in current/, then those of the dates, each durably,
//  4. lets reads find them, whether the disk took them or not,
//  5. removes the objects that no file names any more.
//
// What the disk refuses stays in the queue, and is tried again every few seconds, by the next Save and by Close. Save waits 10 seconds for a
// disk that does not answer, and the next Save not at all: all goes on in memory, and the disk takes the queue when it answers again.
// Nothing that names a refused object is written before it. An object that is gone from the disk, or has another size, is written again. The
// store logs the begin and the end of such an outage, and [Store.DiskError] reports it. So the only errors are those of a file that
// cannot be encoded, and of [Options.Publish], which is called after step 1. Save keeps the bodies of the editions and the Gzip of the objects.
func (s *Store) Save(answers []File, objects []Object) error {
	batch, stored, err := s.begin(answers, objects)
	if err != nil {
		return err
	}
	defer stored()
	s.write(true)
	s.keep(batch)
	if lost := s.missing(objects); len(lost) > 0 {
		s.enqueue(lost)
		s.write(true)
	}
	return nil
}

// begin is steps 1 and 2 of Save. The caller calls stored when reads find the batch.
func (s *Store) begin(answers []File, objects []Object) (batch []Packed, stored func(), err error) {
	s.disk.Lock()
	defer s.disk.Unlock()
	batch = s.missing(objects)
	var dated []Packed
	for i := range answers {
		f := &answers[i]
		h, body, err := encodeFile(f)
		if err != nil {
			return nil, nil, fmt.Errorf("save %s: %w", f.Product, err)
		}
		at := func(dir string) Packed {
			return packed(key{dir, FileName(f.Product)}, body, newEntry(h, body, f.Edition.Default.Meta.age()), s.served(f))
		}
		if f.Current {
			batch = append(batch, at(currentDir))
		}
		if f.Dated {
			dated = append(dated, at(h.Date))
		}
	}
	batch, older := s.admit(append(batch, dated...))
	if older != nil {
		s.log.Warn("older answer not stored", "err", older)
	}
	stored = func() {}
	if s.opts.Publish != nil {
		if stored, err = s.opts.Publish(batch); err != nil {
			return nil, nil, err
		}
	}
	s.enqueue(batch)
	return batch, stored, nil
}

// Load reads and verifies a product's file of a date. It returns ErrNoSnapshot if there is none.
func (s *Store) Load(product, date string) (File, error) { return s.load(key{date, FileName(product)}) }

// LoadCurrent reads and verifies the current answer of a product, as it was stored last. It returns ErrNoSnapshot if there is
// none.
func (s *Store) LoadCurrent(product string) (File, error) { return s.Load(product, currentDir) }

// Ages say what [Store.Expire] removes. A date is YYYY-MM-DD; "" removes nothing.
type Ages struct {
	FilesBefore   string   // the files of Products under earlier dates
	Products      []string // whose files are removed
	ObjectsBefore string   // the objects that only files of earlier dates name
}

// Expire removes old files and objects. It returns how many files it removed, and the first error. It waits as long for the disk as Save does.
func (s *Store) Expire(ages Ages) (int, error) {
	var removed int
	var err error
	if !s.attempt(func() { removed, err = s.expire(ages) }) {
		return 0, errors.New("expire old files: disk does not answer")
	}
	return removed, err
}

func (s *Store) expire(ages Ages) (removed int, first error) {
	for _, product := range ages.Products {
		for _, date := range s.DatesOf(product) {
			if date >= ages.FilesBefore {
				break
			}
			k := key{date, FileName(product)}
			digest := s.digest(k)
			if err := s.remove(k); err != nil {
				if first == nil {
					first = fmt.Errorf("expire old files: %w", err)
				}
				continue
			}
			s.mu.Lock()
			s.forget(k)
			delete(s.queue, k)
			s.mu.Unlock()
			s.history.Del(digest)
			removed++
		}
	}
	s.disk.Lock()
	s.objectsBefore = max(s.objectsBefore, ages.ObjectsBefore)
	s.disk.Unlock()
	s.sweep()
	return removed, first
}

// Stats says what a [Store] has done since it was opened, and how much is queued now.
type Stats struct {
	FilesWritten int64
	BytesWritten int64
	// DiskErrors counts the writes that failed, by the step that failed, retries included. The steps are create (of a directory
	// or a temporary file), write, sync, rename and sync_dir.
	DiskErrors map[string]int64
	// FilesWaiting is the number of queued files, which the disk has refused and the store serves from memory.
	FilesWaiting int
	// BadFiles is the number of stored files found torn, altered, foreign or of a newer format.
	BadFiles int64
	// What the cache of past answers refused, dropped for a full buffer, and evicted.
	HistoryRejected, HistoryDropped, HistoryEvicted int64
}

// Stats returns the counts.
func (s *Store) Stats() Stats {
	w, m := s.writer, s.history.Metrics
	failed := map[string]int64{}
	for at := range steps {
		failed[at.String()] = w.failed[at].Load()
	}
	return Stats{
		FilesWritten: w.files.Load(), BytesWritten: w.bytes.Load(), DiskErrors: failed, FilesWaiting: s.waiting(), BadFiles: s.bad.Load(),
		HistoryRejected: int64(m.SetsRejected()), HistoryDropped: int64(m.SetsDropped()), HistoryEvicted: int64(m.KeysEvicted()), //nolint:gosec // G115: counts
	}
}

// identityName is the file that says what the directory holds.
const identityName = "identity"

// Bind records what the directory holds. The first call stores the identity. A later call fails if its identity is another.
func (s *Store) Bind(identity string) error {
	path := filepath.Join(s.dir, identityName)
	held, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		defer s.use()()
		return s.writer.writeOne(s.dir, identityName, []byte(identity+"\n"))
	case err != nil:
		return fmt.Errorf("read %s: %w", path, err)
	case string(held) != identity+"\n":
		return fmt.Errorf("%s holds the %.200s, as %s says, not the %s", s.dir, bytes.TrimSpace(held), path, identity)
	}
	return nil
}

// Object returns the unpacked bytes of an object. The caller owns them. The error is ErrGone when the object is not stored.
func (s *Store) Object(sha256 string) ([]byte, error) {
	k := objectKey(sha256)
	packed, e, err := s.raw(k)
	if errors.Is(err, ErrNoSnapshot) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, err
	}
	body, err := unpackObject(packed, sha256)
	if err != nil {
		s.passOver(k, e, err) // the same bytes are written again when they are saved again
	}
	return body, err
}
