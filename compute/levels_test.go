package compute_test

import (
	"math"
	"testing"

	"strikecache/compute"
)

// flat is a book on one date of such a high volatility, v = 0.5, that gamma hardly depends on the strike: exposures are
// as open interests, within 2 % from 6800 to 7200.
func flat(positions ...float64) []row {
	var rows []row
	for i := 0; i < len(positions); i += 3 {
		k, calls, puts := positions[i], positions[i+1], positions[i+2]
		rows = append(rows, row{symbolOf("SPXW260821C", k), published(flatIV(0.5), calls)},
			row{symbolOf("SPXW260821P", k), published(flatIV(0.5), puts)})
	}
	return rows
}

func level(k float64) *compute.Level { return new(compute.Level(k)) }

func same(t *testing.T, name string, got, want *compute.Level) {
	t.Helper()
	if want == nil {
		isNull(t, name, got)
		return
	}
	near(t, name, got, float64(*want), 0)
}

func TestWalls(t *testing.T) {
	for _, c := range []struct {
		name                string
		positions           []float64
		callWall, putWall   *compute.Level
		grossCall, grossPut *compute.Level
		netCall, netPut     *compute.Level
		interestCall        *compute.Level
		interestPut, most   *compute.Level
	}{
		{"sides of the spot count for the walls alone",
			[]float64{6900, 90, 50, 7000, 10, 10, 7100, 50, 80},
			level(7100), level(6900), level(6900), level(7100), level(6900), level(7100), level(6900), level(7100), level(6900)},
		{"a strike at the spot is on both sides",
			[]float64{6900, 5, 6, 7000, 90, 95, 7100, 8, 9},
			level(7000), level(7000), level(7000), level(7000), nil, level(7000), level(7000), level(7000), level(7000)},
		{"no calls above, no puts below",
			[]float64{6900, 50, 0, 7100, 0, 60},
			nil, nil, level(6900), level(7100), level(6900), level(7100), level(6900), level(7100), level(7100)},
		{"calls alone",
			[]float64{6900, 50, 0, 7100, 70, 0},
			level(7100), nil, level(7100), nil, level(7100), nil, level(7100), nil, level(7100)},
	} {
		g := exposure(t, index(7000, closing), flat(c.positions...)...).Data
		same(t, c.name+": call wall", g.CallWall, c.callWall)
		same(t, c.name+": put wall", g.PutWall, c.putWall)
		same(t, c.name+": gross call", g.Walls.Gross.Call, c.grossCall)
		same(t, c.name+": gross put", g.Walls.Gross.Put, c.grossPut)
		same(t, c.name+": net call", g.Walls.Net.Call, c.netCall)
		same(t, c.name+": net put", g.Walls.Net.Put, c.netPut)
		same(t, c.name+": interest call", g.Walls.OpenInterest.Call, c.interestCall)
		same(t, c.name+": interest put", g.Walls.OpenInterest.Put, c.interestPut)
		same(t, c.name+": most gamma", g.AbsGammaStrike, c.most)
	}
}

// Of equal values the strike nearest the spot is the wall, then the lower one.
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

// walls.open_interest counts contracts with T > 0 that are not used too; per-strike sums run over both roots and all
// dates; settled rows count nowhere.
func TestWallsOverSeries(t *testing.T) {
	rows := []row{
		{"SPX260821C07100000", published(0.5, 10)}, {"SPXW260821C07100000", published(0.5, 10)},
		{"SPXW260828C07100000", published(0.5, 10)},
		{"SPXW260821C07200000", published(0.5, 25)},
		{"SPXW261218C07300000", blank(1000)},         // no volatility
		{"SPXW260811C07400000", published(0.5, 1e6)}, // settled
	}
	g := exposure(t, index(7000, closing), rows...).Data
	near(t, "call wall", g.CallWall, 7100, 0)
	near(t, "open interest wall", g.Walls.OpenInterest.Call, 7300, 0)
	equal(t, "strikes", len(g.ByStrike), 3)
	equal(t, "calls at 7100", g.ByStrike[0].CallOpenInterest, 30)
	nearly(t, "exposure at 7300", g.ByStrike[2].Call, 0, 0)
}

