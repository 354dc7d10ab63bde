package refresh

import (
	"maps"
	"slices"
	"sync"

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
var seriesColumns = []string{"date", "session_date", "spot", "net_gex_dollars", "zero_gamma_flip", "call_wall",
	"put_wall", "vol_trigger", "abs_gamma_strike", "gamma_regime", "oi_settle_date", "contracts_analyzed", "source"}

// seriesRow returns the row of a stored gamma snapshot, as JSON.
func seriesRow(date compute.Date, g *compute.Gamma, source string) []byte {
	row, err := json.Marshal([]any{date, g.SessionDate, g.Spot, g.Net, g.Flip, g.CallWall, g.PutWall, g.VolTrigger,
		g.AbsGammaStrike, g.Regime, g.OISettleDate, g.ContractsAnalyzed, source})
	if err != nil {
		return nil // a number without a JSON form: sealing the snapshot itself fails with the same error
	}
	return row
}

// SeriesRow returns the row of a stored gamma snapshot from its columns by name, as JSON; a column without a value is
// null.
func SeriesRow(columns map[string]any) ([]byte, error) {
	row := make([]any, len(seriesColumns))
	for i, name := range seriesColumns {
		row[i] = columns[name]
	}
	return json.Marshal(row)
}

// seriesRows holds one row per stored date.
type seriesRows struct {
	mu   sync.Mutex
	rows map[string]json.RawMessage
}

// put sets the row of a date, YYYY-MM-DD.
func (s *seriesRows) put(date string, row []byte) {
	if len(row) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows == nil {
		s.rows = map[string]json.RawMessage{}
	}
	s.rows[date] = row
}

// seriesData is the `data` of gex/spx/series.
type seriesData struct {
	Columns []string          `json:"columns"`
	Rows    []json.RawMessage `json:"rows"`
}

// seriesQuality is its `meta.quality`.
type seriesQuality struct {
	Rows int `json:"rows"`
}

// answer returns the newest rows, oldest first, with the clocks and the receipt of the newest gamma answer.
func (s *seriesRows) answer(gamma *answer) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	dates := slices.Sorted(maps.Keys(s.rows))
	dates = dates[max(0, len(dates)-maxSeriesRows):]
	data := seriesData{Columns: seriesColumns, Rows: make([]json.RawMessage, 0, len(dates))}
	for _, d := range dates {
		data.Rows = append(data.Rows, s.rows[d])
	}
	a := *gamma
	a.resource, a.data, a.summary, a.quality = SeriesResource, &data, nil, seriesQuality{len(dates)}
	return a
}
