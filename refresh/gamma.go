package refresh

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/goccy/go-json"

	"strikecache/compute"
)

// gatherGamma returns the inputs of [gammaOf], and the reference of the session before if it is stored.
func gatherGamma(b *batch, above map[string]*answer) (*inputs, error) {
	in, err := gatherExposure(b, above)
	if in == nil || err != nil {
		return nil, err
	}
	if d := b.r.states.before(referenceState, b.document(spxChain).session(b.r.cal)); d != nil {
		in.documents = append(in.documents, d)
	}
	return in, nil
}

// gatherExposure returns the SPX chain, the rate and the carry of the previous gamma answer: the inputs of [gammaOf]. If the
// batch has a gamma answer, its carry and its result are shared.
func gatherExposure(b *batch, above map[string]*answer) (*inputs, error) {
	in, err := gatherChain(b, above)
	if in == nil {
		return nil, err
	}
	in.parameters.RiskFreeRate = &b.r.cfg.RiskFreeRate
	if gamma := above[GammaResource]; gamma != nil {
		in.documents = append(in.documents, gamma.inputs.named(stateDir+carryState))
		in.gamma = gamma.inputs.gamma
		return in, nil
	}
	var carry map[compute.Series]float64
	if !b.past {
		carry = b.r.carry
	}
	return in, in.addState(carryState, carryRows(carry))
}

func computeGamma(in *inputs) (*answer, error) {
	result, err := gammaOf(in)
	if err != nil {
		return nil, err
	}
	chain, err := in.chain()
	if err != nil {
		return nil, err
	}
	a := answerOf(chain)
	a.data, a.quality, a.carry = &result.Data, result.Quality, result.Carry
	if a.summary, err = encodeRow(a.date(), &result.Data, in.source); err != nil {
		return nil, fmt.Errorf("encode row: %w", err)
	}
	return a, nil
}

func rememberGamma(r *Refresher, a *answer) {
	r.carry = a.carry
	if !a.late {
		r.rows[a.date().String()] = rowOf(a)
	}
}

// resumeGamma sets the refresher's carry to the carry that the stored answer was computed with.
func resumeGamma(b *batch, in *inputs) error {
	var before []carryRow
	_, err := in.decodeState(carryState, &before)
	b.r.carry = carryOf(before)
	return err
}

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

// seriesRow is a row of the series with the gamma snapshot that it was taken from.
type seriesRow struct {
	Snapshot string          `json:"snapshot"` // data_sha256 of the gamma snapshot
	Row      json.RawMessage `json:"row"`
}

func rowOf(gamma *answer) seriesRow {
	return seriesRow{sha256Hex(gamma.encoded[gamma.data]), gamma.summary}
}

// encodeRow returns the row of a gamma answer as a JSON array in the order of [seriesColumns].
func encodeRow(date compute.Date, g *compute.Gamma, source string) ([]byte, error) {
	return json.Marshal([]any{date, g.SessionDate, g.Spot, g.Net, g.Flip, g.CallWall, g.PutWall, g.VolTrigger,
		g.AbsGammaStrike, g.Regime, g.OISettleDate, g.ContractsAnalyzed, source})
}

// SeriesRow returns a row of gex/spx/series as a JSON array in the order of the series' columns. columns holds the values
// by column name. A column that is not in the map becomes null.
func SeriesRow(columns map[string]any) ([]byte, error) {
	row := make([]any, len(seriesColumns))
	for i, name := range seriesColumns {
		row[i] = columns[name]
	}
	return json.Marshal(row)
}

// seriesData is the `data` of gex/spx/series.
type seriesData struct {
	Columns []string          `json:"columns"`
	Rows    []json.RawMessage `json:"rows"`
}

// seriesQuality is `meta.quality` of gex/spx/series.
type seriesQuality struct {
	Rows int `json:"rows"`
}

// gatherSeries returns the SPX chain and the newest stored rows. The row of the gamma answer of the same batch replaces the
// stored row of its date.
func gatherSeries(b *batch, above map[string]*answer) (*inputs, error) {
	rows := maps.Clone(b.r.rows)
	if a := above[GammaResource]; a != nil && !a.late {
		rows[a.date().String()] = rowOf(a)
	}
	in, err := gatherChain(b, above)
	if in == nil {
		return nil, err
	}
	return in, in.addState(rowsState, newestRows(rows))
}

// newestRows returns the rows of the newest 400 dates, oldest first. The keys of rows are UTC dates.
func newestRows(rows map[string]seriesRow) []seriesRow {
	dates := slices.Sorted(maps.Keys(rows))
	newest := []seriesRow{}
	for _, d := range dates[max(0, len(dates)-maxSeriesRows):] {
		newest = append(newest, rows[d])
	}
	return newest
}

func computeSeries(in *inputs) (*answer, error) {
	chain, err := in.chain()
	if err != nil {
		return nil, err
	}
	var rows []seriesRow
	if found, err := in.decodeState(rowsState, &rows); err != nil {
		return nil, err
	} else if !found {
		return nil, errors.New("inputs lack the rows")
	}
	a := answerOf(chain)
	a.data, a.quality = seriesOf(rows), seriesQuality{len(rows)}
	return a, nil
}

func seriesOf(rows []seriesRow) *seriesData {
	data := &seriesData{Columns: seriesColumns, Rows: []json.RawMessage{}}
	for _, r := range rows {
		data.Rows = append(data.Rows, r.Row)
	}
	return data
}
