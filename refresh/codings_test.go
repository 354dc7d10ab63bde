package refresh_test

import (
	"testing"

	"strikecache/refresh"
	"strikecache/snapshots"
)

// Every answer has every coding, before and after a restart, except for the rare limits of flow.
func TestCodings(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, dir, "2026-11-20 11:00")
	r.once()
	check := func(when string, store *snapshots.Store) {
		t.Helper()
		rare := 0
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
				whole := resource != refresh.FlowResource || s == e.Default || s == e.Variants["100"]
				if !whole {
					rare++
				}
				if !s.Has(snapshots.Gzip) || s.Has(snapshots.Brotli) != whole || s.Has(snapshots.Zstd) != whole {
					t.Errorf("%s: %s/%s is sealed in br: %t, zstd: %t", when, resource, name, s.Has(snapshots.Brotli), s.Has(snapshots.Zstd))
				}
			}
		}
		if rare == 0 {
			t.Errorf("%s: no limit is rare", when)
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
