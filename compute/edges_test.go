package compute_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"strikecache/compute"
)

// The tests of this file show rules at edges that made and recorded markets do not reach, or only by chance. Everywhere else
// bench/clients/verify.py recomputes the answers (refresh, verified_test.go).

// closing is the close of 2026-08-11, and ten the hours from it to the settlement of SPXW 2026-08-21.
const (
	closing = "2026-08-11T20:00:00Z"
	ten     = 10 * 24.0
)

func flatIV(v float64) float64 { return v / math.Sqrt(years(ten)) }

// strangle is one put and one call of the same volatility v on the same date.
func strangle(put, putInterest, call, callInterest, v float64) []row {
	return []row{
		{symbolOf("SPXW260821P", put), published(flatIV(v), putInterest)},
		{symbolOf("SPXW260821C", call), published(flatIV(v), callInterest)},
	}
}

func TestFlipStatus(t *testing.T) {
	for _, c := range []struct {
		name string
		rows []row
		want compute.FlipStatus
	}{
		{"calls", []row{{"SPXW260821C07000000", published(0.2, 10)}}, compute.FlipNonePositive},
		{"puts", []row{{"SPXW260821P07000000", published(0.2, 10)}}, compute.FlipNoneNegative},
		{"as many puts as calls", []row{{"SPXW260821C07000000", published(0.2, 10)}, {"SPXW260821P07000000", published(0.2, 10)}},
			compute.FlipInsufficient}, // G is 0 everywhere
		{"strike 0", []row{{"SPXW260821C00000000", published(0.2, 10)}}, compute.FlipInsufficient},
		// At v = 0.001 a strike 60 % away is 470 standard deviations out: e^(-d1²/2) underflows.
		{"underflow", []row{{"SPXW260821C11200000", published(flatIV(0.001), 10)}}, compute.FlipInsufficient},
		// 40 standard deviations from the nearest grid point, e^(-800) underflows. At 30, e^(-450) does not.
		{"all but underflow", []row{{symbolOf("SPXW260821P", math.Round(8050*math.Exp(0.3))), published(flatIV(0.01), 10)}}, compute.FlipNoneNegative},
		// The crossing of this pair lies 17 % below the spot, outside the grid.
		{"crossing out of reach", strangle(5500, 10, 6100, 10, 0.05), compute.FlipNonePositive},
		{"crossing out of reach above", strangle(8500, 10, 9000, 10, 0.05), compute.FlipNoneNegative},
	} {
		g := exposure(t, index(7000, closing), bothSides(c.rows...)...).Data
		equal(t, c.name, g.FlipStatus, c.want)
		isNull(t, c.name+" flip", g.Flip)
		isNull(t, c.name+" distance", g.FlipDistance)
		equal(t, c.name+" flips", len(g.Flips), 0)
	}
}

// pair is a call and a put of one strike whose mids differ by difference, quoted 2 wide.
func pair(series string, strike, difference float64) []row {
	call, put := 50+math.Max(difference, 0), 50+math.Max(-difference, 0)
	return []row{
		{symbolOf(series+"C", strike), quoted(call-1, call+1, 0)},
		{symbolOf(series+"P", strike), quoted(put-1, put+1, 0)},
	}
}

// wantForward checks that the forward of the only series is 7000.
func wantForward(t *testing.T, r compute.GammaResult, source string) {
	t.Helper()
	only := r.Data.ByExpiration[0]
	nearly(t, source, only.Forward, 7000, 1e-7)
	equal(t, "source", string(only.ForwardSource), source)
}

