package refresh_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh"
	"strikecache/refresh/product"
	"strikecache/snapshots"
)

// dictionaries returns the current answers that come with deltas, by resource and parameter value.
func dictionaries(t *testing.T, store *snapshots.Store) map[[2]string]*snapshots.Snapshot {
	t.Helper()
	all := map[[2]string]*snapshots.Snapshot{}
	for resource, variants := range product.All([]string{"SPX"}).Deltas() {
		for _, variant := range variants {
			s := store.Current(resource).Default
			if variant != "" {
				s = store.Current(resource).Variants[variant]
			}
			if !s.IsDictionary() || s.Variant() != variant {
				t.Errorf("%s %q is not its own dictionary", resource, variant)
			}
			all[[2]string{resource, variant}] = s
		}
	}
	return all
}

// deltasFrom returns the deltas of the current answers of a store against earlier ones.
func deltasFrom(t *testing.T, store *snapshots.Store, earlier map[[2]string]*snapshots.Snapshot) map[[2]string]*snapshots.Delta {
	t.Helper()
	all := map[[2]string]*snapshots.Delta{}
	for kind, s := range dictionaries(t, store) {
		sum := sha256.Sum256(earlier[kind].Body(snapshots.Identity))
		if d := s.Delta([]byte(":" + base64.StdEncoding.EncodeToString(sum[:]) + ":")); d != nil {
			all[kind] = d
		}
	}
	return all
}

// Every refresh comes with deltas, each clearly smaller than br: of the refresher, of a follower, which makes the same bytes, and
// of both after a start, against the stored answers.
func TestDeltasOfARefresh(t *testing.T) {
	long(t)
	synctest.Test(t, func(t *testing.T) {
		a, b := newRig(t, t.TempDir(), "2026-11-20 11:00"), newRig(t, t.TempDir(), "2026-11-20 11:00")
		must(t, refresh.Member(b.Refresher).Join(refresh.Member(a.Refresher).Origin()))
		a.once()
		carried(t, a, b)
		first := dictionaries(t, a.store)
		for n := range 5 {
			before := dictionaries(t, a.store)
			if n == 2 {
				first = before
			}
			if n == 4 { // both start again
				a, b = a.again("2026-11-20 11:10"), b.again("2026-11-20 11:10")
				must(t, a.Restore(), b.Restore())
			}
			time.Sleep(time.Minute)
			a.once()
			carried(t, a, b)
			of, same := deltasFrom(t, a.store, before), deltasFrom(t, b.store, before)
			if len(of) != 7 || len(same) != 7 {
				t.Errorf("refresh %d: deltas of %v, of a follower %v", n, slices.Collect(maps.Keys(of)), slices.Collect(maps.Keys(same)))
			}
			for kind, d := range of {
				if other := same[kind]; other == nil || other.ETag != d.ETag || !bytes.Equal(other.Body, d.Body) {
					t.Errorf("refresh %d: %s: the delta of a follower differs", n, kind)
				}
				s := dictionaries(t, a.store)[kind]
				if br := len(s.Body(snapshots.Brotli)); len(d.Body) > br*2/3 {
					t.Errorf("refresh %d: %s: %d bytes, in br %d", n, kind, len(d.Body), br)
				}
			}
			if old := deltasFrom(t, a.store, first); n == 3 && len(old) != 7 {
				t.Errorf("deltas against the answers of two refreshes ago: %v", slices.Collect(maps.Keys(old)))
			}
		}
	})
}
