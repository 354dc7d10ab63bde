package refresh

import (
	"fmt"
	"slices"

	"github.com/goccy/go-json"

	"strikecache/compute"
)

// vixSeriesMethod names the method of vix-term-structure/series in receipts.
const vixSeriesMethod = "vixseries/1"

// vixMonths is how many months a row of the series has.
const vixMonths = 8

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
	for i := range vixMonths {
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
// the stored row of its date, if its file will be stored.
func gatherVIXSeries(_ *product, b *batch, m *memory) (*inputs, error) {
	in := b.inputs(b.document(latestSettlement))
	if in == nil {
		return nil, nil
	}
	dates, newest := slices.Clone(m.cfg.Store.DatesOf(VIXResource)), ""
	a := b.answers[VIXResource]
	if a != nil && !a.late {
		newest = a.date().String()
		if i, found := slices.BinarySearch(dates, newest); !found {
			dates = slices.Insert(dates, i, newest)
		}
	}
	rows := []json.RawMessage{}
	for _, date := range dates[max(0, len(dates)-maxSeriesRows):] {
		var row json.RawMessage
		var err error
		if date == newest {
			row, err = vixSeriesRow(a.storedData()[""])
		} else {
			row, err = m.vixRow(date)
		}
		if err != nil {
			m.cfg.Log.Error("stored curve has no row in the series", "date", date, "err", err)
			continue
		}
		rows = append(rows, row)
	}
	return in, in.addState(rowsState, rows)
}

// vixRow returns the row of the stored curve of a date. It reads the file once.
func (m *memory) vixRow(date string) (json.RawMessage, error) {
	digest := m.cfg.Store.Digest(date + "/" + VIXResource)
	if known := m.vixRows[date]; known.digest == digest {
		return known.row, nil
	}
	f, err := m.cfg.Store.Load(VIXResource, date)
	if err != nil {
		return nil, err
	}
	row, err := vixSeriesRow(f.Edition.Default.Data())
	if err != nil {
		return nil, err
	}
	m.vixRows[date] = storedRow{digest, row}
	return row, nil
}

// storedRow is the row of a stored answer.
type storedRow struct {
	digest string // of the file
	row    json.RawMessage
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
