package snapshots

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// What the store has in memory: the generation, which is all editions that are served now, behind one atomic pointer; and
// the history, a cache of past answers, which may be forgotten: a miss costs the read of a file.
//
// Ristretto applies the first Set of a key in the background, even after a later Del, and of two such Sets it may keep the
// older. So each file has a key of its own in the history: an answer that is read while its file is replaced stays under a key
// that no request asks for any more.

// generation is an edition by resource. It is immutable.
type generation map[string]*Edition

// concurrentReads is how many files requests may read at the same time. A further miss gets ErrBusy.
const concurrentReads = 4

// longestWait is how long a request waits for a file. If the disk does not answer by then, no request waits until it does.
const longestWait = time.Second

// ErrBusy says that requests are reading too many files at this moment, or that the file cannot be read now.
var ErrBusy = errors.New("too many historical reads at once")

// newHistory returns a cache for snapshots of up to room bytes together.
func newHistory(room int64) (*ristretto.Cache[int, *Snapshot], error) {
	c, err := ristretto.NewCache(&ristretto.Config[int, *Snapshot]{
		NumCounters: 1e5, MaxCost: room, BufferItems: 64, IgnoreInternalCost: true, Metrics: true,
	})
	if err != nil {
		return nil, fmt.Errorf("create cache: %w", err)
	}
	return c, nil
}

// Publish makes editions current, by resource, all at the same instant. Other resources keep theirs, and so do those whose current
// edition is newer, which Publish deletes from the map. It keeps the editions but not the map. It first makes the deltas of the answers in
// Options.Deltas; its error is of these.
func (s *Store) Publish(editions map[string]*Edition) (err error) {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	next := maps.Clone(*s.current.Load())
	for resource, e := range editions {
		if current := next[resource]; current != nil && current.Default.Newer(e.Default) {
			delete(editions, resource)
			continue
		}
		if s.opts.Deltas[resource] != nil {
			if e, err = s.withDeltas(resource, e); err != nil {
				return fmt.Errorf("publish: %w", err)
			}
		}
		next[resource] = e
	}
	s.publications.Add(1)
	s.current.Store(&next)
	s.publications.Add(1)
	for resource, e := range editions {
		s.keepBases(resource, e)
	}
	return nil
}

// Current returns what a resource serves now, nil before its first publication. It does not allocate.
func (s *Store) Current(resource string) *Edition { return (*s.current.Load())[resource] }

// Publications counts the calls of [Store.Publish] that have begun to replace the current answers, and those that have done
// so. As long as it is even and the same, Current returns the same editions.
func (s *Store) Publications() uint64 { return s.publications.Load() }

// Historical returns the stored answer of a date of a dated product; an empty date is the newest that can be served. It
// reads the file only if the date is indexed and its answer is not in memory. It returns ErrNoSnapshot if the date has no
// answer that can be served, and ErrBusy if the file cannot be read now or within a second. The read then goes on, and a later call
// finds the answer. It does not allocate if the answer is in memory.
func (s *Store) Historical(product, date string) (*Snapshot, error) {
	i := slices.Index(s.opts.DatedProducts, product)
	if i < 0 || date == currentDir {
		return nil, ErrNoSnapshot
	}
	if date != "" {
		return s.past(key{date, s.dated[i]})
	}
	for _, date := range slices.Backward(s.datesOf(s.dated[i])) {
		snapshot, err := s.past(key{date, s.dated[i]})
		if !errors.Is(err, ErrNoSnapshot) {
			return snapshot, err
		}
	}
	return nil, ErrNoSnapshot
}

// past returns the answer of a date. If it is not in memory, one caller reads the file for all callers.
func (s *Store) past(k key) (*Snapshot, error) {
	s.mu.Lock()
	e := s.index[k]
	s.mu.Unlock()
	if e == nil {
		return nil, ErrNoSnapshot
	}
	if snapshot, ok := s.history.Get(e.id); ok {
		return snapshot, nil
	}
	s.mu.Lock()
	r := s.reads[e.id]
	if r == nil && len(s.reads) < concurrentReads {
		r = &pastRead{done: make(chan struct{})}
		s.reads[e.id] = r
		go s.readFor(r, k, e.id)
	}
	s.mu.Unlock()
	if r == nil {
		return nil, ErrBusy
	}
	limit := longestWait
	if s.hangs.Load() {
		limit = 0
	}
	wait := time.NewTimer(limit)
	defer wait.Stop()
	select {
	case <-r.done:
	case <-wait.C:
		select {
		case <-r.done: // on a busy machine, both may be over
		default:
			s.hangs.Store(true)
			return nil, ErrBusy
		}
	}
	return r.snapshot, r.err
}

// pastRead is a read of a past answer, for all callers that wait for it.
type pastRead struct {
	done     chan struct{} // closed at the end; then the fields below do not change
	snapshot *Snapshot
	err      error
}

// readFor reads the answer of an entry, and ends r.
func (s *Store) readFor(r *pastRead, k key, id int) {
	r.snapshot, r.err = s.readPast(k, id)
	s.mu.Lock()
	delete(s.reads, id)
	s.mu.Unlock()
	s.hangs.Store(false)
	close(r.done)
}

// readPast reads the file of a date and keeps the answer in memory.
func (s *Store) readPast(k key, id int) (*Snapshot, error) {
	f, err := s.load(k)
	if errors.Is(err, ErrTorn) || errors.Is(err, ErrNewerFormat) || errors.Is(err, ErrNoSnapshot) {
		return nil, ErrNoSnapshot
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBusy, err)
	}
	snapshot := f.Edition.Default
	s.history.Set(id, snapshot, snapshot.cost())
	s.mu.Lock()
	e := s.index[k]
	s.mu.Unlock()
	if e == nil || e.id != id { // the file was replaced meanwhile: nobody asks for this id any more
		s.history.Del(id)
	}
	return snapshot, nil
}
