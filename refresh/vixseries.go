package refresh

import (
	"fmt"

	"github.com/goccy/go-json"

	"strikecache/compute"
)

// vixSeriesMethod names the method of vix-term-structure/series in receipts.
const vixSeriesMethod = "vixseries/1"

// vixSeriesColumns are the columns of a row, in order.
var vixSeriesColumns = []string{"date", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "contango_m1_m2_pct", "spot_basis_pct", "cm30", "regime"}

// vixSeries is the stored curves as a table, the `data` of vix-term-structure/series: the newest 400 settlement dates, oldest first. A
// date without a stored curve has no row.
type vixSeries struct {
	// Names of the columns, in the order of the values of a row.
	Columns []string `json:"columns" jsonschema:"minItems=13,maxItems=13,oneof_ref=#/components/schemas/VIXSeriesColumn"`
	// One row per settlement date.
	Rows []json.RawMessage `json:"rows" jsonschema:"maxItems=400,oneof_ref=#/components/schemas/VIXSeriesRow"`
}

// vixSeriesRow returns the [seriesRow] of the `data` of a curve. Its row is an array in the order of [vixSeriesColumns]. It names no
// snapshot: of those of a date, which differ in the ladder alone, it may be any.
func vixSeriesRow(data []byte) (json.RawMessage, error) {
	var c compute.VIXCurve
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("decode curve: %w", err)
	}
	row := []any{c.SettlementDate}
	for i := range 8 {
		var price *compute.VolPoints
		if i < len(c.Curve) {
			price = &c.Curve[i].Settlement
		}
		row = append(row, price)
	}
	text, err := json.Marshal(append(row, c.ContangoM1M2, c.SpotBasis, c.CM30, c.Regime))
	if err != nil {
		return nil, err
	}
	return json.Marshal(seriesRow{Row: text})
}

// gatherVIXSeries returns the settlement file and the rows of the newest stored curves. The row of the curve of the same batch replaces
// that of its date, if its file will be stored. A curve that cannot be read has no row.
func gatherVIXSeries(_ *product, b *batch, m *memory) (*inputs, error) {
	in := b.inputs(b.document(latestSettlement))
	if in == nil {
		return nil, nil
	}
	rows := map[string]json.RawMessage{}
	if a := b.answers[VIXResource]; a != nil && !a.late {
		row, err := vixSeriesRow(a.encoded[a.storedData()[""]])
		if err != nil {
			return nil, err
		}
		rows[a.date().String()] = row
	}
	for _, date := range m.cfg.Store.DatesOf(VIXResource) {
		if rows[date] != nil {
			continue // its file may still change
		}
		if m.vixRows[date] == nil {
			f, err := m.cfg.Store.Load(VIXResource, date)
			if err == nil {
				m.vixRows[date], err = vixSeriesRow(f.Edition.Default.Data())
			}
			if err != nil {
				m.cfg.Log.Error("stored curve has no row in the series", "date", date, "err", err)
				continue
			}
		}
		rows[date] = m.vixRows[date]
	}
	return in, in.addState(rowsState, newestRows(rows))
}

func computeVIXSeries(in *inputs) (*answer, error) {
	documents := in.newest()
	if len(documents) != 1 {
		return nil, fmt.Errorf("%d documents instead of one settlement file", len(documents))
	}
	d := documents[0]
	if err := d.open(); err != nil {
		return nil, err
	}
	if d.settlement == nil {
		return nil, fmt.Errorf("%s is not a settlement file", d.Name)
	}
	rows, err := in.seriesRows()
	if err != nil {
		return nil, err
	}
	a := settledAnswer(d)
	a.variants, a.quality = only(&vixSeries{vixSeriesColumns, rows}), seriesQuality{len(rows)}
	return a, nil
}