// Two differences that are equal as decimals tie, whatever their last bits as float64s: as float64s, 0.3 - 0.1 is more than
// 0.7 - 0.5. The seventh vote is tied between 6999.8, which votes 7000, and 7000.6, which votes 7000.4; the other six vote
// 7000 thrice, 7000.1 and 7000.2 twice.
func TestParityTiesOnPaper(t *testing.T) {
	var rows []row
	for _, v := range [][2]float64{{6999.99, 0.01}, {7000.01, -0.01}, {6999.95, 0.05}, {7000.05, 0.05}, {7000.06, 0.14}, {7000.07, 0.13}} {
		rows = append(rows, pair("SPXW260821", v[0], v[1])...)
	}
	rows = append(rows,
		row{"SPXW260821C06999800", quoted(0.3, 0.3, 0)}, row{"SPXW260821P06999800", quoted(0.1, 0.1, 0)},
		row{"SPXW260821C07000600", quoted(0.5, 0.5, 0)}, row{"SPXW260821P07000600", quoted(0.7, 0.7, 0)})
	wantForward(t, exposure(t, index(7000, noon), rows...), "parity")
}

// Quotes that imply a negative forward are ignored.
func TestAbsurdParity(t *testing.T) {
	var rows []row
	for _, k := range []float64{6900, 7000, 7100} {
		rows = append(rows, pair("SPXW260821", k, -8000)...)
	}
	wantForward(t, exposure(t, index(7000, noon), append(rows, row{"SPXW260821C07200000", published(0.2, 5)})...), "none")
}

// flat returns a book on one date. Its volatility, v = 0.5, is so high that gamma hardly depends on the strike: exposures
// are proportional to open interest, within 2 % from 6800 to 7200.
func flat(positions ...float64) []row {
	var rows []row
	for i := 0; i < len(positions); i += 3 {
		k, calls, puts := positions[i], positions[i+1], positions[i+2]
		rows = append(rows, row{symbolOf("SPXW260821C", k), published(flatIV(0.5), calls)},
			row{symbolOf("SPXW260821P", k), published(flatIV(0.5), puts)})
	}
	return rows
}

// Of strikes with equal values, the wall is the nearest to the spot, or the lower of two that are equally near.
func TestWallTies(t *testing.T) {
	for _, c := range []struct {
		positions []float64
		want      float64
	}{
		{[]float64{6900, 10, 0, 7100, 10, 0}, 6900}, {[]float64{6900, 10, 0, 7099, 10, 0}, 7099},
		{[]float64{6850, 10, 0, 6900, 10, 0, 7050, 9, 0, 7100, 10, 0, 7150, 10, 0}, 6900},
		{[]float64{6900, 10, 0, 7000, 10, 0, 7100, 10, 0}, 7000},
	} {
		g := exposure(t, index(7000, closing), flat(c.positions...)...).Data
		near(t, "open interest wall", g.Walls.OpenInterest.Call, c.want, 0)
		isNull(t, "open interest wall of puts", g.Walls.OpenInterest.Put)
	}
}

// With no used contract, every number that needs a contract is null. The other numbers are there.
func TestNothingUsed(t *testing.T) {
	for name, rows := range map[string][]row{
		"all settled":   {{"SPX260821C07000000", published(0.2, 5)}},
		"no volatility": {{"SPXW260918C07000000", blank(5)}, {"SPXW260918P06900000", blank(5)}},
		"no interest":   {{"SPXW260918C07000000", published(0.2, 0)}},
		"all skipped":   {{"SPX1260918C07000000", published(0.2, 5)}},
	} {
		g := exposure(t, index(7000, "2026-08-21T15:00:00Z"), bothSides(rows...)...).Data
		var fields map[string]json.RawMessage
		must(t, json.Unmarshal(marshal(t, g), &fields))
		for _, key := range strings.Fields(`net_gex_dollars call_gex_dollars put_gex_dollars gross_gex_dollars gamma_tilt
			zero_gamma_flip flip_distance_pct flip_band gamma_regime call_wall put_wall vol_trigger abs_gamma_strike
			expected_move_1d`) {
			equal(t, name+": "+key, string(fields[key]), "null")
		}
		equal(t, name+": status", g.FlipStatus, compute.FlipInsufficient)
		equal(t, name+": flips", string(fields["flips"]), "[]")
		equal(t, name+": walls", string(fields["walls"]),
			`{"by_side":{"call":null,"put":null},"gross":{"call":null,"put":null},"net":{"call":null,"put":null},"open_interest":{"call":null,"put":null}}`)
		equal(t, name+": 0DTE", string(fields["zero_dte"]),
			`{"net_gex_dollars":null,"gross_share_pct":null,"zero_gamma_flip":null,"contracts":0,"settled":false,"pin_strike":null,"remaining_move":null,"call_walls":[],"put_walls":[]}`)
	}
}

