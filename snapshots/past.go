package snapshots

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/ristretto/v2"
	"golang.org/x/sync/singleflight"
)

// past serves the dated answers of the historical product. All methods are safe for concurrent use.
type past struct {
	read    func(date string) (*Snapshot, error) // of a date's file
	history *ristretto.Cache[string, *Snapshot]
	reads   singleflight.Group
	reading chan struct{}            // bounds concurrent file reads of requests
	newest  atomic.Pointer[dated]    // once it was saved
	dates   atomic.Pointer[[]string] // rising

	renewing sync.Mutex     // guards versions, for moments only
	versions map[string]int // how often a date was saved
	forgets  int            // how often all was forgotten
}

type dated struct {
	date     string
	snapshot *Snapshot
}

// concurrentReads is how many files are read for requests at a time; every further miss is ErrBusy.
const concurrentReads = 4

func (p *past) init(bytes int64, read func(date string) (*Snapshot, error)) (err error) {
	p.read, p.reading, p.versions = read, make(chan struct{}, concurrentReads), map[string]int{}
	p.dates.Store(new([]string))
	p.history, err = newHistory(bytes)
	return err
}

func (p *past) close() {
	if p.history != nil {
		p.history.Close()
	}
}

// Dates returns the stored dates of the historical product, rising. The slice is shared and must not be
// changed.
func (p *past) Dates() []string { return *p.dates.Load() }

// Historical returns the stored answer of a date of the historical product; an empty date is the newest. It
// reads the file only when the date is indexed and not in memory.
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

// readHistorical reads the file of a date and keeps the answer in memory, unless the date was saved meanwhile.
func (p *past) readHistorical(date string) (*Snapshot, error) {
	before := p.version(date)
	snapshot, err := p.read(date)
	if errors.Is(err, ErrTorn) || errors.Is(err, ErrNewerFormat) || errors.Is(err, ErrNoSnapshot) {
		return nil, ErrNoSnapshot
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBusy, err)
	}
	p.renewing.Lock()
	defer p.renewing.Unlock()
	if p.versions[date]+p.forgets == before {
		p.history.Set(date, snapshot, snapshot.Cost())
	}
	return snapshot, nil
}

func (p *past) version(date string) int {
	p.renewing.Lock()
	defer p.renewing.Unlock()
	return p.versions[date] + p.forgets
}

// forget lets every answer be read again, those too whose files are being read.
func (p *past) forget() {
	p.renewing.Lock()
	defer p.renewing.Unlock()
	p.forgets++
	for _, date := range p.Dates() {
		p.reads.Forget(date)
		p.history.Del(date)
	}
	p.history.Wait()
	p.newest.Store(nil)
}

// renew makes a snapshot the answer of its date, for requests that come and for those under way; the date is known.
// Ristretto applies a first Set in the background, also after a later Del: the Wait lets no older answer return.
func (p *past) renew(date string, snapshot *Snapshot) {
	p.renewing.Lock()
	defer p.renewing.Unlock()
	p.versions[date]++
	p.reads.Forget(date)
	p.history.Del(date)
	p.history.Wait()
	if dates := p.Dates(); len(dates) > 0 && date == dates[len(dates)-1] {
		p.newest.Store(&dated{date, snapshot})
	}
}
