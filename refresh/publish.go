package refresh

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/snapshots"
)

// answer is a computed product before it is sealed.
type answer struct {
	product *product
	inputs  *inputs

	asOf     time.Time
	captured *time.Time // nil when no document says
	quality  any
	data     any // a pointer to the default's, when there are no variants
	// variants points to all answers by parameter value, the default's among them; nil without a parameter.
	// storedVariant is the value whose answer alone is kept in the file; "" keeps all.
	variants                 map[string]any
	byDefault, storedVariant string
	// rare says which variants few ask for: they are sealed in identity and gzip alone. nil: none.
	rare func(variant string) bool
	// restsOn are the symbols whose failures make the answer stale, nil for all it ever failed for.
	restsOn []string

	summary []byte                     // kept beside the answer in its file; may be nil
	carry   map[compute.Series]float64 // of gamma: for the next one
	late    bool                       // its date had closed when the last document arrived
	kept    bool                       // it has a file that the archived inputs belong to

	encoded map[any][]byte // JSON of data and variants, by pointer
	edition *snapshots.Edition
}

// answerOf starts an answer that rests on one chain.
func answerOf(chain *compute.Chain) *answer {
	return &answer{asOf: chain.AsOf, captured: new(chain.CapturedAt)}
}

// describes moves the answer's clocks up to those of one of its documents.
func (a *answer) describes(asOf, captured time.Time) {
	a.asOf = later(a.asOf, asOf)
	if a.captured == nil || captured.After(*a.captured) {
		a.captured = new(captured)
	}
}

// date returns the UTC date under which the answer is stored.
func (a *answer) date() compute.Date { return compute.DateOf(a.asOf.UTC()) }

// closesAfter is how long after its end, in UTC, a date still accepts snapshots.
const closesAfter = 10 * time.Minute

// dateClosed says whether a UTC date accepts no more snapshots.
func dateClosed(date compute.Date, now time.Time) bool {
	return now.After((date + 1).Midnight().Add(closesAfter))
}

// answer computes the product's answer and encodes it.
func (p *product) answer(in *inputs) (*answer, error) {
	a, err := p.compute(in)
	if err != nil {
		return nil, fmt.Errorf("compute %s: %w", p.name, err)
	}
	a.product, a.inputs = p, in
	a.late = dateClosed(a.date(), in.arrived())
	if err := a.encode(); err != nil {
		return nil, fmt.Errorf("encode %s: %w", p.name, err)
	}
	return a, nil
}

func (a *answer) encode() (err error) {
	a.encoded = map[any][]byte{}
	each := a.variants
	if each == nil {
		each = map[string]any{"": a.data}
	} else if each[a.byDefault] == nil {
		return fmt.Errorf("no variant %q to answer by default", a.byDefault)
	}
	for name, data := range each {
		if a.encoded[data] == nil {
			if a.encoded[data], err = json.Marshal(data); err != nil {
				return fmt.Errorf("variant %q: %w", name, err)
			}
		}
	}
	return nil
}

// holding is the current answer of a product, and how its refreshes go.
type holding struct {
	edition *snapshots.Edition // nil before the first
	content string             // of its inputs
	stored  bool               // read from its file at the start, and not computed again since
	restsOn []string           // as of the answer
	health  healths
}

func (h *holding) asOf() time.Time { return h.edition.Default.Meta.AsOf }

// says whether the held answer is what the computed one would be: by the same method, of the same inputs but for their
// clocks, with the same data.
func (h *holding) says(a *answer, cfg *Config) bool {
	if h.edition == nil || h.content != a.inputs.content() {
		return false
	}
	meta := h.edition.Default.Meta
	if meta.Receipt.Method != a.product.method || meta.Notice != a.product.notice || meta.RefreshSeconds != a.product.refreshSeconds(cfg) {
		return false
	}
	if a.variants == nil {
		return bytes.Equal(h.edition.Default.Data(), a.encoded[a.data])
	}
	if len(a.variants) != len(h.edition.Variants) || h.edition.Default != h.edition.Variants[a.byDefault] {
		return false
	}
	for name, data := range a.variants {
		if s := h.edition.Variants[name]; s == nil || !bytes.Equal(s.Data(), a.encoded[data]) {
			return false
		}
	}
	return true
}

func (p *product) refreshSeconds(cfg *Config) int { return int(p.every(cfg).Seconds()) }

