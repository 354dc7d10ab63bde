package process

import (
	"bufio"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"strikecache/snapshots"
)

// sender is the [snapshots.Follower] that tells another process. It keeps what has changed since it told last, which
// is bounded, and not how: a reader that is slow gets the newest.
type sender struct {
	out  *bufio.Writer
	wake chan struct{} // holds one

	mu        sync.Mutex
	published map[string]map[string]*snapshots.Edition // by feed and resource
	dates     *[]string                                // nil: as told
	renewed   map[string]answered
	written   map[string]bool
	observed  []observation
}

type answered struct {
	snapshot *snapshots.Snapshot
	onDisk   bool
}

// maxObserved bounds the runs of jobs that nobody has taken yet; older ones are dropped.
const maxObserved = 1000

func newSender(out io.Writer) *sender {
	s := &sender{out: bufio.NewWriterSize(out, 64<<10), wake: make(chan struct{}, 1)}
	s.reset()
	return s
}

func (s *sender) reset() {
	s.published, s.renewed, s.written = map[string]map[string]*snapshots.Edition{}, map[string]answered{}, map[string]bool{}
	s.dates, s.observed = nil, nil
}

func (s *sender) change(f func()) {
	s.mu.Lock()
	f()
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *sender) Published(feed string, editions map[string]*snapshots.Edition) {
	s.change(func() {
		if s.published[feed] == nil {
			s.published[feed] = map[string]*snapshots.Edition{}
		}
		maps.Copy(s.published[feed], editions)
	})
}

func (s *sender) Listed(dates []string) { s.change(func() { s.dates = &dates }) }

func (s *sender) Renewed(date string, snapshot *snapshots.Snapshot, onDisk bool) {
	s.change(func() { s.renewed[date] = answered{snapshot, onDisk}; delete(s.written, date) })
}

func (s *sender) Written(date string) {
	s.change(func() {
		s.written[date] = true
		if a, ok := s.renewed[date]; ok {
			a.onDisk = true
			s.renewed[date] = a
		}
	})
}

func (s *sender) observe(job, code string, took time.Duration) {
	s.change(func() {
		s.observed = append(s.observed, observation{job, code, int64(took)})
		s.observed = s.observed[max(0, len(s.observed)-maxObserved):]
	})
}

// tell writes one frame, and all before it.
func (s *sender) tell(k kind, head any) error {
	if err := writeFrame(s.out, k, head); err != nil {
		return err
	}
	return s.out.Flush()
}

// flush writes what has changed: dates before their answers, and those before what is current.
func (s *sender) flush() error {
	s.mu.Lock()
	published, dates, renewed, written, observed := s.published, s.dates, s.renewed, s.written, s.observed
	s.reset()
	s.mu.Unlock()
	if dates != nil {
		if err := writeFrame(s.out, frameDates, *dates); err != nil {
			return err
		}
	}
	for _, date := range slices.Sorted(maps.Keys(renewed)) {
		a := renewed[date]
		if err := s.snapshot(a.snapshot); err != nil {
			return err
		}
		if err := writeFrame(s.out, frameRenewed, renewal{date, a.onDisk}); err != nil {
			return err
		}
	}
	for date := range written {
		if err := writeFrame(s.out, frameWritten, date); err != nil {
			return err
		}
	}
	for feed, editions := range published {
		if err := s.publication(feed, editions); err != nil {
			return err
		}
	}
	for _, o := range observed {
		if err := writeFrame(s.out, frameObserved, o); err != nil {
			return err
		}
	}
	return s.out.Flush()
}

func (s *sender) snapshot(sealed *snapshots.Snapshot) error {
	head, bodies, err := sealed.Pack()
	if err != nil {
		return err
	}
	return writeEncoded(s.out, frameSnapshot, head, bodies...)
}

// publication writes editions, each snapshot once.
func (s *sender) publication(feed string, editions map[string]*snapshots.Edition) error {
	numbers := map[*snapshots.Snapshot]int{}
	var failed error
	number := func(sealed *snapshots.Snapshot) int {
		n, ok := numbers[sealed]
		if !ok {
			n = len(numbers)
			numbers[sealed] = n
			if err := s.snapshot(sealed); failed == nil {
				failed = err
			}
		}
		return n
	}
	p := publication{Feed: feed, Editions: map[string]editionRefs{}}
	for resource, e := range editions {
		refs := editionRefs{Default: number(e.Default)}
		for name, variant := range e.Variants {
			if refs.Variants == nil {
				refs.Variants = make(map[string]int, len(e.Variants))
			}
			refs.Variants[name] = number(variant)
		}
		p.Editions[resource] = refs
	}
	if failed != nil {
		return failed
	}
	return writeFrame(s.out, framePublish, p)
}
