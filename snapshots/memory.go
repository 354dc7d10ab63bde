package snapshots

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/dgraph-io/ristretto/v2"
	"golang.org/x/sync/singleflight"
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

// Publish makes editions current, by resource, all at the same instant. Other resources keep theirs. Publish keeps the
// editions but not the map. It first makes the deltas of the answers in Options.Deltas; its error is of these.
func (s *Store) Publish(editions map[string]*Edition) error {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	next := maps.Clone(*s.current.Load())
	for resource, e := range editions {
		if s.opts.Deltas[resource] != nil {
			var err error
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
	read := s.pastReads.DoChan(strconv.Itoa(e.id), func() (any, error) {
		select {
		case s.reading <- struct{}{}:
			defer func() { <-s.reading; s.hangs.Store(false) }()
		default:
			return nil, ErrBusy
		}
		return s.readPast(k, e.id)
	})
	limit := longestWait
	if s.hangs.Load() {
		limit = 0
	}
	wait := time.NewTimer(limit)
	defer wait.Stop()
	var r singleflight.Result
	select {
	case r = <-read:
	case <-wait.C:
		select {
		case r = <-read: // on a busy machine, both may be over
		default:
			s.hangs.Store(true)
			return nil, ErrBusy
		}
	}
	snapshot, _ := r.Val.(*Snapshot)
	return snapshot, r.Err
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
	return snapshot, nil
}
