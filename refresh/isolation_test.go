package refresh_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"strikecache/refresh"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
)

// faultyProducts are ways in which a product fails.
var faultyProducts = map[string]func(name string) (restore func()){"error": refresh.Break, "panic": refresh.Panic}

// A product that fails takes no answer of another product away: it alone keeps its last answer, which is stale after three failures, and
// the error names it. With the next document that it can take, it is fresh again.
func TestAFailedProductIsAlone(t *testing.T) {
	long(t)
	for how, fail := range faultyProducts {
		for _, broken := range []string{product.GammaResource, product.PainResource, product.FlowResource} {
			play(t, "2026-11-20 11:00", func(t *testing.T, r *rig) {
				r.once()
				of := func(name string) bool { // the broken row has a product of each underlying
					return name == broken || name == strings.Replace(broken, "spx", "xlf", 1)
				}
				restore := fail(broken)
				last := r.store.Current(broken).Default.Data()
				for failures := 1; failures <= 3; failures++ {
					before := map[string]time.Time{}
					for _, name := range refresh.Resources(underlyings) {
						before[name] = r.meta(name).AsOf
					}
					time.Sleep(time.Minute)
					if err := r.RefreshOnce(t.Context()); err == nil || !strings.Contains(err.Error(), broken) {
						t.Fatalf("%s, %s: %v", broken, how, err)
					}
					must(t, refresh.Reseal(r.Refresher))
					for name, asOf := range before {
						m := r.meta(name)
						if moved := m.AsOf.After(asOf); moved == of(name) && !ofSettlements(name) && name != product.UnderlyingsResource && !strings.HasSuffix(name, "/strikes") { // the rows of underlyings are of gex/{u}, strikes has a row for 5 minutes
							t.Errorf("%s fails by %s: %s has a new answer: %v", broken, how, name, moved)
						}
						if stale := m.Freshness.State == "stale"; stale != (of(name) && failures == 3) {
							t.Errorf("%s fails by %s for the %d. time: %s is %s", broken, how, failures, name, m.Freshness.State)
						}
					}
				}
				if reason := r.meta(broken).Freshness.Reason; reason == nil || *reason != string(upstream.Malformed) {
					t.Errorf("%s: stale for %v", broken, reason)
				}
				if !bytes.Equal(r.store.Current(broken).Default.Data(), last) {
					t.Errorf("%s: its last answer has changed", broken)
				}
				restore()
				time.Sleep(time.Minute)
				r.once()
				if m := r.meta(broken); m.Freshness.State != "fresh" || r.clock.Now().Sub(m.AsOf) > 16*time.Minute {
					t.Errorf("%s has not recovered: %s of %s", broken, m.Freshness.State, m.AsOf)
				}
			})
		}
	}
}

// What failed is computed again from the same document: in session from the one that the upstream still has, and in the evening from the
// last one of the session.
func TestAFailedProductIsTriedAgain(t *testing.T) {
	long(t)
	for _, at := range []string{"2026-11-20 11:00", "2026-11-20 17:10"} {
		for job, broken := range map[string]string{"spx": product.GammaResource, "xlf": "gex/xlf", "vix": product.VIXResource} {
			play(t, at, func(t *testing.T, r *rig) {
				restore := refresh.Break(broken)
				if !refresh.RunJob(r.Refresher, t.Context(), job) {
					t.Errorf("%s, %s: the job backs off", at, job)
				}
				restore()
				if r.store.Current(broken) != nil {
					t.Fatalf("%s, %s: the product has not failed", at, job)
				}
				refresh.RunJob(r.Refresher, t.Context(), job)
				r.meta(broken) // there is an answer
				if data := r.store.Current(broken).Default.Data(); job == "vix" && (bytes.Contains(data, []byte(`"spot_basis_pct":null`)) || bytes.Contains(data, []byte(`"cash_regime":null`))) {
					t.Errorf("%s: %s", at, data)
				}
			})
		}
	}
}

// A document of which no product can be computed leaves no trace: not in memory, not in the series, not on the disk. Good documents after
// it are accepted.
func TestADocumentThatFailsLeavesNoTrace(t *testing.T) {
	long(t)
	play(t, "2026-11-20 11:00", func(t *testing.T, r *rig) {
		r.once()
		before, current := tree(t, r.dir), r.store.Current(product.GammaResource)
		var restore []func()
		for _, name := range refresh.Resources(underlyings[:1]) {
			restore = append(restore, refresh.Break(name))
		}
		time.Sleep(25 * time.Second)
		if err := r.RefreshOnce(t.Context()); err == nil || !strings.Contains(err.Error(), "a fault of gex/spx") {
			t.Fatalf("encoding did not fail: %v", err)
		}
		if r.store.Current(product.GammaResource) != current {
			t.Error("a product became current")
		}
		after := tree(t, r.dir)
		for _, name := range slices.Sorted(maps.Keys(after)) {
			if !bytes.Equal(before[name], after[name]) {
				t.Errorf("%s was written", name)
			}
		}
		if got := refresh.Accepted(r.Refresher, upstream.Options("_SPX")); got != current.Default.Meta.Receipt.InputSHA256[0] {
			t.Error("the chain was remembered")
		}
		for _, f := range restore {
			f()
		}
		time.Sleep(25 * time.Second)
		r.once()
		if r.store.Current(product.GammaResource) == current {
			t.Error("a good document was not accepted afterwards")
		}
	})
}
