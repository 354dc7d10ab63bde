package refresh_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Every underlying has every product. The answers of SPX are the same without other underlyings. The verifier of bench/e2e compares the
// table of underlyings with their answers.
func TestEveryUnderlyingHasEveryProduct(t *testing.T) {
	long(t)
	synctest.Test(t, func(t *testing.T) {
		all := []string{"SPX", "NDX", "SPY", "AAPL"}
		r := newRig(t, t.TempDir(), "2026-11-20 11:00", func(c *refresh.Config) { c.Underlyings = all })
		alone := newRig(t, t.TempDir(), "2026-11-20 11:00", func(c *refresh.Config) { c.Underlyings = one })
		offers := func(want bool) {
			t.Helper()
			if offered := r.Offers(); len(offered) != len(refresh.Resources(all)) || slices.Contains(slices.Collect(maps.Values(offered)), !want) {
				t.Errorf("not all are %v: %v", want, offered)
			}
		}
		offers(false)
		for range 2 {
			r.once()
			alone.once()
			offers(true)
			for _, name := range allResources {
				m := r.meta(name)
				if m.Endpoint != name || m.Source != "simulated" || m.Freshness.State != "fresh" || len(m.Receipt.InputSHA256) == 0 || (m.DelayMinutes == nil) != (name == product.VIXResource) {
					t.Errorf("%s: meta %+v", name, m)
				}
				if lag := r.clock.Now().Sub(m.AsOf); name != product.VIXResource && (lag < 15*time.Minute || lag > 16*time.Minute) {
					t.Errorf("%s: as_of is %v old, quotes are 15 minutes late", name, lag)
				}
			}
			for _, name := range refresh.Resources(one) {
				if name == product.FlowResource || name == product.UnderlyingsResource {
					continue // they rest on all chains
				}
				a, b := alone.store.Current(name), r.store.Current(name)
				if !bytes.Equal(a.Default.Body(snapshots.Identity), b.Default.Body(snapshots.Identity)) || len(a.Variants) != len(b.Variants) {
					t.Errorf("%s differs beside other underlyings", name)
				}
			}
			time.Sleep(2 * time.Minute)
		}
		identical(t, r.dir, "2026-11-20", slices.DeleteFunc(refresh.Resources(all), ofSettlements)...)
	})
}

// With the real client and the default underlyings, the upstream gets at most 20 requests in a minute, and no chain is more than five
// minutes older than the upstream's newest.
func TestFaultDefaultUnderlyings(t *testing.T) {
	long(t)
	length := 6 * time.Minute // more than a round
	if full() {
		length = 2 * time.Hour
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFaultRig(t, t.TempDir(), "2026-11-20 11:00", func(c *refresh.Config, _ *faultyServer) {
			c.TurnEvery, c.Underlyings = 20*time.Second, refresh.DefaultUnderlyings
		})
		defer f.stop()
		f.until(t, "every underlying has an answer", 10*time.Minute, func() bool {
			return !slices.ContainsFunc(refresh.DefaultUnderlyings, func(u string) bool { return f.store.Current("gex/"+strings.ToLower(u)) == nil })
		})
		f.until(t, "a round later", 15*time.Minute, func() bool { return time.Since(f.server.Requests(0)[0].At) > 10*time.Minute })
		begin, oldest := time.Now(), map[string]time.Duration{}
		f.until(t, "the end", length+time.Minute, func() bool {
			for _, u := range refresh.DefaultUnderlyings {
				age := f.clock.Now().Sub(*f.meta("gex/" + strings.ToLower(u)).CapturedAt)
				if oldest[u] = max(oldest[u], age); age > 6*time.Minute { // the upstream makes a document a minute
					t.Fatalf("the chain of %s is %s old", u, age)
				}
			}
			return time.Since(begin) > length
		})
		most, requests := 0, f.server.Requests(0)
		for i := range requests {
			n := 0
			for _, r := range requests[i:] {
				if r.At.Sub(requests[i].At) < time.Minute {
					n++
				}
			}
			most = max(most, n)
		}
		if most > 20 {
			t.Errorf("%d requests in a minute", most)
		}
		t.Logf("figure: in %s at most %d requests a minute; oldest documents %v", length, most, oldest)
	})
}

// withholding is a source that has no chain of XLF any more.
type withholding struct {
	upstream.Source
	withheld bool
}

func (s *withholding) Offers(name upstream.Name) bool {
	return s.Source.Offers(name) && (!s.withheld || name != xlfDocument)
}

// The flow of all leaves out a chain that the source does not have any more.
func TestFlowOfAChainThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &withholding{}
		r := newRig(t, t.TempDir(), "2026-11-20 11:00", func(c *refresh.Config) {
			source.Source = c.Source
			c.Source = source
		})
		r.once()
		for _, want := range []int{2, 1} {
			var quality struct{ Chains []struct{ Symbol string } }
			must(t, json.Unmarshal(r.meta(product.FlowResource).Quality, &quality))
			if len(quality.Chains) != want {
				t.Errorf("%d chains, want %d", len(quality.Chains), want)
			}
			source.withheld = true
			r.onceAt("2026-11-20 11:10")
		}
	})
}
