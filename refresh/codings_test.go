package refresh_test

import (
	"strings"
	"testing"

	"strikecache/refresh"
	"strikecache/snapshots"
)

// Every answer has every coding, except for the rare limits of flow and the rare expirations of max pain.
func TestCodings(t *testing.T) {
	r := newRig(t, t.TempDir(), "2026-11-20 11:00", allStrikes)
	defer r.close()
	r.once()
	rare := map[string]int{}
	for _, resource := range refresh.Resources(underlyings) {
		e := r.store.Current(resource)
		all := map[string]*snapshots.Snapshot{"": e.Default}
		for name, s := range e.Variants {
			all[name] = s
		}
		for name, s := range all {
			whole := s == e.Default || !strings.HasSuffix(resource, "-max-pain") && resource != refresh.FlowResource || resource == refresh.FlowResource && name == "100"
			if !whole {
				rare[resource]++
			}
			if !s.Has(snapshots.Gzip) || s.Has(snapshots.Brotli) != whole || s.Has(snapshots.Zstd) != whole {
				t.Errorf("%s/%s is sealed in br: %t, zstd: %t", resource, name, s.Has(snapshots.Brotli), s.Has(snapshots.Zstd))
			}
		}
	}
	if rare[refresh.FlowResource] == 0 || rare[refresh.PainResource] == 0 {
		t.Errorf("rare answers: %v", rare)
	}
}
