package refresh_test

import (
	"testing"

	"strikecache/refresh"
	"strikecache/snapshots"
)

// Every answer has every coding, before and after a restart, except for the rare limits of flow and the rare expirations of max pain.
func TestCodings(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, dir, "2026-11-20 11:00")
	r.once()
	check := func(when string, store *snapshots.Store) {
		t.Helper()
		rare := map[string]int{}
		for _, resource := range refresh.Resources() {
			e := store.Current(resource)
			if e == nil {
				t.Fatalf("%s: %s has no answer", when, resource)
			}
			all := map[string]*snapshots.Snapshot{"": e.Default}
			for name, s := range e.Variants {
				all[name] = s
			}
			for name, s := range all {
				whole := s == e.Default
				switch resource {
				case refresh.FlowResource:
					whole = whole || s == e.Variants["100"]
				case refresh.PainResource:
				default:
					whole = true
				}
				if !whole {
					rare[resource]++
				}
				if !s.Has(snapshots.Gzip) || s.Has(snapshots.Brotli) != whole || s.Has(snapshots.Zstd) != whole {
					t.Errorf("%s: %s/%s is sealed in br: %t, zstd: %t", when, resource, name, s.Has(snapshots.Brotli), s.Has(snapshots.Zstd))
				}
			}
		}
		if rare[refresh.FlowResource] == 0 || rare[refresh.PainResource] == 0 {
			t.Errorf("%s: rare answers: %v", when, rare)
		}
	}
	check("refreshed", r.store)
	r.close()
	again := newRig(t, dir, "2026-11-20 11:01")
	defer again.close()
	if err := again.Restore(); err != nil {
		t.Fatal(err)
	}
	check("restarted", again.store)
}
