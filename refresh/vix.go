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

// settlementFailure is the document name under which failures of settlement files are counted.
const settlementFailure = "settlements"

// latestSettlement is the name under which a batch and the accepted documents keep the newest settlement file. The upstream
// names each file by its date.
const latestSettlement = upstream.Name("settlement/")

// settlement is a decoded settlement file.
type settlement struct {
	date compute.Date // the date that the file states, else the date that was asked for
	rows []compute.FuturesSettlement
	bad  int // number of unreadable rows
}

// indexCloses are the closes of VIX and VIX3M on one date, in volatility points; nil where unknown. They are a dated state.
type indexCloses struct {
	VIX   *float64 `json:"vix"`
	VIX3M *float64 `json:"vix3m"`
}

func (c indexCloses) complete() bool { return c.VIX != nil && c.VIX3M != nil }

// vixSummary is the part of a stored VIX curve that the curves of later dates need. It is the summary in the curve's file.
type vixSummary struct {
	Date        compute.Date       `json:"date"`
	Contango    *compute.Ratio     `json:"contango_m1_m2_pct"`
	SpotBasis   *compute.Ratio     `json:"spot_basis_pct"`
	Settlements map[string]float64 `json:"settlements"`
}

// vixState is the input of a VIX curve beside its settlement file.
type vixState struct {
	Closes indexCloses `json:"closes"`
	// History has the summaries of earlier stored dates, dates rising. Only the last summary has its settlements.
	History []vixSummary `json:"history"`
}

const (
	closesState = "vix-closes"
	vixIndex    = "_VIX"
	vix3mIndex  = "_VIX3M"
	// settlementRetry is how long the job waits before it asks again for a file that is not published yet.
	settlementRetry = 15 * time.Minute
)

// settlementDue returns the newest date whose settlements should be published at now. The exchange publishes the file of a
// session at 18:30 New York.
func settlementDue(now time.Time, cal *compute.Calendar) compute.Date {
	d := cal.SessionDate(now)
	if now.Before(d.At(18, 30, 0, compute.NewYork)) {
		return cal.Previous(d)
	}
	return d
}

// settlementOverdue says whether a missing settlement file is a failure of the upstream: at 11:00 New York of the next
// session the file has always been there.
func settlementOverdue(date compute.Date, now time.Time, cal *compute.Calendar) bool {
	return now.After(cal.Next(date).At(11, 0, 0, compute.NewYork))
}

func settlementsOffered(c *Config) bool {
	return c.Source.Offers(upstream.Settlement(c.Calendar.SessionDate(c.Clock.Now()).String()))
}

// settlement returns the settlement file of the batch, else the accepted one, nil when there is neither.
func (b *batch) settlement() *settlement {
	if d := b.document(latestSettlement); d != nil {
		return d.settlement
	}
	return nil
}

// refreshVIX fetches the settlement file that is due, and the closes of VIX and VIX3M on its date, and publishes the curve.
// While the upstream still has the file of an earlier date, it asks again every 15 minutes.
func (r *Refresher) refreshVIX(ctx context.Context) error {
	b := r.newBatch("vix")
	due := settlementDue(b.at, r.cal)
	if !r.cfg.Source.Offers(upstream.Settlement(due.String())) {
		return nil
	}
	var failure error
	if newest := b.settlement(); (newest == nil || newest.date < due) && !b.at.Before(r.vixAsked[latestSettlement].Add(settlementRetry)) {
		if failure = r.fetchSettlement(ctx, b, due); failure == nil {
			r.vixAsked[latestSettlement] = b.at
		}
	}
	closesErr := r.fetchCloses(ctx, b)
	if closesErr != nil {
		r.log.Warn("index closes not fetched", "err", closesErr)
	}
	var succeeded []string
	if failure == nil {
		succeeded = []string{settlementFailure}
	}
	products := r.ofFeed(vixFeed)
	switch answered := r.hasAnswer(VIXResource); {
	case b.settlement() != nil:
		if err := r.accept(b, vixFeed, products, succeeded...); err != nil {
			delete(r.vixAsked, latestSettlement) // the file of this batch was not accepted: ask again
			failure = err
		}
	case failure == nil && answered:
		r.succeed(products, succeeded...)
	case failure == nil:
		failure = &refusal{upstream.Empty, errors.New("no settlement file yet")}
	}
	if failure != nil {
		return r.fail(settlementFailure, failure, products)
	}
	return refusedAmong(closesErr)
}

// fetchSettlement fetches the settlement file of the date due, and puts it into the batch if it is newer than the accepted
// file. Until the file is overdue, a file of an older date, a file without rows and a missing file are no failure: the
// exchange may not have published the file yet.
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
	if accepted := b.settlement(); (accepted == nil || f.date > accepted.date) && f.date >= r.settledTo() {
		b.documents[latestSettlement] = d
	}
	if f.date < due && overdue {
		return &refusal{upstream.Older, fmt.Errorf("asked for %s, got the file of %s", due, f.date)}
	}
	return nil
}

// settledTo returns the settlement date of the current VIX curve, 0 without one. A file of an earlier date never replaces
// the curve.
func (r *Refresher) settledTo() compute.Date {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.current[VIXResource]; h != nil && h.edition != nil {
		return compute.DateOf(h.asOf().In(compute.NewYork))
	}
	return 0
}

// checkMonths refuses a file whose unreadable rows include a month of the curve. Without that month, each later month would
// move one rank forward, so that M2 would be taken for M1.
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

// decodeSettlement decodes a settlement file. asked is the date in its name, used if the file states no date.
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

// fetchCloses fetches the closes of VIX and VIX3M that are still unknown. From 16:31 New York it reads the closes of the
// session from quotes. It reads the closes of the settlement date, at most once an hour, from quotes and then from daily
// histories.
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

// closesOf returns the closes of a date that are in memory or stored.
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

// findCloses fetches a document of each index whose close of the date is unknown, and stores the closes that the documents
// give. name returns the name of the document, a quote or a history, from the symbol.
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

// closeOn returns the close of a date from a quote or a history, nil when the document does not have it. A quote has the
// close if its last trade is of that date, at or after 16:14 New York.
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

// pastSettlement returns the names of the settlement file of session d and of the quotes of both indices, and the instant at
// which all three are final.
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

// rememberVIX puts the summary of an answer into the history, in place of an earlier one of the same date.
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

// unknownVIX returns the reason for each null field of the curve, by field name.
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
