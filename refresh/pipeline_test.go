package refresh_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/refresh/feed"
	"strikecache/refresh/product"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// underlyings are those of a rig.
var underlyings = []string{"SPX", "XLF"}

var calendar = compute.NewCalendar(nil, nil)

func ny(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.ParseInLocation("2006-01-02 15:04", text, compute.NewYork)
	must(t, err)
	return at.UTC()
}

// rig is a refresher of a simulated market whose clock the test moves.
type rig struct {
	*refresh.Refresher
	t      testing.TB
	store  *snapshots.Store
	market *faultyMarket
	clock  feed.Clock
	dir    string
	log    *bytes.Buffer // warnings and errors
	close  func()        // the test calls it at its end, unless it was called before
}

// newRig runs inside a synctest bubble: its clock is the bubble's.
func newRig(t testing.TB, dir, start string, change ...func(*refresh.Config)) *rig {
	t.Helper()
	clock, log := feed.NewClock(ny(t, start), 1), &bytes.Buffer{}
	market := newFaultyMarket(simulated.Config{Seed: 7, Now: clock.Now, Calendar: calendar, Every: 6})
	cfg := refresh.Config{
		Source: market, SourceName: "simulated", Clock: clock, Calendar: calendar, RiskFreeRate: 0.04,
		ChainEvery: 25 * time.Second, QuotesEvery: time.Minute, TurnEvery: 10 * time.Second, Underlyings: underlyings,
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	cfg.Store, err = snapshots.Open(snapshots.Options{
		Dir: dir, Source: "simulated", DatedProducts: refresh.DatedResources(underlyings), Deltas: product.All(underlyings).Deltas(), HistoryBytes: 1 << 20, Log: cfg.Log,
	})
	must(t, err)
	end := sync.OnceFunc(func() {
		if err := cfg.Store.Close(); err != nil && !errors.Is(err, os.ErrClosed) { // as after the end that Start returns
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return &rig{refresh.New(cfg), t, cfg.Store, market, clock, dir, log, end}
}

// play runs a test with a rig in a bubble.
func play(t *testing.T, start string, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newRig(t, t.TempDir(), start)) })
}

// again closes a rig and starts one on its files, without reading them.
func (r *rig) again(start string, change ...func(*refresh.Config)) *rig {
	r.t.Helper()
	r.close()
	return newRig(r.t, r.dir, start, change...)
}

// played is the past of a rig's market: its last sessions.
type played struct {
	*faultyMarket
	sessions int
}

// Sessions implements [refresh.Past].
func (p played) Sessions(before time.Time) (sessions []compute.Date) {
	today := calendar.SessionDate(before)
	for d := calendar.Back(today, p.sessions); d <= today && d < compute.DateOf(before.UTC()); d = calendar.Next(d) {
		sessions = append(sessions, d)
	}
	return sessions
}

// history lets a rig play its last sessions.
func history(sessions int) func(*refresh.Config) {
	return func(c *refresh.Config) { c.Past = played{c.Source.(*faultyMarket), sessions} }
}

// allStrikes gives the market of a rig chains with all strikes. Otherwise they have a sixth of them.
func allStrikes(c *refresh.Config) {
	m := c.Source.(*faultyMarket)
	m.cfg.Every = 1
	m.Market = simulated.New(m.cfg)
}

// begin runs the refresher until stop is called.
func (r *rig) begin() (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

// run runs the refresher for a time.
func (r *rig) run(d time.Duration) {
	stop := r.begin()
	time.Sleep(d)
	synctest.Wait()
	stop()
}

// once refreshes everything once and fails the test when something fails.
func (r *rig) once() {
	r.t.Helper()
	must(r.t, r.RefreshOnce(r.t.Context()))
}

// onceAt is once at a time of New York.
func (r *rig) onceAt(at string) {
	r.t.Helper()
	time.Sleep(ny(r.t, at).Sub(r.clock.Now()))
	r.once()
}

func (r *rig) meta(resource string) snapshots.Meta {
	r.t.Helper()
	e := r.store.Current(resource)
	if e == nil {
		r.t.Fatalf("%s has no answer", resource)
	}
	return e.Default.Meta
}

func (r *rig) data(resource string, v any) {
	r.t.Helper()
	must(r.t, json.Unmarshal(r.store.Current(resource).Default.Data(), v))
}

var allResources = []string{product.GammaResource, product.SeriesResource, product.PainResource, product.FlowResource,
	product.SectorsResource, product.VIXResource}

// tree reads every file below a directory.
func tree(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = b
		return err
	})
	must(t, err)
	return files
}

