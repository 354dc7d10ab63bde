package refresh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/refresh/upstream"
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

// resumeJob is the job of the batches of [Refresher.Resume].
const resumeJob = "resume"

// Resume computes the current stored answers again from their archived inputs, with the methods and the configuration of
// this process, and replaces the answers that differ. It also computes products of the same documents that have no stored
// answer. The archived documents become the accepted ones, with which documents fetched later are compared. [Refresher.Run]
// calls Resume first. Restore must have returned. The error joins the failures of all feeds.
func (r *Refresher) Resume() error {
	if r.cfg.Inputs == nil {
		return nil
	}
	var errs []error
	for _, feed := range []string{optionsFeed, sectorsFeed, vixFeed} {
		b := r.newBatch(resumeJob)
		var products, others []*product
		for _, p := range r.ofFeed(feed) {
			ready, err := r.takeInputs(b, p)
			if err != nil {
				errs = append(errs, fmt.Errorf("resume %s: %w", p.name, err))
			} else if ready {
				products = append(products, p)
			} else {
				others = append(others, p)
			}
		}
		for _, p := range others {
			if b.holds(r.current[p.name].edition.Default.Meta.Receipt) {
				products = append(products, p) // it has no recipe because of a crash or of an earlier version
			}
		}
		slices.SortFunc(products, func(x, y *product) int { return cmp.Compare(slices.Index(r.products, x), slices.Index(r.products, y)) })
		if len(b.documents) == 0 {
			continue
		}
		if err := r.accept(b, products); err != nil {
			errs = append(errs, fmt.Errorf("resume %s: %w", feed, err))
		}
	}
	return errors.Join(errs...)
}

// takeInputs puts the archived documents of the product's stored answer into the batch. ready says whether the product can
// be computed from the batch. It cannot when the archive does not have the inputs of the stored answer, when another answer
// rests on another document of the same name, or when a document has a timestamp after the market's time. If the newest
// inputs of a flow are missing, or gamma rests on another SPX chain, the batch gets the flow's chains without SPX, so that
// the next SPX chain is published together with the flow.
func (r *Refresher) takeInputs(b *batch, p *product) (ready bool, err error) {
	h := r.current[p.name]
	if h.edition == nil {
		return true, nil
	}
	recipe, complete, err := r.newestRecipe(p, h.edition.Default.Meta)
	if recipe == nil || !complete && !p.everyChain {
		return false, err
	}
	in, err := inputsOf(recipe, r.cfg.Inputs.Body)
	if err != nil {
		return false, err
	}
	taken := map[upstream.Name]*document{}
	for _, d := range in.upstream() {
		name := upstream.Name(d.Name)
		if !complete && name == spxChain {
			continue
		}
		if err := d.open(); err != nil {
			return false, err
		}
		d.Body = nil // it can be loaded again
		r.measure(d)
		if d.settlement != nil {
			name = latestSettlement
		}
		other := b.documents[name]
		differs := other != nil && other.content != d.content // another answer rests on another document of this name
		if differs && p.everyChain && name == spxChain {
			complete = false
			continue
		}
		if differs || d.mark.captured.After(b.at) { // or the clock was set back
			return false, nil
		}
		if other == nil {
			taken[name] = d
		}
	}
	maps.Copy(b.documents, taken)
	if complete && p.resume != nil {
		err = p.resume(r, in)
	}
	return complete && err == nil, err
}

// newestRecipe returns the recipe of the answer with this meta. If the archive does not have it, complete is false, and the
// recipe is that of another answer of the date, or nil. After a kill, the recipe may still have the suffix [archive.Next].
// Then it is put in its place.
func (r *Refresher) newestRecipe(p *product, meta snapshots.Meta) (recipe *archive.Recipe, complete bool, err error) {
	for _, name := range []string{p.name + archive.Next, p.name + besideFile, p.name} {
		found, failed := r.cfg.Inputs.Recipe(name, compute.DateOf(meta.AsOf.UTC()).String())
		switch {
		case errors.Is(failed, archive.ErrGone):
		case failed != nil:
			err = failed
		case belongs(found, meta):
			if name == p.name+archive.Next { // the next answer of this date would replace it before its own file is written
				found.Product = p.name
				err = r.cfg.Inputs.Put([]archive.Recipe{*found}, nil)
			}
			return found, true, err
		default:
			recipe = found
		}
	}
	return recipe, false, err
}

