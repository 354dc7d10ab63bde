package compute_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"strikecache/compute"
)

// gammaOf is the gamma of METHODS.md §1.1 for a spot s, total volatility v and no carry.
func gammaOf(s, k, v float64) float64 {
	d1 := math.Log(s/k)/v + v/2
	return math.Exp(-d1*d1/2) / math.Sqrt(2*math.Pi) / (s * v)
}

// dollarsOf returns the value of one contract of a gamma, in dollars of delta: 100 shares, 1 % of the spot.
func dollarsOf(s, gamma float64) float64 { return gamma * 100 * s * s * 0.01 }

// years returns T for a number of hours.
func years(hours float64) float64 { return hours / (365 * 24) }

// One contract at the money has a gamma proportional to 1/√T. An hour more or less in a T of 3 days is 0.7 %, a hundred
// thousand times the tolerance. The instants are in UTC. The clocks change on 2026-03-08 and 2026-11-01.
func TestTimeToSettlement(t *testing.T) {
	for _, c := range []struct{ name, asOf, symbol, settles string }{
		{"AM summer", "2026-08-18T15:00:00Z", "SPX260821C07000000", "2026-08-21T13:30:00Z"},
		{"PM summer", "2026-08-18T15:00:00Z", "SPXW260821C07000000", "2026-08-21T20:00:00Z"},
		{"AM winter", "2026-12-15T16:00:00Z", "SPX261218C07000000", "2026-12-18T14:30:00Z"},
		{"PM winter", "2026-12-15T16:00:00Z", "SPXW261218P07000000", "2026-12-18T21:00:00Z"},
		{"PM the day before the clocks go forward", "2026-03-03T16:00:00Z", "SPXW260306C07000000", "2026-03-06T21:00:00Z"},
		{"PM over the clocks going forward", "2026-03-06T16:00:00Z", "SPXW260309C07000000", "2026-03-09T20:00:00Z"},
		{"AM over the clocks going forward", "2026-03-06T16:00:00Z", "SPX260309C07000000", "2026-03-09T13:30:00Z"},
		{"PM the day before the clocks go back", "2026-10-29T15:00:00Z", "SPXW261030P07000000", "2026-10-30T20:00:00Z"},
		{"PM over the clocks going back", "2026-10-30T15:00:00Z", "SPXW261102C07000000", "2026-11-02T21:00:00Z"},
		{"AM over the clocks going back", "2026-10-30T15:00:00Z", "SPX261102C07000000", "2026-11-02T14:30:00Z"},
		{"PM early close after Thanksgiving", "2026-11-25T16:00:00Z", "SPXW261127C07000000", "2026-11-27T18:00:00Z"},
		{"AM early close after Thanksgiving", "2026-11-25T16:00:00Z", "SPX261127C07000000", "2026-11-27T14:30:00Z"},
		{"PM Christmas Eve", "2026-12-23T16:00:00Z", "SPXW261224C07000000", "2026-12-24T18:00:00Z"},
		{"PM 3 July, summer time", "2028-06-30T15:00:00Z", "SPXW280703C07000000", "2028-07-03T17:00:00Z"},
		{"the last hour", "2026-08-18T19:00:00Z", "SPXW260818C07000000", "2026-08-18T20:00:00Z"},
		{"the last second", "2026-08-18T19:59:59Z", "SPXW260818C07000000", "2026-08-18T20:00:00Z"},
	} {
		seconds := at(c.settles).Sub(at(c.asOf)).Seconds()
		r := exposure(t, index(7000, c.asOf), row{c.symbol, published(0.2, 10)})
		// Under 15 minutes the volatility is that of 15 minutes (METHODS.md §1.1, step 2).
		v := 0.2 * math.Sqrt(math.Max(seconds, 900)/(365*86400))
		want := dollarsOf(7000, gammaOf(7000, 7000, v)) * 10
		near(t, c.name, r.Data.Gross, want, 1e-9*want)
	}
}

// Spot 4000, T a quarter of a year (91 days and 6 hours), iv 0.2, so v = 0.1; 10 contracts each. Gammas to 20 digits
// come from mpmath with 30: at the money, at 4200 and at 3800.
func handRows() []row {
	return []row{
		{"SPXW260821C04000000", published(0.2, 10)},
		{"SPXW260821C04200000", published(0.2, 10)},
		{"SPXW260821P03800000", published(0.2, 10)},
	}
}

