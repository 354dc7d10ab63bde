package refresh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
)

// settlementFailure is what the failures of settlement files are counted under.
const settlementFailure = "settlements"

// latestSettlement stands for the newest settlement file, whatever its date, where documents are held by name.
const latestSettlement = upstream.Name("settlement/")

// settlement is a decoded settlement file.
type settlement struct {
	date compute.Date // that it says it is of, else the date that was asked for
	rows []compute.FuturesSettlement
	bad  int // rows that cannot be read
}

// indexCloses are the closes of VIX and VIX3M on one date; nil where unknown. They are dated state.
type indexCloses struct {
	VIX   *float64 `json:"vix"`
	VIX3M *float64 `json:"vix3m"`
}

func (c indexCloses) complete() bool { return c.VIX != nil && c.VIX3M != nil }

// vixSummary is what later dates need of a stored one; it is the summary of its file.
type vixSummary struct {
	Date        compute.Date       `json:"date"`
	Contango    *compute.Ratio     `json:"contango_m1_m2_pct"`
	SpotBasis   *compute.Ratio     `json:"spot_basis_pct"`
	Settlements map[string]float64 `json:"settlements"`
}

// vixState is what a curve rests on beside its settlement file.
type vixState struct {
	Closes indexCloses `json:"closes"`
	// History has the earlier stored dates, rising, the last one with its settlements.
	History []vixSummary `json:"history"`
}

const (
	closesState = "vix-closes"
	vixIndex    = "_VIX"
	vix3mIndex  = "_VIX3M"
	// settlementRetry is how long the job waits before it asks again for a file that is not out yet.
	settlementRetry = 15 * time.Minute
)

// settlementDue returns the date whose settlements should be out: they appear in the evening, 18:30 New York.
func settlementDue(now time.Time, cal *compute.Calendar) compute.Date {
	d := cal.SessionDate(now)
	if now.Before(d.At(18, 30, 0, compute.NewYork)) {
		return cal.Previous(d)
	}
	return d
}

// settlementOverdue says whether a missing file is the upstream's failure: by 11:00 New York of the next session
// it has always been out.
func settlementOverdue(date compute.Date, now time.Time, cal *compute.Calendar) bool {
	return now.After(cal.Next(date).At(11, 0, 0, compute.NewYork))
}

func settlementsOffered(c *Config) bool {
	return c.Source.Offers(upstream.Settlement(c.Calendar.SessionDate(c.Clock.Now()).String()))
}

// settlement returns the newest settlement file, nil when there is none.
func (b *batch) settlement() *settlement {
	if d := b.document(latestSettlement); d != nil {
		return d.settlement
	}
	return nil
}

// refreshVIX fetches the settlements that are due, again until the right date arrives, and the closes of the indices
// on that date, and publishes the curve.
func (r *Refresher) refreshVIX(ctx context.Context) error {
	b := r.newBatch("vix")
	due := settlementDue(b.at, r.cal)
	if !r.cfg.Source.Offers(upstream.Settlement(due.String())) {
		return nil
	}
	var failure error
	if held := b.settlement(); (held == nil || held.date < due) && !b.at.Before(r.vixAsked[latestSettlement].Add(settlementRetry)) {
		if failure = r.fetchSettlement(ctx, b, due); failure == nil {
			r.vixAsked[latestSettlement] = b.at
		}
	}
	if err := r.fetchCloses(ctx, b); err != nil {
		r.log.Warn("index closes not refreshed", "err", err)
	}
	var good []string
	if failure == nil {
		good = []string{settlementFailure}
	}
	products := r.ofFeed(vixFeed)
	switch held := r.hasAnswer(VIXResource); {
	case b.settlement() != nil:
		if err := r.accept(b, vixFeed, products, good...); err != nil {
			delete(r.vixAsked, latestSettlement) // the file of this run is lost
			failure = err
		}
	case failure == nil && held:
		r.succeed(products, good...)
	case failure == nil:
		failure = &refusal{upstream.Empty, errors.New("no settlement file yet")}
	}
	if failure != nil {
		return r.fail(settlementFailure, failure, products)
	}
	return nil
}

// fetchSettlement fetches the file of a date and takes it when it is newer than the one held. An older day's file, a
// mere header, or none at all is no failure while the date may still not be out.
func (r *Refresher) fetchSettlement(ctx context.Context, b *batch, due compute.Date) error {
	overdue := settlementOverdue(due, b.at, r.cal)
	d, err := r.fetch(ctx, upstream.Settlement(due.String()))
	switch reason := upstream.ReasonOf(err); {
	case err == nil:
	case !overdue && (reason == upstream.Missing || reason == upstream.Refused || errors.Is(err, cboe.ErrNoRows)):
		return nil
	default:
		return err
	}
	f := d.settlement
	if f.date > due {
		return &refusal{upstream.Malformed, fmt.Errorf("asked for %s, got a file of %s", due, f.date)}
	}
	if err := r.checkMonths(f, b.at); err != nil {
		return err
	}
	if held := b.settlement(); (held == nil || f.date > held.date) && f.date >= r.settledTo() {
		b.documents[latestSettlement] = d
	}
	if f.date < due && overdue {
		return &refusal{upstream.Older, fmt.Errorf("asked for %s, got the file of %s", due, f.date)}
	}
	return nil
}

