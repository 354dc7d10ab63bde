package refresh

import (
	"errors"

	"github.com/goccy/go-json"

	"strikecache/compute"
)

const (
	// seriesMethod names the method of gex/spx/series in receipts.
	seriesMethod = "series/1"
	// maxSeriesRows is how many dates the series serves.
	maxSeriesRows = 400
)

// seriesColumns are the columns of a row, in order.
var seriesColumns = []string{"date", "session_date", "spot", "net_gex_dollars", "zero_gamma_flip", "call_wall", "put_wall", "vol_trigger", "abs_gamma_strike", "gamma_regime", "oi_settle_date", "contracts_analyzed", "source"}

// rowsState names the state with the rows of the series.
const rowsState = "series-rows"

// seriesRow is a row of a series with the gamma snapshot that it was taken from.
type seriesRow struct {
	Snapshot string          `json:"snapshot,omitempty"` // data_sha256 of the gamma snapshot
	Row      json.RawMessage `json:"row"`
}

// encodeRow returns the [seriesRow] of a gamma answer as JSON. Its row is an array in the order of [seriesColumns].
func encodeRow(date compute.Date, g *compute.Gamma, source string) ([]byte, error) {
	data, err := json.Marshal(g)
	if err != nil {
		return nil, err
	}
	row, err := json.Marshal([]any{date, g.SessionDate, g.Spot, g.Net, g.Flip, g.CallWall, g.PutWall, g.VolTrigger,
		g.AbsGammaStrike, g.Regime, g.OISettleDate, g.ContractsAnalyzed, source})
	if err != nil {
		return nil, err
	}
	return json.Marshal(seriesRow{sha256Hex(data), row})
}

// seriesData is daily levels as a table, the `data` of gex/spx/series: the newest 400 stored dates, oldest first. A date
// without a snapshot has no row.
type seriesData struct {
	// Names of the columns, in the order of the values of a row.
	Columns []string `json:"columns" jsonschema:"minItems=13,maxItems=13,oneof_ref=#/components/schemas/SeriesColumn"`
	// One row per stored date.
	Rows []json.RawMessage `json:"rows" jsonschema:"maxItems=400,oneof_ref=#/components/schemas/SeriesRow"`
}

// seriesQuality is `meta.quality` of gex/spx/series and of vix-term-structure/series.
type seriesQuality struct {
	Rows int `json:"rows" jsonschema:"minimum=0" unit:"dates"` // Rows served.
}

// gatherSeries returns the chain and the newest stored rows. The row of the gamma answer of the same batch replaces the
// stored row of its date.
func gatherSeries(p *product, b *batch, m *memory) (*inputs, error) {
	in, err := gatherChain(p, b, m)
	if in == nil {
		return nil, err
	}
	name := gammaOfUnderlying(p.underlying)
	return in, in.addState(rowsState, m.rows(name, b.answers[name]))
}

func computeSeries(in *inputs) (*answer, error) {
	chain, err := in.chain()
	if err != nil {
		return nil, err
	}
	rows, err := in.seriesRows()
	if err != nil {
		return nil, err
	}
	a := answerOf(chain)
	a.variants, a.quality = only(&seriesData{seriesColumns, rows}), seriesQuality{len(rows)}
	return a, nil
}

// seriesRows returns the rows of a series, oldest first. An answer without them is an error.
func (in *inputs) seriesRows() ([]json.RawMessage, error) {
	var stored []seriesRow
	if found, err := in.decodeState(rowsState, &stored); err != nil {
		return nil, err
	} else if !found {
		return nil, errors.New("inputs lack the rows")
	}
	rows := []json.RawMessage{}
	for _, r := range stored {
		rows = append(rows, r.Row)
	}
	return rows, nil
}
