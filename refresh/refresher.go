// Package refresh turns upstream documents into sealed answers.
//
// A product makes the answers of one resource: a row of the [table], for an underlying if the row is for each. A [feed] is a group of
// products that rest on the same kind of documents. A job fetches documents at an interval. An answer becomes an edition: one sealed
// snapshot for each value of the resource's parameter. Its inputs are the documents of its session, those of the session before, and
// states: small data from answers before or from the configuration, such as the rows of a series.
//
// The intake fetches a document, decodes it, and refuses what its guard does not believe. [publisher.accept] computes the products
// that rest on it, with what the memory has of earlier answers, drops answers that equal the current ones, and seals, stores and
// publishes the others on the board. If a product fails, its last answer stays current. If all fail, or a later step, all last answers
// stay and the job backs off. After three failures in a row for one document, the answers that rest on it are stale. A start takes stored documents through accept, too.
//
// In a fleet, the jobs run only while this process holds the lease. Otherwise [follower.Follow] makes current what the
// refresher of the fleet has published.
package refresh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"strikecache/compute"
	"strikecache/refresh/fleet"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Config configures a [Refresher]. Source, Store, Calendar and Log must be set.
type Config struct {
	Source       upstream.Source
	SourceName   string // simulated, cboe, replay, folder or the name of a vendor, as in meta.source of every answer
	Identity     string // of the market, such as "simulated market, seed 1"; "" for the other sources
	Store        *snapshots.Store
	Clock        Clock
	Calendar     *compute.Calendar
	RiskFreeRate float64 // per year, continuously compounded

	// The intervals in the refresh window.
	ChainEvery  time.Duration // of the chain of the first underlying
	TurnEvery   time.Duration // from the chain of one other underlying to that of the next
	QuotesEvery time.Duration // of the sector quotes
	// Underlyings are the symbols, such as SPX and AAPL, whose chains are fetched. There is at least one.
	Underlyings []string
	products    products // of the underlyings

	// Version, unless nil, returns a text that changes whenever the source's document of a name does, and "" while there is
	// none. It is asked each second: a job runs as soon as a document of it has changed.
	Version func(upstream.Name) string

	// Past, unless nil, has the documents of past sessions. The refresher fills in the dates of the last BackfillSessions
	// sessions that are not stored.
	Past             PastSource
	BackfillSessions int

	// ArchiveMaxAge is how long the documents of stored answers are kept; 0 means for ever. SnapshotMaxAge is how long the
	// dated files of products that expire are kept; 0 means for ever.
	ArchiveMaxAge, SnapshotMaxAge time.Duration

	// Lease, unless nil, says whether this process may ask the upstream and publish. Published, unless nil, is called after
	// the current answers have changed.
	Lease     func() bool
	Published func()
	Log       *slog.Logger
	// Observe, unless nil, is called after every run of a job, with the outcome, the reason of each refused document, and
	// the duration. The code is ok, panic or an [upstream.Reason]. Jobs run at the same time, so Observe must be safe for
	// concurrent use. It is not called for a run that the end of the process interrupted.
	Observe func(job, code string, refused []string, took time.Duration)
}

func (c *Config) published() {
	if c.Published != nil {
		c.Published()
	}
}

// Refresher keeps the answers in the store current. Create it with [New] or [Flags.Open]. Store, Now, DiskError, ClockError,
// Offers and LastFailure are safe for concurrent use.
type Refresher struct {
	cfg Config
	*jobs

	member   *fleet.Member // nil outside a fleet
	follower *follower
}

// Fleet returns this process in a fleet, nil if it is in none.
func (r *Refresher) Fleet() *fleet.Member { return r.member }

// New returns a refresher. It neither fetches nor reads anything before [Refresher.Restore], [Refresher.Resume] or
// [Refresher.Run].
func New(cfg Config) *Refresher {
	r := &Refresher{cfg: cfg}
	r.jobs = newJobs(&r.cfg)
	return r
}

// Resources returns the names of all resources, in the order of the table.
func (r *Refresher) Resources() []string { return r.cfg.products.names() }