// by_strike is what lies within ±15 % of the spot, ends included, and has open interest; volume is of all with T > 0.
func TestByStrike(t *testing.T) {
	traded := func(interest, volume float64) compute.Quote {
		q := published(0.5, interest)
		q.Volume = volume
		return q
	}
	g := exposure(t, index(7000, closing),
		row{"SPXW260821C05945000", traded(10, 1)}, row{"SPXW260821C05950000", traded(10, 2)},
		row{"SPXW260821P08050000", traded(10, 3)}, row{"SPXW260821P08055000", traded(10, 4)},
		row{"SPXW260821C07000000", traded(0, 5)}, row{"SPXW260821P07000000", traded(0, 6)}, // volume alone
		row{"SPXW260821C07100000", traded(0, 7)}, row{"SPX260821C07100000", traded(1, 8)},
		row{"SPXW260821P07100000", traded(0, math.NaN())}, row{"SPX260821P07100000", traded(0, 9)},
		row{"SPXW260811P07100000", traded(5, 1000)}).Data
	want := []compute.StrikeGamma{
		{Strike: 5950, CallOpenInterest: 10, CallVolume: 2},
		{Strike: 7100, CallOpenInterest: 1, CallVolume: 15, PutVolume: 9},
		{Strike: 8050, PutOpenInterest: 10, PutVolume: 3},
	}
	if len(g.ByStrike) != len(want) {
		t.Fatalf("%+v", g.ByStrike)
	}
	for i, got := range g.ByStrike {
		got.Call, got.Put, got.Net = 0, 0, 0
		equal(t, "row", got, want[i])
	}
}

// The put wall is 6800 and the call wall 7200 throughout; the largest |net| is 1000 contracts at 7200.
func TestVolTrigger(t *testing.T) {
	book := func(positions ...float64) []row {
		return flat(append(positions, 6800, 0, 900, 7200, 1000, 0)...)
	}
	for _, c := range []struct {
		name string
		rows []row
		want *compute.Level
	}{
		{"the lowest", book(6900, 0, 100, 6950, 60, 0, 7000, 500, 0), level(6950)},
		{"too little", book(6950, 40, 0, 7000, 500, 0), level(7000)},
		{"net, not calls", book(6950, 500, 520, 7000, 500, 400), level(7000)},
		{"none positive", book(6950, 100, 500, 7000, 0, 500), nil},
		{"the walls themselves do not count", flat(6800, 400, 900, 7200, 1000, 0), nil},
		{"no put wall", flat(6900, 500, 0, 7200, 1000, 0), nil},
		{"no call wall", flat(6800, 0, 900, 6900, 500, 0), nil},
	} {
		g := exposure(t, index(7050, closing), c.rows...).Data
		same(t, c.name, g.VolTrigger, c.want)
	}
	// One strike is both walls: nothing lies between.
	isNull(t, "one wall", exposure(t, index(7000, closing), flat(7000, 500, 400, 6900, 50, 0)...).Data.VolTrigger)
}

// The flip of a strangle moves from e^{-0.405 v²} to e^{-0.605 v²} times √(K_p·K_c) as v goes from 0.9 to 1.1.
func TestRegime(t *testing.T) {
	const v, put, call = 0.4, 5000.0, 9000.0
	root := math.Sqrt(put * call)
	down, up := root*math.Exp(-0.405*v*v), root*math.Exp(-0.605*v*v)
	flip := root * math.Exp(-0.5*v*v)
	for _, c := range []struct {
		name string
		spot float64
		want string
	}{
		{"over both scenario flips", down + 0.1, "positive"},
		{"just between", down - 0.1, "neutral"},
		{"at the flip", flip, "neutral"},
		{"just between, below", up + 0.1, "neutral"},
		{"under both", up - 0.1, "negative"},
	} {
		r := exposure(t, index(math.Round(c.spot*100)/100, closing), strangle(put, 100, call, 100, v)...)
		text(t, c.name, r.Data.Regime, c.want)
		if share := math.Abs(float64(*r.Data.Net)) / float64(*r.Data.Gross); c.name != "at the flip" && share < 0.02 {
			t.Errorf("%s: net is %v of gross, so that this tests another rule", c.name, share)
		}
	}
	// Without scenario flips the sign decides, but for |net| under 1 % of gross: (100.9 - 99.1)/200 is 0.9 %.
	for _, c := range []struct {
		calls, puts float64
		want        string
	}{{1009, 991, "neutral"}, {1011, 989, "positive"}, {991, 1009, "neutral"}, {989, 1011, "negative"}, {1000, 1000, "neutral"}} {
		r := exposure(t, index(7000, closing), flat(7000, c.calls, c.puts)...)
		text(t, "sign", r.Data.Regime, c.want)
	}
}

