package compute_test

import (
	"math"
	"testing"

	"strikecache/compute"
)

// The expected move of one series with a published volatility of 0.2 at 7000, n sessions before it settles.
func move(hours, n float64) float64 { return 7000 * 0.2 * math.Sqrt(years(hours)) / math.Sqrt(n) }

// METHODS.md §1.3: the nearest expiration with at least one full session after the session date on or before its last
// trading day (AM: the day before); n counts the sessions from as_of, the current one by its unexpired fraction.
func TestExpectedMove(t *testing.T) {
	for _, c := range []struct {
		name, asOf string
		symbols    []string
		hours      float64 // from as_of to the settlement of the one chosen
		n          float64
	}{
		{"PM tomorrow, mid session", "2026-08-11T16:00:00Z", []string{"SPXW260812C07000000"}, 28, 1 + 4/6.5},
		{"the day's own is passed over", "2026-08-11T16:00:00Z", []string{"SPXW260811C07000000", "SPXW260812C07000000"}, 28, 1 + 4/6.5},
		{"at the open", "2026-08-11T13:30:00Z", []string{"SPXW260812C07000000"}, 30.5, 2},
		{"before the open", "2026-08-11T11:30:00Z", []string{"SPXW260812C07000000"}, 32.5, 2},
		{"at the close", "2026-08-11T20:00:00Z", []string{"SPXW260812C07000000"}, 24, 1},
		{"after the close", "2026-08-11T22:00:00Z", []string{"SPXW260812C07000000"}, 22, 1},
		{"AM in two days: one full session", "2026-08-11T20:00:00Z", []string{"SPX260813C07000000"}, 41.5, 1},
		{"AM tomorrow last trades today", "2026-08-11T20:00:00Z", []string{"SPX260812C07000000", "SPXW260812C07000000"}, 24, 1},
		{"AM before PM of a date", "2026-08-11T20:00:00Z", []string{"SPX260813C07000000", "SPXW260813C07000000"}, 41.5, 1},
		{"over a weekend", "2026-08-14T18:00:00Z", []string{"SPXW260817C07000000"}, 74, 1 + 2/6.5},
		{"on a Saturday", "2026-08-15T15:00:00Z", []string{"SPXW260817C07000000"}, 53, 1},
		{"on a Saturday, AM Monday", "2026-08-15T15:00:00Z", []string{"SPX260817C07000000", "SPXW260818C07000000"}, 77, 2},
		{"over Labor Day", "2026-09-04T20:00:00Z", []string{"SPXW260908C07000000"}, 96, 1},
		{"early close today: 1.75 of 3.5 hours left", "2026-11-27T16:15:00Z", []string{"SPXW261130C07000000"}, 76.75, 1.5},
		{"early close today, after it", "2026-11-27T19:00:00Z", []string{"SPXW261130C07000000"}, 74, 1},
		{"to an early close", "2026-11-25T21:00:00Z", []string{"SPXW261127C07000000"}, 45, 1},
	} {
		var rows []row
		for _, s := range c.symbols {
			rows = append(rows, row{s, published(0.2, 10)})
		}
		near(t, c.name, exposure(t, index(7000, c.asOf), rows...).Data.ExpectedMove, move(c.hours, c.n), 1e-8)
	}
	for name, symbol := range map[string]string{"PM today": "SPXW260811C07000000", "AM tomorrow": "SPX260812C07000000"} {
		isNull(t, name, exposure(t, index(7000, noon), row{symbol, published(0.2, 10)}).Data.ExpectedMove)
	}
}

// v_ATM is that of the strike nearest the forward, not the spot, with or without open interest.
func TestExpectedMoveTakesTheStrikeAtTheForward(t *testing.T) {
	rows := parity("SPXW260812", 7090, 0, 28)
	for i := range rows {
		rows[i].Bid = 0 // keep the published volatilities
		rows[i].IV = map[string]float64{"06900000": 0.5, "07000000": 0.4, "07100000": 0.3}[rows[i].symbol[11:]]
	}
	rows = append(rows, row{"SPXW261218C07000000", published(0.2, 10)})
	chain := build(t, index(7000, noon), rows...)
	series := compute.Series{Root: "SPXW", Expiration: day("2026-08-12")}
	r := compute.GammaExposure(compute.GammaInput{Chain: chain, Calendar: cal,
		PreviousCarry: map[compute.Series]float64{series: math.Log(7090.0/7000) / years(28)}})
	near(t, "at 7100", r.Data.ExpectedMove, 7000*0.3*math.Sqrt(years(28))/math.Sqrt(1+4/6.5), 1e-8)
}

// By captured_at: on a session day from 07:15 New York the session before it; earlier one further back and updating; on
// a weekend or holiday what the last session day had.
func TestOpenInterestDate(t *testing.T) {
	for _, c := range []struct{ name, captured, want, state string }{
		{"07:14:59 summer", "2026-08-11T11:14:59Z", "2026-08-07", "updating"},
		{"07:15:00 summer", "2026-08-11T11:15:00Z", "2026-08-10", "settled"},
		{"07:14:59 winter", "2026-12-15T12:14:59Z", "2026-12-11", "updating"},
		{"07:15:00 winter", "2026-12-15T12:15:00Z", "2026-12-14", "settled"},
		{"midnight", "2026-08-11T04:00:00Z", "2026-08-07", "updating"},
		{"a second before midnight", "2026-08-11T03:59:59Z", "2026-08-07", "settled"},
		{"after the close", "2026-08-11T23:57:57Z", "2026-08-10", "settled"},
		{"Monday early", "2026-08-10T11:14:59Z", "2026-08-06", "updating"},
		{"Monday", "2026-08-10T11:15:00Z", "2026-08-07", "settled"},
		{"Saturday", "2026-08-08T06:00:00Z", "2026-08-06", "settled"},
		{"Sunday", "2026-08-09T22:38:43Z", "2026-08-06", "settled"},
		{"Labor Day, early", "2026-09-07T10:00:00Z", "2026-09-03", "settled"},
		{"Labor Day", "2026-09-07T15:00:00Z", "2026-09-03", "settled"},
		{"after Labor Day, early", "2026-09-08T11:14:59Z", "2026-09-03", "updating"},
		{"after Labor Day", "2026-09-08T11:15:00Z", "2026-09-04", "settled"},
		{"an early close", "2026-11-27T12:15:00Z", "2026-11-25", "settled"},
	} {
		got, state := compute.OpenInterestDate(at(c.captured), cal)
		equal(t, c.name, got, day(c.want))
		equal(t, c.name, state, c.state)
	}
	// The exposure asks for captured_at, not as_of: a document of Monday evening generated on Tuesday morning.
	u := index(7000, "2026-08-10T20:14:59Z")
	u.CapturedAt = at("2026-08-11T11:00:00Z")
	g := exposure(t, u, row{"SPXW260821C07000000", published(0.2, 10)}).Data
	equal(t, "settle date", g.OISettleDate, day("2026-08-07"))
	equal(t, "state", g.OIState, "updating")
	equal(t, "session", g.SessionDate, day("2026-08-10"))
}