func TestThreeContractsByHand(t *testing.T) {
	r := exposure(t, index(4000, "2026-05-22T14:00:00Z"), handRows()...)
	g := r.Data
	const atm, up, down = 0.00099610978523690999877, 0.00090617147464975141269, 0.00085121158441208304897
	const unit = 10 * 100 * 4000 * 4000 * 0.01
	near(t, "call", g.Call, (atm+up)*unit, 1e-5)
	near(t, "put", g.Put, -down*unit, 1e-5)
	near(t, "net", g.Net, (atm+up-down)*unit, 1e-5)
	near(t, "gross", g.Gross, (atm+up+down)*unit, 1e-5)
	near(t, "tilt", g.Tilt, (atm+up)/down, 1e-12)
	equal(t, "used", g.ContractsAnalyzed, 3)
	equal(t, "symbol", g.Symbol, "SPX")
	nearly(t, "spot", g.Spot, 4000, 0)
	equal(t, "session", g.SessionDate, day("2026-05-22"))
	near(t, "call wall", g.CallWall, 4000, 0)
	near(t, "put wall", g.PutWall, 3800, 0)
	near(t, "strike of the most gamma", g.AbsGammaStrike, 4000, 0)

	if len(g.ByExpiration) != 1 || len(g.ByStrike) != 3 {
		t.Fatalf("%d expirations, %d strikes", len(g.ByExpiration), len(g.ByStrike))
	}
	e := g.ByExpiration[0]
	near(t, "expiration net", e.Net, (atm+up-down)*unit, 1e-5)
	near(t, "expiration gross", e.Gross, (atm+up+down)*unit, 1e-5)
	near(t, "share", e.Share, 100, 1e-12)
	for i, want := range []compute.StrikeGamma{
		{Strike: 3800, Call: dollars(0), Put: dollars(-down * unit), Net: dollars(-down * unit), PutOpenInterest: 10},
		{Strike: 4000, Call: dollars(atm * unit), Put: dollars(0), Net: dollars(atm * unit), CallOpenInterest: 10},
		{Strike: 4200, Call: dollars(up * unit), Put: dollars(0), Net: dollars(up * unit), CallOpenInterest: 10},
	} {
		got := g.ByStrike[i]
		nearly(t, "strike", got.Strike, float64(want.Strike), 0)
		near(t, "strike call", got.Call, float64(*want.Call), 1e-5)
		near(t, "strike put", got.Put, float64(*want.Put), 1e-5)
		near(t, "strike net", got.Net, float64(*want.Net), 1e-5)
		equal(t, "call open interest", got.CallOpenInterest, want.CallOpenInterest)
		equal(t, "put open interest", got.PutOpenInterest, want.PutOpenInterest)
	}
	// The middle of the profile is the net. Each point is the sum of the same formula at S·(1 + j/1000).
	equal(t, "profile points", len(g.Profile), 121)
	for j, p := range g.Profile {
		s := 4000 * (1 + float64(j-60)/1000)
		nearly(t, "profile spot", p.Spot, s, 1e-9)
		want := dollarsOf(s, gammaOf(s, 4000, 0.1)+gammaOf(s, 4200, 0.1)-gammaOf(s, 3800, 0.1)) * 10
		near(t, "profile net", p.Net, want, 1e-9*unit)
	}
}

func dollars(x float64) *compute.Dollars { return new(compute.Dollars(x)) }

// With no used contract, every number that needs a contract is null. The other numbers are there.
func TestNothingUsed(t *testing.T) {
	for name, rows := range map[string][]row{
		"all settled":   {{"SPX260821C07000000", published(0.2, 5)}},
		"no volatility": {{"SPXW260918C07000000", blank(5)}, {"SPXW260918P06900000", blank(5)}},
		"no interest":   {{"SPXW260918C07000000", published(0.2, 0)}},
		"all skipped":   {{"SPX1260918C07000000", published(0.2, 5)}},
	} {
		g := exposure(t, index(7000, "2026-08-21T15:00:00Z"), rows...).Data
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(marshal(t, g), &fields); err != nil {
			t.Fatal(err)
		}
		for _, key := range strings.Fields(`net_gex_dollars call_gex_dollars put_gex_dollars gross_gex_dollars gamma_tilt
			zero_gamma_flip flip_distance_pct flip_band gamma_regime call_wall put_wall vol_trigger abs_gamma_strike
			expected_move_1d`) {
			equal(t, name+": "+key, string(fields[key]), "null")
		}
		equal(t, name+": status", g.FlipStatus, compute.FlipInsufficient)
		equal(t, name+": flips", string(fields["flips"]), "[]")
		equal(t, name+": walls", string(fields["walls"]),
			`{"gross":{"call":null,"put":null},"net":{"call":null,"put":null},"open_interest":{"call":null,"put":null}}`)
		equal(t, name+": 0DTE", string(fields["zero_dte"]),
			`{"net_gex_dollars":0,"gross_share_pct":null,"zero_gamma_flip":null,"contracts":0,"settled":false}`)
	}
}

