package refresh_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"strikecache/refresh"
	"strikecache/refresh/product"
	"strikecache/snapshots"
)

// A start computes from the stored documents, and keeps a stored answer only if method and data are equal. So a new method,
// a new configuration and a product that was not stored are served without a new document, and the table of underlyings has the row of
// each gex/{u} that is served, also when the table is lost. The files of a past date stay as they are, and so does the series.
func TestComputeThenCompare(t *testing.T) {
	long(t)
	for _, day := range []struct {
		name, restart string
		past          bool
	}{{"the same day", "2026-11-20 17:20", false}, {"two days later", "2026-11-22 12:00", true}} {
		play(t, "2026-11-20 17:10", func(t *testing.T, r *rig) {
			r.once()
			r.close()
			date := filepath.Join(r.dir, "simulated", "2026-11-20")
			last := r
			start := func(change ...func(*refresh.Config)) *rig {
				t.Helper()
				last = last.again(day.restart, change...)
				last.market.Fail("", faultHTMLPage, -1) // no document can be had
				return last.restored()
			}
			before := tree(t, date)
			unchanged := func(what string) {
				t.Helper()
				now := tree(t, date)
				for name, body := range before {
					if !bytes.Equal(body, now[name]) {
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
			unchanged("unchanged")

			other := start(func(c *refresh.Config) { c.RiskFreeRate = 0.05 })
			if bytes.Equal(first[product.GammaResource].Data(), other.store.Current(product.GammaResource).Default.Data()) {
				t.Errorf("%s: another rate has the same gamma exposure", day.name)
			}
			if other.meta(product.PainResource).ComputedAt != first[product.PainResource].Meta.ComputedAt {
				t.Errorf("%s: max pain, which has no rate, was sealed again", day.name)
			}
			if series := other.store.Current(product.SeriesResource).Default; day.past && !bytes.Equal(series.Data(), first[product.SeriesResource].Data()) {
				t.Errorf("the series of a closed date is now\n%s", series.Data())
			}
			checkTable(other, underlyings)
			if day.past {
				unchanged("another rate")
			}

			refresh.SetMethod(t, product.PainResource, "maxpain/test")
			method := start()
			if got := method.meta(product.PainResource).Receipt.Method; got != "maxpain/test" {
				t.Errorf("%s: max pain is of method %s", day.name, got)
			}
			if day.past {
				unchanged("another method")
			}

			must(t, os.Remove(filepath.Join(date, snapshots.FileName(product.PainResource))),
				os.Remove(filepath.Join(r.dir, "simulated", snapshots.CurrentPath(product.UnderlyingsResource))))
			missing := start()
			checkTable(missing, underlyings)
			if got := missing.store.Current(product.PainResource); got == nil || !got.Default.Meta.AsOf.Equal(first[product.GammaResource].Meta.AsOf) {
				t.Errorf("%s: max pain, which was not stored, is not served", day.name)
			}
		})
	}
}
