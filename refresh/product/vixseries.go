package product

import (
	"github.com/goccy/go-json"

	"strikecache/compute"
)

// vixSeriesMethod names the method of vix-term-structure/series in receipts.
const vixSeriesMethod = "vixseries/2"

// vixSeriesColumns are the columns of a row, in order.
var vixSeriesColumns = []string{"date", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "contango_m1_m2_pct", "spot_basis_pct", "cm30", "regime", "method"}

// vixSeries is the stored curves as a table, the `data` of vix-term-structure/series: the newest 400 settlement dates, oldest first. A
// date without a stored curve has no row.
type vixSeries struct {
	// Names of the columns, in the order of the values of a row.
	Columns []string `json:"columns" jsonschema:"minItems=14,maxItems=14,oneof_ref=#/components/schemas/VIXSeriesColumn"`
	// One row per settlement date.
	Rows []json.RawMessage `json:"rows" jsonschema:"maxItems=400,oneof_ref=#/components/schemas/VIXSeriesRow"`
}

// vixSeriesValues returns the values of a curve's row, in the order of [vixSeriesColumns], without the method.
func vixSeriesValues(c *compute.VIXCurve) []any {
	values := []any{c.SettlementDate}
	for i := range 8 {
		var price *compute.VolPoints
		if i < len(c.Curve) {
			price = &c.Curve[i].Settlement
		}
		values = append(values, price)
	}
	return append(values, c.ContangoM1M2, c.SpotBasis, c.CM30, c.Regime)
}
