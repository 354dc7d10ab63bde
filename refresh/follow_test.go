package refresh_test

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh"
	"strikecache/refresh/fleet"
	"strikecache/refresh/product"
	"strikecache/snapshots"
)

// carried gives a follower the files of a refresher and makes the refresher's answers current there.
func carried(t *testing.T, from, to *rig) {
	t.Helper()
	for _, path := range from.store.Paths() {
		file, digest, err := from.store.Bytes(path)
		must(t, err)
		if err := refresh.Member(to.Refresher).Accept(path, digest, file); err != nil && !errors.Is(err, snapshots.ErrOlder) {
			t.Fatal(err)
		}
	}
	must(t, refresh.Member(to.Refresher).Apply(refresh.Member(from.Refresher).Serving()))
}

// equal fails the test unless two processes serve the same bytes, of every resource, variant and coding.
func equal(t *testing.T, when string, a, b *rig) {
	t.Helper()
	bodies := 0
	for _, resource := range refresh.Resources(underlyings) {
		one, other := a.store.Current(resource), b.store.Current(resource)
		if one == nil || other == nil || !slices.Equal(one.Names(), other.Names()) {
			t.Fatalf("%s: %s: editions %v and %v", when, resource, one, other)
		}
		var same func(name string, x, y *snapshots.Snapshot)
		same = func(name string, x, y *snapshots.Snapshot) {
			for _, form := range []string{"csv", "line"} {
				if f, g := x.Form(form), y.Form(form); (f == nil) != (g == nil) {
					t.Errorf("%s: %s %s: one has no %s", when, resource, name, form)
				} else if f != nil {
					same(name+" "+form, f, g)
				}
			}
			if x.Lines != y.Lines {
				t.Errorf("%s: %s %s: %q and %q", when, resource, name, x.Lines, y.Lines)
			}
			for c := range snapshots.Codings {
				if bodies++; !bytes.Equal(x.Body(c), y.Body(c)) || x.ETag(c) != y.ETag(c) || x.LastModified() != y.LastModified() {
					t.Errorf("%s: %s %s differs in %s: freshness %+v and %+v", when, resource, name, c, x.Meta.Freshness, y.Meta.Freshness)
				}
			}
		}
		same("by default", one.Default, other.Default)
		for name, s := range one.Variants {
			same(name, s, other.Variants[name])
		}
	}
	if bodies < 400 {
		t.Errorf("%s: only %d bodies", when, bodies)
	}
}

// A follower serves the bytes of the refresher: fresh, stale, closed, and an answer that was computed again after a start.
func TestAFollowerServesTheSameBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newRig(t, t.TempDir(), "2026-11-20 11:00"), newRig(t, t.TempDir(), "2026-11-20 09:00")
		if err := refresh.Member(b.Refresher).Join(refresh.Member(a.Refresher).Origin()); err != nil || !b.Now().Equal(a.Now()) {
			t.Fatalf("the follower's clock shows %s, the refresher's %s: %v", b.Now(), a.Now(), err)
		}
		for _, sum := range []string{"", "x"} { // forged: no refresher names an answer in this way
			must(t, refresh.Member(b.Refresher).Apply(map[string]fleet.Served{product.GammaResource: {SHA256: sum}}))
			if b.store.Current(product.GammaResource) != nil {
				t.Errorf("%q is served", sum)
			}
		}
		a.once()
		carried(t, a, b)
		equal(t, "fresh", a, b)
		a.market.Fail("", "html")
		for range 4 {
			time.Sleep(time.Minute)
			for _, job := range []string{"spx", "xlf", "sectors", "vix"} {
				refresh.RunJob(a.Refresher, t.Context(), job)
			}
		}
		if !a.meta(product.GammaResource).Freshness.Stale() {
			t.Fatal("gamma is not stale: the test shows nothing")
		}
		carried(t, a, b)
		equal(t, "stale", a, b)
		time.Sleep(7 * time.Hour) // the session is over
		must(t, refresh.Reseal(a.Refresher))
		carried(t, a, b)
		equal(t, "closed", a, b)

		refresh.SetMethod(t, product.GammaResource, "gex/next")
		again := a.again("2026-11-22 12:00").restored()
		again.once()
		if m := again.meta(product.GammaResource).Receipt.Method; m != "gex/next" {
			t.Fatalf("method %s: the test shows nothing", m)
		}
		must(t, refresh.Member(b.Refresher).Join(refresh.Member(again.Refresher).Origin()))
		carried(t, again, b)
		equal(t, "computed again", again, b)

		b = b.again("2026-11-22 12:00")
		must(t, b.Restore())
		equal(t, "the follower restarted from its own disk", again, b)
	})
}

