package refresh

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/fleet"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newStore opens a store of a source in a directory that the test removes.
func newStore(t testing.TB, source string) *snapshots.Store {
	t.Helper()
	store, err := snapshots.Open(snapshots.Options{
		Dir: t.TempDir(), Source: source, DatedProducts: DatedResources([]string{"SPX"}), HistoryBytes: 1 << 20, Log: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	return store
}

// SetMethod gives a product another method until the test ends.
func SetMethod(t testing.TB, name, method string) {
	p := productOf(name)
	before := p.method
	p.method = method
	t.Cleanup(func() { p.method = before })
}

// BreakQuality makes the answers of the products of a row fail in encoding until restore is called.
func BreakQuality(name string) (restore func()) {
	return spoil(name, func(a *answer) { a.quality = func() {} }) // has no JSON form
}

// Panic makes the products of a row panic until restore is called.
func Panic(name string) (restore func()) {
	return spoil(name, func(*answer) { panic("a fault of " + name) })
}

func spoil(name string, change func(*answer)) (restore func()) {
	p := productOf(name)
	compute := p.compute
	p.compute = func(in *inputs) (*answer, error) {
		a, err := compute(in)
		if err == nil {
			change(a)
		}
		return a, err
	}
	return func() { p.compute = compute }
}

// Member returns what a refresher does in a fleet.
func Member(r *Refresher) fleet.Process {
	if r.follower == nil {
		r.follower = &follower{r: r}
	}
	return r.follower
}

// Accepted returns the digest of the accepted document of a name, "" before the first.
func Accepted(r *Refresher, name upstream.Name) string {
	if d := r.intake.document(name); d != nil {
		return d.SHA256
	}
	return ""
}

// RunJob runs a job as the schedule does, and says whether it succeeded, at least partly.
func RunJob(r *Refresher, ctx context.Context, name string) (ok bool) {
	jobs := r.list()
	i := slices.IndexFunc(jobs, func(j job) bool { return j.name == name })
	return r.runJob(ctx, jobs[i])
}

// RefreshOnce runs every job once, one after another, and returns the joined errors of the jobs that failed. It must not
// be called at the same time as [Refresher.Run].
func (r *Refresher) RefreshOnce(ctx context.Context) error {
	var errs []error
	for _, j := range r.list() {
		errs = append(errs, j.run(ctx))
	}
	return errors.Join(append(errs, r.board.reseal())...)
}

// RefreshSPX runs the SPX job alone.
func RefreshSPX(r *Refresher, ctx context.Context) error { return r.refreshChain(ctx, r.cfg.first()) }

// Reseal runs the reseal that ends every job.
func Reseal(r *Refresher) error { return r.board.reseal() }

// Held returns the answer that the refresher holds as current.
func Held(r *Refresher, name string) *snapshots.Edition {
	return r.board.now(name).edition
}

// BackfillMorning fills in the rows of today's tracks before the first.
func BackfillMorning(r *Refresher, ctx context.Context) error { return r.backfillMornings(ctx) }

// StopClock lets a clock of [NewClock] stand still at an instant of market time: nothing is scheduled.
func StopClock(c Clock, at time.Time) { c.set(hands{at, time.Now(), 0}) }

// ChainOf returns the name of the chain of an underlying.
func ChainOf(symbol string) upstream.Name { return chainOf(symbol) }

// VolatilityDays returns the history of volatility/{u} before a session.
func VolatilityDays(r *Refresher, name string, before compute.Date) ([]compute.VolatilityDay, error) {
	return r.memory.volatilityDays(name, before)
}

// TrackRows returns the rows of a sealed track to which the next row is added.
func TrackRows(s *snapshots.Snapshot) ([]json.RawMessage, error) { return trackRows(s) }
