package refresh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

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
	// upstream, and how long it took. A run that the end of the process cut short is none.
	Observe func(job, code string, took time.Duration)
}

// Refresher keeps the store's answers current. Create it with [New].
type Refresher struct {
	cfg   Config
	store *snapshots.Store
	cal   *compute.Calendar
	log   *slog.Logger

	resources map[string]*resource

	mu   sync.Mutex // guards held, and orders publications
	held map[string]*holding
	// epoch counts the changes of stored history, after which unchanged documents may say more.
	epoch atomic.Int64
	// beyond says once in the log that dates lie outside the verified calendar.
	beyond sync.Once

	spx     spxJob
	flow    flowJob
	sectors sectorsJob
	vix     vixJob
	series  seriesRows
}

// New returns a refresher that has fetched nothing yet.
func New(cfg Config) *Refresher {
	r := &Refresher{
		cfg: cfg, store: cfg.Store, cal: cfg.Calendar, log: cfg.Log,
		resources: map[string]*resource{}, held: map[string]*holding{},
	}
	for _, res := range resources(cfg) {
		r.resources[res.name] = &res
		r.held[res.name] = &holding{health: healths{}}
	}
	r.spx.guard = r.newGuard()
	r.flow.init(r)
	r.sectors.init()
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

// Run refreshes until ctx ends: every job once at the start, all at the same time, then by the schedule. A run
// of a job never overlaps itself; a run that is due meanwhile is left out, and so are those that are due while a job
// that failed backs off. It returns when all jobs have ended.
func (r *Refresher) Run(ctx context.Context) {
	runner := cron.New(cron.WithLogger(cron.DiscardLogger))
	alone := cron.NewChain(cron.SkipIfStillRunning(cron.DiscardLogger))
	var once []cron.Job
	var retries sync.WaitGroup
	for _, j := range r.jobs() {
		again := &retry{clock: r.cfg.Clock, every: j.every}
		again.run = alone.Then(cron.FuncJob(func() {
			ok := r.runJob(ctx, j)
			again.after(ctx, ok, &retries)
		}))
		once = append(once, again.run)
		runner.Schedule(schedule{r.cfg.Clock, r.cal, j.every}, cron.FuncJob(again.tick))
	}
	runner.Start()
	runAll(once)
	if r.cfg.Archive != nil {
		r.runJob(ctx, job{name: "backfill", run: r.backfill})
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

// noted passes a calendar note on, and logs it the first time.
func (r *Refresher) noted(note *string) *string {
	if note != nil {
		r.beyond.Do(func() { r.log.Info("calendar: " + *note) })
	}
	return note
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

// Offers returns the resources that the source could ever feed, and whether each has an answer.
func (r *Refresher) Offers() map[string]bool {
	offered := map[string]bool{}
	if r.cfg.Source.Offers(spxChain) {
		for _, name := range []string{GammaResource, SeriesResource, PainResource, FlowResource} {
			offered[name] = true
		}
	}
	for _, s := range r.cfg.FlowSymbols {
		if r.cfg.Source.Offers(upstream.Options(s)) {
			offered[FlowResource] = true
		}
	}
	if r.sectorsOffered() {
		offered[SectorsResource] = true
	}
	if r.cfg.Source.Offers(upstream.Settlement(r.cal.SessionDate(r.cfg.Clock.Now()).String())) {
		offered[VIXResource] = true
	}
	for name := range offered {
		offered[name] = r.store.Current(name) != nil
	}
	return offered
}
