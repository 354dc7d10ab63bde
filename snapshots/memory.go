package snapshots

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// memory is what is served: the generation, which is all current editions, behind one atomic pointer; and the history, a cache
// of past answers. A miss of the history costs the read of a file.
//
// Ristretto applies the first Set of a key in the background, even after a later Del, and of two such Sets it may keep the
// older. So the key of an answer is the digest of its file: whatever is stored under a key is the right answer, and a request
// never asks for the digest of a file that was replaced.
type memory struct {
	files        *files
	dated, names []string                   // the dated products, and the names of their files
	current      atomic.Pointer[generation] // never nil
	publications atomic.Uint64              // see Publications
	history      *ristretto.Cache[string, *Edition]
	reopen       map[string]func(*Edition) (*Edition, error) // [Options.Reopen], by the names of the files
	hangs        atomic.Bool                                 // a request has waited in vain for a file, and no read has ended since

	reading sync.Mutex           // guards reads; held only briefly
	reads   map[string]*pastRead // those under way for requests, by the digest of the file; at most concurrentReads
}

// generation is an edition by resource. It is immutable.
type generation map[string]*Edition

// concurrentReads is how many files requests may read at the same time. A further miss gets ErrBusy.
const concurrentReads = 4

// longestWait is how long a request waits for a file. If the disk does not answer by then, no request waits until it does.
const longestWait = time.Second

// ErrBusy says that requests are reading too many files at this moment, or that the file cannot be read now.
var ErrBusy = errors.New("too many historical reads at once")

// open makes a memory of the dated products with a history of up to HistoryBytes.
func (m *memory) open(f *files, opts *Options) (err error) {
	m.files, m.dated, m.reads, m.reopen = f, opts.DatedProducts, map[string]*pastRead{}, map[string]func(*Edition) (*Edition, error){}
	for _, product := range m.dated {
		m.names = append(m.names, FileName(product))
		if reopen := opts.Reopen[product]; reopen != nil {
			m.reopen[FileName(product)] = reopen
		}
	}
	m.current.Store(&generation{})
	m.history, err = ristretto.NewCache(&ristretto.Config[string, *Edition]{
		NumCounters: 1e5, MaxCost: opts.HistoryBytes, BufferItems: 64, IgnoreInternalCost: true, Metrics: true,
	})
	if err != nil {
		err = fmt.Errorf("create cache: %w", err)
	}
	return err
}

// replace makes editions current, all at the same instant. Calls must not overlap.
func (m *memory) replace(editions map[string]*Edition) {
	next := maps.Clone(*m.current.Load())
	maps.Copy(next, editions)
	m.publications.Add(1)
	m.current.Store(&next)
	m.publications.Add(1)
}

// Current returns what a resource serves now, nil before its first publication. It does not allocate.
func (m *memory) Current(resource string) *Edition { return (*m.current.Load())[resource] }

// Publications counts the calls of [Store.Publish] that have begun to replace the current answers, and those that have done
// so. As long as it is even and the same, Current returns the same editions.
func (m *memory) Publications() uint64 { return m.publications.Load() }

// served returns what is served of a file, nil if it must be reopened for that.
func (m *memory) served(f *File) *Edition {
	if m.reopen[FileName(f.Product)] != nil {
		return f.Served
	}
	return f.Edition
}

// keep puts the answers of dated files into the history, in place of those that they replace. A request after keep finds them there, but for
// those that must be reopened.
func (m *memory) keep(batch []Packed) {
	for _, p := range batch {
		if p.key.rank() != rankDated {
			continue
		}
		m.history.Del(p.replaces)
		if p.Answer != nil && slices.Contains(m.names, p.key.name) {
			m.history.Set(p.SHA256, p.Answer, p.Answer.cost())
		}
	}
	m.history.Wait()
}

// DatesOf returns the dates on which a product has a stored answer, rising. The slice is shared and must not be changed. For
// a dated product, DatesOf does not allocate.
func (m *memory) DatesOf(product string) []string {
	if i := slices.Index(m.dated, product); i >= 0 {
		return m.files.datesOf(m.names[i])
	}
	return m.files.datesOf(FileName(product))
}

// Historical returns what a dated product serves of a date; an empty date is the newest that can be served. It
// reads the file only if the date is indexed and its answer is not in memory. It returns ErrNoSnapshot if the date has no
// answer that can be served, and ErrBusy if the file cannot be read now or within a second. The read then goes on, and a later
// call finds the answer. It does not allocate if the answer is in memory.
func (m *memory) Historical(product, date string) (*Edition, error) {
	i := slices.Index(m.dated, product)
	if i < 0 || date == currentDir {
		return nil, ErrNoSnapshot
	}
	if date != "" {
		return m.past(key{date, m.names[i]})
	}
	for _, date := range slices.Backward(m.files.datesOf(m.names[i])) {
		e, err := m.past(key{date, m.names[i]})
		if !errors.Is(err, ErrNoSnapshot) {
			return e, err
		}
	}
	return nil, ErrNoSnapshot
}

// past returns the answer of a date. If it is not in memory, one caller reads the file for all callers.
func (m *memory) past(k key) (*Edition, error) {
	digest := m.files.digest(k)
	if digest == "" {
		return nil, ErrNoSnapshot
	}
	if e, ok := m.history.Get(digest); ok {
		return e, nil
	}
	m.reading.Lock()
	r := m.reads[digest]
	if r == nil && len(m.reads) < concurrentReads {
		r = &pastRead{done: make(chan struct{})}
		m.reads[digest] = r
		go m.readFor(r, k, digest)
	}
	m.reading.Unlock()
	if r == nil {
		return nil, ErrBusy
	}
	limit := longestWait
	if m.hangs.Load() {
		limit = 0
	}
	select {
	case <-r.done:
	case <-time.After(limit):
		select {
		case <-r.done: // on a busy machine, both may be over
		default:
			m.hangs.Store(true)
			return nil, ErrBusy
		}
	}
	return r.edition, r.err
}

// pastRead is a read of a past answer, for all callers that wait for it.
type pastRead struct {
	done    chan struct{} // closed at the end; then the fields below do not change
	edition *Edition
	err     error
}

// readFor reads the file of a date, keeps the answer in memory, and ends r, which is the read of a digest.
func (m *memory) readFor(r *pastRead, k key, digest string) {
	f, err := m.files.load(k)
	if reopen := m.reopen[k.name]; err == nil && reopen != nil {
		served, failed := reopen(f.Edition)
		if f.Edition = served; failed != nil {
			m.files.log.Error("stored answer cannot be served", "file", k, "err", failed)
			err = ErrNoSnapshot
		}
	}
	switch {
	case err == nil:
		r.edition = f.Edition
		m.history.Set(f.entry.digest, r.edition, r.edition.cost())
		if m.files.digest(k) != f.entry.digest { // the file was replaced meanwhile: no request asks for this digest
			m.history.Del(f.entry.digest)
		}
	case errors.Is(err, ErrTorn), errors.Is(err, ErrNewerFormat), errors.Is(err, ErrNoSnapshot):
		r.err = ErrNoSnapshot
	default:
		r.err = fmt.Errorf("%w: %w", ErrBusy, err)
	}
	m.reading.Lock()
	delete(m.reads, digest)
	m.reading.Unlock()
	m.hangs.Store(false)
	close(r.done)
}
