package refresh

import (
	"context"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"strikecache/compute"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// jobs fetches documents and hands them to the publisher. Each field below turn is used by one job alone.
type jobs struct {
	*publisher
	cal *compute.Calendar

	// unknown has, by underlying, when the upstream was asked last for a chain that it does not have. All jobs of chains use it.
	unknown sync.Map

	// turn is held while a chain is decoded and its answers are computed: two large chains at a time would take 20 MB more memory. It
	// is taken before publisher.mu.
	turn sync.Mutex

	historyAsked    requests
	settlementAsked requests
}

// requests has the instant of the last request for each document that may not be there yet.
type requests map[upstream.Name]time.Time

// isOver says whether an interval is over. If it began after now, the clock was ahead: then it is over, too.
func isOver(began, now time.Time, interval time.Duration) bool {
	since := now.Sub(began)
	return since < 0 || since >= interval
}

func newJobs(cfg *Config) *jobs {
	cfg.products = productsOf(cfg.Underlyings)
	j := &jobs{publisher: newPublisher(cfg), cal: cfg.Calendar}
	for _, one := range j.list() {
		change := &nextChange{schedule: schedule{cfg.Clock, cfg.Calendar, one.every, one.offset}}
		j.changes[one.name] = change
		for _, p := range cfg.products {
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
	j.unknown.Clear()
}

// job is a function that the schedule calls at an interval.
type job struct {
	name   string
	feed   *feed  // whose answers its documents change; nil: none, or those of a chain
	chain  string // the underlying whose chain it fetches; "": none
	every  time.Duration
	offset time.Duration // from the start of the refresh window to the first run of the interval
	last   bool          // at the start, it runs after the other jobs
	run    func(context.Context) error
	reads  func(now time.Time) []upstream.Name // the documents that the job fetches; nil: none
}

// refreshes says whether documents of the job change the answer of a product.
func (j job) refreshes(p *product) bool {
	return j.feed != nil && j.feed == p.feed || j.chain != "" && (p.everyChain() || p.underlying == j.chain)
}

// list returns the jobs of the schedule.
func (j *jobs) list() []job {
	return append(j.chainJobs(),
		job{name: "sectors", feed: sectorsFeed, every: j.cfg.QuotesEvery, run: j.refreshSectors, reads: func(time.Time) []upstream.Name { return fundDocuments() }},
		job{name: "vix", feed: vixFeed, every: outsideEvery, run: j.refreshVIX, reads: func(now time.Time) []upstream.Name { return vixDocuments(settlementDue(now, j.cal)) }},
		job{name: "expiry", every: 24 * time.Hour, run: j.expire},
	)
}

// Run refreshes until ctx ends, and returns when all jobs have ended. In order, it
//
//  1. computes the stored answers again from their documents ([Refresher.Resume]),
//  2. starts the schedule, and runs every job once: all at the same time, and then the chains of the other underlyings one by one,
//  3. if the source has past documents, fills in today's track of the first underlying, the missing dates, and the other tracks,
//  4. runs each job by the schedule, and, with [Config.Version], within about a second after a document of it has changed.
//
// A run that is due during another run of the job, or before the next try after a failure, is skipped. All jobs run on threads of
// low priority.
func (r *Refresher) Run(ctx context.Context) {
	alongside := func(name string, run func(context.Context) error) {
		inBackground(func() { r.runJob(ctx, job{name: name, run: run}) })
	}
	alongside(resumeJob, r.Resume)
	runner := cron.New(cron.WithLogger(cron.DiscardLogger))
	alone := cron.NewChain(cron.SkipIfStillRunning(cron.DiscardLogger))
	var once, last []cron.Job
	var running sync.WaitGroup // what ends with ctx
	for _, j := range r.list() {
		change := r.changes[j.name]
		next := &retry{nextChange: change}
		var turn sync.Mutex // held during a run
		run := func() (ok bool) {
			turn.Lock()
			defer turn.Unlock()
			change.began = time.Now()
			inBackground(func() { ok = r.runJob(ctx, j) })
			return ok
		}
		next.run = alone.Then(cron.FuncJob(func() { change.expect(next.finished(ctx, run(), &running)) }))
		if r.cfg.Version != nil && j.reads != nil {
			runner.Schedule(cron.Every(time.Second), alone.Then(cron.FuncJob(r.watch(j, run))))
		}
		if j.last {
			last = append(last, next.run)
		} else {
			once = append(once, next.run)
		}
		runner.Schedule(next.schedule, cron.FuncJob(next.tick))
	}
	running.Go(func() { r.keepTime(ctx, runner, &running, time.Now) })
	var all sync.WaitGroup
	for _, j := range once {
		all.Go(j.Run)
	}
	all.Wait()
	for _, j := range last {
		j.Run()
	}
	if r.cfg.Past != nil && r.cfg.BackfillSessions > 0 {
		track := productOf(trackOf(r.cfg.first()))
		alongside(trackJob, func(ctx context.Context) error { return r.backfillMorning(ctx, track) })
		alongside(backfillJob, r.backfill)
		alongside(trackJob, r.backfillMornings)
		r.log.Info("history filled in")
	}
	<-ctx.Done()
	running.Wait()
}

// judgeEvery is how often the freshness of the answers is judged besides the end of each job.
const judgeEvery = 30 * time.Second

// keepTime runs the schedule until ctx ends, and judges the freshness of the answers. cron plans by the machine's clock alone: after the
// clock was an hour ahead for a moment, it would run nothing for an hour. So keepTime compares the clock with the monotonic one each
// second. After a step, a new cron begins with the same entries, because the old one would run all of them at once after a step ahead.
func (r *Refresher) keepTime(ctx context.Context, runner *cron.Cron, running *sync.WaitGroup, now func() time.Time) {
	look, judge := time.NewTicker(time.Second), time.NewTicker(judgeEvery)
	defer look.Stop()
	defer judge.Stop()
	before := now()
	for runner.Start(); ; {
		select {
		case <-ctx.Done():
			<-runner.Stop().Done()
			return
		case <-look.C:
			at := now()
			step := at.Round(0).Sub(before.Round(0)) - at.Sub(before)
			if step.Abs() < time.Second {
				continue
			}
			before = at
			r.log.Warn("machine clock was set: all jobs are scheduled again", "by", step.Round(time.Millisecond))
			stopped, entries := runner.Stop(), runner.Entries()
			running.Go(func() { <-stopped.Done() })
			runner = cron.New(cron.WithLogger(cron.DiscardLogger))
			for _, e := range entries {
				runner.Schedule(e.Schedule, e.Job)
			}
			runner.Start()
			for _, change := range r.changes {
				change.expect(change.Next(time.Now()))
				if pause := change.pause.Load(); pause != nil {
					pause.Reset(0) // the clock may have been the fault
				}
			}
		case <-judge.C:
		}
		inBackground(func() {
			r.runJob(ctx, job{name: "freshness", run: func(context.Context) error { return r.board.reseal() }})
		})
	}
}

// watch returns a function that runs a job if a document that it reads has changed since the last call. No pause after a failure
// delays this run, and its failure begins none.
func (r *Refresher) watch(j job, run func() bool) (look func()) {
	versions := map[upstream.Name]string{}
	return func() {
		changed := false
		for _, name := range j.reads(r.cfg.Clock.Now()) {
			if v := r.cfg.Version(name); v != versions[name] {
				versions[name], changed = v, true
			}
		}
		if changed {
			run()
		}
	}
}

// runJob runs a job, logs its error and says whether the job succeeded, at least partly. A panic ends only this run.
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
		ok = partial(err)
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

// longestBreak is longer than any time between two sessions.
const longestBreak = 7 * 24 * time.Hour

// expire removes dated files and documents that are older than their age limits. Ages count at most from a week after the newest
// stored date: a clock that is months ahead removes nothing.
func (j *jobs) expire(context.Context) error {
	now, ages, newest := j.cfg.Clock.Now(), snapshots.Ages{}, ""
	for _, p := range j.cfg.products {
		if dates := j.store.DatesOf(p.name); len(dates) > 0 {
			newest = max(newest, dates[len(dates)-1])
		}
	}
	if date, err := compute.ParseDate(newest); err == nil {
		now = earlier(now, date.Midnight().Add(longestBreak))
	}
	if j.cfg.ArchiveMaxAge > 0 {
		ages.ObjectsBefore = compute.DateOf(now.Add(-j.cfg.ArchiveMaxAge)).String()
	}
	if j.cfg.SnapshotMaxAge > 0 {
		ages.FilesBefore = compute.DateOf(now.Add(-j.cfg.SnapshotMaxAge)).String()
		for _, p := range j.cfg.products {
			if !p.dated {
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
