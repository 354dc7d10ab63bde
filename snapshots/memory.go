package snapshots

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dgraph-io/ristretto/v2"
)

// What the store has in memory: the generation, which is all editions that are served now, behind one atomic pointer; and
// the history, a cache of past answers, which may be forgotten: a miss costs the read of a file.
//
// Ristretto applies the first Set of a key in the background, even after a later Del. Of two such Sets it may keep the
// older. So the store waits for every Set whose value must be seen before it makes another.

// generation is an edition by resource. It is immutable.
type generation map[string]*Edition

// concurrentReads is how many files requests may read at the same time. A further miss gets ErrBusy.
const concurrentReads = 4

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
	editions, err := s.withDeltas(editions)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	next := generation{}
	maps.Copy(next, *s.current.Load())
	maps.Copy(next, editions)
	s.publications.Add(1)
	s.current.Store(&next)
	s.publications.Add(1)
	s.keepBases(editions)
	return nil
}

// Current returns what a resource serves now, nil before its first publication. It does not allocate.
func (s *Store) Current(resource string) *Edition { return (*s.current.Load())[resource] }

// Publications counts the calls of [Store.Publish] that have begun to replace the current answers, and those that have done
// so. As long as it is even and the same, Current returns the same editions.
func (s *Store) Publications() uint64 { return s.publications.Load() }

// Historical returns the stored answer of a date of a dated product; an empty date is the newest that can be served. It
// reads the file only if the date is indexed and its answer is not in memory. It returns ErrNoSnapshot if the date has no
// answer that can be served, and ErrBusy if the file cannot be read now. It does not allocate if the answer is in memory.
func (s *Store) Historical(product, date string) (*Snapshot, error) {
	i := slices.Index(s.opts.DatedProducts, product)
	if i < 0 {
		return nil, ErrNoSnapshot
	}
	dates := s.datesOf(s.dated[i])
	if date != "" {
		if _, found := slices.BinarySearch(dates, date); !found {
			return nil, ErrNoSnapshot
		}
		return s.past(i, date)
	}
	for _, date := range slices.Backward(dates) {
		snapshot, err := s.past(i, date)
		if !errors.Is(err, ErrNoSnapshot) {
			return snapshot, err
		}
	}
	return nil, ErrNoSnapshot
}

// historyKey returns the key of an answer in the history. A number is made without an allocation. It holds the index of
// the product in Options.DatedProducts, and the digits of the date.
func historyKey(product int, date string) int {
	n := product
	for i := range len(date) {
		if c := date[i]; c != '-' {
			n = n*10 + int(c-'0')
		}
	}
	return n
}

// past returns the answer of an indexed date of a dated product. If the answer is not in memory, one caller reads the file
// for all callers.
func (s *Store) past(product int, date string) (*Snapshot, error) {
	if snapshot, ok := s.history.Get(historyKey(product, date)); ok {
		return snapshot, nil
	}
	v, err, _ := s.pastReads.Do(s.path(key{date, s.dated[product]}), func() (any, error) {
		select {
		case s.reading <- struct{}{}:
			defer func() { <-s.reading }()
		default:
			return nil, ErrBusy
		}
		return s.readPast(product, date)
	})
	if err != nil {
		return nil, err
	}
	return v.(*Snapshot), nil
}

// readPast reads the file of a date and keeps the answer in memory. It holds s.reads, so no answer is replaced meanwhile.
func (s *Store) readPast(product int, date string) (*Snapshot, error) {
	s.reads.RLock()
	defer s.reads.RUnlock()
	f, err := s.load(key{date, s.dated[product]})
	if errors.Is(err, ErrTorn) || errors.Is(err, ErrNewerFormat) || errors.Is(err, ErrNoSnapshot) {
		return nil, ErrNoSnapshot
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBusy, err)
	}
	snapshot := f.Edition.Default
	s.history.Set(historyKey(product, date), snapshot, snapshot.cost())
	return snapshot, nil
}

// keepPast makes a snapshot the answer of its date, for later requests and for those under way, if the file is one of a dated
// product. s.reads is locked.
func (s *Store) keepPast(k key, snapshot *Snapshot) {
	product := slices.Index(s.dated, k.name)
	if product < 0 || !isDate(k.dir) {
		return
	}
	n := historyKey(product, k.dir)
	s.pastReads.Forget(s.path(k))
	s.history.Del(n)
	s.history.Wait()
	s.history.Set(n, snapshot, snapshot.cost())
	s.history.Wait()
}
