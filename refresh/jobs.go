package refresh

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"strikecache/compute"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// jobs fetches documents and hands them to the publisher. Each field below spxTurn is used by one job alone.
type jobs struct {
	*publisher
	cal *compute.Calendar

	// spxTurn is held while the SPX chain is refreshed, and while a row of today's track is filled in: both at a time would
	// take 20 MB more memory. It is taken before publisher.mu.
	spxTurn sync.Mutex

	flowTurn        int                             // the next chain of the flow universe
	flowChanged     atomic.Pointer[[]upstream.Name] // the chains that have changed; nil: the source does not tell, or none has
	historyAsked    requests
	settlementAsked requests
}

// requests has the instant of the last request for each document that may not be there yet.
type requests map[upstream.Name]time.Time

// due says whether the last request is at least an interval before now, or forgotten.
func (r requests) due(name upstream.Name, now time.Time, interval time.Duration) bool {
	return !now.Before(r[name].Add(interval))
}

func newJobs(cfg *Config) *jobs {
	j := &jobs{publisher: newPublisher(cfg), cal: cfg.Calendar}
	for _, one := range j.list() {
		change := &nextChange{schedule: schedule{cfg.Clock, cfg.Calendar, one.every}}
		j.changes[one.name] = change
		for _, p := range products {
			if one.refreshes(p) {
				j.refreshing[p.name] = append(j.refreshing[p.name], change)
			}
		}
	}
	j.reset()
	return j
}

// reset forgets what earlier refreshes left, but not the answers that are served. No job may run.
func (j *jobs) reset() {
	j.intake, j.memory = newIntake(j.cfg), newMemory(j.cfg)
	j.historyAsked, j.settlementAsked = requests{}, requests{}
}

// job is a function that the schedule calls at an interval.
type job struct {
	name  string
	feed  string // whose answers its documents change; "": none, or those of the flow
	every time.Duration
	run   func(context.Context) error
	reads func(*Config, compute.Date) ([]upstream.Name, time.Time) // the documents that the job fetches, as [product.past]; nil: none
}

const flowJob = "flow"

// refreshes says whether documents of the job change the answer of a product.
func (j job) refreshes(p *product) bool { return j.feed == p.feed || j.name == flowJob && p.everyChain }

// list returns the jobs of the schedule.
func (j *jobs) list() []job {
	return []job{
		{"spx", optionsFeed, j.cfg.ChainEvery, j.refreshSPX, pastChain},
		{flowJob, "", j.cfg.FlowEvery, j.refreshFlow, pastChains},
		{"sectors", sectorsFeed, j.cfg.QuotesEvery, j.refreshSectors, pastFunds},
		{"vix", vixFeed, outsideEvery, j.refreshVIX, pastSettlement},
		{"freshness", "", j.cfg.ChainEvery, func(context.Context) error { return j.board.reseal() }, nil},
		{"expiry", "", 24 * time.Hour, j.expire, nil},
	}
}