// Without a smile, the variance of the move is linear in ln K between the strikes around the forward, which is 7000, and flat outside them.
func TestExpectedMoveWithoutSmile(t *testing.T) {
	const n = 8 // sessions from the close of 2026-08-11 to that of 2026-08-21
	at := func(k, v float64) row { return row{symbolOf("SPXW260821C", k), published(flatIV(v), 10)} }
	part := math.Log(7000./6990) / math.Log(7040./6990)
	for _, c := range []struct {
		rows []row
		want float64 // w
	}{
		{[]row{at(6990, 0.03), at(7040, 0.05)}, 0.0009 + part*0.0016},
		{[]row{at(6990, 0.03), at(7000, 0.04), at(7040, 0.05)}, 0.0016},
		{[]row{at(7040, 0.05), at(7100, 0.06)}, 0.0025},
		{[]row{at(6900, 0.02), at(6990, 0.03)}, 0.0009},
		{[]row{at(0, 0.02), at(7040, 0.05)}, 0.0025},
	} {
		near(t, "move", exposure(t, index(7000, closing), c.rows...).Data.ExpectedMove, 7000*math.Sqrt(c.want/n), 1e-7)
	}
}

func TestQualityClockAndCalendar(t *testing.T) {
	u := index(7000, "2026-08-11T20:14:59Z")
	u.CapturedAt = at("2026-08-11T20:36:41Z")
	q := exposure(t, u, row{"SPXW260821C07000000", published(0.2, 10)}).Quality
	equal(t, "age", q.QuoteAgeSeconds, 21*60+42)
	isNull(t, "calendar", q.Calendar)
	q = exposure(t, u, row{"SPXW311219C07000000", published(0.2, 0)}).Quality
	if q.Calendar == nil || !strings.Contains(*q.Calendar, "2014-2030") {
		t.Errorf("calendar note of 2031: %v", q.Calendar)
	}
	if body := string(marshal(t, q)); !strings.Contains(body, `"forwards":{"extrapolated":0,"interpolated":0,"none":1,`) {
		t.Error(body)
	}
}

// Two-sided quotes count with or without open interest, until the contract has settled.
func TestTwoSidedQuotes(t *testing.T) {
	chain := build(t, index(7000, "2026-08-21T14:00:00Z"), row{"SPXW260821C07000000", quoted(1, 1, 0)}, row{"SPXW260821P07000000", quoted(1, 2, 5)},
		row{"SPXW260918C07000000", quoted(0, 2, 5)}, row{"SPXW260918P07000000", quoted(3, 2, 5)}, row{"SPXW260918P06900000", published(0.2, 5)},
		row{"SPX260821C07000000", quoted(1, 2, 5)})
	equal(t, "two-sided quotes", compute.Unsettled(chain, cal).TwoSided, 2)
}

// A regime other than neutral needs 1 % of gross.
func TestThresholdsOfNet(t *testing.T) {
	for puts, want := range map[float64]string{978: "positive", 982: "neutral", 1018: "neutral", 1022: "negative"} {
		text(t, "regime", exposure(t, index(7000, closing), flat(7000, 1000, puts)...).Data.Regime, want)
	}
	// Calls of today are what makes net positive: their open interest is of the evening before.
	today := []row{{symbolOf("SPXW260811C", 7000), published(0.15, 1000)}, {symbolOf("SPXW260811P", 7000), published(0.15, 0)}}
	for puts, want := range map[float64]string{0: "positive", 3000: "neutral", 900000: "negative"} {
		g := exposure(t, index(7000, "2026-08-11T15:00:00Z"), append(flat(6900, 0, puts), today...)...).Data
		text(t, "regime with calls of today", g.Regime, want)
	}
}