// The same rows give the same bytes, in any order.
func TestSameInputSameBytes(t *testing.T) {
	g := &generator{Rand: rand.New(rand.NewPCG(25, 26)), seen: map[string]int{}}
	for i := range 4 {
		m := g.market(t, i, "SPX", "SPXW")
		in := compute.GammaInput{Chain: m.chain, Calendar: cal, RiskFreeRate: m.rate}
		once := compute.GammaExposure(in)
		twice := compute.GammaExposure(in)
		equal(t, "data", string(marshal(t, twice.Data)), string(marshal(t, once.Data)))
		equal(t, "quality", string(marshal(t, twice.Quality)), string(marshal(t, once.Quality)))
		seen := map[string]bool{}
		rows := slices.DeleteFunc(slices.Clone(g.rows), func(r row) bool { // the first of two duplicates counts, so their order matters
			duplicate := seen[r.symbol]
			seen[r.symbol] = true
			return duplicate
		})
		g.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		in.Chain = build(t, m.chain.Underlying, rows...)
		equal(t, "shuffled", string(marshal(t, compute.GammaExposure(in).Data)), string(marshal(t, once.Data)))
	}
}

// move returns the expected move at 7000 of a series with a published volatility of 0.2 that trades for n sessions.
func move(hours, n float64) float64 { return 7000 * 0.2 * math.Sqrt(years(hours)) / math.Sqrt(n) }

// METHODS.md §1.3: the nearest expiration with at least one full session after the session date on or before its last
// trading day, which for AM is the day before. n counts the sessions from the quote instant, the current one by the
// fraction that is left.
func TestExpectedMove(t *testing.T) {
	for _, c := range []struct {
		name, asOf string
		symbols    []string
		hours      float64 // from the quote instant to the settlement of the chosen series
		n          float64
	}{
		{"PM tomorrow, mid session", "2026-08-11T16:00:00Z", []string{"SPXW260812C07000000"}, 28, 1 + 4/6.5},
		{"at 18:00, quotes of 17:00", "2026-08-11T22:00:00Z", []string{"SPXW260812C07000000"}, 23, 1},
		{"AM tomorrow last trades today", "2026-08-11T20:00:00Z", []string{"SPX260812C07000000", "SPXW260812C07000000"}, 24, 1},
		{"on a Saturday, AM Monday", "2026-08-15T15:00:00Z", []string{"SPX260817C07000000", "SPXW260818C07000000"}, 95, 2},
		{"early close today: 1.75 of 3.5 hours left", "2026-11-27T16:15:00Z", []string{"SPXW261130C07000000"}, 76.75, 1.5},
	} {
		var rows []row
		for _, s := range c.symbols {
			rows = append(rows, row{s, published(0.2, 10)})
		}
		near(t, c.name, exposure(t, index(7000, c.asOf), rows...).Data.ExpectedMove, move(c.hours, c.n), 1e-8)
	}
	// The index has stood still since Monday. The current session is Tuesday, with 4 of 6.5 hours left.
	r := documentOf(t, 7000, "2026-08-10T20:00:00Z", "2026-08-11T16:00:00Z", []row{{"SPXW260812C07000000", published(0.2, 10)}})
	near(t, "an old index", r.Data.ExpectedMove, move(28, 1+4/6.5), 1e-8)
	// Quotes of Friday morning: the series that settles in the morning last traded on Thursday.
	r = documentOf(t, 7000, "2026-08-11T20:14:59Z", "2026-08-14T12:15:00Z", []row{
		{"SPX260814C07000000", published(0.2, 10)}, {"SPXW260818C07000000", published(0.2, 10)},
	})
	isNull(t, "no session is left", r.Data.ExpectedMove)
	for name, symbol := range map[string]string{"PM today": "SPXW260811C07000000", "AM tomorrow": "SPX260812C07000000"} {
		isNull(t, name, exposure(t, index(7000, noon), row{symbol, published(0.2, 10)}).Data.ExpectedMove)
	}
}

// The date follows from captured_at. On a session day from 07:15 New York, it is the session before. Earlier on the day it
// is the session before that, and the state is updating. On a weekend or holiday it is that of the last session day.
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
	// The exposure uses captured_at, not as_of: as_of is Monday evening, and the document was made on Tuesday morning.
	u := index(7000, "2026-08-10T20:14:59Z")
	u.CapturedAt = at("2026-08-11T11:00:00Z")
	g := exposure(t, u, row{"SPXW260821C07000000", published(0.2, 10)}).Data
	equal(t, "settle date", g.OISettleDate, day("2026-08-07"))
	equal(t, "state", g.OIState, "updating")
	equal(t, "session", g.SessionDate, day("2026-08-10"))
}
