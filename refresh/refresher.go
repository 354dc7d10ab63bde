// Package refresh turns upstream documents into sealed answers.
//
// A [Refresher] owns the jobs of three feeds: option chains, sector quotes and VIX futures settlements. The way of a
// document, told by [Refresher.accept]: a tick of the schedule fetches and decodes it (conditional, bounded, spaced);
// the guard compares it with the one accepted last; each product of the feed is computed; all that is new is sealed;
// the dated files are written; all products of the feed become current at the same instant; the inputs are archived. A
// failure at any step leaves the last answer in place. Three in a row for one document make what rests on it stale, and
// the job backs off.
//
// What a product is stands in one table, [products]. A start and a back-fill take archived and past documents the same
// way, and recompute calls the same compute function.
package refresh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccy/go-json"
	"github.com/robfig/cron/v3"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Config says what a [Refresher] does.
type Config struct {
	Source       upstream.Source
	SourceName   string // simulated, cboe or replay: what every answer says of itself
	Store        *snapshots.Store
	Clock        Clock
	Calendar     *compute.Calendar
	RiskFreeRate float64 // per year, continuously compounded

	ChainEvery  time.Duration // gamma, max pain and the flow of SPX
	QuotesEvery time.Duration // sector quotes
	FlowEvery   time.Duration // one further chain of the flow universe
	FlowSymbols []string      // the flow universe beside SPX

	// Archive, where the source has one, fills in the dates of past sessions that are not stored; BackfillSessions
	// says how many.
	Archive          Archive
	BackfillSessions int

	// Inputs, unless nil, archives what answers were computed from; ArchiveMaxAge is how long, 0 without end.
	Inputs        *archive.Archive
	ArchiveMaxAge time.Duration

	// SnapshotMaxAge is how long dated files are kept whose product is not kept for good; 0 keeps them all.
	SnapshotMaxAge time.Duration
	Log            *slog.Logger
	// Observe, if any, is told of every run of a job: the code of its outcome, which is ok, panic or a reason of package
	// upstream, and how long it took. A run that the end of the process cut short is not told.
	Observe func(job, code string, took time.Duration)
}

// Refresher keeps the store's answers current. Create it with [New].
type Refresher struct {
	cfg   Config
	store *snapshots.Store
	cal   *compute.Calendar
	log   *slog.Logger

	// working is held while documents go from compute to archive: one publication at a time. It is taken before mu.
	working sync.Mutex
	since   atomic.Int64 // when the publication under way began, in Unix seconds of the machine's clock; 0: none

	mu        sync.Mutex // guards what follows, for moments
	held      map[string]*holding
	accepted  map[upstream.Name]*document // the documents that went the whole way last
	flowKnown bool                        // every chain of the flow universe was asked for

	// Kept state; working guards it.
	carry        map[compute.Series]float64 // of the last gamma answer
	rows         map[string]json.RawMessage // of the series, by UTC date
	history      []vixSummary               // of stored settlement dates, rising
	volatilities volatilityStates
	reported     map[string]bool // jobs whose first refresh was logged

	// Each of the following belongs to one job alone.
	guards       map[upstream.Name]*guard
	flowTurn     int // of the flow universe; -1 before the first run, which fetches all chains
	historyAsked map[upstream.Name]time.Time
	vixAsked     map[upstream.Name]time.Time
	closes       map[compute.Date]indexCloses
}

// New returns a refresher that has fetched nothing yet.
func New(cfg Config) *Refresher {
	r := &Refresher{
		cfg: cfg, store: cfg.Store, cal: cfg.Calendar, log: cfg.Log,
		held: map[string]*holding{}, accepted: map[upstream.Name]*document{},
		rows: map[string]json.RawMessage{}, reported: map[string]bool{},
		volatilities: volatilityStates{store: cfg.Store, cal: cfg.Calendar, log: cfg.Log},
		guards:       map[upstream.Name]*guard{}, flowTurn: -1,
		historyAsked: map[upstream.Name]time.Time{}, vixAsked: map[upstream.Name]time.Time{}, closes: map[compute.Date]indexCloses{},
	}
	r.flowKnown = len(flowNames(&cfg)) == 0
	for _, p := range products {
		r.held[p.name] = &holding{health: healths{}}
	}
	for _, name := range append(flowNames(&cfg), spxChain) {
		r.guards[name] = &guard{}
	}
	return r
}

// job is one line of the schedule.
type job struct {
	name  string
	every time.Duration
	run   func(context.Context) error
}

func (r *Refresher) jobs() []job {
	return []job{
		{"spx", r.cfg.ChainEvery, r.refreshSPX},
		{"flow", r.cfg.FlowEvery, r.refreshFlow},
		{"sectors", r.cfg.QuotesEvery, r.refreshSectors},
		{"vix", outsideEvery, r.refreshVIX},
		{"freshness", r.cfg.ChainEvery, func(context.Context) error { return r.reseal() }},
		{"expiry", 24 * time.Hour, r.expire},
	}
}

