package snapshots

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

// Follower is told what changes in what a [Store] answers. Its methods may be called with the store's locks held: they
// must return at once and not call the store.
type Follower interface {
	// Published tells the editions of a feed that have become current together; the map must not be changed. Those of one
	// feed come in the order of their publication when that does not overlap another.
	Published(feed string, editions map[string]*Edition)
	// Listed tells the dates of the historical product, rising, which are not changed afterwards.
	Listed(dates []string)
	// Renewed tells the new answer of a listed date, and whether its file holds it.
	Renewed(date string, s *Snapshot, onDisk bool)
	// Written says that the file of a date, which did not hold its answer, does now.
	Written(date string)
}

// noFollower follows a store that nobody follows.
type noFollower struct{}

func (noFollower) Published(string, map[string]*Edition) {}
func (noFollower) Listed([]string)                       {}
func (noFollower) Renewed(string, *Snapshot, bool)       {}
func (noFollower) Written(string)                        {}

// Replica answers requests as a [Store] does that another process owns: current answers from what it is told, past
// ones also from the store's files, which it never changes. All methods are safe for concurrent use.
type Replica struct {
	opts   Options
	latest *latest
	past

	mu      sync.Mutex
	waiting map[string]*Snapshot // answers that no file holds yet, by date
	bad     map[string]bool      // dates whose file can never be served
	named   map[string]bool      // dates whose file could not be read, as the log says
	listed  []string             // as told
}

// NewReplica returns a replica that knows of nothing yet. Close must be called.
func NewReplica(opts Options) (*Replica, error) {
	r := &Replica{opts: opts, waiting: map[string]*Snapshot{}, bad: map[string]bool{}, named: map[string]bool{}}
	var err error
	if r.latest, err = newLatest(opts.Feeds); err != nil {
		return nil, err
	}
	if err := r.past.init(opts.HistoryBytes, r.pastAnswer); err != nil {
		r.latest.cache.Close()
		return nil, err
	}
	return r, nil
}

// Close ends the replica's caches. Snapshots already taken stay valid.
func (r *Replica) Close() {
	r.latest.cache.Close()
	r.past.close()
}

// Current is [Store.Current].
func (r *Replica) Current(resource string) *Edition { return r.latest.current(resource) }

// Publish is [Store.Publish], without those resources whose answer here is later: one that no file held when the process
// before the store's ended. An answer is later that was computed later and describes no earlier instant.
func (r *Replica) Publish(feed string, editions map[string]*Edition) error {
	maps.DeleteFunc(editions, func(resource string, e *Edition) bool {
		here := r.Current(resource)
		return here != nil && here.Default.Meta.ComputedAt.After(e.Default.Meta.ComputedAt) && !e.Default.newer(here.Default)
	})
	return r.latest.publish(feed, editions)
}

// Restore is Publish of what a store found on its disk, without those resources whose answer here describes a later
// instant, or is the same and known to be stale.
func (r *Replica) Restore(feed string, editions map[string]*Edition) error {
	maps.DeleteFunc(editions, func(resource string, e *Edition) bool {
		here := r.Current(resource)
		return here != nil && (here.Default.newer(e.Default) || here.Default.Meta.Freshness.Stale() && !e.Default.newer(here.Default))
	})
	return r.latest.publish(feed, editions)
}

// Listed tells the replica the dates that are stored, rising.
func (r *Replica) Listed(dates []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listed = dates
	r.list()
}

// Opened is Listed of a store that was opened. What its files hold is read again: the process before may have ended
// between a file and its word of it.
func (r *Replica) Opened(dates []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.bad)
	clear(r.named)
	r.listed = dates
	r.list()
	r.forget()
}

// list serves the listed dates whose files are good, and those that no file holds: the store's process may have ended
// before the disk took them. r.mu is held.
func (r *Replica) list() {
	dates := slices.DeleteFunc(slices.Clone(r.listed), func(date string) bool { return r.bad[date] })
	dates = slices.AppendSeq(dates, maps.Keys(r.waiting))
	slices.Sort(dates)
	dates = slices.Compact(dates)
	r.dates.Store(&dates)
}

// Renewed tells the replica the new answer of a listed date, and whether its file holds it.
func (r *Replica) Renewed(date string, s *Snapshot, onDisk bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.waiting, date); !onDisk {
		r.waiting[date] = s
	}
	delete(r.bad, date)
	delete(r.named, date)
	r.list()
	if _, known := slices.BinarySearch(r.Dates(), date); known {
		r.renew(date, s)
	}
}

// Written tells the replica that the file of a date holds its answer now.
func (r *Replica) Written(date string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, date)
}

// pastAnswer reads the stored answer of a date.
func (r *Replica) pastAnswer(date string) (*Snapshot, error) {
	r.mu.Lock()
	s, before := r.waiting[date], r.version(date)
	r.mu.Unlock()
	if s != nil {
		return s, nil
	}
	f, err := ReadFile(r.opts.Dir, r.opts.Source, r.opts.HistoricalProduct, date)
	if err == nil {
		return f.Edition.Default, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.version(date) != before {
		return nil, err // of a file that is another by now
	}
	if bad := errors.Is(err, ErrTorn) || errors.Is(err, ErrNewerFormat); bad || errors.Is(err, ErrNoSnapshot) {
		r.bad[date] = true
		r.list()
	}
	if !r.named[date] {
		r.opts.Log.Error("stored file passed over", "date", date, "err", err)
		r.named[date] = true
	}
	return nil, err
}

// BadFiles returns how many files cannot be served that were good when the store was opened.
func (r *Replica) BadFiles() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(len(r.bad))
}

// CacheStats returns what the caches of current and of past answers did not take or keep.
func (r *Replica) CacheStats() (latest, history CacheStats) {
	return cacheStats(r.latest.cache.Metrics), cacheStats(r.history.Metrics)
}
