package refresh

import (
	"context"
	"fmt"
	"slices"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Archive is a source that still has the documents of past instants.
type Archive interface {
	// At returns the document as the upstream had it at an instant.
	At(name upstream.Name, at time.Time) (*upstream.Document, error)
}

// afterClose is when the last quotes of a session are final: after the schedule window.
const afterClose = windowAfterClose + 4*time.Minute

// backfill stores what is missing of the last sessions, oldest first, from the archive's documents after each
// close. Stored dates are never touched. What rests on history is published anew afterwards.
func (r *Refresher) backfill(ctx context.Context) error {
	if r.cfg.Archive == nil || r.cfg.BackfillSessions <= 0 {
		return nil
	}
	watch := newStopwatch()
	today := r.cal.SessionDate(r.cfg.Clock.Now())
	stored := 0
	for d := r.cal.Back(today, r.cfg.BackfillSessions); d < today; d = r.cal.Next(d) {
		n, err := r.backfillSession(ctx, d, r.cal.Next(d) == today)
		stored += n
		if err != nil {
			return fmt.Errorf("back-fill %s: %w", d, err)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	if stored == 0 {
		return nil
	}
	r.epoch.Add(1)
	r.vix.mu.Lock()
	r.vix.content = ""
	r.vix.mu.Unlock()
	watch.lap("backfill_ms")
	r.log.Info("back-filled", watch.with("sessions", r.cfg.BackfillSessions, "snapshots", stored)...)
	return nil
}

// backfillSession stores the missing products of one session and says how many. last says that it is the session
// before the current one, whose published volatilities the flow compares with.
func (r *Refresher) backfillSession(ctx context.Context, d compute.Date, last bool) (stored int, err error) {
	at := r.cal.Close(d).Add(afterClose)
	for _, step := range []struct {
		resource string
		answer   func() (answer, error)
	}{
		{GammaResource, func() (answer, error) { return r.pastGamma(at) }},
		{SectorsResource, func() (answer, error) { return r.pastSectors(at) }},
		{VIXResource, func() (answer, error) { return r.pastVIX(d) }},
	} {
		if slices.Contains(r.store.DatesOf(step.resource), d.String()) || ctx.Err() != nil {
			continue
		}
		a, err := step.answer()
		if err != nil {
			return stored, err
		}
		res := r.resources[step.resource]
		e, err := r.seal(res, &a, (&health{}).freshness(a.computed, a.asOf, res.due(a.computed, r.cal), res.overnight, r.cal, nil))
		if err != nil {
			return stored, err
		}
		if err := r.store.Save(res.name, a.date().String(), snapshots.File{Edition: e, Content: a.content, Summary: a.summary}); err != nil {
			r.log.Error("snapshot not stored", "resource", res.name, "err", err) // the store keeps it until the disk takes it
		}
		r.keepInputs(a)
		if step.resource == GammaResource {
			r.series.put(a.date().String(), a.summary)
		}
		stored++
	}
	if last {
		return stored, r.backfillVolatility(ctx, d, at)
	}
	return stored, nil
}

func (r *Refresher) pastChain(name upstream.Name, at time.Time) (*chainDocument, error) {
	doc, err := r.cfg.Archive.At(name, at)
	if err != nil {
		return nil, err
	}
	return decodeChain(doc)
}

func (r *Refresher) pastGamma(at time.Time) (answer, error) {
	c, err := r.pastChain(spxChain, at)
	if err != nil {
		return answer{}, err
	}
	a, _ := r.gammaAnswer(c, at, nil)
	return a, nil
}

func (r *Refresher) pastSectors(at time.Time) (answer, error) {
	funds := map[string]*fund{}
	for _, symbol := range compute.FundSymbols() {
		f := &fund{}
		quote, err := r.cfg.Archive.At(upstream.Quotes(symbol), at)
		if err != nil {
			return answer{}, err
		}
		q, err := cboe.DecodeQuote(quote.Body)
		if err != nil {
			return answer{}, decodeError(quote.Name, err)
		}
		history, err := r.cfg.Archive.At(upstream.History(symbol), at)
		if err != nil {
			return answer{}, err
		}
		if f.closes, err = cboe.DecodeHistory(history.Body); err != nil {
			return answer{}, decodeError(history.Name, err)
		}
		f.underlying = q.Underlying
		f.quote = fundDocument{hexOf(q.Content), quote.Received, inputOf(quote)}
		f.history = historyDocument(history)
		funds[symbol] = f
	}
	a, ok := r.sectorsAnswer(funds, at)
	if !ok {
		return a, fmt.Errorf("no rotation at %s", at)
	}
	return a, nil
}

func (r *Refresher) pastVIX(d compute.Date) (answer, error) {
	at := d.At(18, 45, 0, compute.NewYork)
	doc, err := r.cfg.Archive.At(upstream.Settlement(d.String()), at)
	if err != nil {
		return answer{}, err
	}
	f, err := decodeSettlement(doc, d)
	if err != nil {
		return answer{}, decodeError(doc.Name, err)
	}
	var closes indexCloses
	for symbol, level := range map[string]**float64{vixIndex: &closes.VIX, vix3mIndex: &closes.VIX3M} {
		doc, err := r.cfg.Archive.At(upstream.Quotes(symbol), at)
		if err != nil {
			return answer{}, err
		}
		q, err := cboe.DecodeQuote(doc.Body)
		if err != nil {
			return answer{}, decodeError(doc.Name, err)
		}
		*level = closeOn(q, d)
	}
	r.vix.mu.Lock()
	defer r.vix.mu.Unlock()
	a, summary, err := r.vixAnswer(f, closes, at)
	if err == nil {
		r.vix.remember(summary)
	}
	return a, err
}

// backfillVolatility stores the published volatilities of the session before the current one, where missing.
func (r *Refresher) backfillVolatility(ctx context.Context, d compute.Date, at time.Time) error {
	for _, name := range append([]upstream.Name{spxChain}, optionNames(r.flow.symbols)...) {
		if ctx.Err() != nil {
			return nil
		}
		c, err := r.pastChain(name, at)
		if err != nil {
			return err
		}
		if !slices.Contains(r.store.StateDates(volatilityState+c.Symbol), d.String()) {
			r.saveVolatility(c)
		}
	}
	return nil
}

func optionNames(symbols []string) []upstream.Name {
	var names []upstream.Name
	for _, s := range symbols {
		names = append(names, upstream.Options(s))
	}
	return names
}
