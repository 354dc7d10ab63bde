package refresh

import (
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/compute"
	"strikecache/refresh/fleet"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// The next change of a resource is the next run of a job whose documents it rests on. A member of a fleet that does not refresh
// knows the schedule alone, and when the answer that it serves was computed.
func TestNextChange(t *testing.T) {
	store := newStore(t, "cboe")
	computed := func(clock string) {
		t.Helper()
		s, err := snapshots.Seal([]byte(`{}`), snapshots.Meta{ComputedAt: ny(t, "2026-11-20 "+clock), Quality: []byte(`{}`)})
		if err == nil {
			e := &snapshots.Edition{Default: s}
			err = store.Publish(map[string]*snapshots.Edition{GammaResource: e, FlowResource: e, SectorsResource: e, VIXResource: e})
		}
		must(t, err)
	}
	follows := false
	r := &Refresher{cfg: Config{
		Clock: MachineClock(), Calendar: cal, ChainEvery: 25 * time.Second, TurnEvery: 10 * time.Second, Underlyings: []string{"SPX", "XLF"}, QuotesEvery: time.Minute,
		Lease: func() bool { return !follows }, Store: store,
	}}
	r.jobs = newJobs(&r.cfg)
	now := ny(t, "2026-11-20 11:00:07")
	check := func(now string, want map[string]string) {
		t.Helper()
		for resource, clock := range want {
			if at := r.NextChange(resource, ny(t, "2026-11-20 "+now)); !at.Equal(ny(t, "2026-11-20 "+clock)) {
				t.Errorf("at %s: %s changes at %s, want %s", now, resource, at.In(compute.NewYork), clock)
			}
		}
	}
	check("11:00:07", map[string]string{GammaResource: "11:00:12", FlowResource: "11:00:12", VIXResource: "11:00:12"}) // no run has ended
	for job, at := range map[string]string{"spx": "11:00:25", "xlf": "11:00:10", "sectors": "11:01:00", "vix": "11:05:00"} {
		r.changes[job].expect(ny(t, "2026-11-20 "+at))
	}
	check("11:00:07", map[string]string{
		GammaResource: "11:00:25", TrackResource: "11:00:25", SeriesResource: "11:00:25", MatrixResource: "11:00:25", PainResource: "11:00:25",
		FlowResource: "11:00:10", SectorsResource: "11:01:00", VIXResource: "11:05:00",
	})
	check("11:00:12", map[string]string{GammaResource: "11:00:25", FlowResource: "11:00:10"}) // the flow job runs
	check("11:00:20", map[string]string{FlowResource: "11:00:10"})
	check("11:00:21", map[string]string{FlowResource: "11:00:26"}) // nobody knows when it ends: look again
	if n := testing.AllocsPerRun(100, func() { r.NextChange(FlowResource, now) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	r.cfg.Version = func(upstream.Name) string { return "" } // documents come at any time
	check("11:00:07", map[string]string{GammaResource: "11:00:12", FlowResource: "11:00:10"})
	r.cfg.Version = nil
	r.changes["spx"].expect(time.Time{})
	if at := r.NextChange(GammaResource, ny(t, "2026-11-20 11:00:07")); at.Year() != 2262 {
		t.Errorf("a refresh that never begins begins at %s", at)
	}
	follows = true
	computed("09:30:06")
	check("09:35:09", map[string]string{GammaResource: "09:35:00", VIXResource: "09:35:00"}) // outside the window, an answer may be 10 seconds late
	check("09:35:10", map[string]string{GammaResource: "09:40:00", VIXResource: "09:40:00"})
	computed("11:00:05")
	check("11:00:24", map[string]string{GammaResource: "11:00:25", SectorsResource: "11:01:00", VIXResource: "11:05:00"})
	check("11:00:27", map[string]string{GammaResource: "11:00:25", FlowResource: "11:00:25"})
	check("11:00:35", map[string]string{GammaResource: "11:00:25"})
	check("11:00:36", map[string]string{GammaResource: "11:00:41"})
	check("11:00:38", map[string]string{GammaResource: "11:00:50"}) // half of the interval is over
	check("11:01:20", map[string]string{SectorsResource: "11:01:25"})
	if n := testing.AllocsPerRun(100, func() { r.NextChange(FlowResource, now) }); n != 0 {
		t.Errorf("%v allocations of a member that does not refresh", n)
	}
	computed("11:00:26")
	check("11:00:28", map[string]string{GammaResource: "11:00:50", FlowResource: "11:00:30"})
	check("09:44:30", map[string]string{GammaResource: "09:45:00", VIXResource: "09:45:00"})
	r.cfg.Clock = NewClock(ny(t, "2026-11-20 11:00:00"), 0)
	r.jobs = newJobs(&r.cfg)
	if at := r.NextChange(GammaResource, time.Now()); at.Year() != 2262 {
		t.Errorf("while the market's clock stands still, a refresh begins at %s", at)
	}
}

// An edge counts as a member that may refresh.
func TestNextChangeOnAnEdge(t *testing.T) {
	for _, source := range []string{"cboe", "folder"} {
		var changes [2][]string
		for i, edge := range []bool{false, true} {
			f := &Flags{
				SourceFlags:   SourceFlags{Source: source, Folder: t.TempDir(), CboeRequestsPerMinute: 40, CboeBaseURL: "http://127.0.0.1:9"},
				ScheduleFlags: ScheduleFlags{Underlyings: DefaultUnderlyings}, Fleet: fleet.Flags{NATS: "nats://127.0.0.1:9", Edge: edge},
			}
			r, err := f.Open(t.TempDir(), slog.New(slog.DiscardHandler), nil)
			must(t, err)
			for _, resource := range r.Resources() {
				changes[i] = append(changes[i], resource+r.NextChange(resource, ny(t, "2026-11-20 11:00:30")).String())
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		if !slices.Equal(changes[0], changes[1]) {
			t.Errorf("%s: to a follower\n%v\nto an edge\n%v", source, changes[0], changes[1])
		}
	}
}

// After a run, the next change is expected as long after the beginning of the next run as the answers of this one came, at most ten
// seconds.
func TestNextChangeAfterPublication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(ny(t, "2026-11-20 11:00:00")))
		n := nextChange{schedule: schedule{MachineClock(), cal, 25 * time.Second, 0}}
		n.published() // the first run fetches more than the others
		for _, run := range []struct {
			begins string
			takes  time.Duration
			next   string
		}{{"11:00:00", 2 * time.Second, "11:00:27"}, {"11:00:25", time.Minute, "11:01:50"}} {
			time.Sleep(time.Until(ny(t, "2026-11-20 "+run.begins)))
			n.began = time.Now()
			time.Sleep(run.takes)
			n.published()
			if at := time.Unix(0, n.at.Load()); !at.Equal(ny(t, "2026-11-20 "+run.next)) {
				t.Errorf("after a run of %s at %s, the next change comes at %s, want %s", run.takes, run.begins, at.In(compute.NewYork), run.next)
			}
		}
	})
}
