package refresh

import (
	"log/slog"
	"maps"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/fleet"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
)

// The next change of a resource is two seconds after the next run of a job whose documents it rests on, or may come at any time from a
// watched folder. Nothing is allocated for it.
func TestNextChange(t *testing.T) {
	open := func(clock feed.Clock, source upstream.Source) *Refresher {
		return New(Config{
			Source: Raw(source), Clock: clock, Calendar: cal, ChainEvery: 25 * time.Second, TurnEvery: 10 * time.Second,
			Underlyings: []string{"SPX", "XLF", "SPY"}, Log: slog.New(slog.DiscardHandler),
		})
	}
	r, folder := open(feed.MachineClock(), noSource{}), open(feed.MachineClock(), noFolder{})
	for _, c := range []struct{ now, resource, next, watched string }{
		{"11:00:07", product.GammaResource, "11:00:27", "11:00:12"}, {"11:00:26.9", product.TrackResource, "11:00:27", "11:00:27"}, {"11:00:27", product.PainResource, "11:00:52", "11:00:32"},
		{"11:00:07", "gex/xlf", "11:00:22", "11:00:12"}, {"11:00:22", "gex/xlf", "11:00:42", "11:00:27"}, {"11:00:07", "gex/spy", "11:00:12", "11:00:12"},
		{"11:00:12", product.FlowResource, "11:00:22", "11:00:17"}, {"11:00:22", product.UnderlyingsResource, "11:00:27", "11:00:27"}, // of each chain
		{"11:00:07", product.SectorsResource, "11:01:02", "11:00:12"}, {"11:00:07", product.VIXResource, "11:05:02", "11:00:12"},
		{"09:30:02", product.GammaResource, "09:35:02", "09:30:07"}, {"09:43:00", product.GammaResource, "09:45:02", "09:43:05"}, {"16:31:59", product.GammaResource, "16:32:02", "16:32:02"},
		{"11:00:07", "none", "", "11:00:12"},
	} {
		now, err := time.ParseInLocation("2006-01-02 15:04:05", "2026-11-20 "+c.now, compute.NewYork)
		must(t, err)
		for of, want := range map[*Refresher]string{r: c.next, folder: c.watched} {
			if at := of.NextChange(c.resource, now); want == "" && !at.IsZero() || want != "" && !at.Equal(ny(t, "2026-11-20 "+want)) {
				t.Errorf("at %s: %s changes at %s, want %s", c.now, c.resource, at.In(compute.NewYork), want)
			}
		}
		if n := testing.AllocsPerRun(100, func() { r.NextChange(c.resource, now) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
	if at := open(feed.NewClock(ny(t, "2026-11-20 11:00:00"), 0), noSource{}).NextChange(product.GammaResource, time.Now()); !at.IsZero() {
		t.Errorf("while the market's clock stands still, a refresh begins at %s", at)
	}
}

// An edge counts as a member that may refresh.
func TestNextChangeOnAnEdge(t *testing.T) {
	for _, source := range []string{"cboe", "folder"} {
		var changes [2]map[string]time.Time
		for i, edge := range []bool{false, true} {
			f := &Flags{
				SourceFlags:   SourceFlags{Source: source, Folder: t.TempDir(), CboeRequestsPerMinute: 40, CboeBaseURL: "http://127.0.0.1:9"},
				ScheduleFlags: ScheduleFlags{Underlyings: DefaultUnderlyings}, Fleet: fleet.Flags{NATS: "nats://127.0.0.1:9", Edge: edge},
			}
			r, err := f.Open(t.TempDir(), slog.New(slog.DiscardHandler), nil)
			must(t, err)
			changes[i] = map[string]time.Time{}
			for _, resource := range r.Resources() {
				changes[i][resource] = r.NextChange(resource, ny(t, "2026-11-20 11:00:30"))
			}
			must(t, r.Close())
		}
		if !maps.Equal(changes[0], changes[1]) {
			t.Errorf("%s: to a follower\n%v\nto an edge\n%v", source, changes[0], changes[1])
		}
	}
}
