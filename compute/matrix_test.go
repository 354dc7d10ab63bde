package compute_test

import (
	"fmt"
	"math"
	"testing"

	"strikecache/compute"
)

// The parts of a Wednesday by hand: spot 4000, iv 0.2, no rate and no carry. Strikes 10 % away belong to them, ends included.
func TestMatrixParts(t *testing.T) {
	traded := func(interest, volume float64) compute.Quote {
		q := published(0.2, interest)
		q.Volume = volume
		return q
	}
	rows := []row{
		{"SPXW260819C04000000", traded(10, 7)}, {"SPXW260819P04000000", traded(20, 8)}, // expire on the session date
		{"SPXW260819P03600000", published(0.2, 5)}, {"SPXW260819P03595000", published(0.2, 5)},
		{"SPXW260819C04100000", traded(0, 9)},    // only volume
		{"SPXW260820C04050000", blank(3)},        // no volatility
		{"SPX260821C04000000", traded(40, 1)},    // AM
		{"SPXW260821C04400000", traded(30, 2)},   // PM
		{"SPXW260824C04000000", traded(500, 99)}, // the next week
	}
	gex := func(k, hours, contracts float64) float64 {
		return contracts * dollarsOf(4000, gammaOf(4000, k, 0.2*math.Sqrt(years(hours))))
	}
	strike := func(k, call, put float64, counts ...compute.Count) compute.StrikeGamma {
		return compute.StrikeGamma{Strike: compute.Level(k), Call: dollars(call), Put: dollars(put), Net: dollars(call + put),
			CallOpenInterest: counts[0], PutOpenInterest: counts[1], CallVolume: counts[2], PutVolume: counts[3]}
	}
	for _, c := range []struct {
		asOf        string
		today, week []compute.StrikeGamma
	}{
		{"2026-08-19T14:00:00Z", []compute.StrikeGamma{ // 6 hours to the close, 47.5 and 54 to Friday's settlements
			strike(3600, 0, -gex(3600, 6, 5), 0, 5, 0, 0),
			strike(4000, gex(4000, 6, 10), -gex(4000, 6, 20), 10, 20, 7, 8),
		}, []compute.StrikeGamma{
			strike(3600, 0, -gex(3600, 6, 5), 0, 5, 0, 0),
			strike(4000, gex(4000, 6, 10)+gex(4000, 47.5, 40), -gex(4000, 6, 20), 50, 20, 8, 8),
			strike(4050, 0, 0, 3, 0, 0, 0),
			strike(4400, gex(4400, 54, 30), 0, 30, 0, 2, 0),
		}},
		{"2026-08-19T20:00:00Z", nil, []compute.StrikeGamma{ // the contracts of the session date have settled
			strike(4000, gex(4000, 41.5, 40), 0, 40, 0, 1, 0),
			strike(4050, 0, 0, 3, 0, 0, 0),
			strike(4400, gex(4400, 48, 30), 0, 30, 0, 2, 0),
		}},
	} {
		parts := exposure(t, index(4000, c.asOf), rows...).Matrix.Parts
		equal(t, "parts", len(parts), 2)
		for i, want := range []struct {
			name, to string
			rows     []compute.StrikeGamma
		}{{"zero_dte", "2026-08-19", c.today}, {"this_week", "2026-08-21", c.week}} {
			p := parts[i]
			equal(t, "name", p.Name, want.name)
			equal(t, "from", p.From, day("2026-08-19"))
			equal(t, "to", p.To, day(want.to))
			if len(p.ByStrike) != len(want.rows) {
				t.Errorf("%s %s: %s", c.asOf, p.Name, marshal(t, p.ByStrike))
				continue
			}
			for j, w := range want.rows {
				got, name := p.ByStrike[j], c.asOf+" "+want.name
				near(t, name+" call", got.Call, float64(*w.Call), 1e-9*float64(*w.Call))
				near(t, name+" put", got.Put, float64(*w.Put), -1e-9*float64(*w.Put))
				near(t, name+" net", got.Net, float64(*w.Net), 1e-9*(float64(*w.Call)-float64(*w.Put)))
				got.Call, got.Put, got.Net, w.Call, w.Put, w.Net = nil, nil, nil, nil, nil, nil
				equal(t, name+" strike and positions", got, w)
			}
		}
	}
}

// The week ends on its Friday, also where the Friday is the session date or a holiday. A part without strikes is an empty list.
func TestMatrixWeek(t *testing.T) {
	for _, c := range []struct{ asOf, session, friday string }{
		{"2026-08-17T15:00:00Z", "2026-08-17", "2026-08-21"},
		{"2026-08-21T15:00:00Z", "2026-08-21", "2026-08-21"},
		{"2026-08-23T15:00:00Z", "2026-08-21", "2026-08-21"}, // a Sunday
		{"2027-03-25T15:00:00Z", "2027-03-25", "2027-03-26"}, // before Good Friday
	} {
		r := exposure(t, index(4000, c.asOf), row{"SPXW271217C04000000", published(0.2, 10)})
		equal(t, c.asOf, string(marshal(t, r.Matrix.Parts)), fmt.Sprintf(
			`[{"name":"zero_dte","from":%q,"to":%[1]q,"by_strike":[]},{"name":"this_week","from":%[1]q,"to":%q,"by_strike":[]}]`, c.session, c.friday))
	}
}