// A follower that hears of no refresher judges its answers by their age. After two minutes it says that nobody refreshes. It
// never makes a stale answer fresh.
func TestNoRefresher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newRig(t, t.TempDir(), "2026-11-20 15:00"), newRig(t, t.TempDir(), "2026-11-20 15:00")
		a.once()
		carried(t, a, b)
		said := func(when, state, reason string) {
			t.Helper()
			for _, resource := range refresh.Resources(underlyings) {
				f := b.meta(resource).Freshness
				got := ""
				if f.Reason != nil {
					got = *f.Reason
				}
				if f.State != state || got != reason {
					t.Errorf("%s: %s is %s, %q", when, resource, f.State, got)
				}
			}
		}
		watch := func(since time.Time) {
			t.Helper()
			must(t, refresh.Member(b.Refresher).UpdateFreshness(since))
		}
		watch(time.Time{})
		said("with a refresher", "fresh", "")
		lost, market := time.Now(), b.Now()
		time.Sleep(119 * time.Second)
		watch(lost)
		said("for less than two minutes", "fresh", "")
		time.Sleep(2 * time.Second)
		watch(lost)
		said("for more than two minutes", "stale", "no_refresher")
		if since := b.meta(product.GammaResource).Freshness.Since; !since.Equal(market.Truncate(time.Second)) {
			t.Errorf("since %s, the refresher was lost at %s", since, market)
		}
		watch(time.Time{})
		said("heard of again, not yet published", "stale", "no_refresher")
		a.once()
		carried(t, a, b)
		equal(t, "published", a, b)

		// A stale answer stays as it is.
		a.market.Fail("", "html")
		for range 3 {
			refresh.RunJob(a.Refresher, t.Context(), "spx")
		}
		carried(t, a, b)
		watch(time.Now().Add(-time.Minute))
		if !b.meta(product.GammaResource).Freshness.Stale() {
			t.Fatal("gamma is not stale")
		}
		equal(t, "stale, and cut off", a, b)
		a.market.ClearFaults()

		// Cut off at the end of the window, for less than two minutes: the answers are closed.
		time.Sleep(ny(t, "2026-11-20 16:31").Sub(b.Now()))
		a.once()
		carried(t, a, b)
		said("at the end of the window", "fresh", "")
		lost = time.Now()
		time.Sleep(100 * time.Second)
		watch(lost)
		said("after the window", "closed", "outside_session")
	})
}

// The resources of an underlying that the upstream does not have are not offered, and no member waits for them. The others go on. When the
// upstream has a chain no more, a member says what the refresher says: the answers to this chain alone are stale.
func TestAFollowerOfAChainThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &withoutChain{name: xlfDocument}
		a := newRig(t, t.TempDir(), "2026-11-20 11:00", func(c *refresh.Config) { source.Source, c.Source.Source = c.Source.Source, source })
		b := newRig(t, t.TempDir(), "2026-11-20 11:00", func(c *refresh.Config) { c.Lease = func() bool { return false } })
		round := func(offered bool, jobs ...string) {
			t.Helper()
			for _, job := range jobs {
				refresh.RunJob(a.Refresher, t.Context(), job)
			}
			carried(t, a, b)
			offers := a.Offers()
			if _, waits := offers["gex/xlf"]; waits != offered || !offers[product.GammaResource] || !offers[product.FlowResource] {
				t.Errorf("offered %v", offers)
			}
		}
		round(false, "spx", "xlf", "sectors", "vix")
		if !maps.Equal(b.Offers(), a.Offers()) {
			t.Errorf("the member waits for %v, the refresher for %v", b.Offers(), a.Offers())
		}
		time.Sleep(50 * time.Minute)
		round(false, "spx", "xlf")
		if n := strings.Count(a.log.String(), "not asked again"); n != 1 {
			t.Errorf("named %d times within an hour: %s", n, a.log)
		}
		source.listed.Store(true)
		time.Sleep(61 * time.Minute)
		round(true, "spx", "xlf", "sectors", "vix")
		equal(t, "listed", a, b)
		a.market.Fail(source.name, "html") // an outage, and then the chain is gone
		round(true, "xlf", "xlf", "xlf")
		if !a.meta(product.UnderlyingsResource).Freshness.Stale() {
			t.Fatal("the outage makes nothing stale: the test shows nothing")
		}
		a.market.ClearFaults()
		source.listed.Store(false)
		time.Sleep(40 * time.Minute)
		round(false, "spx", "xlf")
		for _, wait := range []time.Duration{time.Minute, time.Hour} { // the second is before the chain is asked for again
			time.Sleep(wait)
			round(false, "spx")
			if q := a.meta(product.FlowResource).Quality; !bytes.Contains(q, []byte(`"symbol":"SPX"`)) || bytes.Contains(q, []byte(`"symbol":"XLF"`)) {
				t.Errorf("after %s the flow of all rests on %s", wait, q)
			}
		}
		for resource, stale := range map[string]bool{product.UnderlyingsResource: false, product.FlowResource: false, "gex/xlf": true} {
			if f := a.meta(resource).Freshness; f.Stale() != stale {
				t.Errorf("%s: %+v", resource, f)
			}
		}
		equal(t, "gone", a, b)
		source.listed.Store(true)
		source.unchanged.Store(true) // the upstream has the chain again, unchanged
		time.Sleep(61 * time.Minute)
		round(true, "xlf")
	})
}

// A process that has refreshed may have answers that the fleet does not: it does not go back.
func TestAFollowerDoesNotGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newRig(t, t.TempDir(), "2026-11-20 11:00"), newRig(t, t.TempDir(), "2026-11-20 11:05")
		a.once()
		b.once()
		before := b.meta(product.GammaResource).AsOf
		carried(t, a, b)
		if at := b.meta(product.GammaResource).AsOf; !at.Equal(before) {
			t.Errorf("gamma went from %s to %s", before, at)
		}
		time.Sleep(10 * time.Minute)
		a.once()
		carried(t, a, b)
		equal(t, "newer answers", a, b)
	})
}
