package snapshots

import "sync"

// idle holds one idle compressor, whose tables are large. Unlike a sync.Pool it keeps it when garbage is collected: a refresh
// sees several collections. Any number of goroutines may use it.
type idle[T any] struct {
	make func() (T, error)
	mu   sync.Mutex
	kept []T // one at most
}

// get returns the idle compressor, or a new one. Its state is that of its last use.
func (i *idle[T]) get() (z T, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.kept) == 0 {
		return i.make()
	}
	z, i.kept = i.kept[0], nil
	return z, nil
}

// put gives a compressor back.
func (i *idle[T]) put(z T) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.kept = []T{z}
}
