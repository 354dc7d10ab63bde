// Package refresh turns upstream documents into sealed answers.
//
// A product makes the answers of one resource. The table [products] lists all products. A feed is a group of products that
// rest on the same kind of documents: option chains, sector quotes, or VIX futures settlements. A job fetches documents at
// an interval. An answer becomes an edition: one sealed snapshot for each value of the resource's parameter. The inputs of
// an answer are upstream documents and states: data from earlier answers or from the configuration, such as yesterday's
// volatilities.
//
// The path of a document:
//
//  1. A job fetches it and decodes it. A number outside the range of its kind counts as absent.
//  2. [Refresher.believe] refuses a document of the future. The guard compares a chain, or the quote of a fund, with the
//     accepted document of the same name, and may refuse it. A document that repeats the accepted one goes no further.
//  3. [Refresher.accept] computes the products that rest on it, seals the answers, archives the inputs, writes the dated
//     files, and makes the answers current at the same instant.
//
// If a step fails, the last answer stays current and the job backs off. After three failures in a row for one document, the
// answers that rest on the document are stale.
//
// In a fleet, the jobs run only while this process holds the lease. Otherwise [Refresher.Follow] makes current what the
// refresher of the fleet has published.
//
// A start takes archived documents through accept, too. Back-fill and recompute call the same compute functions.
package refresh

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/refresh/fleet"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Config configures a [Refresher]. Source, Store, Calendar and Log must be set.
type Config struct {
	Source       upstream.Source
	SourceName   string // simulated, cboe or replay, as in meta.source of every answer
	Identity     string // of the market, such as "simulated market, seed 1"; "" for cboe and replay
	Store        *snapshots.Store
	Clock        Clock
	Calendar     *compute.Calendar
	RiskFreeRate float64 // per year, continuously compounded

	// The intervals in session.
	ChainEvery  time.Duration // of the SPX chain
	QuotesEvery time.Duration // of the sector quotes
	FlowEvery   time.Duration // of the flow job, which fetches one chain of the flow universe per run
	FlowSymbols []string      // the flow universe without SPX

	// Past, unless nil, has the documents of past sessions. The refresher fills in the dates of the last BackfillSessions
	// sessions that are not stored, and the tracks of the last BackfillTracks of them.
	Past             PastSource
	BackfillSessions int
	BackfillTracks   int

	// Inputs, unless nil, archives the inputs of the stored answers for ArchiveMaxAge; 0 means for ever.
	Inputs        *archive.Archive
	ArchiveMaxAge time.Duration

	// SnapshotMaxAge is how long the dated files of max pain, the matrix and flow are kept; 0 means for ever.
	SnapshotMaxAge time.Duration

	// Fleet, unless nil, is this process in a fleet: the refresher runs only while the member holds the lease.
	Fleet *fleet.Member
	Edge  bool // this process never refreshes
	Log   *slog.Logger
	// Observe, unless nil, is called after every run of a job, with the outcome, the reason of each refused document, and
	// the duration. The code is ok, panic or an [upstream.Reason]. Jobs run at the same time, so Observe must be safe for
	// concurrent use. It is not called for a run that the end of the process interrupted.
	Observe func(job, code string, refused []string, took time.Duration)
}

// Refresher keeps the answers in the store current. Create it with [New] or [Flags.Open]. Store, Now, DiskError and Offers
// are safe for concurrent use.
type Refresher struct {
	cfg   Config
	store *snapshots.Store
	cal   *compute.Calendar
	log   *slog.Logger

	products []*product // the table

	// publishing is held while documents go from compute to archive: one publication at a time. It is taken before mu.
	publishing      sync.Mutex
	publishingSince atomic.Int64 // when the publication under way began, in Unix seconds of the machine's clock; 0: none

	// spxTurn is held while the SPX chain is refreshed, and while a row of a past track is computed: both at a time would take
	// 20 MB more memory. It is taken before publishing.
	spxTurn sync.Mutex

	mu         sync.Mutex // guards the next three fields; held only briefly
	current    map[string]*currentAnswer
	accepted   map[upstream.Name]*document // the documents that were accepted last
	lastAnswer time.Time                   // when the last answer that is stored or served was computed, in market time

	received map[string]*currentAnswer // in a fleet, the answers that the next Follow makes current, by path; mu guards it
	offered  map[string]bool           // in a fleet, the resources that the refresher can feed; nil: not known; mu guards it
	expired  time.Time                 // in a fleet, when a follower last removed old files; of Watch alone

	hidden []string // stored dates after the clock, which are not served; of Restore and the freshness job alone

	// State that later answers need; publishing guards it.
	carry         map[compute.Series]float64 // of the last gamma answer
	rows          map[string]seriesRow       // of the series, by UTC date
	track         *answer                    // the track that was published last; nil before the first
	history       []vixSummary               // of stored settlement dates, rising
	states        sessionStates
	inputsRefused int             // writes of archived inputs that the disk has refused since the outage began; 0: no outage
	reported      map[string]bool // jobs whose first refresh was logged

	// Each of the following fields is used by one job alone.
	guards       map[upstream.Name]*guard
	flowTurn     int                         // of the flow universe; -1 before the first run, which fetches all chains
	historyAsked map[upstream.Name]time.Time // last request for a fund's history
	vixAsked     map[upstream.Name]time.Time // last request under latestSettlement and under closesState
}

