package refresh

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/refresh/fleet"
	"strikecache/snapshots"
)

// accept publishes the answers that the documents of a batch give. In order, it
//
//  1. computes each product,
//  2. drops the answers that match the current ones ([Refresher.changed]), seals the others, and at the same time archives
//     their inputs and encodes the states of the batch,
//  3. writes their dated files and the states,
//  4. makes them current, all at the same instant,
//  5. remembers the documents as accepted, and the state that later answers need,
//  6. removes the archived inputs of the answers that were in the files before.
//
// If one of the steps 1, 2 and 4 fails, accept returns the error: the documents are not accepted, and the current answers
// stay. A disk that refuses a file fails no step: the file is written later. succeeded names the documents, as
// [Refresher.fail] does, whose failures end with step 5.
func (r *Refresher) accept(b *batch, products []*product, succeeded ...string) error {
	r.publishing.Lock()
	defer r.publishing.Unlock()
	r.beginPublication()
	defer r.endPublication()
	b.at = r.cfg.Clock.Now()
	r.saveResealed()
	steps := newStopwatch()
	answers, err := r.compute(b, products)
	if err != nil {
		return err
	}
	steps.lap("compute_ms")
	if err := r.publish(b, products, answers, r.changed(b, answers), succeeded, steps); err != nil {
		return err
	}
	for _, d := range b.documents {
		if d.part != nil {
			d.chain = nil
		}
		if r.cfg.Inputs == nil || d.load != nil {
			d.Drop()
		}
	}
	return nil
}

// publish takes the changed answers of a batch through the steps from seal to archive. answers are all answers of the
// products. The caller must have locked r.publishing.
func (r *Refresher) publish(b *batch, products []*product, answers, changed []*answer, succeeded []string, steps *stopwatch) error {
	if err := r.seal(changed, succeeded); err != nil {
		return err
	}
	r.archiveNext(changed)
	if err := r.encodeStates(b, answers); err != nil {
		return err
	}
	steps.lap("seal_ms")
	if r.cfg.Fleet != nil && !r.cfg.Fleet.Holds() {
		return errNoLease // another member may publish already
	}
	r.write(changed, b.states)
	steps.lap("write_ms")
	if err := r.makeCurrent(b, products, answers, changed, succeeded); err != nil {
		return err
	}
	r.archive(changed)
	steps.lap("archive_ms")
	r.report(b, changed, steps)
	return nil
}

