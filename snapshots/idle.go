package snapshots

import "sync"

// idle holds at most one compressor while no goroutine uses the compressor. The tables of a compressor are large. A sync.Pool
// would drop the compressor at a garbage collection, and one refresh has several. Any number of goroutines may use an idle.
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
