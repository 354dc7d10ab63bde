package refresh

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/refresh/cboe"
	"strikecache/snapshots"
)

// answer is a computed resource before it is sealed.
type answer struct {
	resource string
	asOf     time.Time
	captured *time.Time // nil when the document does not say
	arrived  time.Time  // when the last of its documents arrived
	computed time.Time
	inputs   []string // SHA-256 of the documents
	content  string   // digest of the documents without their clocks
	quality  any
	summary  []byte // kept beside the answer in its file; may be nil
	data     any    // a pointer to the default's
	// variants points to all answers by parameter value, the default's among them; nil without a parameter. stored is
	// the value whose answer alone is kept in the file; "" keeps all.
	variants  map[string]any
	byDefault string
	stored    string
	// restsOn are the documents whose failures make it stale, nil for all it ever failed for; good are those whose
	// failures its publication ends.
	restsOn, good []string
	// rare says which variants few ask for: they are sealed in identity and gzip alone. nil: none.
	rare func(variant string) bool
	// documents are what inputs names, in that order; states, and state, which may be nil, what earlier documents left.
	documents, states []*archive.Document
	state             any
}

// holding is the current answer of a resource.
type holding struct {
	edition *snapshots.Edition
	answer  answer // without data and variants
	health  healths
}

// dateOf returns the UTC date under which the answer is stored.
func (a *answer) date() compute.Date { return compute.DateOf(a.asOf.UTC()) }

// closesAfter is how long after its end, in UTC, a date still accepts snapshots.
const closesAfter = 10 * time.Minute

// late says whether the answer arrived after its date closed.
func (a *answer) late() bool { return a.arrived.After((a.date() + 1).Midnight().Add(closesAfter)) }

// publish seals the answers of one feed, writes their files and makes them current together.
func (r *Refresher) publish(feed string, answers ...answer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cfg.Clock.Now()
	editions := map[string]*snapshots.Edition{}
	for i := range answers {
		a := &answers[i]
		res := r.resources[a.resource]
		edition, err := r.seal(res, a, r.freshness(res, r.held[a.resource].health.worst(a.restsOn, a.good), a.asOf, now))
		if err != nil {
			return fmt.Errorf("publish %s: %w", a.resource, err)
		}
		editions[a.resource] = edition
	}
	for i := range answers {
		r.save(r.resources[answers[i].resource], &answers[i], editions[answers[i].resource])
	}
	if err := r.store.Publish(feed, editions); err != nil {
		return err
	}
	for _, a := range answers {
		h := r.held[a.resource]
		a.data, a.variants, a.documents, a.states, a.state = nil, nil, nil, nil, nil
		h.edition, h.answer = editions[a.resource], a
		h.health.end(a.good)
	}
	return nil
}

// freshness judges a resource that describes asOf. r.mu is held.
func (r *Refresher) freshness(res *resource, h health, asOf, now time.Time) snapshots.Freshness {
	var before *snapshots.Freshness
	if e := r.held[res.name].edition; e != nil {
		before = &e.Default.Meta.Freshness
	}
	return h.freshness(now, asOf, res.due(now, r.cal), res.overnight, r.cal, before)
}

// seal turns an answer into the edition that is served.
func (r *Refresher) seal(res *resource, a *answer, fresh snapshots.Freshness) (*snapshots.Edition, error) {
	quality, err := json.Marshal(a.quality)
	if err != nil {
		return nil, fmt.Errorf("encode quality: %w", err)
	}
	meta := snapshots.Meta{
		Endpoint: res.name, Source: r.cfg.SourceName,
		AsOf: a.asOf, CapturedAt: a.captured, ComputedAt: a.computed.UTC().Truncate(time.Second),
		SessionDate: r.cal.SessionDate(a.asOf).String(), DelayMinutes: delayMinutes,
		RefreshSeconds: int(res.every.Seconds()), Freshness: fresh,
		Receipt: snapshots.Receipt{Method: res.method, InputSHA256: a.inputs},
		Quality: quality, Notice: res.notice,
	}
	if a.variants != nil {
		return sealVariants(a.variants, a.byDefault, a.rare, meta)
	}
	s, err := sealOne(a.data, meta, false)
	return &snapshots.Edition{Default: s}, err
}

func sealOne(data any, meta snapshots.Meta, rare bool) (*snapshots.Snapshot, error) {
	encoded, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("encode data: %w", err)
	}
	if rare {
		return snapshots.SealIn(encoded, meta)
	}
	return snapshots.Seal(encoded, meta)
}

