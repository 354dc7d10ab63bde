package product

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-json"

	"strikecache/refresh/feed"
)

// maxSeriesRows is how many dates a series serves.
const maxSeriesRows = 400

var seriesColumns = []string{"date", "session_date", "spot", "net_gex_dollars", "zero_gamma_flip", "call_wall", "put_wall", "vol_trigger", "abs_gamma_strike", "gamma_regime", "oi_settle_date", "contracts_analyzed", "source", "split", "method", "computed_at"}

// seriesData is daily levels as a table, the `data` of gex/spx/series: the newest 400 stored dates, oldest first. A date
// without a snapshot has no row.
type seriesData struct {
	// Names of the columns, in the order of the values of a row.
	Columns []string `json:"columns" jsonschema:"minItems=16,maxItems=16,oneof_ref=#/components/schemas/SeriesColumn"`
	// One row per stored date.
	Rows []json.RawMessage `json:"rows" jsonschema:"maxItems=400,oneof_ref=#/components/schemas/SeriesRow"`
}

// volatilitySeriesData is daily volatilities as a table, the `data` of volatility/spx/series: the newest 400 stored dates, oldest first.
// A date without a snapshot has no row.
type volatilitySeriesData struct {
	// Names of the columns, in the order of the values of a row.
	Columns []string `json:"columns" jsonschema:"minItems=9,maxItems=9,oneof_ref=#/components/schemas/VolatilityColumn"`
	// One row per stored date.
	Rows []json.RawMessage `json:"rows" jsonschema:"maxItems=400,oneof_ref=#/components/schemas/VolatilityRow"`
}

// vixSeries is the stored curves as a table, the `data` of vix-term-structure/series: the newest 400 settlement dates, oldest first. A
// date without a stored curve has no row.
type vixSeries struct {
	// Names of the columns, in the order of the values of a row.
	Columns []string `json:"columns" jsonschema:"minItems=15,maxItems=15,oneof_ref=#/components/schemas/VIXSeriesColumn"`
	// One row per settlement date.
	Rows []json.RawMessage `json:"rows" jsonschema:"maxItems=400,oneof_ref=#/components/schemas/VIXSeriesRow"`
}

// seriesQuality is `meta.quality` of a series.
type seriesQuality struct {
	Rows int `json:"rows" jsonschema:"minimum=0" unit:"dates"` // Rows served.
}

// gatherSeries adds the rows of the newest stored dates of the resource whose series it is. The row of its answer of the
// same batch replaces the stored row of its date, if the answer will be stored there. If it changes nothing, the stored row stays. The series of
// sectors has the as_of of the newest rotation, so it also adds the documents of that.
func gatherSeries(p *Product, b *Batch, in *Inputs) error {
	if p.Feed == Funds {
		if err := gatherSectors(p, b, in); err != nil {
			return err
		}
	}
	name := strings.TrimSuffix(p.Name, "/series")
	rows := map[string]json.RawMessage{}
	for _, s := range b.Memory.store.Summaries(name) {
		rows[s.Date] = s.Body
	}
	if a := b.Answers[name]; a != nil && b.Dated(a) && (rows[a.Date().String()] == nil || !a.Served) {
		rows[a.Date().String()] = a.summary
	}
	dates := slices.Sorted(maps.Keys(rows))
	newest := []json.RawMessage{}
	for _, d := range dates[max(0, len(dates)-maxSeriesRows):] {
		newest = append(newest, rows[d])
	}
	return in.addState(rowsState, newest)
}

// computeSeries returns the computation of a series with these columns. The types of the data of all series have the same JSON.
func computeSeries(columns []string) Computation {
	return func(a *Answer, in *Inputs, _ *feed.Document) error {
		stored, err := stateOf[[]struct{ Row json.RawMessage }](in, rowsState)
		if err != nil {
			return err
		}
		rows := []json.RawMessage{}
		for _, r := range stored {
			rows = append(rows, padded(r.Row, columns))
		}
		a.variants, a.quality = only(&seriesData{columns, rows}), seriesQuality{len(rows)}
		return nil
	}
}

// padded returns a row with null in the columns that its method did not have. A new column stands before method: what a row ends with stays at
// its end. No text in a row has a comma or a bracket.
func padded(row json.RawMessage, columns []string) json.RawMessage {
	commas, depth := make([]int, 0, len(columns)), 0 // between the values of the row, not in its lists
	for i, b := range row {
		switch {
		case b == '[':
			depth++
		case b == ']':
			depth--
		case b == ',' && depth == 1:
			commas = append(commas, i)
		}
	}
	lacking, ends := len(columns)-1-len(commas), len(columns)-slices.Index(columns, "method")
	if lacking <= 0 || len(commas) < ends {
		return row
	}
	at := commas[len(commas)-ends]
	return slices.Concat(row[:at], bytes.Repeat([]byte(",null"), lacking), row[at:])
}
