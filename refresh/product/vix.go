package product

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/upstream"
)

// gatherVIX adds the closes of the date of the settlement file, the newest quotes of the volatility indices, and the history.
func gatherVIX(_ *Product, b *Batch, in *Inputs) error {
	f := b.Settlement()
	if f == nil {
		in.Documents = nil
		return nil
	}
	for _, index := range CloseIndices {
		in.add(b.Close(index, f.Date))
	}
	for _, name := range IndexQuotes() {
		in.add(b.Document(name))
	}
	in.parameters.StaleSessionsTo = new(b.Calendar.SessionDate(b.At))
	history, err := b.Memory.vixSummaries(f.Date)
	if err != nil {
		return err
	}
	return in.addState(vixHistory, history)
}

// vixSummaries returns the summaries of the curves stored before a date, dates rising. Only the last one has its settlements.
func (m *Memory) vixSummaries(before compute.Date) ([]compute.VIXHistory, error) {
	history := []compute.VIXHistory{}
	for _, stored := range m.store.Summaries(VIXResource) {
		var s compute.VIXHistory
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

// vixNumbers decodes the inputs of a curve beside the settlement file. It also returns how many of their numbers count as absent.
func vixNumbers(in *Inputs, f *feed.Settlement) (numbers compute.VIXInput, bad int, err error) {
	history, err := stateOf[[]compute.VIXHistory](in, vixHistory)
	if err != nil {
		return numbers, 0, err
	}
	if f == nil || in.parameters.StaleSessionsTo == nil {
		return numbers, 0, errors.New("inputs lack the settlement file or the session")
	}
	numbers = compute.VIXInput{
		Date: f.Date, Rows: f.Rows, Calendar: in.calendar, Today: *in.parameters.StaleSessionsTo,
		Cash: map[string]compute.UnderlyingQuote{}, History: history,
	}
	closes := map[string]*float64{}
	for _, d := range in.newest()[1:] {
		if err := d.Open(); err != nil {
			return numbers, 0, err
		}
		index := d.Symbol()
		bad += d.Bad
		closes[index] = cmp.Or(closes[index], closeOn(d, f.Date, in.calendar))
		if q := d.Quote; q != nil && slices.Contains(compute.VIXIndices, index) && !q.CapturedAt.Before(numbers.Cash[index].CapturedAt) {
			numbers.Cash[index] = q.UnderlyingQuote
		}
	}
	numbers.VIX, numbers.VIX3M = closes["VIX"], closes["VIX3M"]
	return numbers, bad, nil
}

func computeVIX(a *Answer, in *Inputs, d *feed.Document) error {
	f := d.Settlement
	numbers, bad, err := vixNumbers(in, f)
	if err != nil {
		return err
	}
	curve, quality, ok := compute.VIXTermStructure(numbers)
	if !ok {
		return upstream.Refuse(upstream.Empty, "settlement file has no monthly VIX future")
	}
	summary := compute.VIXHistory{Date: f.Date, ContangoM1M2: curve.ContangoM1M2, SpotBasis: curve.SpotBasis, Settlements: map[string]float64{}}
	for _, c := range curve.Curve {
		summary.Settlements[c.Symbol] = float64(c.Settlement)
	}
	a.variants, a.quality = only(&curve), vixQuality{quality, f.Bad, bad, unknownVIX(&curve, f.Date)}
	row := []any{curve.SettlementDate}
	for i := range 8 {
		var price *compute.Ratio
		if i < len(curve.Curve) {
			price = &curve.Curve[i].Settlement
		}
		row = append(row, price)
	}
	a.row = &seriesRow{Values: append(row, curve.ContangoM1M2, curve.SpotBasis, curve.CM30, curve.Regime)}
	a.leaves = struct {
		*seriesRow
		compute.VIXHistory
	}{a.row, summary}
	return nil
}

var vixSeriesColumns = []string{"date", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "contango_m1_m2_pct", "spot_basis_pct", "cm30", "regime", "method", "computed_at"}

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

const (
	closesKept = 14               // days that a close waits for the settlement file of its date
	closeFinal = 31 * time.Minute // from the close of a session until the upstream's quotes of indices have their closes
)

// CloseIndices are the indices whose closes a VIX curve rests on.
var CloseIndices = []string{"_VIX", "_VIX3M"}

// KeepClose keeps the first quote of VIX or VIX3M that has the close of its date and is final at now. It waits for the settlement file of the
// date, and no stored answer may name it until then: so it keeps its bytes.
func (m *Memory) KeepClose(d *feed.Document, now time.Time) {
	if m.closes == nil {
		m.reopenCloses()
	}
	date := compute.DateOf(d.Quote.AsOf.In(compute.NewYork))
	k := closeKey{"_" + d.Symbol(), date}
	final := closeOn(d, date, m.calendar) != nil && !now.Before(m.calendar.Close(date).Add(closeFinal))
	if !final || !slices.Contains(CloseIndices, k.index) || m.closes[k] != nil {
		return
	}
	if kept, err := d.Detached(); err == nil {
		m.closes[k] = kept
		maps.DeleteFunc(m.closes, func(old closeKey, _ *feed.Document) bool { return old.date < date-closesKept })
	}
}

// reopenCloses keeps the closes among the inputs of the stored curve. One that cannot be read is asked for again.
func (m *Memory) reopenCloses() {
	m.closes = map[closeKey]*feed.Document{}
	f, err := m.store.LoadCurrent(VIXResource)
	if err != nil {
		return
	}
	for _, in := range f.Inputs {
		d := feed.Stored(in, m.store.Object)
		if kind, _ := d.UpstreamName().Split(); kind == upstream.QuotesKind && d.Open() == nil {
			m.KeepClose(d, f.Edition.Default.Meta.ComputedAt)
		}
	}
}

// Close returns a quote or a history with the close of an index on a date, nil when none is known.
func (b *Batch) Close(index string, date compute.Date) *feed.Document {
	if b.Memory.closes == nil {
		b.Memory.reopenCloses()
	}
	for _, d := range []*feed.Document{b.Document(upstream.Quotes(index)), b.Memory.closes[closeKey{index, date}], b.Document(upstream.History(index))} {
		if d != nil && d.Open() == nil && closeOn(d, date, b.Calendar) != nil {
			return d
		}
	}
	return nil
}

// IndexQuotes returns the names of the quotes of [compute.VIXIndices].
func IndexQuotes() (names []upstream.Name) {
	for _, symbol := range compute.VIXIndices {
		names = append(names, upstream.Quotes("_"+symbol))
	}
	return names
}

// closeOn returns the close of a date from a quote or a history, nil when the document does not have it. A quote has the
// close if its last trade is of that date, at least 14 minutes after the close of the session: 16:14 New York.
func closeOn(d *feed.Document, date compute.Date, cal *compute.Calendar) *float64 {
	if d.Quote != nil {
		if compute.DateOf(d.Quote.AsOf.In(compute.NewYork)) != date || d.Quote.AsOf.Before(cal.Close(date).Add(14*time.Minute)) {
			return nil
		}
		return new(d.Quote.Spot)
	}
	i, found := slices.BinarySearchFunc(d.Closes, date, func(c compute.Close, d compute.Date) int { return cmp.Compare(c.Date, d) })
	if !found {
		return nil
	}
	return new(d.Closes[i].Price)
}