// accept takes the fresh documents of a feed the rest of their way: compute each product, seal all that is new, write
// the files, make them current together, archive the inputs. What a later step could refuse is not remembered, stored
// or put into a series before the last step has succeeded. good are the documents whose failures a success ends.
func (r *Refresher) accept(v *view, feed string, products []*product, good ...string) error {
	r.working.Lock()
	defer r.working.Unlock()
	r.begin()
	defer r.end()
	steps := newStopwatch()
	answers, err := r.compute(v, products)
	if err != nil {
		return err
	}
	states, err := v.encodeStates(r.cal)
	if err != nil {
		return err
	}
	steps.lap("compute_ms")
	r.mu.Lock()
	changed := slices.DeleteFunc(slices.Clone(answers), func(a *answer) bool { return r.held[a.product.name].says(a, &r.cfg) && r.archived(a) })
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
	r.remember(v, answers, good)
	r.archive(changed)
	steps.lap("archive_ms")
	r.report(v, changed, steps)
	for _, d := range v.fresh {
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
func (r *Refresher) compute(v *view, products []*product) ([]*answer, error) {
	var answers []*answer
	done := map[string]*answer{}
	for _, p := range products {
		in, err := p.gather(v, done)
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
		done[p.name] = a
		answers = append(answers, a)
	}
	return answers, nil
}

// encodeStates encodes what later sessions need of the fresh chains, by the name of the state.
func (v *view) encodeStates(cal *compute.Calendar) (map[string]datedState, error) {
	states := map[string]datedState{}
	for _, d := range v.fresh {
		if d.chain == nil || d.origin == nil {
			continue // not a chain, or one of the archive, whose state is stored
		}
		b, err := encodeVolatility(d.chain)
		if err != nil {
			return nil, fmt.Errorf("encode volatilities of %s: %w", d.symbol(), err)
		}
		states[volatilityState+d.symbol()] = datedState{d.session(cal).String(), b}
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
		h := r.held[a.product.name]
		fresh := r.freshness(a.product, h.health.worst(a.restsOn, good), a.asOf, now)
		r.mu.Unlock()
		if err := a.seal(r, fresh); err != nil {
			return fmt.Errorf("seal %s: %w", a.product.name, err)
		}
	}
	return nil
}

func (a *answer) seal(r *Refresher, fresh snapshots.Freshness) error {
	quality, err := json.Marshal(a.quality)
	if err != nil {
		return fmt.Errorf("encode quality: %w", err)
	}
	meta := snapshots.Meta{
		Endpoint: a.product.name, Source: r.cfg.SourceName,
		AsOf: a.asOf, CapturedAt: a.captured, ComputedAt: a.inputs.at.UTC().Truncate(time.Second),
		SessionDate: r.cal.SessionDate(a.asOf).String(), DelayMinutes: delayMinutes,
		RefreshSeconds: a.product.refreshSeconds(&r.cfg), Freshness: fresh,
		Receipt: snapshots.Receipt{Method: a.product.method, InputSHA256: a.inputs.digests()},
		Quality: quality, Notice: a.product.notice,
	}
	if a.variants == nil {
		s, err := snapshots.Seal(a.encoded[a.data], meta)
		a.edition = &snapshots.Edition{Default: s}
		return err
	}
	a.edition, err = a.sealVariants(meta)
	return err
}

// sealVariants seals data by parameter value. Variants that share a pointer share a snapshot, which is sealed in all
// codings unless all of them are rare.
func (a *answer) sealVariants(meta snapshots.Meta) (*snapshots.Edition, error) {
	common := map[any]bool{}
	for name, data := range a.variants {
		if a.rare == nil || !a.rare(name) {
			common[data] = true
		}
	}
	sealed := make(map[any]*snapshots.Snapshot, len(a.encoded))
	e := &snapshots.Edition{Variants: make(map[string]*snapshots.Snapshot, len(a.variants))}
	for _, name := range slices.Sorted(maps.Keys(a.variants)) {
		data := a.variants[name]
		if sealed[data] == nil {
			seal := snapshots.Seal
			if !common[data] {
				seal = func(data []byte, meta snapshots.Meta) (*snapshots.Snapshot, error) {
					return snapshots.SealIn(data, meta)
				}
			}
			s, err := seal(a.encoded[data], meta)
			if err != nil {
				return nil, fmt.Errorf("variant %s: %w", name, err)
			}
			sealed[data] = s
		}
		e.Variants[name] = sealed[data]
	}
	e.Default = e.Variants[a.byDefault]
	return e, nil
}

// write writes the dated files. What a disk refuses is served all the same: the store says so, and writes it later.
func (r *Refresher) write(answers []*answer, states map[string]datedState) {
	for name, s := range states {
		r.writeState(name, s.date, s.body)
	}
	for _, a := range answers {
		if r.keeps(a) {
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
	if a.kept = !(a.product.closes && a.late); !a.kept {
		save = r.store.SaveLate
	}
	if err := save(a.product.name, a.date().String(), f); err != nil {
		r.log.Debug("snapshot waits for the disk", "resource", a.product.name, "err", err)
	}
}

// keeps says whether an answer gets a file. One that replaces the stored answer of a past date at a start, of the same
// documents, does not: what is stored of past dates stays as it is.
func (r *Refresher) keeps(a *answer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.held[a.product.name]
	replaces := h.stored && h.content == a.inputs.content()
	return a.product.stored && !(replaces && dateClosed(a.date(), r.cfg.Clock.Now()))
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
func (r *Refresher) remember(v *view, answers []*answer, good []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, d := range v.fresh {
		old := r.accepted[name]
		if old != nil && old.content == d.content && !published(d, answers) {
			old.origin, old.mark = d.origin, d.mark // the older one is what answers rest on
			continue
		}
		r.accepted[name] = d
	}
	for _, a := range answers {
		h := r.held[a.product.name]
		if a.edition != nil {
			h.edition, h.content = a.edition, a.inputs.content()
		}
		h.restsOn, h.stored = a.restsOn, false
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
	h := r.held[a.product.name]
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
		if r.cfg.Inputs != nil && a.kept {
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
func (r *Refresher) report(v *view, answers []*answer, steps *stopwatch) {
	if len(answers) == 0 {
		return
	}
	log := r.log.Debug
	if !r.reported[v.job] {
		r.reported[v.job], log = true, r.log.Info
	}
	var names []string
	for _, a := range answers {
		names = append(names, a.product.name)
	}
	log("refreshed", steps.with("feed", v.job, "as_of", answers[0].asOf, "documents", len(v.fresh), "resources", names)...)
}
