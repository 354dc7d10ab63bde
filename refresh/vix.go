package refresh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// storedCurve is the summary in the file of a curve: its row of the series, and what the curves of later dates need.
type storedCurve struct {
	seriesRow
	vixSummary
}

// vixSummary is the part of a stored VIX curve that the curves of later dates need.
type vixSummary struct {
	Date        compute.Date       `json:"date"`
	Contango    *compute.Ratio     `json:"contango_m1_m2_pct"`
	SpotBasis   *compute.Ratio     `json:"spot_basis_pct"`
	Settlements map[string]float64 `json:"settlements"`
}

const (
	// historyState names the state with the summaries of earlier stored dates, dates rising. Only the last summary has its
	// settlements.
	historyState = "vix-history"
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

func settlementsOffered(_ *product, c *Config) bool {
	return c.Source.Offers(upstream.Settlement(c.Calendar.SessionDate(c.Clock.Now()).String()))
}

// refreshVIX fetches the settlement file that is due, and the closes of VIX and VIX3M on its date, and publishes the curve. Then it
// fetches the ladder. While the upstream still has the file of an earlier date, it asks again every 15 minutes. The error joins the refused
// documents of closes and of the ladder.
func (j *jobs) refreshVIX(ctx context.Context) error {
	b := j.newBatch("vix")
	due := settlementDue(b.at, j.cal)
	if !j.cfg.Source.Offers(upstream.Settlement(due.String())) {
		return nil
	}
	var failure error
	watched := j.cfg.Version != nil // to look at the file costs nothing
	if newest := b.settlement(); watched || (newest == nil || newest.date < due) && isOver(j.settlementAsked[latestSettlement], b.at, settlementRetry) {
		if failure = j.fetchSettlement(ctx, b, due); failure == nil {
			j.settlementAsked[latestSettlement] = b.at
		}
	}
	closesErrs := j.fetchCloses(ctx, b)
	var succeeded []string
	if failure == nil {
		succeeded = []string{settlementFailure}
	}
	products := j.cfg.products.ofFeed(vixFeed)
	switch {
	case b.settlement() != nil:
		if err := j.accept(b, products, succeeded...); partial(err) {
			closesErrs = append(closesErrs, err)
		} else if err != nil {
			delete(j.settlementAsked, latestSettlement) // the file of this batch was not kept: ask again
			failure = errors.Join(failure, err)
		}
	case failure == nil && j.settledTo() != 0:
		j.board.succeed(products, succeeded...)
	case failure == nil:
		failure = fmt.Errorf("%w: no settlement file yet", errNoInput)
	}
	if failure != nil {
		failure = j.board.fail(settlementFailure, failure, products)
	}
	errs := append(closesErrs, j.refreshLadder(ctx)...)
	if failure != nil {
		return errors.Join(failure, errors.Join(errs...))
	}
	return refusedAmong(errs...)
}

// earlierSettlements is how many sessions before the one that is due are asked for a settlement file, while there is no curve.
const earlierSettlements = 5

// fetchSettlement fetches the settlement file of the date due, as [jobs.fetchSettlementOf] does. While there is no curve, it then asks for
// the files of the sessions before, up to the first that can be used, unless the source does not answer. The error is that of the date due.
func (j *jobs) fetchSettlement(ctx context.Context, b *batch, due compute.Date) error {
	failure := j.fetchSettlementOf(ctx, b, due)
	d, err := due, failure
	for range earlierSettlements {
		reason := upstream.ReasonOf(err)
		if b.settlement() != nil || j.settledTo() != 0 || err != nil && reason != upstream.Missing && !reason.Refuses() {
			break
		}
		d = j.cal.Previous(d)
		err = j.fetchSettlementOf(ctx, b, d)
	}
	return failure
}

// fetchSettlementOf fetches the settlement file of a date, and puts it into the batch if it is newer than the accepted file, or, in
// a watched folder, of the same date. Until it is overdue, an older, an empty and a missing file are no failure.
func (j *jobs) fetchSettlementOf(ctx context.Context, b *batch, due compute.Date) error {
	overdue := settlementOverdue(due, b.at, j.cal)
	d, err := j.intake.fetch(ctx, upstream.Settlement(due.String()))
	switch reason := upstream.ReasonOf(err); {
	case err == nil:
	case !overdue && (reason == upstream.Missing || reason == upstream.Refused || errors.Is(err, cboe.ErrNoRows)):
		return nil
	default:
		return err
	}
	f := d.settlement
	if f.date > due {
		return upstream.Refuse(upstream.Malformed, "asked for %s, got a file of %s", due, f.date)
	}
	if err := checkMonths(f, j.cal, b.at); err != nil {
		return err
	}
	if accepted := b.settlement(); (accepted == nil || f.date > accepted.date || f.date == accepted.date && j.cfg.Version != nil) && f.date >= j.settledTo() {
		b.documents[latestSettlement] = d
	}
	if f.date < due && overdue {
		return upstream.Refuse(upstream.Older, "asked for %s, got the file of %s", due, f.date)
	}
	return nil
}

// settledTo returns the settlement date of the current VIX curve, 0 without one. A file of an earlier date never replaces
// the curve.
func (j *jobs) settledTo() compute.Date {
	if e := j.board.now(VIXResource).edition; e != nil {
		return compute.DateOf(e.Default.Meta.AsOf.In(compute.NewYork))
	}
	return 0
}

// checkMonths refuses a file without a month of the curve, and one whose unreadable rows include a month. Without that month, each later month would
// move one rank forward, so that M2 would be taken for M1.
func checkMonths(f *settlement, cal *compute.Calendar, now time.Time) error {
	curve, _, ok := compute.VIXTermStructure(compute.VIXInput{Date: f.date, Rows: f.rows, Calendar: cal, Now: now})
	if !ok {
		return upstream.Refuse(upstream.Empty, "settlement file of %s has no monthly VIX future", f.date)
	}
	if f.bad == 0 {
		return nil
	}
	month := compute.NewDate(f.date.Year(), f.date.Month(), 1)
	for cal.VIXExpiration(month.Year(), month.Month()) <= f.date {
		month = month.AddMonths(1)
	}
	for _, c := range curve.Curve {
		if want := month.String()[:len("2006-01")]; c.Month != want {
			return upstream.Refuse(upstream.Malformed, "settlement file of %s lacks %s and has %d unreadable rows", f.date, want, f.bad)
		}
		month = month.AddMonths(1)
	}
	return nil
}

// vixDocuments returns the names of the settlement file of a date and of the quotes of the ladder, with those of both indices.
func vixDocuments(d compute.Date) []upstream.Name {
	return append([]upstream.Name{upstream.Settlement(d.String())}, ladderQuotes()...)
}

// pastSettlement returns the names of [vixDocuments] of session d, and the instant at which all of them are final.
func pastSettlement(_ *product, _ *Config, d compute.Date) ([]upstream.Name, time.Time) {
	return vixDocuments(d), d.At(18, 45, 0, compute.NewYork)
}

func gatherVIX(_ *product, b *batch, m *memory) (*inputs, error) {
	d := b.document(latestSettlement)
	if d == nil {
		return nil, nil
	}
	date := d.settlement.date
	closes := m.closesOf(date)
	in := b.inputs(slices.Concat([]*document{d}, closes, b.ladder(closes))...)
	in.parameters.StaleSessionsTo = new(b.cfg.Calendar.SessionDate(b.at))
	history, err := m.vixHistory(date)
	if err != nil {
		return nil, err
	}
	return in, in.addState(historyState, history)
}

// vixHistory returns the summaries of the curves stored before a date, dates rising. Only the last one has its settlements.
func (m *memory) vixHistory(before compute.Date) ([]vixSummary, error) {
	history := []vixSummary{}
	for _, stored := range m.cfg.Store.Summaries(VIXResource) {
		var s vixSummary
		if err := json.Unmarshal(stored.Body, &s); err != nil {
			return nil, fmt.Errorf("stored summary of %s: %w", stored.Date, err)
		}
		if s.Date >= before {
			break
		}
		if n := len(history); n > 0 {
			history[n-1].Settlements = nil
		}
		history = append(history, s)
	}
	return history, nil
}

// vixQuality is `meta.quality` of vix-term-structure.
type vixQuality struct {
	compute.VIXQuality
	UnreadableRows int `json:"unreadable_rows" jsonschema:"minimum=0" unit:"rows"` // Lines that cannot be read.
	// Numbers of the quotes and histories of indices that count as absent because no market has them. Absent when every
	// number is usable.
	BadNumbers int               `json:"bad_numbers,omitempty" jsonschema:"minimum=1,example=1" unit:"numbers"`
	Unknown    map[string]string `json:"unknown" jsonschema:"oneof_ref=#/components/schemas/VIXUnknown"`
}

// vixNumbers decodes the inputs of a curve. It also returns the settlement file.
func vixNumbers(in *inputs) (numbers compute.VIXInput, file *document, err error) {
	var history []vixSummary
	if err = in.decodeState(historyState, &history); err != nil {
		return numbers, nil, err
	}
	documents := in.newest()
	for _, d := range documents {
		if err := d.open(); err != nil {
			return numbers, nil, err
		}
	}
	if len(documents) == 0 || documents[0].settlement == nil || in.parameters.StaleSessionsTo == nil {
		return numbers, nil, errors.New("inputs lack the settlement file or the session")
	}
	file = documents[0]
	f := file.settlement
	numbers = compute.VIXInput{
		Date: f.date, Rows: f.rows, Calendar: in.calendar, Now: in.parameters.StaleSessionsTo.At(16, 0, 0, compute.NewYork),
	}
	for _, d := range documents[1:] {
		if price := d.closeOn(f.date, in.calendar); d.isOf(vixIndex) {
			numbers.VIX = cmp.Or(numbers.VIX, price)
		} else if d.isOf(vix3mIndex) {
			numbers.VIX3M = cmp.Or(numbers.VIX3M, price)
		}
		addQuote(&numbers, d)
	}
	for _, h := range history {
		numbers.History = append(numbers.History, compute.VIXHistory{Date: h.Date, ContangoM1M2: h.Contango, SpotBasis: h.SpotBasis})
		numbers.Previous = h.Settlements
	}
	return numbers, file, nil
}

func computeVIX(in *inputs) (*answer, error) {
	numbers, d, err := vixNumbers(in)
	if err != nil {
		return nil, err
	}
	f := d.settlement
	curve, quality, ok := compute.VIXTermStructure(numbers)
	if !ok {
		return nil, upstream.Refuse(upstream.Empty, "settlement file has no monthly VIX future")
	}
	bad := 0
	for _, closes := range in.newest()[1:] {
		bad += closes.bad
	}
	summary := vixSummary{Date: f.date, Contango: curve.ContangoM1M2, SpotBasis: curve.SpotBasis, Settlements: map[string]float64{}}
	for _, c := range curve.Curve {
		summary.Settlements[c.Symbol] = float64(c.Settlement)
	}
	a := settledAnswer(d, in.calendar)
	a.variants, a.quality = only(&curve), vixQuality{quality, f.bad, bad, unknownVIX(&curve, f.date)}
	a.row = vixSeriesValues(&curve)
	a.summarise = func(row seriesRow) any { return storedCurve{row, summary} }
	return a, nil
}

// settledAnswer returns an answer with as_of and captured_at of a settlement file.
func settledAnswer(d *document, cal *compute.Calendar) *answer {
	a := &answer{asOf: cal.FuturesSettlement(d.settlement.date).UTC()}
	if !d.Generated.IsZero() {
		a.captured = new(d.Generated)
	}
	return a
}

// unknownVIX returns the reason for each null field of the curve, by field name.
func unknownVIX(c *compute.VIXCurve, date compute.Date) map[string]string {
	why := map[string]string{}
	if c.VIX == nil {
		why["vix"] = fmt.Sprintf("no close of %s is known; spot_basis_pct, its percentile and vol_level rest on it", date)
	}
	if c.VIX3M == nil {
		why["vix3m"] = fmt.Sprintf("no close of %s is known; vix_vix3m_ratio and cash_regime rest on it", date)
	}
	if len(c.Curve) > 0 && c.Curve[0].Change == nil {
		why["change"] = "no earlier settlement file is stored"
	}
	if p := &c.Percentiles; p.ContangoM1M2.Percentile == nil && c.ContangoM1M2 != nil || p.SpotBasis.Percentile == nil && c.SpotBasis != nil {
		why["percentiles"] = "fewer than 20 stored dates"
	}
	if len(c.Cash.Unknown()) > 0 {
		why["cash"] = "no quote is known of " + strings.Join(c.Cash.Unknown(), ", ")
	}
	if len(c.Curve) < 7 {
		why["slope_per_month"] = "fewer than 7 months"
	}
	return why
}
