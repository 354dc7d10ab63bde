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
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccy/go-json"

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
	Past             PastSource
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

	products []*product // the table

	// publishing is held while documents go from compute to archive: one publication at a time. It is taken before mu.
	publishing      sync.Mutex
	publishingSince atomic.Int64 // when the publication under way began, in Unix seconds of the machine's clock; 0: none

	mu       sync.Mutex // guards what follows, for moments
	current  map[string]*currentAnswer
	accepted map[upstream.Name]*document // the documents that went the whole way last

	// Kept state; publishing guards it.
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

// view is what is known while documents are on their way: the fresh ones, and behind them the accepted ones.
type batch struct {
	r         *Refresher
	job       string // that takes them
	at        time.Time
	documents map[upstream.Name]*document
	past      bool // the fresh documents stand alone: they are those of a past session
}

// newBatch returns a view of documents that are on their way.
func (r *Refresher) newBatch(job string) *batch {
	return &batch{r: r, job: job, at: r.cfg.Clock.Now(), documents: map[upstream.Name]*document{}}
}

// document returns the newest document of a name, nil when there is none.
func (b *batch) document(name upstream.Name) *document {
	if d := b.documents[name]; d != nil || b.past {
		return d
	}
	return b.r.acceptedDocument(name)
}

// inputs returns inputs of the documents that are there, nil without any.
func (b *batch) inputs(documents ...*document) *inputs {
	in := &inputs{at: b.at, calendar: b.r.cal, riskFreeRate: b.r.cfg.RiskFreeRate, source: b.r.cfg.SourceName}
	for _, d := range documents {
		if d != nil {
			in.documents = append(in.documents, d)
		}
	}
	if in.documents == nil {
		return nil
	}
	return in
}

// fetch asks the source for a document and decodes it. The error is [upstream.ErrNotModified] when it is still the
// accepted one.
func (r *Refresher) fetch(ctx context.Context, name upstream.Name) (*document, error) {
	var since *upstream.Document
	r.mu.Lock()
	if d := r.accepted[name]; d != nil {
		since = d.origin
	}
	r.mu.Unlock()
	doc, err := r.cfg.Source.Fetch(ctx, name, since)
	if err != nil {
		return nil, err
	}
	return newDocument(doc)
}

// acceptedDocument returns the document of a name that went its whole way last, nil before the first.
func (r *Refresher) acceptedDocument(name upstream.Name) *document {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted[name]
}

// ofFeed returns the products of a feed, in the order of the table.
func (r *Refresher) ofFeed(feed string) (of []*product) {
	for _, p := range r.products {
		if p.feed == feed {
			of = append(of, p)
		}
	}
	return of
}

// begin and end say when a publication is under way.
func (r *Refresher) beginPublication() { r.publishingSince.Store(time.Now().Unix()) }

func (r *Refresher) endPublication() { r.publishingSince.Store(0) }

// maxPublication is how long a publication may take before the disk is suspected not to answer.
const maxPublication = 90 * time.Second

// DiskError returns why files wait for the disk, or that it does not answer; nil when all is well. It never waits for
// the disk.
func (r *Refresher) DiskError() error {
	if since := r.publishingSince.Load(); since != 0 && time.Since(time.Unix(since, 0)) > maxPublication {
		return fmt.Errorf("the disk has not answered since %s", time.Unix(since, 0).UTC().Format(time.RFC3339))
	}
	return errors.Join(r.store.DiskError(), r.cfg.Inputs.Err())
}

// Store returns the store that the refresher fills.
func (r *Refresher) Store() *snapshots.Store { return r.store }

// Now returns the market's time.
func (r *Refresher) Now() time.Time { return r.cfg.Clock.Now() }

// holds says whether a resource has an answer.
func (r *Refresher) hasAnswer(name string) bool { return r.store.Current(name) != nil }

// Offers returns the resources that the source could ever feed, and whether each has an answer.
func (r *Refresher) Offers() map[string]bool {
	offered := map[string]bool{}
	for _, p := range r.products {
		if p.offered(&r.cfg) {
			offered[p.name] = r.hasAnswer(p.name)
		}
	}
	return offered
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