// Run refreshes until ctx ends: first from the archived inputs of the stored answers, then every job once, all at the
// same time, then by the schedule. A run of a job never overlaps itself; a run that is due meanwhile is left out, and
// so are those that are due while a job that failed backs off. All of it runs on threads of low priority. It returns
// when all jobs have ended.
func (r *Refresher) Run(ctx context.Context) {
	inBackground(func() { r.runJob(ctx, job{name: "resume", run: func(context.Context) error { return r.Resume() }}) })
	runner := cron.New(cron.WithLogger(cron.DiscardLogger))
	alone := cron.NewChain(cron.SkipIfStillRunning(cron.DiscardLogger))
	var once []cron.Job
	var retries sync.WaitGroup
	for _, j := range r.jobs() {
		next := &retry{clock: r.cfg.Clock, every: j.every}
		next.run = alone.Then(cron.FuncJob(func() {
			ok := false
			inBackground(func() { ok = r.runJob(ctx, j) })
			next.after(ctx, ok, &retries)
		}))
		once = append(once, next.run)
		runner.Schedule(schedule{r.cfg.Clock, r.cal, j.every}, cron.FuncJob(next.tick))
	}
	runner.Start()
	runAll(once)
	if r.cfg.Archive != nil && r.cfg.BackfillSessions > 0 {
		inBackground(func() { r.runJob(ctx, job{name: "backfill", run: r.backfill}) })
		runAll(once) // there is history to compare with now
	}
	<-ctx.Done()
	<-runner.Stop().Done()
	retries.Wait()
}

func runAll(jobs []cron.Job) {
	var all sync.WaitGroup
	for _, j := range jobs {
		all.Go(j.Run)
	}
	all.Wait()
}

// RefreshOnce runs every job once, one after another, and returns what failed.
func (r *Refresher) RefreshOnce(ctx context.Context) error {
	var errs []error
	for _, j := range r.jobs() {
		errs = append(errs, j.run(ctx))
	}
	return errors.Join(errs...)
}

// runJob runs a job, says whether it succeeded, and is the place where its error is logged. A panic in it, which would
// be a fault of ours, costs this run alone.
func (r *Refresher) runJob(ctx context.Context, j job) (ok bool) {
	if ctx.Err() != nil {
		return true
	}
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("refresh panicked", "job", j.name, "panic", p)
		}
	}()
	if err := r.observed(ctx, j); err != nil && ctx.Err() == nil {
		r.log.Warn("refresh failed", "job", j.name, "reason", reasonOf(err), "err", err)
	} else {
		ok = true
	}
	if err := r.reseal(); err != nil {
		r.log.Error("re-seal failed", "err", err)
		ok = false
	}
	return ok
}

// observed runs a job and tells the observer.
func (r *Refresher) observed(ctx context.Context, j job) (err error) {
	code, began := "panic", time.Now()
	defer func() {
		if r.cfg.Observe != nil && ctx.Err() == nil {
			r.cfg.Observe(j.name, code, time.Since(began))
		}
	}()
	if err = j.run(ctx); err != nil {
		code = string(reasonOf(err))
		return err
	}
	code = "ok"
	return nil
}

// refreshSPX fetches the SPX chain and publishes all that rests on it.
func (r *Refresher) refreshSPX(ctx context.Context) error {
	if !spxOffered(&r.cfg) {
		return nil
	}
	return r.refreshChains(ctx, "spx", ofFeed(optionsFeed), spxChain)
}

// refreshFlow fetches the next chain of the flow universe; the first run fetches all of them.
func (r *Refresher) refreshFlow(ctx context.Context) error {
	names := flowNames(&r.cfg)
	if len(names) == 0 {
		return nil
	}
	if r.flowTurn >= 0 {
		names = names[r.flowTurn : r.flowTurn+1]
	}
	r.flowTurn = (r.flowTurn + 1) % len(flowNames(&r.cfg))
	products := slices.DeleteFunc(ofFeed(optionsFeed), func(p *product) bool { return !p.everyChain })
	err := r.refreshChains(ctx, "flow", products, names...)
	r.mu.Lock()
	r.flowKnown = true
	r.mu.Unlock()
	return err
}