// compute returns the answers of the products, in order, without the products that have no inputs or nothing to add.
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
		if err := in.addClosures(); err != nil {
			return nil, err
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

// seal seals the answers, with the freshness that they have once the failures of the succeeded documents have ended.
func (r *Refresher) seal(answers []*answer, succeeded []string) error {
	now := r.cfg.Clock.Now()
	for _, a := range answers {
		r.mu.Lock()
		h, q := r.current[a.product.name], a.product.quoteInstant(a.asOf, a.captured, a.restsOn, r.cal)
		fresh := r.freshness(a.product, h.health.worst(a.restsOn, succeeded), now, a.asOf, q)
		r.mu.Unlock()
		if err := a.seal(r, fresh); err != nil {
			return fmt.Errorf("seal %s: %w", a.product.name, err)
		}
	}
	return nil
}

// archiveNext says of each answer whether it belongs into the file of its date, and archives its inputs beside those of the answer
// that the file still has. It comes before the file, so that a kill leaves the inputs of the answer in the file.
func (r *Refresher) archiveNext(answers []*answer) {
	for _, a := range answers {
		a.hasFile = r.ownsFile(a)
	}
	r.putInputs(answers, archive.Next)
}

// write writes the dated files and the states. If the disk refuses a file, the answer is still served: the store keeps the file
// in memory, reports the disk as impaired and writes the file later.
func (r *Refresher) write(answers []*answer, states map[string]datedState) {
	var files []snapshots.Saved
	add := func(f snapshots.Saved, err error) {
		if r.notWritten(err); err == nil {
			files = append(files, f)
		}
	}
	for name, s := range states {
		add(snapshots.NewSavedState(name, s.date, s.body))
	}
	for _, a := range answers {
		f := snapshots.File{Edition: a.edition, Content: a.inputs.content(), Summary: a.summary}
		if a.storedVariant != "" {
			f.Edition = &snapshots.Edition{Default: a.edition.Variants[a.storedVariant]}
		}
		if a.hasFile {
			add(snapshots.NewSaved(a.product.name, a.date().String(), f))
		} else {
			add(snapshots.NewSavedLate(a.product.name, a.date().String(), f))
		}
	}
	r.store.SaveAll(files...) // logs what the disk refuses
	for _, a := range answers {
		a.file = r.fileOf(a.product, a.date(), !a.hasFile)
	}
}

// fileOf returns the path and the digest of the file that was saved last for an answer.
func (r *Refresher) fileOf(p *product, date compute.Date, late bool) fleet.File {
	path := snapshots.Path(p.name, date.String(), late)
	return fleet.File{Path: path, SHA256: r.store.Digest(path)}
}

// notWritten logs an error of a file, unless the file is pending: the store logs the outage itself, once, and writes the file
// later.
func (r *Refresher) notWritten(err error) {
	if err != nil && !errors.Is(err, snapshots.ErrPending) {
		r.log.Error("file not written", "err", err)
	}
}

// ownsFile says whether an answer belongs into the file of its date. Another answer gets a file beside it, which a restart
// serves: 1. a late answer. 2. An answer of a closed date that a start computes again from the same documents, because the
// method or the configuration has changed. The VIX curve also changes when a new session begins. It then belongs into the
// file if its method is unchanged.
func (r *Refresher) ownsFile(a *answer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, p := r.current[a.product.name], a.product
	same := h.edition != nil && (h.content == a.inputs.content() || h.restsOnAll(a.inputs.upstream()))
	if !h.restored || !same || !dateClosed(a.date(), r.cfg.Clock.Now()) {
		return !p.finalAtClose || !a.late
	}
	return p.daily && h.edition.Default.Meta.Receipt.Method == p.method
}

// makeCurrent makes the changed answers of a feed current, all at the same instant, and remembers the batch.
// [Refresher.reseal] cannot run between the two.
func (r *Refresher) makeCurrent(b *batch, products []*product, answers, changed []*answer, succeeded []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	editions := map[string]*snapshots.Edition{}
	for _, a := range changed {
		editions[a.product.name] = a.edition
	}
	if len(editions) > 0 {
		if err := r.store.Publish(editions); err != nil {
			return err
		}
	}
	defer r.published()
	r.remember(b, answers)
	for _, p := range products { // also those without a new answer, such as a track to which the chain adds no row
		r.current[p.name].health.end(succeeded)
	}
	return nil
}

// remember stores what later documents are compared with. The caller must have locked r.mu.
func (r *Refresher) remember(b *batch, answers []*answer) {
	for name, d := range b.documents {
		old := r.accepted[name]
		if old != nil && old.content == d.content && !published(d, answers) {
			old.origin, old.mark = d.origin, d.mark // current answers name the old document in their receipts
			continue
		}
		r.accepted[name] = d
	}
	for _, a := range answers {
		r.lastAnswer = later(r.lastAnswer, a.inputs.at)
		h := r.current[a.product.name]
		if a.edition != nil {
			h.edition, h.summary, h.file, h.unsaved = a.edition, a.summary, a.file, false
		}
		h.content, h.restsOn, h.restored = a.inputs.content(), a.restsOn, false
		if a.product.remember != nil {
			a.product.remember(r, a)
		}
	}
}

// published says whether one of the answers that rest on the document was published.
func published(d *document, answers []*answer) bool {
	return slices.ContainsFunc(answers, func(a *answer) bool { return a.edition != nil && slices.Contains(a.inputs.documents, d) })
}

// changed returns the answers to publish: 1. each answer that would change something, 2. each answer that shares a document
// or a state with one of these, if its current answer names an older document of the same content, or an older state. So the
// answers of a feed have one instant and one carry. The second case follows a kill between the files of a feed.
func (r *Refresher) changed(b *batch, answers []*answer) (changed []*answer) {
	same := map[*answer]bool{}
	for _, a := range answers {
		same[a] = r.unchanged(b, a)
	}
	for _, a := range answers {
		if !same[a] || slices.ContainsFunc(answers, func(other *answer) bool {
			return !same[other] && slices.ContainsFunc(a.inputs.documents, func(d *document) bool {
				return slices.Contains(other.inputs.documents, d) && !r.names(a.product.name, d)
			})
		}) {
			changed = append(changed, a)
		}
	}
	return changed
}

// names says whether the receipt of the current answer of a resource names a document.
func (r *Refresher) names(resource string, d *document) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.current[resource]
	return h.edition != nil && slices.Contains(h.edition.Default.Meta.Receipt.InputSHA256, d.SHA256)
}

