package refresh

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/snapshots"
)

// Restore makes the newest stored answers current, as they were sealed, before anything is fetched, and takes up
// the state that later refreshes need. Files of dates after the clock's are left alone. What cannot be read is
// logged and does without.
func (r *Refresher) Restore() error {
	today := compute.DateOf(r.cfg.Clock.Now()).String()
	r.restoreHistory(today)
	r.restoreFlow(today)
	byFeed := map[string]map[string]*snapshots.Edition{}
	for name, res := range r.resources {
		if !res.stored {
			continue
		}
		f, date, err := r.store.Newest(name, today)
		if errors.Is(err, snapshots.ErrNoSnapshot) {
			continue
		}
		if err != nil {
			return fmt.Errorf("restore %s: %w", name, err)
		}
		edition, err := r.restored(name, f)
		if err != nil {
			r.log.Error("stored answer not usable", "resource", name, "date", date, "err", err)
			continue
		}
		if byFeed[res.feed] == nil {
			byFeed[res.feed] = map[string]*snapshots.Edition{}
		}
		byFeed[res.feed][name] = edition
		r.held[name].edition = edition
		r.held[name].answer = restoredAnswer(name, f)
		if name == FlowResource {
			r.held[name].answer.restsOn = r.flow.served()
		}
		r.log.Info("restored", "resource", name, "date", date, "as_of", edition.Default.Meta.AsOf)
	}
	if gamma := r.held[GammaResource]; gamma.edition != nil {
		if err := r.restoreSeries(byFeed[optionsFeed], gamma); err != nil {
			return err
		}
	}
	for feed, editions := range byFeed {
		if err := r.store.Publish(feed, editions); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	r.resume()
	return r.reseal()
}

// Inherit takes over what is served as stale already, by resource: it stays so until it is refreshed. It comes after
// Restore and before Run.
func (r *Refresher) Inherit(stale map[string]snapshots.Freshness) error {
	r.mu.Lock()
	for name, f := range stale {
		if h := r.held[name]; h != nil {
			h.health.inherit(f)
		}
	}
	r.mu.Unlock()
	return r.reseal()
}

// Settle returns when no publication is under way: not while a disk does not answer.
func (r *Refresher) Settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
}

// LeftOff returns the market's time at which the store was written last, zero when it never was. A market that goes on
// there has no answer followed by an older one. The symbols are those of the flow universe.
func LeftOff(store *snapshots.Store, symbols []string) (left time.Time) {
	const forever = "9999-12-31"
	for _, resources := range Feeds() {
		for _, name := range resources {
			if f, _, err := store.Newest(name, forever); err == nil {
				meta := f.Edition.Default.Meta
				left = later(left, later(meta.ComputedAt, meta.Freshness.Since))
			}
		}
	}
	for _, symbol := range append([]string{"SPX"}, symbols...) {
		var f chainFile // stored before the answers that rest on it
		if state, _ := store.State(chainState+symbol, forever); json.Unmarshal(state, &f) == nil {
			left = later(left, f.Source.Arrived)
		}
	}
	return left
}

// restored returns the edition that is served from a file.
func (r *Refresher) restored(name string, f snapshots.File) (*snapshots.Edition, error) {
	if name != FlowResource {
		return f.Edition, nil
	}
	var flow compute.Flow
	if err := json.Unmarshal(f.Edition.Default.Data(), &flow); err != nil {
		return nil, err
	}
	return sealVariants(flowVariants(flow), defaultFlow, rareFlow, f.Edition.Default.Meta)
}

// restoredAnswer returns what a file tells of the answer beside its numbers.
func restoredAnswer(name string, f snapshots.File) answer {
	meta := f.Edition.Default.Meta
	a := answer{
		resource: name, asOf: meta.AsOf, captured: meta.CapturedAt, computed: meta.ComputedAt, arrived: meta.AsOf,
		inputs: meta.Receipt.InputSHA256, content: f.Content, summary: f.Summary,
	}
	if name == FlowResource {
		a.stored = allFlow
	}
	return a
}

