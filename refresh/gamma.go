package refresh

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/goccy/go-json"

	"strikecache/compute"
)

// gammaState is the input of a gamma answer beside its chain.
type gammaState struct {
	Carry []carryRow `json:"carry"` // of the previous gamma answer
}

// carryRow is the carry of one series, per year.
type carryRow struct {
	Root       string       `json:"root"`
	Expiration compute.Date `json:"expiration"`
	Carry      float64      `json:"carry"`
}

func gatherGamma(b *batch, above map[string]*answer) (*inputs, error) {
	in, _ := gatherChain(b, above)
	var carry map[compute.Series]float64
	if !b.past {
		carry = b.r.carry
	}
	return in.withState(gammaState{carryRows(carry)})
}

func computeGamma(in *inputs) (*answer, error) {
	chain, err := in.chain()
	if err != nil {
		return nil, err
	}
	var before gammaState
	if err := in.decodeState(&before); err != nil {
		return nil, err
	}
	result := compute.GammaExposure(compute.GammaInput{
		Chain: chain, Calendar: in.calendar, RiskFreeRate: in.riskFreeRate, PreviousCarry: carryOf(before.Carry),
	})
	a := answerOf(chain)
	a.data, a.quality, a.carry = &result.Data, result.Quality, result.Carry
	if a.summary, err = seriesRow(a.date(), &result.Data, in.source); err != nil {
		return nil, fmt.Errorf("encode row: %w", err)
	}
	return a, nil
}

func rememberGamma(r *Refresher, a *answer) {
	r.carry = a.carry
	if !a.late {
		r.rows[a.date().String()] = a.summary
	}
}

// resumeGamma sets the refresher's carry to the carry that the stored answer was computed with.
func resumeGamma(r *Refresher, in *inputs) error {
	var before gammaState
	err := in.decodeState(&before)
	r.carry = carryOf(before.Carry)
	return err
}

// carryRows returns the carry of each series, sorted by expiration and root, so that equal maps give equal JSON.
func carryRows(carry map[compute.Series]float64) []carryRow {
	rows := make([]carryRow, 0, len(carry))
	for s, b := range carry {
		rows = append(rows, carryRow{s.Root, s.Expiration, b})
	}
	slices.SortFunc(rows, func(a, b carryRow) int {
		return cmp.Or(cmp.Compare(a.Expiration, b.Expiration), cmp.Compare(a.Root, b.Root))
	})
	return rows
}

func carryOf(rows []carryRow) map[compute.Series]float64 {
	out := make(map[compute.Series]float64, len(rows))
	for _, row := range rows {
		out[compute.Series{Root: row.Root, Expiration: row.Expiration}] = row.Carry
	}
	return out
}

const (
	// seriesMethod names the method of gex/spx/series in receipts.
	seriesMethod = "series/1"
	// maxSeriesRows is how many dates the series serves.
	maxSeriesRows = 400
)

// seriesColumns are the columns of a row, in order.
var seriesColumns = []string{"date", "session_date", "spot", "net_gex_dollars", "zero_gamma_flip", "call_wall", "put_wall", "vol_trigger", "abs_gamma_strike", "gamma_regime", "oi_settle_date", "contracts_analyzed", "source"}

// seriesRow returns the row of a gamma answer as a JSON array in the order of [seriesColumns].
func seriesRow(date compute.Date, g *compute.Gamma, source string) ([]byte, error) {
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
// stored row of its date. The series has the clocks of the gamma answer, so that a restart gives it the same clocks again.
func gatherSeries(b *batch, above map[string]*answer) (*inputs, error) {
	rows := maps.Clone(b.r.rows)
	if a := above[GammaResource]; a != nil && !a.late {
		rows[a.date().String()] = a.summary
	}
	in, _ := gatherChain(b, above)
	if a := above[GammaResource]; a != nil && b.r.unchanged(a) {
		in.at = b.r.computedAt(GammaResource)
	}
	return in.withState(newestRows(rows))
}

// newestRows returns the rows of the newest 400 dates, oldest first. The keys of rows are UTC dates.
func newestRows(rows map[string]json.RawMessage) []json.RawMessage {
	dates := slices.Sorted(maps.Keys(rows))
	newest := []json.RawMessage{}
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
	data := seriesData{Columns: seriesColumns}
	if err := in.decodeState(&data.Rows); err != nil {
		return nil, err
	}
	a := answerOf(chain)
	a.data, a.quality = &data, seriesQuality{len(data.Rows)}
	return a, nil
}
