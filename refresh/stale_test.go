package refresh_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/bench/need"
	"strikecache/refresh"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// What was stale before a restart stays so until it is refreshed: a start alone makes nothing fresh, and a failure tells
// its own reason.
func TestStaleIsInherited(t *testing.T) {
	need.Long(t, oneJobAtATime)
	synctest.Test(t, func(t *testing.T) {
		before := newRig(t, t.TempDir(), "2026-11-20 11:00")
		before.once()
		before.close()
		reason, since := "no_refresher", ny(t, "2026-11-20 10:59")
		inherited := snapshots.Freshness{State: "stale", Reason: &reason, Since: since}
		stale := map[string]snapshots.Freshness{}
		for _, resources := range refresh.Feeds() {
			for _, name := range resources {
				stale[name] = inherited
			}
		}
		r := newRig(t, before.dir, "2026-11-20 11:00")
		defer r.close()
		says := func(when, name, state, reason string, since time.Time) {
			t.Helper()
			f := r.meta(name).Freshness
			told := ""
			if f.Reason != nil {
				told = *f.Reason
			}
			if f.State != state || told != reason || !f.Since.Equal(since) {
				t.Errorf("%s %s: %s %q since %v, want %s %q since %v", name, when, f.State, told, f.Since, state, reason, since)
			}
		}
		all := func(when, state, reason string, since time.Time) {
			t.Helper()
			for name := range stale {
				says(when, name, state, reason, since)
			}
		}
		stored := tree(t, r.dir)["/simulated/2026-11-20/gex-spx"]
		if err := errors.Join(r.Restore(), r.Inherit(stale)); err != nil {
			t.Fatal(err)
		}
		all("restored", "stale", reason, since)
		if string(tree(t, r.dir)["/simulated/2026-11-20/gex-spx"]) != string(stored) {
			t.Error("a stale answer was written to its dated file")
		}
		time.Sleep(25 * time.Second)
		r.market.Fail(upstream.Options("_SPX"), faultHTMLPage, -1)
		if err := r.RefreshOnce(t.Context()); err == nil {
			t.Fatal("a page instead of a chain is accepted")
		}
		failed := r.clock.Now()
		says("that was refreshed", refresh.SectorsResource, "fresh", "", failed)
		says("that was refreshed", refresh.VIXResource, "fresh", "", failed)
		for _, name := range []string{refresh.GammaResource, refresh.SeriesResource, refresh.PainResource} {
			says("that failed", name, "stale", "upstream_html", failed)
		}
		r.market.ClearFaults()
		time.Sleep(25 * time.Second)
		r.once()
		for _, name := range []string{refresh.GammaResource, refresh.SeriesResource, refresh.PainResource} {
			says("refreshed", name, "fresh", "", r.clock.Now())
		}
	})
}