// restoreSeries seals the series from the stored rows, with the clocks of the newest gamma answer.
func (r *Refresher) restoreSeries(editions map[string]*snapshots.Edition, gamma *holding) error {
	meta := gamma.edition.Default.Meta
	a := r.series.answer(&gamma.answer)
	a.computed = meta.ComputedAt
	e, err := r.seal(r.resources[SeriesResource], &a, meta.Freshness)
	if err != nil {
		return fmt.Errorf("restore %s: %w", SeriesResource, err)
	}
	editions[SeriesResource] = e
	a.data = nil
	r.held[SeriesResource].edition, r.held[SeriesResource].answer = e, a
	return nil
}

// resume lets the jobs recognise input that was published before the restart.
func (r *Refresher) resume() {
	// Of the inputs of one chain, those of max pain are archived last, and also when they come too late for gamma.
	gamma, vix := r.held[GammaResource], r.held[VIXResource]
	if gamma.edition != nil && gamma.answer.captured != nil && r.oneDocument() && r.holdsInputs(r.held[PainResource]) {
		r.spx.content = gamma.answer.content
		r.spx.oi = openInterestState(*gamma.answer.captured, r.cal)
	}
	if sectors := r.held[SectorsResource]; r.holdsInputs(sectors) {
		r.sectors.content = sectors.answer.content
	}
	if vix.edition != nil {
		r.vix.published = compute.DateOf(vix.answer.asOf.In(compute.NewYork))
	}
	if r.holdsInputs(vix) {
		r.vix.content = vix.answer.content
	}
}

// oneDocument says whether what rests on the SPX chain was stored of one document. A crash in the middle of a
// publication leaves some of it behind, for good if the document no longer changed: it must be published again.
func (r *Refresher) oneDocument() bool {
	gamma, pain, flow := r.held[GammaResource].answer, r.held[PainResource].answer, r.held[FlowResource].answer
	for _, input := range gamma.inputs {
		if !slices.Contains(pain.inputs, input) || !slices.Contains(flow.inputs, input) {
			return false
		}
	}
	return true
}

// restoreHistory reads the rows of the series and the summaries of the settlement dates.
func (r *Refresher) restoreHistory(today string) {
	for _, date := range r.store.DatesOf(GammaResource) {
		if f, err := r.store.Load(GammaResource, date); err == nil && date <= today {
			r.series.put(date, f.Summary)
		}
	}
	for _, date := range r.store.DatesOf(VIXResource) {
		f, err := r.store.Load(VIXResource, date)
		if err != nil || date > today {
			continue
		}
		var s vixSummary
		if err := json.Unmarshal(f.Summary, &s); err != nil {
			r.log.Error("stored summary not readable", "resource", VIXResource, "date", date, "err", err)
			continue
		}
		r.vix.remember(s)
	}
}

// restoreFlow takes up what each chain contributed to the flow, and the carry of SPX.
func (r *Refresher) restoreFlow(today string) {
	for _, symbol := range append([]string{spxSymbol}, r.flow.symbols...) {
		guard := r.flow.guards[symbol]
		if symbol == spxSymbol {
			guard = r.spx.guard
		}
		symbol = plain(symbol)
		state, date := r.store.State(chainState+symbol, today)
		if state == nil {
			continue
		}
		var f chainFile
		if err := json.Unmarshal(state, &f); err != nil {
			r.log.Error("state not readable", "state", chainState+symbol, "date", date, "err", err)
			continue
		}
		if f.Source.CapturedAt.After(r.cfg.Clock.Now()) {
			continue // the market was told to go on before it was stored
		}
		r.flow.parts[symbol] = flowPart{flow: f.Flow, source: f.Source}
		guard.restore(f.Source, r.cfg.Clock.Now())
		if symbol == spxSymbol {
			r.spx.carry = carryOf(f.Carry)
		}
	}
}