// zero_dte is what settles on the session date and has not yet.
func TestZeroDTE(t *testing.T) {
	rows := []row{
		{"SPX260821C07000000", published(0.5, 10)},
		{"SPXW260821C07000000", published(0.5, 20)}, {"SPXW260821P06950000", published(0.5, 30)},
		{"SPXW260821P06000000", published(0.5, 0)},
		{"SPXW260828C07000000", published(0.5, 20)},
	}
	for _, c := range []struct {
		name, asOf string
		contracts  int
		dates      []string
	}{
		{"before the open", "2026-08-21T13:00:00Z", 3, []string{"am 2026-08-21", "pm 2026-08-21"}},
		{"in session", "2026-08-21T15:00:00Z", 2, []string{"pm 2026-08-21"}},
		{"at the close", "2026-08-21T20:00:00Z", 0, nil},
		{"the next session", "2026-08-24T20:00:00Z", 0, nil},
	} {
		r := exposure(t, index(7000, c.asOf), rows...)
		z := r.Data.ZeroDTE
		equal(t, c.name, z.Contracts, c.contracts)
		var net, gross float64
		for _, date := range c.dates {
			e := forwards(t, r)[date]
			net, gross = net+float64(e.Net), gross+float64(e.Gross)
		}
		nearly(t, c.name+" net", z.Net, net, 1e-6)
		near(t, c.name+" share", z.Share, gross/float64(*r.Data.Gross)*100, 1e-9)
		if c.contracts == 0 {
			isNull(t, c.name+" flip", z.Flip)
		}
	}
	// Its flip is that of its own contracts: the call and the put of that day.
	r := exposure(t, index(7000, "2026-08-21T19:00:00Z"), row{"SPXW260821P06990000", published(0.2, 10)},
		row{"SPXW260821C07010000", published(0.2, 10)}, row{"SPXW260828P07000000", published(0.2, 1e6)})
	near(t, "flip", r.Data.ZeroDTE.Flip, strangleFlip(6990, 10, 7010, 10, 0.2*math.Sqrt(years(1))), 0.01)
	isNull(t, "flip of all", r.Data.Flip)
}

// One row per date and settlement with T > 0, by date and settlement, those with nothing used too.
func TestByExpiration(t *testing.T) {
	r := exposure(t, index(7000, noon),
		row{"SPXW261218C07000000", published(0.3, 10)}, row{"SPXW260821P07000000", published(0.3, 10)},
		row{"SPX260821C07000000", published(0.3, 30)}, row{"SPXW260814C07000000", published(0.3, 0)},
		row{"SPXW260810C07000000", published(0.3, 10)})
	want := []string{"pm 2026-08-14", "am 2026-08-21", "pm 2026-08-21", "pm 2026-12-18"}
	if len(r.Data.ByExpiration) != len(want) {
		t.Fatalf("%+v", r.Data.ByExpiration)
	}
	sum := 0.0
	for i, e := range r.Data.ByExpiration {
		equal(t, "row", e.Settlement.String()+" "+e.Expiration.String(), want[i])
		near(t, want[i]+" share", e.Share, float64(e.Gross)/float64(*r.Data.Gross)*100, 1e-9)
		sum += float64(*e.Share)
	}
	nearly(t, "sum of shares", sum, 100, 1e-9)
	equal(t, "nothing used", r.Data.ByExpiration[0].Gross, 0)
}
