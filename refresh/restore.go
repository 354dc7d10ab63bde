package refresh

import (
	"errors"
	"fmt"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/snapshots"
)

// Restore makes the newest stored answers current, as they were sealed, and reads the state that later refreshes need. Call
// it before [Refresher.Run]. Dates after the market's date are named in the log and not served. A file that cannot be read
// is logged and skipped.
func (r *Refresher) Restore() error {
	now := r.cfg.Clock.Now()
	today := compute.DateOf(now).String()
	hidden := r.store.HideAfter(today)
	r.hidden = hidden
	r.restoreHistory()
	restored := map[string]*snapshots.Edition{}
	for _, p := range products {
		var f snapshots.File
		var err error
		switch gamma := r.current[GammaResource]; {
		case p.stored:
			f, _, err = r.store.Newest(p.name, today)
		case p.name == SeriesResource && gamma.edition != nil:
			f, err = r.storedSeries(gamma)
		default:
			continue
		}
		if errors.Is(err, snapshots.ErrNoSnapshot) {
			continue
		}
		if err == nil && p.name == FlowResource {
			f.Edition, err = restoredFlow(f.Edition.Default)
		}
		if err != nil {
			r.log.Error("stored answer not readable", "resource", p.name, "err", err)
			continue
		}
		restored[p.name] = f.Edition
		h := r.current[p.name]
		h.edition, h.content, h.restored = f.Edition, f.Content, p.stored
		h.summary = f.Summary
		r.lastAnswer = later(r.lastAnswer, changedAt(f.Edition))
		if p.name == FlowResource {
			h.restsOn = chainsOf(f.Edition.Default.Meta.Quality)
		}
		r.log.Info("restored", "resource", p.name, "as_of", h.asOf())
	}
	if len(hidden) > 0 {
		newest, _ := compute.ParseDate(hidden[len(hidden)-1]) // the store indexes only dates
		r.lastAnswer = newest.Midnight()
	}
	if len(hidden) > 0 || r.ClockError() != nil {
		r.log.Error("clock is behind the stored answers: later dates are not served", "clock", now.Format(time.RFC3339),
			"stored_to", r.lastAnswer.Format(time.RFC3339), "not_served", hidden)
	}
	if len(restored) > 0 {
		if err := r.store.Publish(restored); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	return r.reseal()
}

// reveal serves the stored dates that were after the clock at the start, once the clock has reached them: somebody has put
// right a clock that was behind.
func (r *Refresher) reveal() {
	today := compute.DateOf(r.cfg.Clock.Now()).String()
	if len(r.hidden) == 0 || today < r.hidden[0] {
		return
	}
	r.publishing.Lock()
	defer r.publishing.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.hidden)
	r.hidden = r.store.HideAfter(today)
	r.restoreHistory()
	r.log.Info("clock has reached stored dates: they are served", "dates", before-len(r.hidden), "not_served", r.hidden)
}

// chainsOf returns the symbols of the chains that a stored flow rests on, from its quality; none when it is not readable.
func chainsOf(quality []byte) (symbols []string) {
	var q flowQuality
	if json.Unmarshal(quality, &q) != nil {
		return nil
	}
	for _, c := range q.Chains {
		symbols = append(symbols, c.Symbol)
	}
	return symbols
}

// restoredFlow seals an answer for every limit from the stored answer, which has all rows.
func restoredFlow(stored *snapshots.Snapshot) (*snapshots.Edition, error) {
	var flow compute.Flow
	if err := json.Unmarshal(stored.Data(), &flow); err != nil {
		return nil, err
	}
	a := &answer{variants: flowVariants(flow), byDefault: defaultFlow, rare: rareFlow}
	if err := a.encode(); err != nil {
		return nil, err
	}
	return a.sealVariants(stored.Meta)
}

// storedSeries seals the series of the stored rows, with the times and the chain of the stored gamma answer.
func (r *Refresher) storedSeries(gamma *currentAnswer) (f snapshots.File, err error) {
	rows := newestRows(r.rows)
	state, err := json.Marshal(rows)
	if err != nil {
		return f, err
	}
	p, meta := productOf(SeriesResource), gamma.edition.Default.Meta
	meta.Endpoint, meta.Notice, meta.RefreshSeconds = p.name, p.notice, p.refreshSeconds(&r.cfg)
	var inputs []snapshots.Input
	for _, chain := range meta.Receipt.InputSHA256[:min(1, len(meta.Receipt.InputSHA256))] { // an earlier version gave no names
		inputs = append(inputs, snapshots.Input{Name: string(spxChain), SHA256: chain})
	}
	inputs = append(inputs, snapshots.Input{Name: stateDir + rowsState, SHA256: sha256Hex(state)})
	meta.Receipt = snapshots.Receipt{Method: p.method, Parameters: json.RawMessage("{}"), Inputs: inputs}
	if meta.Quality, err = json.Marshal(seriesQuality{len(rows)}); err != nil {
		return f, err
	}
	encoded, err := json.Marshal(seriesOf(rows))
	if err != nil {
		return f, err
	}
	s, err := snapshots.Seal(encoded, meta)
	return snapshots.File{Edition: &snapshots.Edition{Default: s}, Content: gamma.content}, err
}

// restoreHistory reads the rows of the series and the summaries of the VIX curves.
func (r *Refresher) restoreHistory() {
	for _, date := range r.store.DatesOf(GammaResource) {
		if f, err := r.store.Load(GammaResource, date); err == nil && len(f.Summary) > 0 {
			r.rows[date] = seriesRow{f.Edition.Default.Meta.Receipt.DataSHA256, f.Summary}
		}
	}
	for _, date := range r.store.DatesOf(VIXResource) {
		if f, err := r.store.Load(VIXResource, date); err == nil {
			rememberVIX(r, &answer{summary: f.Summary})
		}
	}
}

// LeftOff returns the market's time at which the last answer in the store was computed or changed its freshness. It returns
// the zero time for an empty store. A simulated market that starts there gives no answer that is older than a stored one.
func LeftOff(store *snapshots.Store) (left time.Time) {
	const forever = "9999-12-31"
	for _, name := range StoredProducts() {
		if f, _, err := store.Newest(name, forever); err == nil {
			left = later(left, changedAt(f.Edition))
		}
	}
	return left
}

// changedAt returns the market's time at which an answer was computed or changed its freshness.
func changedAt(e *snapshots.Edition) time.Time {
	return later(e.Default.Meta.ComputedAt, e.Default.Meta.Freshness.Since)
}
