package refresh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-json"
	"github.com/robfig/cron/v3"

	"strikecache/compute"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// New returns a refresher that has fetched nothing yet.
func New(cfg Config) *Refresher {
	r := &Refresher{
		cfg: cfg, store: cfg.Store, cal: cfg.Calendar, log: cfg.Log, products: products,
		current: map[string]*currentAnswer{}, accepted: map[upstream.Name]*document{},
		rows: map[string]json.RawMessage{}, reported: map[string]bool{},
		volatilities: volatilityStates{store: cfg.Store, cal: cfg.Calendar, log: cfg.Log},
		guards:       map[upstream.Name]*guard{}, flowTurn: -1,
		historyAsked: map[upstream.Name]time.Time{}, vixAsked: map[upstream.Name]time.Time{}, closes: map[compute.Date]indexCloses{},
	}
	for _, p := range products {
		r.current[p.name] = &currentAnswer{health: healths{}}
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
			next.finished(ctx, ok, &retries)
		}))
		once = append(once, next.run)
		runner.Schedule(schedule{r.cfg.Clock, r.cal, j.every}, cron.FuncJob(next.tick))
	}
	runner.Start()
	runAll(once)
	if r.cfg.Past != nil && r.cfg.BackfillSessions > 0 {
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

// endWait is how long stop waits for a publication under way, which a disk that does not answer may hold up for ever.
const endWait = 30 * time.Second

// Start runs the refresher until ctx ends. stop ends it too, waits for a publication under way, and closes it. When the
// disk does not answer, stop returns an error after 30 seconds; what is stored outlives that as it outlives a kill.
func (r *Refresher) Start(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended, closed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	return func() error {
		cancel()
		go func() {
			<-ended
			closed <- r.Close()
		}()
		select {
		case err := <-closed:
			return err
		case <-time.After(endWait):
			return fmt.Errorf("a refresh under way did not end within %s: the disk does not answer", endWait)
		}
	}
}

// Close writes what waits for the disk and releases the store. Run must have ended.
func (r *Refresher) Close() error { return errors.Join(r.cfg.Inputs.Close(), r.store.Close()) }

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
