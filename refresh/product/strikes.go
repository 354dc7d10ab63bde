package product

import (
	"strconv"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
)

// maxTrackStrikes is the largest number of strikes of a row: of SPX, ±2.3 % of the spot. A session of SPX takes 95 KB, compressed 14 to 16 KB.
const maxTrackStrikes = 70

var strikesTrack = &track{
	method:  "strikes/1",
	columns: []string{"as_of", "effective_spot", "strikes", "net_gex_dollars", "method"},
	every:   5 * time.Minute,
	values: func(g *compute.Gamma) []any {
		var strikes []compute.Level
		var net []*compute.Dollars
		for _, row := range nearest(g.ByStrike, g.EffectiveSpot, maxTrackStrikes) {
			strikes, net = append(strikes, row.Strike), append(net, threeDigits(row.Net))
		}
		return []any{g.EffectiveSpot, strikes, net}
	},
	data: func(d *trackData) any { return (*strikesData)(d) },
}

// strikesData is net gamma by strike through a session as a table, the `data` of gex/{u}/strikes: one row for the first snapshot of gex/{u} of
// each 5 minutes, oldest first. A server that was down has a gap.
type strikesData struct {
	Date        compute.Date `json:"date"`         // UTC date of the track.
	SessionDate compute.Date `json:"session_date"` // Exchange session of the track.
	// Names of the columns, in the order of the values of a row.
	Columns []string `json:"columns" jsonschema:"minItems=5,maxItems=5,oneof_ref=#/components/schemas/StrikesColumn"`
	// One row for each 5 minutes. `as_of` lies in the session, or at most 15 minutes after its close.
	Rows []json.RawMessage `json:"rows" jsonschema:"maxItems=82,oneof_ref=#/components/schemas/StrikesRow"`
}

// nearest returns the n rows, which rise, whose strikes are nearest to the spot.
func nearest(rows []compute.StrikeGamma, spot compute.Level, n int) []compute.StrikeGamma {
	for len(rows) > n {
		if last := len(rows) - 1; spot-rows[0].Strike > rows[last].Strike-spot {
			rows = rows[1:]
		} else {
			rows = rows[:last]
		}
	}
	return rows
}

// threeDigits rounds an amount to 3 significant digits.
func threeDigits(x *compute.Dollars) *compute.Dollars {
	if x == nil {
		return nil
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(float64(*x), 'e', 2, 64), 64) // it is a number
	return new(compute.Dollars(rounded))
}