// refreshChains fetches chains and publishes the products that rest on them. A chain that fails leaves the others alone.
func (r *Refresher) refreshChains(ctx context.Context, job string, products []*product, names ...upstream.Name) error {
	v := r.newView(job)
	var errs []error
	var good []string
	for _, name := range names {
		d, err := r.fetch(ctx, name)
		if err == nil && !r.cfg.Clock.stands() { // of a clock that stands still there is one document of each name
			err = r.guards[name].check(d.mark, r.acceptedDocument(name))
		}
		switch _, key := name.Split(); {
		case err == nil:
			v.fresh[name] = d
			good = append(good, withoutUnderscore(key))
		case errors.Is(err, upstream.ErrNotModified):
			r.succeed(products, withoutUnderscore(key))
		default:
			errs = append(errs, r.fail(withoutUnderscore(key), fmt.Errorf("%s: %w", name, err), products))
		}
	}
	if good == nil {
		return errors.Join(errs...)
	}
	v.at = r.cfg.Clock.Now()
	if err := r.accept(v, optionsFeed, products, good...); err != nil {
		for _, symbol := range good {
			r.fail(symbol, err, products)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// begin and end say when a publication is under way.
func (r *Refresher) begin() { r.since.Store(time.Now().Unix()) }
func (r *Refresher) end()   { r.since.Store(0) }

// maxPublication is how long a publication may take before the disk is suspected not to answer.
const maxPublication = 90 * time.Second

// DiskError returns why files wait for the disk, or that it does not answer; nil when all is well. It never waits for
// the disk.
func (r *Refresher) DiskError() error {
	if since := r.since.Load(); since != 0 && time.Since(time.Unix(since, 0)) > maxPublication {
		return fmt.Errorf("the disk has not answered since %s", time.Unix(since, 0).UTC().Format(time.RFC3339))
	}
	return errors.Join(r.store.DiskError(), r.cfg.Inputs.Err())
}

// Store returns the store that the refresher fills.
func (r *Refresher) Store() *snapshots.Store { return r.store }

// endWait is how long stop waits for a publication under way, which a disk that does not answer may hold up for ever.
const endWait = 30 * time.Second

// Start runs the refresher until ctx ends. stop ends it too, waits for a publication under way, and closes it. When the
// disk does not answer, stop returns an error after 30 seconds; what is stored outlives that as it outlives a kill.
func (r *Refresher) Start(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	return func() error {
		cancel()
		select {
		case <-ended:
			return r.Close()
		case <-time.After(endWait):
			return fmt.Errorf("a refresh under way did not end within %s: the disk does not answer", endWait)
		}
	}
}

// Close writes what waits for the disk and releases the store. Run must have ended.
func (r *Refresher) Close() error { return errors.Join(r.cfg.Inputs.Close(), r.store.Close()) }

// Now returns the market's time.
func (r *Refresher) Now() time.Time { return r.cfg.Clock.Now() }

// Offers returns the resources that the source could ever feed, and whether each has an answer.
func (r *Refresher) Offers() map[string]bool {
	offered := map[string]bool{}
	for _, p := range products {
		if p.offered(&r.cfg) {
			offered[p.name] = r.holds(p.name)
		}
	}
	return offered
}

// expire removes dated files that are no longer kept, and archived inputs.
func (r *Refresher) expire(context.Context) error {
	now := r.cfg.Clock.Now()
	if r.cfg.Inputs != nil && r.cfg.ArchiveMaxAge > 0 {
		r.cfg.Inputs.Expire(compute.DateOf(now.Add(-r.cfg.ArchiveMaxAge)).String())
	}
	states, err := r.expireFiles(now.Add(-stateMaxAge), func(file string) bool {
		return strings.HasPrefix(file, snapshots.FileName(stateDir+volatilityState)) || strings.HasPrefix(file, snapshots.FileName(stateDir+"chain-"))
	})
	removed := 0
	if err == nil && r.cfg.SnapshotMaxAge > 0 {
		removed, err = r.expireFiles(now.Add(-r.cfg.SnapshotMaxAge), func(file string) bool {
			return slices.ContainsFunc(products, func(p *product) bool { return p.expires && file == snapshots.FileName(p.name) })
		})
	}
	if removed += states; removed > 0 {
		r.log.Info("old files removed", "files", removed)
	}
	return err
}

// stateMaxAge is how long the state of a chain is kept: longer than any pause between two sessions. Earlier versions
// also kept the state chain-SYMBOL.
const stateMaxAge = 14 * 24 * time.Hour

func (r *Refresher) expireFiles(before time.Time, expired func(file string) bool) (int, error) {
	return r.store.Expire(compute.DateOf(before).String(), expired)
}

// refusal is why a document was not accepted although it arrived.
type refusal struct {
	reason upstream.Reason
	err    error
}

func (e *refusal) Error() string { return fmt.Sprintf("%s: %v", e.reason, e.err) }
func (e *refusal) Unwrap() error { return e.err }

// reasonOf returns the code that clients see for an error of a refresh.
func reasonOf(err error) upstream.Reason {
	var e *refusal
	if errors.As(err, &e) {
		return e.reason
	}
	return upstream.ReasonOf(err)
}

// stopwatch measures the steps of a refresh for its log line.
type stopwatch struct {
	last  time.Time
	attrs []any
}

func newStopwatch() *stopwatch { return &stopwatch{last: time.Now()} }

// lap adds the milliseconds since the last lap.
func (w *stopwatch) lap(name string) {
	now := time.Now()
	w.attrs = append(w.attrs, slog.Float64(name, float64(now.Sub(w.last).Microseconds())/1000))
	w.last = now
}

// with returns the given attributes and the laps.
func (w *stopwatch) with(attrs ...any) []any { return append(attrs, w.attrs...) }