// sealVariants seals pointers to data by parameter value. Variants that share a pointer share a snapshot, which is
// sealed in all codings unless all of them are rare.
func sealVariants(variants map[string]any, byDefault string, rare func(string) bool, meta snapshots.Meta) (*snapshots.Edition, error) {
	wanted := map[any]bool{}
	for name, data := range variants {
		if rare == nil || !rare(name) {
			wanted[data] = true
		}
	}
	sealed := make(map[any]*snapshots.Snapshot, len(variants))
	e := &snapshots.Edition{Variants: make(map[string]*snapshots.Snapshot, len(variants))}
	for _, name := range slices.Sorted(maps.Keys(variants)) {
		data := variants[name]
		if _, ok := sealed[data]; !ok {
			s, err := sealOne(data, meta, !wanted[data])
			if err != nil {
				return nil, fmt.Errorf("variant %s: %w", name, err)
			}
			sealed[data] = s
		}
		e.Variants[name] = sealed[data]
	}
	e.Default = e.Variants[byDefault]
	if e.Default == nil {
		return nil, fmt.Errorf("no variant %q to answer by default", byDefault)
	}
	return e, nil
}

// save writes the answer's dated file. A disk that refuses is logged; the answer is served all the same.
func (r *Refresher) save(res *resource, a *answer, e *snapshots.Edition) {
	if !res.stored {
		return
	}
	f := snapshots.File{Edition: e, Content: a.content, Summary: a.summary}
	if a.stored != "" {
		f.Edition = &snapshots.Edition{Default: e.Variants[a.stored]}
	}
	store := r.store.Save
	if res.closes && a.late() {
		store = r.store.SaveLate
	}
	if err := store(res.name, a.date().String(), f); err != nil {
		r.log.Error("snapshot not stored", "resource", res.name, "err", err)
	}
}

// fail notes that a refresh of the resources failed for a document. Their answers stay.
func (r *Refresher) fail(document string, err error, names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reason, now := reasonOf(err), r.cfg.Clock.Now()
	for _, name := range names {
		r.held[name].health.fail(document, reason, now, r.held[name].answer.restsOn)
	}
}

// succeed notes that a refresh of the resources found a good document that says nothing new.
func (r *Refresher) succeed(document string, names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		r.held[name].health.end([]string{document})
	}
}

// reseal seals every answer again whose freshness is no longer what it says. A stale one is kept in memory
// alone: it is no new snapshot of its date.
func (r *Refresher) reseal() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cfg.Clock.Now()
	changed := map[string]map[string]*snapshots.Edition{} // by feed
	for name, h := range r.held {
		if h.edition == nil {
			continue
		}
		res := r.resources[name]
		fresh := r.freshness(res, h.health.worst(h.answer.restsOn, nil), h.answer.asOf, now)
		if fresh.Equal(h.edition.Default.Meta.Freshness) {
			continue
		}
		e, err := withFreshness(h.edition, fresh)
		if err != nil {
			return fmt.Errorf("re-seal %s: %w", name, err)
		}
		r.log.Info("freshness changed", "resource", name, "state", fresh.State, "reason", textOf(fresh.Reason))
		if fresh.State != stateStale {
			h.answer.arrived = later(h.answer.arrived, now)
			r.save(res, &h.answer, e)
		}
		if changed[res.feed] == nil {
			changed[res.feed] = map[string]*snapshots.Edition{}
		}
		changed[res.feed][name] = e
	}
	var errs []error
	for feed, editions := range changed {
		if err := r.store.Publish(feed, editions); err != nil {
			errs = append(errs, err)
			continue
		}
		for name, e := range editions {
			r.held[name].edition = e
		}
	}
	return errors.Join(errs...)
}

// Unattended seals an edition again as one that nobody refreshes since an instant. One that is stale stays as it is.
func Unattended(e *snapshots.Edition, since time.Time) (*snapshots.Edition, error) {
	if e.Default.Meta.Freshness.Stale() {
		return e, nil
	}
	return withFreshness(e, because(stateStale, reasonUnattended, since.UTC().Truncate(time.Second)))
}

// withFreshness seals the same data with another freshness. Variants that were one snapshot stay one.
func withFreshness(e *snapshots.Edition, fresh snapshots.Freshness) (*snapshots.Edition, error) {
	done := map[*snapshots.Snapshot]*snapshots.Snapshot{}
	again := func(s *snapshots.Snapshot) (*snapshots.Snapshot, error) {
		if t, ok := done[s]; ok {
			return t, nil
		}
		meta := s.Meta
		meta.Freshness = fresh
		t, err := s.Reseal(meta)
		done[s] = t
		return t, err
	}
	out := &snapshots.Edition{}
	var err error
	if out.Default, err = again(e.Default); err != nil {
		return nil, err
	}
	if e.Variants != nil {
		out.Variants = make(map[string]*snapshots.Snapshot, len(e.Variants))
	}
	for name, s := range e.Variants {
		if out.Variants[name], err = again(s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func hexOf(d cboe.Digest) string { return hex.EncodeToString(d[:]) }
