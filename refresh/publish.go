package refresh

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/snapshots"
)

// accept publishes the answers that the documents of a batch give. In order, it
//
//  1. computes each product,
//  2. drops the answers that match the current ones, and seals the others,
//  3. writes their dated files,
//  4. makes them current, all at the same instant,
//  5. remembers the documents as accepted, and the state that later answers need,
//  6. archives the inputs.
//
// If one of the steps 1, 2 and 4 fails, accept returns the error: the documents are not accepted, and the current answers
// stay. A disk that refuses a file fails no step: the file is written later. succeeded names the documents, as
// [Refresher.fail] does, whose failures end with step 5.
func (r *Refresher) accept(b *batch, feed string, products []*product, succeeded ...string) error {
	r.publishing.Lock()
	defer r.publishing.Unlock()
	r.beginPublication()
	defer r.endPublication()
	steps := newStopwatch()
	answers, err := r.compute(b, products)
	if err != nil {
		return err
	}
	states, err := b.encodeStates(r.cal)
	if err != nil {
		return err
	}
	steps.lap("compute_ms")
	r.mu.Lock()
	changed := slices.DeleteFunc(slices.Clone(answers), func(a *answer) bool { return r.current[a.product.name].matches(a, &r.cfg) && r.archived(a) })
	r.mu.Unlock()
	if err := r.seal(changed, succeeded); err != nil {
		return err
	}
	steps.lap("seal_ms")
	r.write(changed, states)
	steps.lap("write_ms")
	if err := r.makeCurrent(feed, changed); err != nil {
		return err
	}
	r.remember(b, answers, succeeded)
	r.archive(changed)
	steps.lap("archive_ms")
	r.report(b, changed, steps)
	for _, d := range b.documents {
		if d.part != nil {
			d.chain = nil
		}
		if r.cfg.Inputs == nil || d.load != nil {
			d.Body = nil
		}
	}
	return nil
}

// compute returns the answers of the products, in order, without the products whose inputs are not complete.
func (r *Refresher) compute(b *batch, products []*product) ([]*answer, error) {
	var answers []*answer
	above := map[string]*answer{}
	for _, p := range products {
		in, err := p.gather(b, above)
		if err != nil {
			return nil, err
		}
		if in == nil {
			continue
		}
		a, err := p.answer(in)
		if err != nil {
			return nil, err
		}
		above[p.name] = a
		answers = append(answers, a)
	}
	return answers, nil
}

// encodeStates returns the volatility state of each chain of the batch, by the name of the state.
func (b *batch) encodeStates(cal *compute.Calendar) (map[string]datedState, error) {
	states := map[string]datedState{}
	for _, d := range b.documents {
		if d.chain == nil || d.origin == nil {
			continue // not a chain, or a chain from the archive, whose state is already stored
		}
		encoded, err := encodeVolatility(d.chain)
		if err != nil {
			return nil, fmt.Errorf("encode volatilities of %s: %w", d.symbol(), err)
		}
		states[volatilityState+d.symbol()] = datedState{d.session(cal).String(), encoded}
	}
	return states, nil
}

// datedState is a state of ours, stored under the date of a session.
type datedState struct {
	date string
	body []byte
}

// seal seals the answers, with the freshness that they have once the failures of the succeeded documents have ended.
func (r *Refresher) seal(answers []*answer, succeeded []string) error {
	now := r.cfg.Clock.Now()
	for _, a := range answers {
		r.mu.Lock()
		h := r.current[a.product.name]
		fresh := r.freshness(a.product, h.health.worst(a.restsOn, succeeded), a.asOf, now)
		r.mu.Unlock()
		if err := a.seal(r, fresh); err != nil {
			return fmt.Errorf("seal %s: %w", a.product.name, err)
		}
	}
	return nil
}

// write writes the dated files. If the disk refuses a file, the answer is served all the same: the store keeps the file in
// memory, reports the disk as impaired and writes the file later.
func (r *Refresher) write(answers []*answer, states map[string]datedState) {
	for name, s := range states {
		r.writeState(name, s.date, s.body)
	}
	for _, a := range answers {
		if r.needsFile(a) {
			r.writeFile(a)
		}
	}
}

func (r *Refresher) writeState(name, date string, body []byte) {
	if err := r.store.SaveState(name, date, body); err != nil {
		r.log.Debug("state not written yet", "state", name, "err", err)
	}
}

func (r *Refresher) writeFile(a *answer) {
	f := snapshots.File{Edition: a.edition, Content: a.inputs.content(), Summary: a.summary}
	if a.storedVariant != "" {
		f.Edition = &snapshots.Edition{Default: a.edition.Variants[a.storedVariant]}
	}
	save := r.store.Save
	if a.product.finalAtClose && a.late {
		save = r.store.SaveLate
	}
	a.hasFile = !a.product.finalAtClose || !a.late
	if err := save(a.product.name, a.date().String(), f); err != nil {
		r.log.Debug("snapshot not written yet", "resource", a.product.name, "err", err)
	}
}

