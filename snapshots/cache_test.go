package snapshots

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// numbered is an edition that says which generation it belongs to.
func numbered(n int) *Edition {
	return &Edition{Default: &Snapshot{Meta: Meta{RefreshSeconds: n}}}
}

func number(e *Edition) int { return e.Default.Meta.RefreshSeconds }

func publish(t testing.TB, s *Store, feed string, editions map[string]*Edition) {
	t.Helper()
	if err := s.Publish(feed, editions); err != nil {
		t.Fatal(err)
	}
}

func TestPublish(t *testing.T) {
	s := open(t, t.TempDir())
	for _, resource := range []string{gamma, pain, vix, "unknown", "", "options"} {
		if e := s.Current(resource); e != nil {
			t.Errorf("%q serves %v at first", resource, e)
		}
	}
	publish(t, s, "options", map[string]*Edition{gamma: numbered(1), pain: numbered(2)})
	publish(t, s, "vix", map[string]*Edition{vix: numbered(3)})
	publish(t, s, "options", map[string]*Edition{gamma: numbered(4)}) // pain keeps its own
	for resource, want := range map[string]int{gamma: 4, pain: 2, vix: 3} {
		if got := s.Current(resource); got == nil || number(got) != want {
			t.Errorf("%s serves %v, want %d", resource, got, want)
		}
	}
	if e := s.Current("unknown"); e != nil {
		t.Errorf("an unknown resource serves %v", e)
	}
}

// A publication that is refused changes nothing, its good part included.
func TestPublishRefuses(t *testing.T) {
	s := open(t, t.TempDir())
	publish(t, s, "options", map[string]*Edition{gamma: numbered(1), pain: numbered(1)})
	for name, c := range map[string]struct {
		feed     string
		resource string
	}{
		"unknown feed": {"none", gamma}, "no feed": {"", gamma}, "unknown resource": {"options", "none"}, "no resource": {"options", ""},
		"resource of another feed": {"options", vix}, "neither": {"none", "none"},
	} {
		if err := s.Publish(c.feed, map[string]*Edition{c.resource: numbered(2), gamma: numbered(2), pain: numbered(2)}); err == nil {
			t.Errorf("%s: published", name)
		}
		if a, b := s.Current(gamma), s.Current(pain); number(a) != 1 || number(b) != 1 || s.Current(c.resource) != nil && c.resource != gamma {
			t.Errorf("%s: %s serves %d, %s %d, %s %v", name, gamma, number(a), pain, number(b), c.resource, s.Current(c.resource))
		}
	}
}

// The editions that were published are the caller's again: changing the map changes no answer.
func TestPublishKeepsNoMap(t *testing.T) {
	s := open(t, t.TempDir())
	editions := map[string]*Edition{gamma: numbered(1)}
	publish(t, s, "options", editions)
	editions[gamma], editions[pain] = numbered(2), numbered(2)
	if number(s.Current(gamma)) != 1 || s.Current(pain) != nil {
		t.Error("the published map is still used")
	}
}

// The first publication and each later one is visible when Publish returns: ristretto alone promises neither.
func TestPublishIsVisibleAtOnce(t *testing.T) {
	o := options(t.TempDir())
	o.Feeds = map[string][]string{}
	for i := range 200 {
		o.Feeds[fmt.Sprint("feed ", i)] = []string{fmt.Sprint("resource ", i)}
	}
	s := openWith(t, o)
	for round := range 10 {
		for i := range 200 {
			resource := fmt.Sprint("resource ", i)
			publish(t, s, fmt.Sprint("feed ", i), map[string]*Edition{resource: numbered(round)})
			if e := s.Current(resource); e == nil || number(e) != round {
				t.Fatalf("%s serves %v in round %d", resource, e, round)
			}
		}
	}
	for i := range 200 {
		if e := s.Current(fmt.Sprint("resource ", i)); e == nil || number(e) != 9 {
			t.Errorf("resource %d serves %v at the end", i, e)
		}
	}
	neverRefused(t, s)
}

// neverRefused says that ristretto kept all that it was given.
func neverRefused(t *testing.T, s *Store) {
	t.Helper()
	m := s.latest.cache.Metrics
	if m.SetsRejected() != 0 || m.SetsDropped() != 0 || m.KeysEvicted() != 0 {
		t.Errorf("the hot cache rejected %d, dropped %d, evicted %d", m.SetsRejected(), m.SetsDropped(), m.KeysEvicted())
	}
}

// All resources of a feed switch together: who reads one and then another never goes back in time, in either
// order, and within one generation all numbers are the same.
func TestGenerationsSwitchTogether(t *testing.T) {
	generations := 5000
	if raceEnabled {
		generations = 2000
	}
	s := open(t, t.TempDir())
	publish(t, s, "options", map[string]*Edition{gamma: numbered(0), pain: numbered(0)})
	var done atomic.Bool
	var wg sync.WaitGroup
	for _, order := range [][2]string{{gamma, pain}, {pain, gamma}} {
		wg.Go(func() {
			for last := 0; !done.Load(); {
				for _, resource := range order {
					n := number(s.Current(resource))
					if n < last {
						t.Errorf("%s is of generation %d after %d was seen", resource, n, last)
						return
					}
					last = n
				}
			}
		})
	}
	wg.Go(func() {
		for !done.Load() {
			g, ok := s.latest.cache.Get("options")
			if !ok || number(g[gamma]) != number(g[pain]) {
				t.Errorf("generation of %v", g)
				return
			}
		}
	})
	for i := 1; i <= generations; i++ {
		publish(t, s, "options", map[string]*Edition{gamma: numbered(i), pain: numbered(i)})
	}
	done.Store(true)
	wg.Wait()
	if number(s.Current(gamma)) != generations || number(s.Current(pain)) != generations {
		t.Error("the last generation is not served")
	}
	neverRefused(t, s)
}

// Two publishers of one feed lose nothing of each other's.
func TestPublishersDoNotLoseUpdates(t *testing.T) {
	s := open(t, t.TempDir())
	var wg sync.WaitGroup
	for _, resource := range []string{gamma, pain} {
		wg.Go(func() {
			for i := range 1000 {
				if err := s.Publish("options", map[string]*Edition{resource: numbered(i)}); err != nil {
					t.Error(err)
				}
				if n := number(s.Current(resource)); n != i {
					t.Errorf("%s serves %d after %d was published", resource, n, i)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestCurrentDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s := open(t, t.TempDir())
	publish(t, s, "options", map[string]*Edition{gamma: numbered(1)})
	for _, resource := range []string{gamma, pain, vix, "unknown"} {
		if n := testing.AllocsPerRun(10_000, func() { s.Current(resource) }); n != 0 {
			t.Errorf("%s: %v allocations", resource, n)
		}
	}
}

// The rival: what the same promise costs without a cache.
func BenchmarkCurrent(b *testing.B) {
	s := open(b, b.TempDir())
	publish(b, s, "options", map[string]*Edition{gamma: numbered(1), pain: numbered(2)})
	var plain atomic.Pointer[map[string]*Edition]
	plain.Store(&map[string]*Edition{gamma: numbered(1), pain: numbered(2), vix: numbered(3)})
	for name, current := range map[string]func(string) *Edition{
		"store":      s.Current,
		"atomic map": func(resource string) *Edition { return (*plain.Load())[resource] },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if current(gamma) == nil {
					b.Fatal("nothing")
				}
			}
		})
		b.Run(name+", parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if current(gamma) == nil {
						b.Error("nothing")
					}
				}
			})
		})
	}
}
