package snapshots

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/dgraph-io/ristretto/v2"
)

// generation is all that one feed publishes together: an edition by resource. It is immutable.
type generation map[string]*Edition

// latest holds the generation of every feed. It is sized so that ristretto has no reason to refuse or evict:
// every entry costs 1 and there are far fewer feeds than room.
//
// Ristretto applies a first Set of a key in the background, and of two such sets it may keep the older. So there
// is one writer at a time, and it waits after each Set; overwrites are visible at once.
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
		return nil, fmt.Errorf("create hot cache: %w", err)
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
	if !slices.Contains(slices.Collect(maps.Values(l.feed)), feed) {
		return fmt.Errorf("publish feed %q: there is no such feed", feed)
	}
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
		return fmt.Errorf("publish feed %q: the hot cache refused it", feed)
	}
	return nil
}

// current returns what a resource serves now, nil before the first publication.
func (l *latest) current(resource string) *Edition {
	g, _ := l.cache.Get(l.feed[resource])
	return g[resource]
}

// newHistory returns the cache of past answers, which may forget: a miss costs a file read.
func newHistory(bytes int64) (*ristretto.Cache[string, *Snapshot], error) {
	cache, err := ristretto.NewCache(&ristretto.Config[string, *Snapshot]{
		NumCounters: 1e5, MaxCost: bytes, BufferItems: 64, IgnoreInternalCost: true, Metrics: true,
	})
	if err != nil {
		return nil, fmt.Errorf("create history cache: %w", err)
	}
	return cache, nil
}
