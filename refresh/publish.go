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

// accept takes the fresh documents of a feed the rest of their way: compute each product, seal all that is new, write
// the files, make them current together, archive the inputs. What a later step could refuse is not remembered, stored
// or put into a series before the last step has succeeded. good are the documents whose failures a success ends.
func (r *Refresher) accept(b *batch, feed string, products []*product, good ...string) error {
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
	if err := r.seal(changed, good); err != nil {
		return err
	}
	steps.lap("seal_ms")
	r.write(changed, states)
	steps.lap("write_ms")
	if err := r.makeCurrent(feed, changed); err != nil {
		return err
	}
	r.remember(b, answers, good)
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

// compute computes the products, in order.
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

// encodeStates encodes what later sessions need of the fresh chains, by the name of the state.
func (b *batch) encodeStates(cal *compute.Calendar) (map[string]datedState, error) {
	states := map[string]datedState{}
	for _, d := range b.documents {
		if d.chain == nil || d.origin == nil {
			continue // not a chain, or one of the archive, whose state is stored
		}
		encoded, err := encodeVolatility(d.chain)
		if err != nil {
			return nil, fmt.Errorf("encode volatilities of %s: %w", d.symbol(), err)
		}
		states[volatilityState+d.symbol()] = datedState{d.session(cal).String(), encoded}
	}
	return states, nil
}

type datedState struct {
	date string
	body []byte
}

// seal turns answers into the editions that are served.
func (r *Refresher) seal(answers []*answer, good []string) error {
	now := r.cfg.Clock.Now()
	for _, a := range answers {
		r.mu.Lock()
		h := r.current[a.product.name]
		fresh := r.freshness(a.product, h.health.worst(a.restsOn, good), a.asOf, now)
		r.mu.Unlock()
		if err := a.seal(r, fresh); err != nil {
			return fmt.Errorf("seal %s: %w", a.product.name, err)
		}
	}
	return nil
}

// write writes the dated files. What a disk refuses is served all the same: the store says so, and writes it later.
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
		r.log.Debug("state waits for the disk", "state", name, "err", err)
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
		r.log.Debug("snapshot waits for the disk", "resource", a.product.name, "err", err)
	}
}

// keeps says whether an answer gets a file. One that another method or configuration makes of the documents of a past
// date, at a start, does not: what is stored of past dates stays as it is. The curve of the settlements also changes when
// a new session begins, and is kept then.
func (r *Refresher) needsFile(a *answer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, p := r.current[a.product.name], a.product
	if !h.restored || h.content != a.inputs.content() || !dateClosed(a.date(), r.cfg.Clock.Now()) {
		return p.stored
	}
	return p.daily && h.edition.Default.Meta.Receipt.Method == p.method
}

// makeCurrent makes the sealed answers of a feed current, all at the same instant.
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

// remember takes up what later documents are held against, after all else has succeeded.
func (r *Refresher) remember(b *batch, answers []*answer, good []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, d := range b.documents {
		old := r.accepted[name]
		if old != nil && old.content == d.content && !published(d, answers) {
			old.origin, old.mark = d.origin, d.mark // the older one is what answers rest on
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
		h.health.end(good)
		if a.product.remember != nil {
			a.product.remember(r, a)
		}
	}
}

// published says whether an answer that rests on a document was published.
func published(d *document, answers []*answer) bool {
	return slices.ContainsFunc(answers, func(a *answer) bool { return a.edition != nil && slices.Contains(a.inputs.documents, d) })
}

// archived says whether the inputs of the held answer are in the archive. After a crash between an answer and its inputs
// they are not: then the answer is published again with those that are at hand.
func (r *Refresher) archived(a *answer) bool {
	h := r.current[a.product.name]
	return r.cfg.Inputs == nil || !a.product.stored ||
		r.cfg.Inputs.Holds(a.product.name, compute.DateOf(h.asOf().UTC()).String(), h.edition.Default.Meta.Receipt.InputSHA256)
}

// archive keeps what stored answers were computed from. What the disk refuses is written later.
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
			r.log.Debug("inputs wait for the disk", "err", err)
		}
	}
	for _, d := range documents {
		d.Body = nil
	}
}

// report logs what was published: the first time of each job for the operator, later ones for those who debug.
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
