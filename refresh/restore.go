package refresh

import (
	"errors"
	"fmt"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/fleet"
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
		f, path, err := r.store.Newest(p.name, today)
		if errors.Is(err, snapshots.ErrNoSnapshot) {
			continue
		}
		var h *currentAnswer
		if err == nil {
			h, err = r.stored(f)
		}
		if err != nil {
			r.log.Error("stored answer not readable", "resource", p.name, "err", err)
			continue
		}
		h.file = fleet.File{Path: path, SHA256: r.store.Digest(path)}
		restored[p.name] = h.edition
		r.mu.Lock()
		r.current[p.name], r.lastAnswer = h, later(r.lastAnswer, changedAt(h.edition))
		r.mu.Unlock()
		r.log.Info("restored", "resource", p.name, "as_of", h.asOf())
	}
	if len(hidden) > 0 {
		newest, _ := compute.ParseDate(hidden[len(hidden)-1]) // the store indexes only dates
		r.mu.Lock()
		r.lastAnswer = newest.Midnight()
		r.mu.Unlock()
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

// stored returns the answer in a file.
func (r *Refresher) stored(f snapshots.File) (*currentAnswer, error) {
	h := &currentAnswer{edition: f.Edition, content: f.Content, summary: f.Summary, restored: true, health: healths{}}
	if f.Edition.Default.Meta.Endpoint == FlowResource {
		var err error
		if h.edition, err = restoredFlow(f.Edition.Default); err != nil {
			return nil, err
		}
		h.restsOn = chainsOf(f.Edition.Default.Meta.Quality)
	}
	return h, nil
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
	for _, name := range Resources() {
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
