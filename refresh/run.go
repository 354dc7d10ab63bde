package refresh

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

func newJobs(cfg *Config) *jobs {
	cfg.products = product.All(cfg.Underlyings)
	p := &publisher{cfg: cfg, store: cfg.Store, log: cfg.Log, board: newBoard(cfg), reported: map[string]bool{}}
	p.forget()
	j := &jobs{publisher: p, cal: cfg.Calendar, schedules: map[string][]schedule{}}
	for _, one := range j.list() {
		for _, p := range one.changes {
			j.schedules[p.Name] = append(j.schedules[p.Name], one.schedule)
		}
	}
	return j
}

func (j *jobs) list() (all []job) {
	at := func(every time.Duration) schedule { return schedule{j.cfg.Clock, j.cal, every, 0} }
	for i, u := range j.cfg.Underlyings {
		one := job{
			name: compute.PathOf(u), changes: j.cfg.products.OfChain(u), schedule: at(j.cfg.ChainEvery),
			run:   func(ctx context.Context) error { return j.refreshChain(ctx, u) },
			reads: func(time.Time) []upstream.Name { return []upstream.Name{feed.ChainOf(u)} },
		}
		if i > 0 {
			one.every, one.offset, one.last = j.cfg.roundEvery(), j.cfg.TurnEvery*time.Duration(i-1), true
		}
		all = append(all, one)
	}
	return append(all,
		job{
			name: "sectors", changes: j.cfg.products.Of(product.Funds), schedule: at(quotesEvery), run: j.refreshSectors,
			reads: func(time.Time) []upstream.Name { return fundDocuments() },
		},
		job{
			name: "vix", changes: j.cfg.products.Of(product.Settlements), schedule: at(outsideEvery), run: j.refreshVIX,
			reads: func(now time.Time) []upstream.Name {
				return append(vixDocuments(settlementDue(now, j.cal)), closeHistories()...)
			},
		},
		job{name: "expiry", schedule: at(24 * time.Hour), stateless: true, run: j.expire},
	)
}

// Run refreshes until ctx ends, and returns when all jobs have ended. In order, it
//
//  1. starts the schedule, by which each job runs from now on, and, of a source that is watched, within about a second after a document of it has changed,
//  2. runs every job once: all at the same time, and then the chains of the other underlyings one by one,
//  3. plays the past sessions that the source has and no file has.
//
// A run that is due during another run of the job, or before the next try after a failure, is skipped. All jobs run on threads of
// low priority.
func (j *jobs) Run(ctx context.Context) {
	runner := cron.New(cron.WithLogger(cron.DiscardLogger))
	alone := cron.NewChain(cron.SkipIfStillRunning(cron.DiscardLogger))
	var once, last []cron.Job
	var retries []*retry
	var running sync.WaitGroup // goroutines to wait for
	for _, one := range j.list() {
		next := &retry{schedule: one.schedule, name: one.name}
		retries = append(retries, next)
		run := func() (ok bool) {
			inBackground(func() { ok = j.runJob(ctx, one) })
			j.advance()
			return ok
		}
		next.run = alone.Then(cron.FuncJob(func() { next.finished(ctx, run(), &running) }))
		if j.cfg.Source.Watched() && one.reads != nil {
			runner.Schedule(cron.Every(time.Second), alone.Then(cron.FuncJob(j.watch(one, run))))
		}
		if one.last {
			last = append(last, next.run)
		} else {
			once = append(once, next.run)
			next.expect(time.Now(), time.Now())
		}
		runner.Schedule(next.schedule, cron.FuncJob(next.tick))
	}
	j.advance()
	j.scheduled.Store(&retries)
	defer j.scheduled.Store(nil)
	running.Go(func() { j.keepTime(ctx, runner, retries, &running, time.Now) })
	if j.cfg.Past != nil {
		running.Go(j.countSessions)
	}
	var all sync.WaitGroup
	for _, one := range once {
		all.Go(one.Run)
	}
	all.Wait()
	for _, one := range last {
		one.Run()
	}
	if j.cfg.Past != nil {
		inBackground(func() { j.playHistory(ctx) })
	}
	<-ctx.Done()
	running.Wait()
}

// freshnessEvery is how often the freshness of the answers is updated besides the end of each job.
const freshnessEvery = 30 * time.Second

// keepTime runs the schedule until ctx ends, and updates the freshness of the answers. cron plans by the machine's clock alone: after the
// clock was an hour ahead for a moment, it would run nothing for an hour. So keepTime compares the clock with the monotonic one each
// second. After a step, a new cron begins with the same entries, because the old one would run all of them at once after a step ahead.
func (j *jobs) keepTime(ctx context.Context, runner *cron.Cron, retries []*retry, running *sync.WaitGroup, now func() time.Time) {
	look, update := time.NewTicker(time.Second), time.NewTicker(freshnessEvery)
	defer look.Stop()
	defer update.Stop()
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
			j.log.Warn("machine clock was set: all jobs are scheduled again", "by", step.Round(time.Millisecond))
			stopped, entries := runner.Stop(), runner.Entries()
			running.Go(func() { <-stopped.Done() })
			runner = cron.New(cron.WithLogger(cron.DiscardLogger))
			for _, e := range entries {
				runner.Schedule(e.Schedule, e.Job)
			}
			runner.Start()
			for _, one := range retries {
				one.expect(at, one.Next(at))
				if pause := one.pause.Load(); pause != nil {
					pause.Reset(0) // the clock may have been the fault
				}
			}
		case <-update.C:
			if err := j.Stuck(); err != nil {
				j.log.Error("refreshes stand still", "err", err)
			}
		}
		inBackground(func() {
			j.runJob(ctx, job{name: "freshness", stateless: true, run: func(context.Context) error { return nil }})
		})
	}
}