// settledTo returns the settlement date of the answer that is served, 0 without one: an earlier file never replaces it.
func (r *Refresher) settledTo() compute.Date {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.current[VIXResource]; h != nil && h.edition != nil {
		return compute.DateOf(h.asOf().In(compute.NewYork))
	}
	return 0
}

// checkMonths refuses a file whose unreadable rows leave a month of the curve out: the months behind it would be taken
// for the ones before.
func (r *Refresher) checkMonths(f *settlement, now time.Time) error {
	if f.bad == 0 {
		return nil
	}
	curve, _, _ := compute.VIXTermStructure(compute.VIXInput{Date: f.date, Rows: f.rows, Calendar: r.cal, Now: now})
	month := compute.NewDate(f.date.Year(), f.date.Month(), 1)
	for r.cal.VIXExpiration(month.Year(), month.Month()) <= f.date {
		month = month.AddMonths(1)
	}
	for _, c := range curve.Curve {
		if want := month.String()[:len("2006-01")]; c.Month != want {
			return &refusal{upstream.Malformed, fmt.Errorf("settlement file of %s lacks %s and has %d unreadable rows", f.date, want, f.bad)}
		}
		month = month.AddMonths(1)
	}
	return nil
}

// decodeSettlement decodes a file that was asked for as that of a date.
func decodeSettlement(d *document, asked string) (f *settlement, err error) {
	f = &settlement{}
	if f.rows, f.bad, err = cboe.DecodeSettlement(d.Body); err != nil {
		return nil, err
	}
	if f.date, err = compute.ParseDate(cmp.Or(d.FileDate, asked)); err != nil {
		return nil, fmt.Errorf("%w: %w", cboe.ErrMalformed, err)
	}
	return f, nil
}

// fetchCloses finds the closes of the indices that are still unknown: of the session just closed from quotes, and of
// the settlement date, failing that, from daily histories.
func (r *Refresher) fetchCloses(ctx context.Context, b *batch) error {
	session := r.cal.SessionDate(b.at)
	evening := session.At(16, 31, 0, compute.NewYork)
	if !b.at.Before(evening) {
		if err := r.findCloses(ctx, session, upstream.Quotes); err != nil {
			return err
		}
	}
	f := b.settlement()
	if f == nil || r.closesOf(f.date).complete() || b.at.Before(r.vixAsked[closesState].Add(historyRetry)) {
		return nil
	}
	r.vixAsked[closesState] = b.at
	if err := r.findCloses(ctx, f.date, upstream.Quotes); err != nil {
		return err
	}
	return r.findCloses(ctx, f.date, upstream.History)
}

// closesOf returns the known closes of a date.
func (r *Refresher) closesOf(date compute.Date) (c indexCloses) {
	if c, ok := r.closes[date]; ok {
		return c
	}
	if state, stored := r.store.State(closesState, date.String()); stored == date.String() {
		if err := json.Unmarshal(state, &c); err != nil {
			r.log.Error("state not readable", "state", closesState, "date", stored, "err", err)
			return indexCloses{}
		}
	}
	return c
}

// findCloses asks for the documents of the indices whose close of a date is unknown, and keeps what they say.
func (r *Refresher) findCloses(ctx context.Context, date compute.Date, name func(symbol string) upstream.Name) error {
	c := r.closesOf(date)
	before := c
	for _, index := range []struct {
		symbol string
		close  **float64
	}{{vixIndex, &c.VIX}, {vix3mIndex, &c.VIX3M}} {
		if *index.close != nil || !r.cfg.Source.Offers(name(index.symbol)) {
			continue
		}
		d, err := r.fetch(ctx, name(index.symbol))
		if err != nil {
			return err
		}
		*index.close = d.closeOn(date)
	}
	if before == c {
		return nil
	}
	encoded, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode closes: %w", err)
	}
	r.writeState(closesState, date.String(), encoded)
	r.closes[date] = c
	return nil
}

// closeOn returns the close of a date that a quote or a history tells, nil when it does not. A quote tells it when its
// last trade is of that date, at or after 16:14 New York.
func (d *document) closeOn(date compute.Date) *float64 {
	if d.quote != nil {
		if compute.DateOf(d.quote.AsOf.In(compute.NewYork)) != date || d.quote.AsOf.Before(date.At(16, 14, 0, compute.NewYork)) {
			return nil
		}
		return new(d.quote.Spot)
	}
	i, found := slices.BinarySearchFunc(d.closes, date, func(c compute.Close, d compute.Date) int { return cmp.Compare(c.Date, d) })
	if !found {
		return nil
	}
	return new(d.closes[i].Price)
}

