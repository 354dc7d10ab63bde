package snapshots

import (
	"sync"
	"sync/atomic"
	"testing"
)

// numbered is an edition that says which generation it belongs to.
func numbered(n int) *Edition {
	return &Edition{Default: &Snapshot{Meta: Meta{RefreshSeconds: n}}}
}

func number(e *Edition) int { return e.Default.Meta.RefreshSeconds }

// The map stays the caller's, and resources that are not published keep their editions.
func TestPublish(t *testing.T) {
	s := open(t, t.TempDir())
	editions := map[string]*Edition{gamma: numbered(1), pain: numbered(2)}
	must(t, s.Publish(editions))
	editions[vix] = numbered(9)
	equal(t, s.Current(vix), (*Edition)(nil), "the published map is still used")
	must(t, s.Publish(map[string]*Edition{vix: numbered(3)}))
	must(t, s.Publish(map[string]*Edition{gamma: numbered(4)}))
	for resource, want := range map[string]int{gamma: 4, pain: 2, vix: 3} {
		equal(t, number(s.Current(resource)), want, "%s", resource)
	}
}

// Every publication is visible when Publish returns. Editions that are published
// together switch together: a reader of two of them never sees the second older than the first, in either order. Two
// publishers at the same time lose no edition.
func TestGenerationsSwitchTogether(t *testing.T) {
	const generations = 2000
	s := open(t, t.TempDir())
	must(t, s.Publish(map[string]*Edition{gamma: numbered(0), pain: numbered(0)}))
	var done atomic.Bool
	var readers, writers sync.WaitGroup
	for _, order := range [][2]string{{gamma, pain}, {pain, gamma}} {
		readers.Go(func() {
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
	for _, together := range [][]string{{gamma, pain}, {vix}} {
		writers.Go(func() {
			for i := 1; i <= generations; i++ {
				editions := map[string]*Edition{}
				for _, resource := range together {
					editions[resource] = numbered(i)
				}
				failIf(t, s.Publish(editions) != nil, "not published")
				for _, resource := range together {
					if e := s.Current(resource); e == nil || number(e) != i {
						t.Errorf("%s serves %v after %d was published", resource, e, i)
						return
					}
				}
			}
		})
	}
	writers.Wait()
	done.Store(true)
	readers.Wait()
}