// In a night without trade only the clocks of the documents advance. After the settlement file, which is news, nothing is
// published or written, and every answer stays as it is, byte for byte.
func TestNothingIsPublishedInAQuietNight(t *testing.T) {
	long(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), "2026-11-20 17:30") // a Friday
		served, publications := map[string]*snapshots.Edition{}, map[string]int{}
		documents, written := map[string]bool{}, int64(0)
		for round := range 8 {
			r.once()
			for _, name := range refresh.Resources(underlyings) {
				if e := r.store.Current(name); e != served[name] {
					served[name] = e
					publications[name]++
				}
			}
			documents[refresh.Accepted(r.Refresher, spxDocument)] = true
			if files := r.store.Stats().FilesWritten; round < 2 {
				written = files
			} else if files != written {
				t.Errorf("at %s, %d files are written for documents that say nothing new", r.clock.Now(), files-written)
			}
			time.Sleep(2 * time.Hour)
		}
		for name, n := range publications {
			if want := map[bool]int{true: 2, false: 1}[ofSettlements(name)]; n != want {
				t.Errorf("%s was published %d times, want %d", name, n, want)
			}
		}
		if len(documents) < 3 {
			t.Fatalf("the upstream made %d documents", len(documents))
		}
	})
}

// While the schedule stands still, the freshness of the answers is judged all the same.
func TestFreshnessWithoutTheSchedule(t *testing.T) {
	play(t, "2026-11-20 11:00", func(t *testing.T, r *rig) {
		refresh.StopClock(r.clock, ny(t, "2026-11-20 11:00"))
		defer r.begin()()
		for _, c := range []struct{ at, state string }{{"11:00", "fresh"}, {"17:00", "closed"}} {
			refresh.StopClock(r.clock, ny(t, "2026-11-20 "+c.at))
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if state := r.meta(product.GammaResource).Freshness.State; state != c.state {
				t.Errorf("at %s: %s, want %s", c.at, state, c.state)
			}
		}
	})
}

// An answer of the day before that arrives after 00:10 UTC is served. The file of the day and its inputs stay. After a restart
// nothing is sealed again, and a changed rate of funds and stocks is served without a new document.
func TestALateAnswerIsServedAndNotHistory(t *testing.T) {
	long(t)
	play(t, "2026-11-19 16:40", func(t *testing.T, r *rig) {
		r.once()
		stored := tree(t, r.dir)
		historical, err := r.store.Historical(product.GammaResource, "2026-11-19")
		must(t, err)
		r.onceAt("2026-11-19 20:32") // 01:32 UTC: option quotes move at night
		late := r.store.Current(product.GammaResource).Default
		if late.Meta.AsOf != historical.Meta.AsOf || !late.Meta.CapturedAt.After(*historical.Meta.CapturedAt) || *late.Meta.Freshness.Reason != "overnight_quotes" {
			t.Errorf("late answer: %+v", late.Meta)
		}
		if again, err := r.store.Historical(product.GammaResource, "2026-11-19"); err != nil || again != historical {
			t.Errorf("the closed date changed: %v", err)
		}
		now := tree(t, r.dir)
		for name, file := range stored {
			table := strings.HasSuffix(name, "/underlyings") // it rests on no document that could be late
			if strings.HasPrefix(name, "/simulated/2026-11-19/") && !table && !bytes.Equal(now[name], file) {
				t.Errorf("%s, of the closed date, has changed", name)
			}
		}
		identical(t, r.dir, "2026-11-19", refresh.Resources(underlyings)...)
		again := r.again("2026-11-19 20:33").restored()
		equal(t, "restarted", r, again)
		if got, err := again.store.Historical(product.GammaResource, "2026-11-19"); err != nil || !bytes.Equal(got.Body(snapshots.Identity), historical.Body(snapshots.Identity)) {
			t.Errorf("history after the restart: %v", err)
		}
		other := again.again("2026-11-19 20:34", func(c *refresh.Config) { c.RiskFreeRate = 0.06 }).restored()
		if fund := "gex/xlf"; bytes.Equal(other.store.Current(fund).Default.Data(), again.store.Current(fund).Default.Data()) {
			t.Error("the gamma exposure of the old rate is served")
		}
	})
}

// The settlement file of an older day does not replace the curve after a restart.
func TestAnOlderSettlementFile(t *testing.T) {
	play(t, "2026-11-20 18:45", func(t *testing.T, r *rig) {
		r.vixJob("2026-11-20 18:46")
		data := r.store.Current(product.VIXResource).Default.Data()
		r = r.again("2026-11-20 19:00")
		if err := r.Restore(); err != nil { // without its document
			t.Fatal(err)
		}
		r.market.Fail(upstream.Settlement("2026-11-20"), faultStaleSettlement, 1)
		for _, at := range []string{"2026-11-20 19:01", "2026-11-20 19:20"} { // the older file, and the right one
			r.vixJob(at)
			if got := r.store.Current(product.VIXResource).Default; !bytes.Equal(got.Data(), data) || got.Meta.Freshness.State != "closed" {
				t.Errorf("after the restart: %+v: %.200s", got.Meta.Freshness, got.Data())
			}
		}
	})
}

// A use of the disk that never ends, such as a read of the keys, does not keep the process from ending.
func TestADeadDiskDoesNotStopTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		end()
		answer, closed := make(chan struct{}), false
		stop := newRig(t, t.TempDir(), "2026-11-20 11:00").Start(ctx, func() { <-answer }, func() { closed = true })
		began := time.Now()
		if err := stop(); err == nil || closed || time.Since(began) != 30*time.Second {
			t.Errorf("%v after %s, closed: %v", err, time.Since(began), closed)
		}
		close(answer)
		if synctest.Wait(); !closed {
			t.Error("the second function is not called")
		}
	})
}
