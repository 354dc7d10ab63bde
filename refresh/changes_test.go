package refresh_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh/product"
)

// changedGamma is the part of a gamma answer that says what changed since the previous session.
type changedGamma struct {
	Net     float64 `json:"net_gex_dollars"`
	Flip    *float64
	Changes *struct {
		ReferenceAsOf time.Time          `json:"reference_as_of"`
		Net           map[string]float64 `json:"net_gex_dollars"`
	}
	OpenInterest []struct{ From, To float64 } `json:"open_interest_changes"`
}

// After a session, the changes compare with its last snapshot, also after a restart. Without the answer of the session before, the changes
// are null and the quality says why.
func TestChangesSinceThePreviousSession(t *testing.T) {
	long(t)
	play(t, "2026-11-19 14:59", func(t *testing.T, r *rig) {
		unknown := func(what string) (g changedGamma) {
			t.Helper()
			if r.data(product.GammaResource, &g); g.Changes != nil || g.OpenInterest != nil || !strings.Contains(string(r.meta(product.GammaResource).Quality), `"changes_reason":"no_reference"`) {
				t.Errorf("%s: %+v, quality %s", what, g, r.meta(product.GammaResource).Quality)
			}
			return g
		}
		r.once()
		first := unknown("first session")
		r.onceAt("2026-11-19 15:00")
		before, reference := unknown("first session"), r.meta(product.GammaResource).AsOf
		if first.Net == before.Net {
			t.Error("the net does not move: the test shows too little")
		}
		r.onceAt("2026-11-20 08:00") // the open interest of the new session is there
		if r.meta(product.GammaResource).SessionDate != "2026-11-19" {
			t.Error("the quotes of the night are not those of the session before")
		}
		r.onceAt("2026-11-20 11:00")
		var g, again changedGamma
		r.data(product.GammaResource, &g)
		if g.Changes == nil || !g.Changes.ReferenceAsOf.Equal(reference) {
			t.Fatalf("changes %+v, want those since %v", g.Changes, reference)
		}
		n, sum := g.Changes.Net, 0.0
		for _, part := range []string{"expired", "spot", "time", "volatility", "open_interest", "listed"} {
			sum += n[part]
		}
		if n["from"] != before.Net || n["to"] != g.Net || math.Abs(sum-(g.Net-before.Net)) > 4 { // each of 8 figures is rounded
			t.Errorf("parts %v, sum %v, net from %v to %v", n, sum, before.Net, g.Net)
		}
		if n["spot"] == 0 || n["time"] == 0 || n["expired"] == 0 || n["open_interest"] == 0 || len(g.OpenInterest) != 10 {
			t.Errorf("parts %v, changes of open interest %v", n, g.OpenInterest)
		}
		identical(t, r.dir, "2026-11-20", quoted...)
		const chain = "previous/options/_SPX.json" // of the close: that of the night is not stored under the date
		if of := inputOf(t, r.dir, "options/flow/spx", "2026-11-20", chain); of == "" || of != inputOf(t, r.dir, product.GammaResource, "2026-11-20", chain) {
			t.Error("the flow and gamma compare with two chains of the session before")
		}

		restarted := r.again("2026-11-20 11:01").restored()
		equal(t, "restarted", r, restarted)
		restarted.once()
		if restarted.data(product.GammaResource, &again); again.Changes == nil || !again.Changes.ReferenceAsOf.Equal(reference) {
			t.Errorf("after a restart: changes %+v", again.Changes)
		}
		restarted.close()

		must(t, os.Remove(filepath.Join(r.dir, "simulated", "2026-11-19", "gex-spx")))
		r = newRig(t, r.dir, "2026-11-20 11:05").restored()
		r.once()
		unknown("without the answer of the session before")
		identical(t, r.dir, "2026-11-20", quoted...)
	})
}

// A document of the session before that is gone is named in the log once, and not again at each refresh.
func TestDocumentOfTheSessionBeforeIsGone(t *testing.T) {
	long(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), "2026-11-19 15:00")
		r.once()
		must(t, os.RemoveAll(filepath.Join(r.dir, "simulated", "objects")))
		r = r.again("2026-11-20 11:00")
		for range 2 {
			r.once()
			time.Sleep(time.Minute)
		}
		if n := strings.Count(r.log.String(), "document=options/_SPX.json"); n != 1 { // gex/spx and the flow share it
			t.Errorf("named %d times\n%s", n, r.log)
		}
		if !strings.Contains(string(r.meta(product.GammaResource).Quality), `"changes_reason":"no_reference"`) {
			t.Errorf("quality %s", r.meta(product.GammaResource).Quality)
		}
	})
}
