package refresh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"strikecache/refresh/feed"
	"strikecache/refresh/fleet"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"

	"strikecache/bench/testkit"
)

var must = testkit.Must

func TestMain(m *testing.M) {
	lower = func() {}
	goleak.VerifyTestMain(m)
}

// New returns a refresher. It neither fetches nor reads anything before [Refresher.Restore] or [Refresher.Run].
func New(cfg Config) *Refresher {
	cfg.ask(cfg.Source.Source)
	return &Refresher{jobs: newJobs(&cfg)}
}

// Raw is a source of [New], which makes it polite.
func Raw(source upstream.Source) *feed.Polite { return &feed.Polite{Source: source} }

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

// SetMethod gives the products of a row another method until the test ends.
func SetMethod(t testing.TB, name, method string) {
	p := product.Named(name)
	before := p.Method
	p.Method = method
	t.Cleanup(func() { p.Method = before })
}

// Spoil makes the products of a row fail, with an error or a panic, until restore is called.
func Spoil(name string, panics bool) (restore func()) {
	p, fault := product.Named(name), fmt.Errorf("a fault of %s", name)
	compute := p.Compute
	p.Compute = func(*product.Answer, *product.Inputs, *feed.Document) error {
		if panics {
			panic(fault)
		}
		return fault
	}
	return func() { p.Compute = compute }
}

// Member returns what a refresher does in a fleet.
func Member(r *Refresher) fleet.Process {
	if r.follower == nil {
		r.follower = &follower{jobs: r.jobs}
	}
	return r.follower
}

// Accepted returns the digest of the accepted document of a name, "" before the first.
func Accepted(r *Refresher, name upstream.Name) (digest string) {
	_ = r.own(func() error {
		if d := r.intake.Document(name); d != nil {
			digest = d.SHA256
		}
		return nil
	})
	return digest
}

// RunJob runs a job as the schedule does, and says whether it succeeded, at least partly.
func RunJob(r *Refresher, ctx context.Context, name string) (ok bool) {
	jobs := r.list()
	return r.runJob(ctx, jobs[slices.IndexFunc(jobs, func(j job) bool { return j.name == name })])
}

// RefreshOnce runs every job once, one after another, and returns the joined errors of the jobs that failed. It must not
// be called at the same time as [Refresher.Run].
func (r *Refresher) RefreshOnce(ctx context.Context) error {
	var errs []error
	for _, j := range r.list() {
		errs = append(errs, r.inTurn(func() error { return j.run(ctx) }))
	}
	return errors.Join(append(errs, Reseal(r))...)
}

// Reseal runs the reseal that ends every job.
func Reseal(r *Refresher) error { return r.own(r.board.reseal) }