// holds says whether the batch has all upstream documents of a receipt.
func (b *batch) holds(receipt snapshots.Receipt) bool {
	has := map[string]bool{}
	for _, d := range b.documents {
		has[d.SHA256] = true
	}
	for i, sum := range receipt.InputSHA256 { // an earlier version named no states
		if !has[sum] && (i >= len(receipt.Inputs) || !isState(receipt.Inputs[i].Name)) {
			return false
		}
	}
	return true
}

// belongs says whether a recipe is that of a stored answer.
func belongs(recipe *archive.Recipe, meta snapshots.Meta) bool {
	var inputs []string
	for _, in := range recipe.Inputs {
		inputs = append(inputs, in.SHA256)
	}
	return slices.Equal(inputs, meta.Receipt.InputSHA256) && recipe.ComputedAt.Truncate(time.Second).Equal(meta.ComputedAt)
}

// PastSource is a source that still has the documents of past instants.
type PastSource interface {
	// At returns the document that the upstream had at an instant of market time. The caller owns the document.
	At(name upstream.Name, at time.Time) (*upstream.Document, error)
}

// afterClose is the time from the close of a session until its last quotes are final. The schedule window has ended by then.
const afterClose = windowAfterClose + 4*time.Minute

// backfill computes and stores the answers of the last sessions whose dates have no file, oldest session first, from the
// documents that the upstream had after each close. It never replaces a file. It then makes the next fetches unconditional:
// the same documents give other answers now, because the answers compare with earlier dates.
func (r *Refresher) backfill(ctx context.Context) error {
	today := r.cal.SessionDate(r.cfg.Clock.Now())
	began, stored := time.Now(), 0
	for d := r.cal.Back(today, r.cfg.BackfillSessions); d < today && ctx.Err() == nil; d = r.cal.Next(d) {
		for _, p := range products {
			if p.past == nil || slices.Contains(r.store.DatesOf(p.name), d.String()) || ctx.Err() != nil {
				continue
			}
			if err := r.backfillProduct(p, d); err != nil {
				return fmt.Errorf("back-fill %s of %s: %w", p.name, d, err)
			}
			stored++
		}
		if r.cal.Next(d) == today {
			if err := r.backfillVolatilities(ctx, d); err != nil {
				return fmt.Errorf("back-fill volatilities of %s: %w", d, err)
			}
		}
	}
	if stored > 0 {
		r.log.Info("back-filled", "sessions", r.cfg.BackfillSessions, "snapshots", stored, "took", time.Since(began).Round(time.Millisecond))
		r.mu.Lock()
		for _, d := range r.accepted {
			d.origin = nil // the next fetch is not conditional
		}
		r.mu.Unlock()
	}
	return nil
}

// backfillProduct computes and stores the answer of a product for a past session. The current answer stays.
func (r *Refresher) backfillProduct(p *product, d compute.Date) error {
	b := r.newBatch("backfill")
	b.past = true
	var names []upstream.Name
	names, b.at = p.past(r.cal, d)
	for _, name := range names {
		doc, err := r.cfg.Past.At(name, b.at)
		if err != nil {
			return err
		}
		if kind, _ := name.Split(); kind == upstream.SettlementKind {
			name = latestSettlement
		}
		if b.documents[name], err = newDocument(doc); err != nil {
			return err
		}
	}
	r.publishing.Lock()
	defer r.publishing.Unlock()
	answers, err := r.compute(b, []*product{p})
	if err != nil {
		return err
	}
	for _, a := range answers {
		q := p.quoteInstant(a.asOf, a.captured, a.restsOn, r.cal)
		fresh := (&health{}).freshness(b.at, a.asOf, p.due(b.at, r.cal), q, r.cal, nil)
		if err := a.seal(r, fresh); err != nil {
			return err
		}
		r.writeFile(a)
		r.archive(answers)
		if p.remember != nil {
			carry := r.carry
			p.remember(r, a)
			r.carry = carry // the carry of a past chain is not an input of the next answer
		}
	}
	return nil
}

// backfillVolatilities stores the published volatilities of each chain of a session, where none are stored.
func (r *Refresher) backfillVolatilities(ctx context.Context, session compute.Date) error {
	for _, name := range append(flowNames(&r.cfg), spxChain) {
		_, key := name.Split()
		state := volatilityState + withoutUnderscore(key)
		if ctx.Err() != nil || slices.Contains(r.store.StateDates(state), session.String()) {
			continue
		}
		_, at := pastChain(r.cal, session)
		doc, err := r.cfg.Past.At(name, at)
		if err != nil {
			return err
		}
		d, err := newDocument(doc)
		if err != nil {
			return err
		}
		encoded, err := encodeVolatility(d.chain)
		if err != nil {
			return err
		}
		r.writeState(state, session.String(), encoded)
	}
	return nil
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