// standstill is how long no job may end, and no document may come, while a job is overdue for as long.
const standstill = 45 * time.Second

// advance notes that a job has ended or a document has come.
func (j *jobs) advance() { j.progress.Store(new(time.Now())) }

// Stuck returns an error while refreshes stand still, for whatever reason. It goes by the monotonic clock. A job that waits for its next run, or
// for its next try after a failure, is not overdue.
func (j *jobs) Stuck() error {
	all, now := j.scheduled.Load(), time.Now()
	if all == nil || now.Sub(*j.progress.Load()) < standstill {
		return nil
	}
	for _, one := range *all {
		if due := one.due.Load(); due != nil && !due.IsZero() && now.Sub(*due) >= standstill {
			return fmt.Errorf("job %s is overdue by %s", one.name, now.Sub(*due).Round(time.Second))
		}
	}
	return nil
}

// watch returns a function that runs a job if a document that it reads has changed since the last call. No pause after a failure
// delays this run, and its failure begins none.
func (j *jobs) watch(one job, run func() bool) (look func()) {
	versions := map[upstream.Name]string{}
	return func() {
		changed := false
		for _, name := range one.reads(j.cfg.Clock.Now()) {
			if v := j.cfg.Source.Version(name); v != versions[name] {
				versions[name], changed = v, true
			}
		}
		if changed {
			run()
		}
	}
}

// runJob runs a job, which then owns the state, logs its error, updates the freshness of all answers, and says whether all of it succeeded, the job at
// least partly. A panic ends only this run.
func (j *jobs) runJob(ctx context.Context, one job) (ok bool) {
	if ctx.Err() != nil {
		return true
	}
	defer func() {
		if p := recover(); p != nil {
			j.log.Error("refresh panicked", "job", one.name, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	own := j.own
	switch {
	case one.stateless:
		own = func(f func() error) error { return f() }
	case one.reads != nil:
		own = j.inTurn
	}
	err := own(func() error { return j.observed(ctx, one) })
	if ctx.Err() != nil {
		return true // at the end, nobody reads a new freshness
	}
	if err != nil {
		j.log.Warn("refresh failed", "job", one.name, "reason", reasonOf(err), "err", err)
	}
	if failure := j.board.reseal(); failure != nil {
		j.log.Error("freshness update failed", "err", failure)
		return false
	}
	return err == nil || partial(err)
}

// observed runs a job and reports the run to [Config.Observe].
func (j *jobs) observed(ctx context.Context, one job) (err error) {
	code, began := "panic", time.Now()
	defer func() {
		if j.cfg.Observe != nil && ctx.Err() == nil {
			j.cfg.Observe(one.name, code, refusals(err), time.Since(began))
		}
	}()
	switch err = one.run(ctx); {
	case err == nil:
		code = "ok"
	case !errors.Is(err, product.ErrPanic):
		code = string(reasonOf(err))
	}
	return err
}

const (
	// snapshotMaxAge is how long the dated files of the products that expire are kept: levels, matrix, series and underlyings.
	snapshotMaxAge = 30 * 24 * time.Hour
	// longestBreak is longer than any time between two sessions.
	longestBreak = 7 * 24 * time.Hour
)

// expire removes dated files and documents that are older than their age limits. Ages count at most from a week after the newest
// stored date: a clock that is months ahead removes nothing.
func (j *jobs) expire(context.Context) error {
	now, newest := j.cfg.Clock.Now(), ""
	for _, p := range j.cfg.products {
		if dates := j.store.DatesOf(p.Name); len(dates) > 0 {
			newest = max(newest, dates[len(dates)-1])
		}
	}
	if date, err := compute.ParseDate(newest); err == nil {
		now = compute.Earlier(now, date.Midnight().Add(longestBreak))
	}
	ages := snapshots.Ages{
		FilesBefore: compute.DateOf(now.Add(-snapshotMaxAge)).String(), Products: j.cfg.products.Where(func(p *product.Product) bool { return !p.Dated }).Names(),
	}
	if j.cfg.ArchiveMaxAge > 0 && (j.cfg.Past == nil || j.playedAll.Load()) { // the session after compares with them
		ages.ObjectsBefore = compute.DateOf(now.Add(-j.cfg.ArchiveMaxAge)).String()
	}
	removed, err := j.store.Expire(ages)
	if removed > 0 {
		j.log.Info("old files removed", "files", removed)
	}
	return err
}

const (
	// afterRun is how long after the beginning of a run its answers are expected.
	afterRun = 2 * time.Second
	// lookAgain is the time until the next look while another program writes the documents: nobody knows when.
	lookAgain = 5 * time.Second
)

// NextChange returns the machine time at which the answer of a resource may change next. The zero time means never. It is safe for concurrent
// use, and allocates nothing.
func (j *jobs) NextChange(resource string, now time.Time) (next time.Time) {
	for _, s := range j.schedules[resource] {
		run := s.Next(now.Add(-afterRun))
		if at := run.Add(afterRun); !run.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if soon := now.Add(lookAgain); j.cfg.Source.Watched() && (next.IsZero() || soon.Before(next)) {
		return soon
	}
	return next
}
