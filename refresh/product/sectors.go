package product

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/upstream"
)

// gatherSectors adds the quotes and the histories of the funds that have a quote. If there is no history at all, it
// returns ErrNoInput.
func gatherSectors(_ *Product, b *Batch, in *Inputs) error {
	histories := false
	for _, symbol := range compute.FundSymbols() {
		quote, history := b.Document(upstream.Quotes(symbol)), b.Document(upstream.History(symbol))
		if quote == nil {
			continue
		}
		in.add(quote, history)
		histories = histories || history != nil
	}
	if !histories {
		return fmt.Errorf("%w: no fund has a price history", ErrNoInput)
	}
	return nil
}

// sectorsQuality is `meta.quality` of sectors/rotation.
type sectorsQuality struct {
	Funds []fundQuality `json:"funds" jsonschema:"maxItems=12"` // The funds with a quote, SPY first.
	// A note that some dates lie outside the verified exchange calendar of 2014 to 2030. `null` when none does.
	Calendar *string `json:"calendar" jsonschema:"example=some dates lie outside the verified exchange calendar (2014-2030); its rules were applied to them"`
}

// fundQuality is the documents of one fund.
type fundQuality struct {
	Symbol      string        `json:"symbol" jsonschema:"oneof_ref=#/components/schemas/Fund"`
	AsOf        time.Time     `json:"as_of"`                                           // Instant that the fund's quote describes.
	HistoryRows int           `json:"history_rows" jsonschema:"minimum=0" unit:"rows"` // Closes in the fund's price history, of sessions that have ended.
	HistoryTo   *compute.Date `json:"history_to"`                                      // Last date of these closes. `null` without one.
	// Why returns, ranks or `rrg` are `null`, and how many numbers of the documents count as absent because they are outside the
	// range of their kind. `null` when the price history is complete and every number is usable.
	Note *string `json:"note" jsonschema:"example=no price history: returns but the day's\\, and rrg\\, are null"`
}

func computeSectors(a *Answer, in *Inputs, _ *feed.Document) error {
	all, bad := compute.SectorsInput{Funds: map[string]compute.Fund{}, Calendar: in.calendar}, map[string]int{}
	for _, d := range in.newest() {
		fund := all.Funds[d.Symbol()]
		if d.Quote != nil {
			fund.Quote = d.Quote.UnderlyingQuote
		} else {
			fund.Closes = d.Closes
		}
		all.Funds[d.Symbol()] = fund
		bad[d.Symbol()] += d.Bad
	}
	rotation, funds := compute.SectorRotation(all)
	if funds == nil {
		return fmt.Errorf("%w: no sector fund has a quote", ErrNoInput)
	}
	q := sectorsQuality{Funds: []fundQuality{}}
	var dates []compute.Date
	for _, symbol := range compute.FundSymbols() {
		fund, known := all.Funds[symbol]
		if !known {
			continue
		}
		q.Funds = append(q.Funds, qualityOf(symbol, funds[symbol], rotation.SessionDate, in.calendar, bad[symbol]))
		dates = append(dates, fund.Quote.Session(in.calendar))
	}
	q.Calendar = compute.CalendarNote(dates...)
	a.variants, a.quality = only(&rotation), q
	b := &rotation.Breadth
	row := []any{a.Date(), rotation.SessionDate, rotation.CycMinusDef, rotation.Tone, b.Advancing, b.Declining, b.Unchanged, b.AboveBenchmark}
	for _, s := range compute.Sectors {
		var ratio, momentum *compute.Ratio
		for i := range rotation.Sectors {
			if p := rotation.Sectors[i].RRG; rotation.Sectors[i].Symbol == s.Symbol && p != nil {
				ratio, momentum = &p.Ratio, &p.Momentum
			}
		}
		row = append(row, ratio, momentum)
	}
	a.row = &seriesRow{Values: row}
	return nil
}

// sectorColumns are the columns of the series of sectors: after those of all funds, two of each fund, such as xlk_rs_ratio.
var sectorColumns = func() []string {
	columns := []string{"date", "session_date", "cyclical_minus_defensive_pct", "tone", "advancing", "declining", "unchanged", "above_benchmark"}
	for _, s := range compute.Sectors {
		fund := strings.ToLower(s.Symbol)
		columns = append(columns, fund+"_rs_ratio", fund+"_rs_momentum")
	}
	return append(columns, "method", "computed_at")
}()

// sectorSeriesData is daily rotations as a table, the `data` of sectors/rotation/series: the newest 400 stored dates, oldest first. A date
// without an answer has no row.
type sectorSeriesData struct {
	// Names of the columns, in the order of the values of a row.
	Columns []string `json:"columns" jsonschema:"minItems=32,maxItems=32,oneof_ref=#/components/schemas/SectorSeriesColumn"`
	// One row per stored date.
	Rows []json.RawMessage `json:"rows" jsonschema:"maxItems=400,oneof_ref=#/components/schemas/SectorSeriesRow"`
}

// qualityOf describes the documents of a fund. newest is the newest session of all funds.
func qualityOf(symbol string, f compute.Fund, newest compute.Date, cal *compute.Calendar, bad int) fundQuality {
	q := fundQuality{Symbol: symbol, AsOf: f.Quote.AsOf, HistoryRows: len(f.Closes)}
	if n := len(f.Closes); n > 0 {
		q.HistoryTo = new(f.Closes[n-1].Date)
	}
	var notes []string
	session := f.Quote.Session(cal)
	reachesDayBefore := func(c compute.Close) bool { return c.Date >= cal.Previous(session) && cal.IsSession(c.Date) }
	switch {
	case len(f.Closes) == 0:
		notes = append(notes, "no price history: returns but the day's, and rrg, are null")
	case !slices.ContainsFunc(f.Closes, reachesDayBefore):
		notes = append(notes, fmt.Sprintf("price history ends on %s: returns from later base days are null", f.Closes[len(f.Closes)-1].Date))
	}
	if f.Jump != 0 {
		notes = append(notes, fmt.Sprintf("price_jump after %s, as of a split: figures that rest on prices up to it are null", f.Jump))
	}
	if session != newest {
		notes = append(notes, fmt.Sprintf("the quote is of %s: no rank, and no part in what compares the funds", session))
	}
	if bad > 0 {
		notes = append(notes, fmt.Sprintf("%d numbers count as absent: they are outside the range of their kind", bad))
	}
	if notes != nil {
		q.Note = new(strings.Join(notes, "; "))
	}
	return q
}
