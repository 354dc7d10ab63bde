package refresh

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// publisher takes documents to answers: it alone knows the intake, the memory and the board. One publication runs at a time.
type publisher struct {
	cfg    *Config
	store  *snapshots.Store
	log    *slog.Logger
	intake *intake
	memory *memory
	board  *board

	changes    map[string]*nextChange   // by job of the schedule
	refreshing map[string][]*nextChange // of the jobs that refresh a resource

	mu    sync.Mutex                // held during a publication
	since atomic.Pointer[time.Time] // when the publication under way began; nil: none

	reported map[string]bool // jobs whose first refresh was logged; guarded by mu
}

func newPublisher(cfg *Config) *publisher {
	return &publisher{cfg: cfg, store: cfg.Store, log: cfg.Log, board: newBoard(cfg), changes: map[string]*nextChange{}, refreshing: map[string][]*nextChange{}, reported: map[string]bool{}}
}

var errNoLease = errors.New("this member of the fleet does not hold the lease")

// newBatch returns an empty batch. It may be given documents before [publisher.accept].
func (p *publisher) newBatch(job string) *batch {
	return &batch{
		cfg: p.cfg, job: job, at: p.cfg.Clock.Now(), documents: map[upstream.Name]*document{}, accepted: p.intake.document, answers: map[string]*answer{},
	}
}

// accept publishes the answers that the documents of a batch give. In order, it
//
//  1. computes each product,
//  2. drops the answers that match the current ones: the current answer stays as it is, with its receipt,
//  3. seals the others,
//  4. gives their inputs and files to the fleet, if there is one, and stores them,
//  5. makes them current, all at the same instant,
//  6. remembers the documents as accepted.
//
// A product that fails in step 1 keeps its current answer. The others are published, the error is a [*partialFailure], and the documents
// are asked for again. If all products fail, or one of the steps 3, 4 and 5, the documents are not accepted, and the current answers
// stay. A disk that refuses a file fails no step: the file is written later. succeeded names the documents, as [board.fail] does, whose
// failures end with step 5, but for the products that failed.
func (p *publisher) accept(b *batch, products products, succeeded ...string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	began := time.Now()
	p.since.Store(&began)
	defer p.since.Store(nil)
	b.at = p.cfg.Clock.Now()
	answers, failed, failure := p.compute(b, products)
	if len(failed) == len(products) {
		return failure
	}
	changed := slices.DeleteFunc(slices.Clone(answers), func(a *answer) bool { return a.matches(p.board.now(a.product.name).edition, p.cfg) })
	for _, a := range changed {
		if err := a.seal(p.cfg, p.board.freshnessOf(a, succeeded)); err != nil {
			return fmt.Errorf("seal %s: %w", a.product.name, err)
		}
	}
	if err := p.save(b, changed); err != nil {
		return err
	}
	good := products.where(func(x *product) bool { return !slices.Contains(failed, x) })
	if err := p.board.show(changed, good, succeeded); err != nil {
		return err
	}
	if change := p.changes[b.job]; change != nil {
		change.published()
	}
	p.cfg.published()
	p.intake.accept(b.documents)
	p.drop(b, answers)
	p.report(b, changed, time.Since(began))
	if failed == nil {
		return nil
	}
	for _, d := range b.documents {
		d.failed = true
	}
	for _, document := range succeeded {
		_ = p.board.fail(document, failure, failed)
	}
	return &partialFailure{failure}
}

// compute returns the answers of the products, in order, without the products that have no inputs or nothing to add, and the products
// that failed, with their errors joined.
func (p *publisher) compute(b *batch, products products) (answers []*answer, failed products, failure error) {
	var errs []error
	for _, product := range products {
		a, err := product.next(b, p.memory)
		if err == nil && a != nil && (p.board.now(product.name).edition == nil || p.cfg.Clock.standsStill()) {
			err = a.usable()
		}
		if err != nil {
			failed, errs = append(failed, product), append(errs, err)
		} else if a != nil {
			b.answers[product.name] = a
			answers = append(answers, a)
		}
	}
	return answers, failed, errors.Join(errs...)
}

// save stores the inputs and the files of answers.
func (p *publisher) save(b *batch, answers []*answer) error {
	var files []snapshots.File
	var objects []snapshots.Object
	for _, a := range answers {
		files = append(files, a.file(b.dates(a)))
		objects = append(objects, a.objects()...)
	}
	return p.store.Save(files, objects)
}

// drop drops the bytes of the documents that are stored, and the decoded chains that can be read again. A document that no
// answer names keeps its gzip: a later answer may name it.
func (p *publisher) drop(b *batch, answers []*answer) {
	for _, d := range b.documents {
		if p.store.Has(d.SHA256) {
			d.stored(p.store.Object)
		} else if packed := d.Gzip; packed != nil {
			name := d.upstreamName()
			d.load = func(string) ([]byte, error) { return cboe.Unpack(&upstream.Document{Name: name, Gzip: packed}) }
		}
		d.release()
	}
	for _, a := range answers {
		for _, d := range a.inputs.documents {
			d.release()
		}
	}
}

// report logs what was published: at level info the first time that a job publishes, at level debug later.
func (p *publisher) report(b *batch, answers []*answer, took time.Duration) {
	if len(answers) == 0 {
		return
	}
	log := p.log.Debug
	if !p.reported[b.job] {
		p.reported[b.job], log = true, p.log.Info
	}
	var names []string
	for _, a := range answers {
		names = append(names, a.product.name)
	}
	log("refreshed", "job", b.job, "as_of", answers[0].asOf, "new_documents", len(b.documents), "resources", names, "took", took)
}

// maxPublication is the duration of a publication after which [publisher.DiskError] reports that the disk does not answer.
const maxPublication = 90 * time.Second

// DiskError returns why files could not be written yet, or that the disk does not answer. It returns nil when every file is
// written. It never waits for the disk.
func (p *publisher) DiskError() error {
	if since := p.since.Load(); since != nil && time.Since(*since) > maxPublication {
		return fmt.Errorf("disk has not answered since %s", since.UTC().Format(time.RFC3339))
	}
	return p.store.DiskError()
}
