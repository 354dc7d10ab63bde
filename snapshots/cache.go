package snapshots

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/ristretto/v2"
	"golang.org/x/sync/singleflight"
)

// generation is all that one feed publishes together: an edition by resource. It is immutable.
type generation map[string]*Edition

// latest holds the generation of every feed. It is sized so that ristretto has no reason to refuse or evict an entry:
// every entry costs 1, and there are far fewer feeds than room.
//
// Ristretto applies a first Set of a key in the background, and of two such sets it may keep the older. So there is one
// writer at a time, and it waits after each Set. Overwrites are visible at once.
type latest struct {
	cache *ristretto.Cache[string, generation]
	feed  map[string]string // resource → feed
	write sync.Mutex
}

const latestRoom = 1 << 10

func newLatest(feeds map[string][]string) (*latest, error) {
	cache, err := ristretto.NewCache(&ristretto.Config[string, generation]{
		NumCounters: 10 * latestRoom, MaxCost: latestRoom, BufferItems: 64, IgnoreInternalCost: true, Metrics: true,
	})
	if err != nil {
		return nil, fmt.Errorf("create cache of current answers: %w", err)
	}
	l := &latest{cache: cache, feed: map[string]string{}}
	for feed, resources := range feeds {
		for _, r := range resources {
			l.feed[r] = feed
		}
	}
	return l, nil
}

// publish makes the editions current, all at the same instant. Other resources of the feed keep theirs.
func (l *latest) publish(feed string, editions map[string]*Edition) error {
	l.write.Lock()
	defer l.write.Unlock()
	next := generation{}
	if old, ok := l.cache.Get(feed); ok {
		maps.Copy(next, old)
	}
	for resource, e := range editions {
		if l.feed[resource] != feed {
			return fmt.Errorf("publish %s: feed %q does not feed it", resource, feed)
		}
		next[resource] = e
	}
	accepted := l.cache.Set(feed, next, 1)
	l.cache.Wait()
	if _, ok := l.cache.Get(feed); !accepted || !ok {
		return fmt.Errorf("publish feed %q: the cache refused it", feed)
	}
	return nil
}

// current returns what a resource serves now, nil before the first publication.
func (l *latest) current(resource string) *Edition {
	g, _ := l.cache.Get(l.feed[resource])
	return g[resource]
}

// past serves the dated answers of the historical product. All methods are safe for concurrent use.
type past struct {
	read    func(date string) (*Snapshot, error) // of a date's file
	history *ristretto.Cache[string, *Snapshot]  // may forget: a miss costs a file read
	reads   singleflight.Group
	reading chan struct{}            // bounds concurrent file reads of requests
	newest  atomic.Pointer[dated]    // nil until an answer of the newest date was saved
	dates   atomic.Pointer[[]string] // rising

	saving sync.RWMutex // held for reading while a file is read and cached, and to replace what is cached
}

type dated struct {
	date     string
	snapshot *Snapshot
}

// concurrentReads is how many files are read for requests at a time. A miss beyond that is ErrBusy.
const concurrentReads = 4

func (p *past) init(bytes int64, read func(date string) (*Snapshot, error)) (err error) {
	p.read, p.reading = read, make(chan struct{}, concurrentReads)
	p.dates.Store(new([]string))
	p.history, err = ristretto.NewCache(&ristretto.Config[string, *Snapshot]{
		NumCounters: 1e5, MaxCost: bytes, BufferItems: 64, IgnoreInternalCost: true, Metrics: true,
	})
	if err != nil {
		return fmt.Errorf("create cache of past answers: %w", err)
	}
	return nil
}

func (p *past) close() {
	if p.history != nil {
		p.history.Close()
	}
}

// Dates returns the stored dates of the historical product, rising. The slice is shared and must not be changed.
func (p *past) Dates() []string { return *p.dates.Load() }

// Historical returns the stored answer of a date of the historical product; an empty date is the newest. It reads the
// file only if the date is indexed and its answer is not in memory. It returns ErrNoSnapshot if the date has no answer
// that can be served, and ErrBusy if the file cannot be read now.
func (p *past) Historical(date string) (*Snapshot, error) {
	if n := p.newest.Load(); n != nil && (date == "" || date == n.date) {
		return n.snapshot, nil
	}
	if date != "" {
		return p.historical(date)
	}
	for {
		dates := p.Dates()
		if len(dates) == 0 {
			return nil, ErrNoSnapshot
		}
		snapshot, err := p.historical(dates[len(dates)-1])
		if !errors.Is(err, ErrNoSnapshot) || slices.Equal(dates, p.Dates()) {
			return snapshot, err
		}
	}
}

func (p *past) historical(date string) (*Snapshot, error) {
	if snapshot, ok := p.history.Get(date); ok {
		return snapshot, nil
	}
	if _, found := slices.BinarySearch(p.Dates(), date); !found {
		return nil, ErrNoSnapshot
	}
	v, err, _ := p.reads.Do(date, func() (any, error) {
		select {
		case p.reading <- struct{}{}:
			defer func() { <-p.reading }()
		default:
			return nil, ErrBusy
		}
		return p.readHistorical(date)
	})
	if err != nil {
		return nil, err
	}
	return v.(*Snapshot), nil
}

// readHistorical reads the file of a date and keeps the answer in memory. No answer is replaced meanwhile.
func (p *past) readHistorical(date string) (*Snapshot, error) {
	p.saving.RLock()
	defer p.saving.RUnlock()
	snapshot, err := p.read(date)
	if errors.Is(err, ErrTorn) || errors.Is(err, ErrNewerFormat) || errors.Is(err, ErrNoSnapshot) {
		return nil, ErrNoSnapshot
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBusy, err)
	}
	p.history.Set(date, snapshot, snapshot.cost())
	return snapshot, nil
}

// saved makes a snapshot the answer of its date, which is indexed: for requests to come and for those under way.
// Ristretto applies a first Set in the background, also after a later Del. The Wait lets no older answer return.
func (p *past) saved(date string, snapshot *Snapshot) {
	p.saving.Lock()
	defer p.saving.Unlock()
	p.reads.Forget(date)
	p.history.Del(date)
	p.history.Wait()
	if dates := p.Dates(); len(dates) > 0 && date == dates[len(dates)-1] {
		p.newest.Store(&dated{date, snapshot})
	}
}
