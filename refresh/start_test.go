package refresh_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"strikecache/refresh"
	"strikecache/snapshots"
)

// A start computes from the stored documents, and keeps a stored answer only if method and data are equal. So a new method,
// a new configuration and a product that was not stored are served without a new document. The files of a past date stay as
// they are.
func TestComputeThenCompare(t *testing.T) {
	long(t)
	for _, day := range []struct {
		name, restart string
		past          bool
	}{{"the same day", "2026-11-20 17:20", false}, {"two days later", "2026-11-22 12:00", true}} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			r := newRig(t, dir, "2026-11-20 17:10")
			r.once()
			r.close()
			date := filepath.Join(dir, "simulated", "2026-11-20")
			start := func(change ...func(*refresh.Config)) *rig {
				t.Helper()
				again := newRig(t, dir, day.restart, change...)
				again.market.Fail("", faultHTMLPage, -1) // no document can be had
				again.restored()
				return again
			}
			before := tree(t, date)
			unchanged := func(what string, except ...string) {
				t.Helper()
				now := tree(t, date)
				for _, name := range except {
					delete(now, name)
				}
				for name, body := range before {
					if !slices.Contains(except, name) && !bytes.Equal(body, now[name]) {
						t.Errorf("%s, %s: %s was changed", day.name, what, name)
					}
				}
			}

			same := start()
			if !day.past {
				equal(t, "restarted", r, same)
			}
			first := map[string]*snapshots.Snapshot{}
			for _, name := range allResources[:5] {
				first[name] = same.store.Current(name).Default
				if got := first[name].Meta.ComputedAt; !got.Equal(ny(t, "2026-11-20 17:10")) {
					t.Errorf("%s, unchanged: %s was computed at %s", day.name, name, got)
				}
			}
			same.close()
			unchanged("unchanged")

			other := start(func(c *refresh.Config) { c.RiskFreeRate = 0.05 })
			if bytes.Equal(first[refresh.GammaResource].Data(), other.store.Current(refresh.GammaResource).Default.Data()) {
				t.Errorf("%s: another rate has the same gamma exposure", day.name)
			}
			if other.meta(refresh.PainResource).ComputedAt != first[refresh.PainResource].Meta.ComputedAt {
				t.Errorf("%s: max pain, which has no rate, was sealed again", day.name)
			}
			other.close()
			if day.past {
				unchanged("another rate")
			}

			refresh.SetMethod(t, refresh.PainResource, "maxpain/test")
			method := start()
			if got := method.meta(refresh.PainResource).Receipt.Method; got != "maxpain/test" {
				t.Errorf("%s: max pain is of method %s", day.name, got)
			}
			method.close()
			if day.past {
				unchanged("another method")
			}

			if err := os.Remove(filepath.Join(date, snapshots.FileName(refresh.PainResource))); err != nil {
				t.Fatal(err)
			}
			missing := start()
			if got := missing.store.Current(refresh.PainResource); got == nil || !got.Default.Meta.AsOf.Equal(first[refresh.GammaResource].Meta.AsOf) {
				t.Errorf("%s: max pain, which was not stored, is not served", day.name)
			}
			missing.close()
		})
	}
}