// Store returns the store that the refresher fills.
func (r *Refresher) Store() *snapshots.Store { return r.cfg.Store }

// Now returns the market's time.
func (r *Refresher) Now() time.Time { return r.cfg.Clock.Now() }

// ClockError returns an error while the clock is more than 10 minutes behind the last answer that is stored or served.
func (r *Refresher) ClockError() error { return r.board.clockError() }

// LastFailure returns the reason of the last failure of a resource whose refreshes fail, and "" for other resources.
func (r *Refresher) LastFailure(name string) string { return r.board.lastFailure(name) }

// Offers returns the resources that the source has documents for. The value says whether the resource has an answer now.
func (r *Refresher) Offers() map[string]bool {
	offers := r.offers
	if f := r.follower; f != nil && (f.edge || r.cfg.Lease != nil && !r.cfg.Lease()) {
		offers = f.offers
	}
	offered := map[string]bool{}
	for _, p := range r.cfg.products {
		if offers(p) {
			offered[p.name] = r.cfg.Store.Current(p.name) != nil
		}
	}
	return offered
}

// endWait is how long stop waits. A dead disk could block a use of it for ever, and other programs a refresh of low priority.
const endWait = 30 * time.Second

// Start runs [Refresher.Run], or takes part in the fleet, in a goroutine until ctx ends or stop is called. The caller must call stop
// once: it calls each function of first, which close other uses of the disk, waits until Run has returned, and closes the refresher.
// After 30 seconds it returns an error and leaves the rest: the stored files are as after a kill.
func (r *Refresher) Start(ctx context.Context, first ...func()) (stop func() error) {
	run := r.Run
	if r.member != nil {
		run = r.member.Run
	}
	ctx, cancel := context.WithCancel(ctx)
	ended, closed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(ended)
		run(ctx)
	}()
	return func() error {
		cancel()
		go func() {
			for _, f := range first {
				f()
			}
			<-ended
			closed <- r.Close()
		}()
		select {
		case err := <-closed:
			return err
		case <-time.After(endWait):
			return fmt.Errorf("a refresh, or another use of the disk, has not ended within %s: the disk does not answer, or the machine is overloaded", endWait)
		}
	}
}

// Close writes the files that wait for the disk and releases the store. [Refresher.Run] must have returned.
func (r *Refresher) Close() error { return r.cfg.Store.Close() }

// errNoInput is the error of a run that refused no document and has too few for an answer. Its reason is [upstream.Empty].
var errNoInput = errors.New("no input for an answer")

// partialFailure is the error of a run that refused some documents, or failed to compute some products, and published the other
// answers. The run is counted and logged as failed, but the job does not back off: its other documents and products are good.
type partialFailure struct{ error }

func (e *partialFailure) Unwrap() error { return e.error }

func partial(err error) bool {
	e := (*partialFailure)(nil)
	return errors.As(err, &e)
}

// refusedAmong returns the errors of refused documents and of products among the errors of a run that published its answers, nil when
// there are none.
func refusedAmong(errs ...error) error {
	var refused []error
	for _, err := range errs {
		if refusals(err) != nil || partial(err) {
			refused = append(refused, err)
		}
	}
	if refused == nil {
		return nil
	}
	return &partialFailure{errors.Join(refused...)}
}

// refusals returns the reason of each document that a run refused, from the error of the run, which the log has, too.
func refusals(err error) (reasons []string) {
	switch e := any(err).(type) {
	case *upstream.Error:
		if e.Reason.Refuses() {
			return []string{string(e.Reason)}
		}
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			reasons = append(reasons, refusals(err)...)
		}
	case interface{ Unwrap() error }:
		return refusals(e.Unwrap())
	}
	return reasons
}

// reasonOf returns the code of a failed refresh that clients see in meta.freshness.reason.
func reasonOf(err error) upstream.Reason {
	if errors.Is(err, errNoInput) {
		return upstream.Empty
	}
	return upstream.ReasonOf(err)
}