// batch is the new documents of one run of a job, on their way through [Refresher.accept]. If it has no document of a name,
// the accepted document of that name is used.
type batch struct {
	r         *Refresher
	job       string    // the job that makes the batch
	at        time.Time // the time of the computation, in market time
	documents map[upstream.Name]*document
	states    map[string]datedState // stored together with the answers, by name
	past      bool                  // the documents are of a past session: no accepted document is used
	trackRows []json.RawMessage     // rows before the newest, of a track that is not the served one; nil: the served track
}

func (r *Refresher) newBatch(job string) *batch {
	return &batch{r: r, job: job, at: r.cfg.Clock.Now(), documents: map[upstream.Name]*document{}, states: map[string]datedState{}}
}

// document returns the document of a name from the batch, else the accepted one, nil when there is neither.
func (b *batch) document(name upstream.Name) *document {
	if d := b.documents[name]; d != nil || b.past {
		return d
	}
	return b.r.acceptedDocument(name)
}

// inputs returns inputs with the documents that are not nil. It returns nil when all documents are nil.
func (b *batch) inputs(documents ...*document) *inputs {
	in := &inputs{at: b.at, calendar: b.r.cal, source: b.r.cfg.SourceName}
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

// settlement returns the settlement file of the batch, else the accepted one, nil when there is neither.
func (b *batch) settlement() *settlement {
	if d := b.document(latestSettlement); d != nil {
		return d.settlement
	}
	return nil
}

// acceptedDocument returns the document of a name that was accepted last, nil before the first.
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

func (r *Refresher) beginPublication() { r.publishingSince.Store(time.Now().Unix()) }

func (r *Refresher) endPublication() { r.publishingSince.Store(0) }

// maxPublication is the duration of a publication after which [Refresher.DiskError] reports that the disk does not answer.
const maxPublication = 90 * time.Second

// DiskError returns why files could not be written yet, or that the disk does not answer. It returns nil when every file is
// written. It never waits for the disk.
func (r *Refresher) DiskError() error {
	if since := r.publishingSince.Load(); since != 0 && time.Since(time.Unix(since, 0)) > maxPublication {
		return fmt.Errorf("disk has not answered since %s", time.Unix(since, 0).UTC().Format(time.RFC3339))
	}
	return errors.Join(r.store.DiskError(), r.cfg.Inputs.Err())
}

// ClockError returns an error while the clock is more than 10 minutes behind the last answer that is stored or served: the
// clock was set back. If the upstream's clock was not set back, its documents are then refused as clock_ahead.
func (r *Refresher) ClockError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.cfg.Clock.Now(); r.lastAnswer.After(now.Add(maxAhead)) {
		return fmt.Errorf("clock shows %s, behind the last answer of %s", now.Format(time.RFC3339), r.lastAnswer.Format(time.RFC3339))
	}
	return nil
}

// Store returns the store that the refresher fills.
func (r *Refresher) Store() *snapshots.Store { return r.store }

// Now returns the market's time.
func (r *Refresher) Now() time.Time { return r.cfg.Clock.Now() }

func (r *Refresher) hasAnswer(name string) bool { return r.store.Current(name) != nil }

// published tells the fleet that the current answers have changed.
func (r *Refresher) published() {
	if r.cfg.Fleet != nil {
		r.cfg.Fleet.Publish()
	}
}

// Offers returns the resources that the source has documents for. The value says whether the resource has an answer now.
func (r *Refresher) Offers() map[string]bool {
	offered := map[string]bool{}
	for _, p := range r.products {
		if r.offers(p) {
			offered[p.name] = r.hasAnswer(p.name)
		}
	}
	return offered
}

// offers says whether the source has documents of a product. An edge has no source: it knows from the fleet, and before
// that it waits for every product.
func (r *Refresher) offers(p *product) bool {
	if !r.cfg.Edge {
		return p.offered(&r.cfg)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.offered == nil || r.offered[p.name]
}

// refusal is the error of a document that arrived but was not accepted.
type refusal struct {
	reason upstream.Reason
	err    error
}

func (e *refusal) Error() string { return fmt.Sprintf("%s: %v", e.reason, e.err) }

func (e *refusal) Unwrap() error { return e.err }

// errNoInput is the error of a run that has too few documents for an answer, although it refused none. Its reason is
// [upstream.Empty].
var errNoInput = errors.New("no input for an answer")

// partialFailure is the error of a run that refused some documents and published answers without them. The run is counted
// and logged as failed, but the job does not back off: its other documents are good.
type partialFailure struct{ error }

func (e *partialFailure) Unwrap() error { return e.error }

// refusedAmong returns the errors of documents that arrived and were refused, or had no usable data, among the errors of a run
// that published its answers. It returns nil when there are none.
func refusedAmong(errs ...error) error {
	var refused []error
	for _, err := range errs {
		if refusals(err) != nil {
			refused = append(refused, err)
		}
	}
	if refused == nil {
		return nil
	}
	return &partialFailure{errors.Join(refused...)}
}

// refusals returns the reason of each document that a run refused, from the error of the run. The log line of the run has
// the same error, so the log and the counter never differ.
func refusals(err error) (reasons []string) {
	switch e := any(err).(type) {
	case *refusal:
		return []string{string(e.reason)}
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
	var e *refusal
	if errors.As(err, &e) {
		return e.reason
	}
	if errors.Is(err, errNoInput) {
		return upstream.Empty
	}
	return upstream.ReasonOf(err)
}
