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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/bench/testkit"
	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/refresh/feed"
	"strikecache/refresh/product"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

var full, must = testkit.Full, testkit.Must

// long skips a test under the race detector, because one goroutine works on many documents.
func long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("one job at a time, over many documents: not worth its time under the race detector")
	}
}

// underlyings are those of a rig.
var underlyings = []string{"SPX", "XLF"}

const (
	spxDocument = upstream.Name("options/_SPX.json")
	xlfDocument = upstream.Name("options/XLF.json")
)

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
		Source: refresh.Raw(market), SourceName: "simulated", Clock: clock, Calendar: calendar, RiskFreeRate: 0.04,
		ChainEvery: 25 * time.Second, TurnEvery: 10 * time.Second, Underlyings: underlyings,
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	cfg.Store, err = snapshots.Open(snapshots.Options{
		Dir: dir, Source: "simulated", DatedProducts: refresh.DatedResources(underlyings), Deltas: product.All(underlyings).Deltas(), Reopen: product.All(underlyings).Reopen(), HistoryBytes: 1 << 20, Log: cfg.Log,
		Latest: func() time.Time { return clock.Now().Add(feed.MaxAhead) },
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
	return func(c *refresh.Config) { c.Past = played{c.Source.Source.(*faultyMarket), sessions} }
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

// tree reads every file below a directory.
func tree(t testing.TB, dir string) map[string][]byte {
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

// restored restores what a rig finds on its disk.
func (r *rig) restored() *rig {
	r.t.Helper()
	must(r.t, r.Restore())
	return r
}

// one is the underlying of tests that copy or compute many files.
var one = []string{"SPX"}

// withoutChain is a source that does not have a chain until it is listed.
type withoutChain struct {
	upstream.Source
	name      upstream.Name
	listed    atomic.Bool
	unchanged atomic.Bool
	refused   atomic.Int32
}

func (s *withoutChain) Fetch(ctx context.Context, name upstream.Name, since *upstream.Document) (*upstream.Document, error) {
	if name == s.name && !s.listed.Load() {
		s.refused.Add(1)
		return nil, &upstream.Error{Name: name, Reason: upstream.Missing, Err: errors.New("status 404")}
	}
	if name == s.name && s.unchanged.Load() && since != nil {
		return nil, upstream.ErrNotModified
	}
	return s.Source.Fetch(ctx, name, since)
}

// unchanging is a source that is watched, but never changes.
type unchanging struct{ upstream.Source }

func (unchanging) Version(upstream.Name) string { return "" }