// pastSettlement names the settlements of a session and the quotes that tell the closes of the indices.
func pastSettlement(_ *compute.Calendar, d compute.Date) ([]upstream.Name, time.Time) {
	return []upstream.Name{upstream.Settlement(d.String()), upstream.Quotes(vixIndex), upstream.Quotes(vix3mIndex)},
		d.At(18, 45, 0, compute.NewYork)
}

func gatherVIX(b *batch, _ map[string]*answer) (*inputs, error) {
	d := b.document(latestSettlement)
	if d == nil {
		return nil, nil
	}
	date := d.settlement.date
	var closes indexCloses
	if b.past {
		closes.VIX = b.document(upstream.Quotes(vixIndex)).closeOn(date)
		closes.VIX3M = b.document(upstream.Quotes(vix3mIndex)).closeOn(date)
	} else {
		closes = b.r.closesOf(date)
	}
	earlier := []vixSummary{}
	for _, h := range b.r.history {
		if h.Date < date {
			if n := len(earlier); n > 0 {
				earlier[n-1].Settlements = nil
			}
			earlier = append(earlier, h)
		}
	}
	return b.inputs(d).withState(vixState{closes, earlier})
}

// vixQuality is `meta.quality` of vix-term-structure.
type vixQuality struct {
	compute.VIXQuality
	UnreadableRows int `json:"unreadable_rows"`
	// Unknown says why fields are null.
	Unknown map[string]string `json:"unknown"`
}

func computeVIX(in *inputs) (*answer, error) {
	if len(in.documents) != 1 {
		return nil, fmt.Errorf("%d documents instead of one settlement file", len(in.documents))
	}
	d := in.documents[0]
	if err := d.open(); err != nil {
		return nil, err
	}
	var state vixState
	if err := in.decodeState(&state); err != nil {
		return nil, err
	}
	f := d.settlement
	numbers := compute.VIXInput{
		Date: f.date, Rows: f.rows, Calendar: in.calendar, Now: in.at, VIX: state.Closes.VIX, VIX3M: state.Closes.VIX3M,
	}
	for _, h := range state.History {
		numbers.History = append(numbers.History, compute.VIXHistory{Date: h.Date, ContangoM1M2: h.Contango, SpotBasis: h.SpotBasis})
		numbers.Previous = h.Settlements
	}
	curve, quality, ok := compute.VIXTermStructure(numbers)
	if !ok {
		return nil, &refusal{upstream.Empty, errors.New("settlement file has no monthly VIX future")}
	}
	summary := vixSummary{Date: f.date, Contango: curve.ContangoM1M2, SpotBasis: curve.SpotBasis, Settlements: map[string]float64{}}
	for _, c := range curve.Curve {
		summary.Settlements[c.Symbol] = float64(c.Settlement)
	}
	a := &answer{asOf: f.date.At(16, 0, 0, compute.NewYork).UTC(), data: &curve, quality: vixQuality{quality, f.bad, unknownVIX(&curve, f.date)}}
	if !d.Generated.IsZero() {
		a.captured = new(d.Generated)
	}
	var err error
	if a.summary, err = json.Marshal(summary); err != nil {
		return nil, fmt.Errorf("encode summary: %w", err)
	}
	return a, nil
}

// rememberVIX puts the numbers of a date, as its file has them, in their place in the history.
func rememberVIX(r *Refresher, a *answer) {
	var s vixSummary
	if err := json.Unmarshal(a.summary, &s); err != nil {
		r.log.Error("stored summary not readable", "resource", VIXResource, "err", err)
		return
	}
	i, found := slices.BinarySearchFunc(r.history, s.Date, func(h vixSummary, d compute.Date) int { return cmp.Compare(h.Date, d) })
	if found {
		r.history[i] = s
	} else {
		r.history = slices.Insert(r.history, i, s)
	}
}

// unknownVIX says why fields of the curve are null.
func unknownVIX(c *compute.VIXCurve, date compute.Date) map[string]string {
	why := map[string]string{}
	if c.VIX == nil {
		why["vix"] = fmt.Sprintf("no close of %s is known; spot_basis_pct and vol_level rest on it", date)
	}
	if c.VIX3M == nil {
		why["vix3m"] = fmt.Sprintf("no close of %s is known; vix_vix3m_ratio and cash_regime rest on it", date)
	}
	if len(c.Curve) > 0 && c.Curve[0].Change == nil {
		why["change"] = "no earlier settlement file is stored"
	}
	if c.Percentiles.ContangoM1M2.Percentile == nil || c.Percentiles.SpotBasis.Percentile == nil {
		why["percentiles"] = "fewer than 20 stored dates"
	}
	if len(c.Curve) < 7 {
		why["slope_per_month"] = "fewer than 7 months"
	}
	return why
}