// needsFile says whether an answer is written to a dated file. At a start, a new method or configuration may give another
// answer of the documents of a closed date. That answer is not written: the file of a closed date stays as it is. The
// exception is the VIX curve, which also changes when a new session begins: it is written if the method is the same.
func (r *Refresher) needsFile(a *answer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, p := r.current[a.product.name], a.product
	if !h.restored || h.content != a.inputs.content() || !dateClosed(a.date(), r.cfg.Clock.Now()) {
		return p.stored
	}
	return p.daily && h.edition.Default.Meta.Receipt.Method == p.method
}

// makeCurrent makes the sealed answers current, all at the same instant.
func (r *Refresher) makeCurrent(feed string, answers []*answer) error {
	if len(answers) == 0 {
		return nil
	}
	editions := map[string]*snapshots.Edition{}
	for _, a := range answers {
		editions[a.product.name] = a.edition
	}
	return r.store.Publish(feed, editions)
}

// remember records, after the answers have become current, the documents that later ones are compared with, and the state
// that later answers need.
func (r *Refresher) remember(b *batch, answers []*answer, succeeded []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, d := range b.documents {
		old := r.accepted[name]
		if old != nil && old.content == d.content && !published(d, answers) {
			old.origin, old.mark = d.origin, d.mark // current answers name the old document in their receipts
			continue
		}
		r.accepted[name] = d
	}
	for _, a := range answers {
		h := r.current[a.product.name]
		if a.edition != nil {
			h.edition, h.content = a.edition, a.inputs.content()
		}
		h.restsOn, h.restored = a.restsOn, false
		h.health.end(succeeded)
		if a.product.remember != nil {
			a.product.remember(r, a)
		}
	}
}

// published says whether one of the answers that rest on the document was published.
func published(d *document, answers []*answer) bool {
	return slices.ContainsFunc(answers, func(a *answer) bool { return a.edition != nil && slices.Contains(a.inputs.documents, d) })
}

// archived says whether the inputs of the product's current answer are in the archive, or need not be. They are missing
// after a crash between writing the answer and archiving its inputs: then the answer is published again with its new inputs.
func (r *Refresher) archived(a *answer) bool {
	h := r.current[a.product.name]
	return r.cfg.Inputs == nil || !a.product.stored ||
		r.cfg.Inputs.Holds(a.product.name, compute.DateOf(h.asOf().UTC()).String(), h.edition.Default.Meta.Receipt.InputSHA256)
}

// archive puts the inputs of the answers that have files into the archive, and drops the bytes of all documents from memory.
// If the disk refuses the inputs, the archive writes them later.
func (r *Refresher) archive(answers []*answer) {
	var recipes []archive.Recipe
	var documents []*archive.Document
	for _, a := range answers {
		for _, d := range slices.Concat(a.inputs.documents, a.inputs.states) {
			documents = append(documents, &d.Document)
		}
		if r.cfg.Inputs != nil && a.hasFile {
			recipes = append(recipes, a.recipe())
		}
	}
	if len(recipes) > 0 {
		if err := r.cfg.Inputs.Put(recipes, documents); err != nil {
			r.log.Debug("inputs not archived yet", "err", err)
		}
	}
	for _, d := range documents {
		d.Body = nil
	}
}

// report logs what was published: at level info the first time that a job publishes, at level debug later.
func (r *Refresher) report(b *batch, answers []*answer, steps *stopwatch) {
	if len(answers) == 0 {
		return
	}
	log := r.log.Debug
	if !r.reported[b.job] {
		r.reported[b.job], log = true, r.log.Info
	}
	var names []string
	for _, a := range answers {
		names = append(names, a.product.name)
	}
	log("refreshed", steps.with("job", b.job, "as_of", answers[0].asOf, "documents", len(b.documents), "resources", names)...)
}

// stopwatch measures the steps of a refresh for its log line.
type stopwatch struct {
	last  time.Time
	attrs []any
}

func newStopwatch() *stopwatch { return &stopwatch{last: time.Now()} }

// lap adds the milliseconds since the last lap.
func (w *stopwatch) lap(name string) {
	now := time.Now()
	w.attrs = append(w.attrs, slog.Float64(name, float64(now.Sub(w.last).Microseconds())/1000))
	w.last = now
}

// with returns the given attributes and the laps.
func (w *stopwatch) with(attrs ...any) []any { return append(attrs, w.attrs...) }