// Run refreshes until ctx ends, and returns when all jobs have ended. In order, it
//
//  1. computes the stored answers again from their documents ([Refresher.Resume]),
//  2. runs every job once, all jobs at the same time, and starts the schedule,
//  3. if the source has documents of past sessions, fills in the missing dates, computes the answers that compare with them,
//     and fills in the part of today's track before its first row,
//  4. runs each job by the schedule, and, with [Config.Version], within about a second after a document of it has changed.
//
// Two runs of one job never overlap: a run that is due during another run of the job is skipped. After a failure the job
// backs off, and the runs that are due until its next try are skipped. All jobs run on threads of low priority.
func (r *Refresher) Run(ctx context.Context) {
	alongside := func(name string, run func(context.Context) error) {
		inBackground(func() { r.runJob(ctx, job{name: name, run: run}) })
	}
	alongside(resumeJob, r.Resume)
	runner := cron.New(cron.WithLogger(cron.DiscardLogger))
	alone := cron.NewChain(cron.SkipIfStillRunning(cron.DiscardLogger))
	var once []cron.Job
	var retries sync.WaitGroup
	for _, j := range r.list() {
		change := r.changes[j.name]
		next := &retry{schedule: change.schedule}
		var turn sync.Mutex // held during a run
		run := func() (ok bool) {
			turn.Lock()
			defer turn.Unlock()
			change.began = time.Now()
			inBackground(func() { ok = r.runJob(ctx, j) })
			return ok
		}
		next.run = alone.Then(cron.FuncJob(func() { change.expect(next.finished(ctx, run(), &retries)) }))
		if r.cfg.Version != nil && j.reads != nil {
			runner.Schedule(cron.Every(time.Second), alone.Then(cron.FuncJob(r.watch(j, run))))
		}
		once = append(once, next.run)
		runner.Schedule(next.schedule, cron.FuncJob(next.tick))
	}
	runner.Start()
	runAll(once)
	if r.cfg.Past != nil && r.cfg.BackfillSessions > 0 {
		alongside(backfillJob, r.backfill)
		alongside("track", r.backfillMorning)
	}
	<-ctx.Done()
	<-runner.Stop().Done()
	retries.Wait()
}

// watch returns a function that runs a job if the version of a document that the job reads has changed since the last
// call. Neither the schedule nor the pause after a failure delays this run, and its failure begins no pause.
func (r *Refresher) watch(j job, run func() bool) (look func()) {
	versions := map[upstream.Name]string{}
	return func() {
		var changed []upstream.Name
		names, _ := j.reads(&r.cfg, settlementDue(r.cfg.Clock.Now(), r.cal))
		for _, name := range names {
			if v := r.cfg.Version(name); v != versions[name] {
				versions[name] = v
				changed = append(changed, name)
			}
		}
		if changed == nil {
			return
		}
		if j.name == flowJob {
			r.flowChanged.Store(&changed)
		}
		run()
	}
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
func (j *jobs) runJob(ctx context.Context, one job) (ok bool) {
	if ctx.Err() != nil {
		return true
	}
	defer func() {
		if p := recover(); p != nil {
			j.log.Error("refresh panicked", "job", one.name, "panic", p)
		}
	}()
	if err := j.observed(ctx, one); err != nil && ctx.Err() == nil {
		j.log.Warn("refresh failed", "job", one.name, "reason", reasonOf(err), "err", err)
		e := (*partialFailure)(nil)
		ok = errors.As(err, &e)
	} else {
		ok = true
	}
	if ctx.Err() != nil {
		return ok // at the end, nobody reads a new freshness
	}
	if err := j.board.reseal(); err != nil {
		j.log.Error("freshness update failed", "err", err)
		ok = false
	}
	return ok
}

// observed runs a job and reports the run to [Config.Observe].
func (j *jobs) observed(ctx context.Context, one job) (err error) {
	code, began := "panic", time.Now()
	defer func() {
		if j.cfg.Observe != nil && ctx.Err() == nil {
			j.cfg.Observe(one.name, code, refusals(err), time.Since(began))
		}
	}()
	if err = one.run(ctx); err != nil {
		code = string(reasonOf(err))
		return err
	}
	code = "ok"
	return nil
}

// expire removes dated files and documents that are older than their age limits.
func (j *jobs) expire(context.Context) error {
	now, ages := j.cfg.Clock.Now(), snapshots.Ages{}
	if j.cfg.ArchiveMaxAge > 0 {
		ages.ObjectsBefore = compute.DateOf(now.Add(-j.cfg.ArchiveMaxAge)).String()
	}
	if j.cfg.SnapshotMaxAge > 0 {
		ages.FilesBefore = compute.DateOf(now.Add(-j.cfg.SnapshotMaxAge)).String()
		for _, p := range products {
			if p.expires {
				ages.Products = append(ages.Products, p.name)
			}
		}
	}
	removed, err := j.store.Expire(ages)
	if removed > 0 {
		j.log.Info("old files removed", "files", removed)
	}
	return err
}
