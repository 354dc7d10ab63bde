package compute_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"strikecache/compute"
)

// changesOf returns the exposure of rows now, compared with that of rows before, with r = 0.
func changesOf(t *testing.T, before compute.Underlying, rowsBefore []row, now compute.Underlying, rowsNow []row) (first, second compute.GammaResult) {
	t.Helper()
	first = exposure(t, before, rowsBefore...)
	second = compute.GammaExposure(compute.GammaInput{Chain: build(t, now, rowsNow...), Calendar: cal, Reference: first.State})
	if second.Data.Changes == nil {
		t.Fatalf("changes are null: %v", *second.Quality.ChangesReason)
	}
	return first, second
}

// Two chains in which one thing alone differs: the whole change lands in the part of this thing. The contracts have only
// published volatilities, so F = S, and v = iv·√T. A change of the spot so moves F in proportion, and a change of T keeps σ.
func TestChangesOfOneThing(t *testing.T) {
	const tuesday, wednesday = "2026-08-11T19:00:00Z", "2026-08-12T19:00:00Z"
	book := func(iv, calls float64) []row {
		return []row{
			{"SPX260821P06900000", published(iv, 40)}, {"SPXW260814C07050000", published(iv, calls)},
			{"SPXW260821C07100000", published(iv, 0)}, {"SPXW260918P07000000", published(iv, 7)},
		}
	}
	one := book(0.2, 25)
	listed := append(slices.Clone(one), row{"SPXW260821P06900000", published(0.3, 12)})
	// A call and a put of one strike and equal positions have no net exposure at any spot, T or volatility. So the passage of
	// a day changes only what settles in it.
	balanced := []row{{"SPXW260918C07000000", published(0.2, 9)}, {"SPXW260918P07000000", published(0.2, 9)}}
	settling := append([]row{{"SPXW260811C07000000", published(0.2, 30)}}, balanced...)
	for _, c := range []struct {
		part        string
		before, now compute.Underlying
		rows, later []row
	}{
		{"spot", index(7000, tuesday), index(7040, tuesday), one, one},
		{"time", index(7000, tuesday), index(7000, wednesday), one, one},
		{"volatility", index(7000, tuesday), index(7000, tuesday), one, book(0.23, 25)},
		{"open_interest", index(7000, tuesday), index(7000, tuesday), one, book(0.2, 60)},
		{"listed", index(7000, tuesday), index(7000, tuesday), one, listed},
		{"listed", index(7000, tuesday), index(7000, tuesday), listed, one}, // no longer listed
		{"expired", index(7000, tuesday), index(7000, wednesday), settling, balanced},
		{"expired", index(7000, tuesday), index(7000, "2026-08-11T20:00:00Z"), settling, settling}, // still listed at its settlement
		{"none", index(7000, tuesday), index(7000, tuesday), one, one},
	} {
		first, second := changesOf(t, c.before, c.rows, c.now, c.later)
		n := second.Data.Changes.Net
		equal(t, c.part+": from", n.From, *first.Data.Net)
		equal(t, c.part+": to", n.To, *second.Data.Net)
		change := float64(n.To - n.From)
		if c.part != "none" && math.Abs(change) < 1e4 {
			t.Errorf("%s: the net changes by %v dollars only", c.part, change)
		}
		for name, part := range map[string]compute.Dollars{"expired": n.Expired, "spot": n.Spot, "time": n.Time,
			"volatility": n.Volatility, "open_interest": n.OpenInterest, "listed": n.Listed} {
			want := 0.0
			if name == c.part {
				want = change
			}
			nearly(t, c.part+": "+name, part, want, 1e-12*float64(*second.Data.Gross)) // F0·(S/S0) is not S to the last bit
		}
	}
}

// Without a reference, or without a net on one side, changes are null with a reason. A contradiction between quotes and index
// does not withhold the changes of open interest, which do not depend on the spot.
func TestUnknownChanges(t *testing.T) {
	now := index(7000, "2026-08-11T19:00:00Z")
	unused := []row{{"SPXW260821C07000000", published(0.2, 0)}}
	used := []row{{"SPXW260821C07000000", published(0.2, 8)}}
	for _, c := range []struct {
		reason      string
		before, now []row
		spotBefore  float64 // published: the quotes of the contradicting rows are those of 7000
		spotNow     float64
		changes     int // of open interest
	}{
		{"net_unknown", used, unused, 7000, 7000, 1},
		{"reference_net_unknown", unused, used, 7000, 7000, 1},
		{"net_unknown", fitted(8), fitted(9), 7000, 7800, 1},
		{"reference_net_unknown", fitted(8), fitted(9), 7800, 7000, 1},
	} {
		first := exposure(t, index(c.spotBefore, "2026-08-11T19:00:00Z"), c.before...)
		u := now
		u.Spot = c.spotNow
		got := compute.GammaExposure(compute.GammaInput{Chain: build(t, u, c.now...), Calendar: cal, Reference: first.State})
		isNull(t, c.reason, got.Data.Changes)
		text(t, "reason", got.Quality.ChangesReason, c.reason)
		equal(t, c.reason+": changes of open interest", len(*got.Data.OIChanges), c.changes)
	}
	first := exposure(t, now, used...)
	isNull(t, "changes", first.Data.Changes)
	text(t, "reason", first.Quality.ChangesReason, "no_reference")
	if first.Data.OIChanges != nil || !strings.Contains(string(marshal(t, first.Data)), `"changes":null,"open_interest_changes":null,`) {
		t.Errorf("without a reference: %s", marshal(t, first.Data))
	}
}

// fitted are contracts whose forwards imply a spot of 7000; the first one has the given open interest.
func fitted(openInterest float64) []row {
	var rows []row
	for _, series := range []string{"SPXW260814", "SPXW260817", "SPXW260819", "SPXW260821", "SPXW260824", "SPXW260826"} {
		for _, k := range []float64{6990, 7000, 7010} {
			rows = append(rows, row{symbolOf(series+"C", k), quoted(60+7000-k, 61+7000-k, openInterest)}, row{symbolOf(series+"P", k), quoted(60, 61, 5)})
			openInterest = 5
		}
	}
	return rows
}