// unchanged says whether publishing an answer would change nothing. A start keeps a stored answer only if the whole receipt
// and the data are the same. After a crash before the inputs of an answer were archived, a start publishes the answer again
// with the inputs that it has.
func (r *Refresher) unchanged(b *batch, a *answer) bool {
	r.mu.Lock()
	h := r.current[a.product.name]
	matches, check := h.matches(a, &r.cfg, b.job == resumeJob), h.restored && r.cfg.Inputs != nil && !dateClosed(a.date(), a.inputs.at)
	r.mu.Unlock()
	return matches && (!check || r.cfg.Inputs.Holds(a.product.name, a.date().String(), h.edition.Default.Meta.Receipt.InputSHA256))
}

// saveResealed writes the files of answers whose freshness changed since they were written, while their dates are open. A
// stale answer is not written: it is not a new snapshot of its date.
func (r *Refresher) saveResealed() {
	for _, p := range r.products {
		r.mu.Lock()
		h := r.current[p.name]
		edition, f := h.edition, snapshots.File{Edition: h.edition, Content: h.content, Summary: h.summary}
		due := h.unsaved && edition.Default.Meta.Freshness.State != stateStale
		if due {
			h.unsaved = false
		}
		r.mu.Unlock()
		if !due {
			continue
		}
		date := compute.DateOf(edition.Default.Meta.AsOf.UTC())
		if dateClosed(date, r.cfg.Clock.Now()) {
			continue
		}
		if p.name == FlowResource {
			f.Edition = &snapshots.Edition{Default: edition.Variants[allFlow]}
		}
		r.notWritten(r.store.Save(p.name, date.String(), f))
		file := r.fileOf(p, date, false)
		r.mu.Lock()
		h.file = file
		r.mu.Unlock()
		r.published()
	}
}

// archive archives the inputs of the answers in place of those of the answers before, and then drops the bodies of the
// documents. The dated files must be written. What the disk refuses is written later.
func (r *Refresher) archive(answers []*answer) {
	for _, d := range r.putInputs(answers, "") {
		d.Drop()
	}
}

// putInputs archives the inputs of the answers, with recipes under the product and a suffix, and returns the documents among
// them. What the disk refuses is written later.
func (r *Refresher) putInputs(answers []*answer, suffix string) []*archive.Document {
	var recipes []archive.Recipe
	var documents []*archive.Document
	for _, a := range answers {
		for _, d := range a.inputs.documents {
			documents = append(documents, &d.Document)
		}
		if r.cfg.Inputs != nil {
			recipe := a.recipe()
			recipe.Product += suffix
			recipes = append(recipes, recipe)
		}
	}
	if len(recipes) > 0 {
		switch err := r.cfg.Inputs.Put(recipes, documents); {
		case err != nil:
			if r.inputsRefused == 0 {
				r.log.Error("disk refuses archived inputs", "err", err)
			}
			r.inputsRefused++
		case r.inputsRefused > 0:
			r.log.Info("disk writable again, all archived inputs saved", "refused_writes", r.inputsRefused)
			r.inputsRefused = 0
		}
	}
	return documents
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
