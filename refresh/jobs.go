package refresh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"strikecache/compute"
	"strikecache/refresh/fleet"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// New returns a refresher. It neither fetches nor reads anything before [Refresher.Restore], [Refresher.Resume] or
// [Refresher.Run].
func New(cfg Config) *Refresher {
	r := new(Refresher)
	r.init(cfg)
	return r
}

func (r *Refresher) init(cfg Config) {
	r.cfg, r.store, r.cal, r.log, r.products = cfg, cfg.Store, cfg.Calendar, cfg.Log, products
	r.reset()
}

// reset forgets everything except the configuration. No job may run.
func (r *Refresher) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current, r.accepted, r.lastAnswer = map[string]*currentAnswer{}, map[upstream.Name]*document{}, time.Time{}
	r.hidden, r.carry, r.rows, r.track, r.history = nil, nil, map[string]seriesRow{}, nil, nil
	r.states = sessionStates{store: r.store, cal: r.cal, log: r.log}
	r.received, r.inputsRefused, r.reported = map[string]*currentAnswer{}, 0, map[string]bool{}
	r.guards, r.flowTurn = map[upstream.Name]*guard{}, -1
	r.historyAsked, r.vixAsked = map[upstream.Name]time.Time{}, map[upstream.Name]time.Time{}
	for _, p := range r.products {
		r.current[p.name] = &currentAnswer{health: healths{}}
	}
	for _, name := range append(flowNames(&r.cfg), spxChain) {
		r.guards[name] = &guard{}
	}
	for _, symbol := range compute.FundSymbols() {
		r.guards[upstream.Quotes(symbol)] = &guard{}
	}
}

// job is a function that the schedule calls at an interval.
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
		{"freshness", r.cfg.ChainEvery, func(context.Context) error { r.reveal(); return r.reseal() }},
		{"expiry", 24 * time.Hour, r.expire},
	}
}

// Run refreshes until ctx ends, and returns when all jobs have ended. In order, it
//
//  1. computes the stored answers again from their archived inputs ([Refresher.Resume]),
//  2. runs every job once, all jobs at the same time, and starts the schedule,
//  3. if the source has documents of past sessions, fills in the missing dates, runs every job once more, and fills in the
//     part of today's track before its first row,
//  4. runs each job by the schedule.
//
// Two runs of one job never overlap: a run that is due during another run of the job is skipped. After a failure the job
// backs off, and the runs that are due until its next try are skipped. All jobs run on threads of low priority.
func (r *Refresher) Run(ctx context.Context) {
	inBackground(func() { r.runJob(ctx, job{name: resumeJob, run: func(context.Context) error { return r.Resume() }}) })
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
		runAll(once) // the answers change, because they compare with the dates that were filled in
		inBackground(func() { r.runJob(ctx, job{name: "tracks", run: r.backfillMorning}) })
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

// runJob runs a job, logs its error and says whether the job succeeded, at least partly. A panic ends only this run: the
// schedule runs the job again.
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
		e := (*partialFailure)(nil)
		ok = errors.As(err, &e)
	} else {
		ok = true
	}
	if ctx.Err() != nil {
		return ok // at the end, nobody reads a new freshness
	}
	if err := r.reseal(); err != nil {
		r.log.Error("freshness update failed", "err", err)
		ok = false
	}
	return ok
}

// observed runs a job and reports the run to [Config.Observe].
func (r *Refresher) observed(ctx context.Context, j job) (err error) {
	code, began := "panic", time.Now()
	defer func() {
		if r.cfg.Observe != nil && ctx.Err() == nil {
			r.cfg.Observe(j.name, code, refusals(err), time.Since(began))
		}
	}()
	if err = j.run(ctx); err != nil {
		code = string(reasonOf(err))
		return err
	}
	code = "ok"
	return nil
}

// endWait is how long stop waits for a publication to end. A disk that does not answer could block a publication for
// ever, and other programs can keep a refresh, which has a low priority, from the processors.
const endWait = 30 * time.Second

// Fleet returns this process in a fleet, nil if it is in none.
func (r *Refresher) Fleet() *fleet.Member { return r.cfg.Fleet }

// Start runs [Refresher.Run], or takes part in the fleet, in a goroutine until ctx ends or stop is called. The caller must
// call stop once: it waits until Run has returned, and closes the refresher. If Run does not return within 30 seconds, stop
// returns an error and closes nothing. The stored files are then as after a kill: intact.
func (r *Refresher) Start(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended, closed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(ended)
		if r.cfg.Fleet == nil {
			r.Run(ctx)
		} else {
			r.cfg.Fleet.Run(ctx)
		}
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
			return fmt.Errorf("refresh has not ended within %s: the disk does not answer, or the machine is overloaded", endWait)
		}
	}
}

// Close writes the files that wait for the disk and releases the store. The caller must have waited until [Refresher.Run]
// returned.
func (r *Refresher) Close() error { return errors.Join(r.cfg.Inputs.Close(), r.store.Close()) }

// expire removes dated files, states and archived inputs that are older than their age limits.
func (r *Refresher) expire(context.Context) error {
	now := r.cfg.Clock.Now()
	if r.cfg.Inputs != nil && r.cfg.ArchiveMaxAge > 0 {
		r.cfg.Inputs.Expire(compute.DateOf(now.Add(-r.cfg.ArchiveMaxAge)).String())
	}
	states, err := r.expireFiles(now.Add(-stateMaxAge), func(file string) bool {
		return strings.HasPrefix(file, snapshots.FileName(stateDir))
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

// stateMaxAge is how long a dated state is kept. It is longer than any pause between two sessions.
const stateMaxAge = 14 * 24 * time.Hour

func (r *Refresher) expireFiles(before time.Time, expired func(file string) bool) (int, error) {
	return r.store.Expire(compute.DateOf(before).String(), expired)
}
