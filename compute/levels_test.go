package compute_test

import (
	"math"
	"testing"

	"strikecache/compute"
)

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

func level(k float64) *compute.Level { return new(compute.Level(k)) }

func same(t *testing.T, name string, got, want *compute.Level) {
	t.Helper()
	if want == nil {
		isNull(t, name, got)
		return
	}
	near(t, name, got, float64(*want), 0)
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

// by_strike has the strikes within ±15 % of the spot, ends included, that have open interest. Its volume is that of all
// contracts with T > 0.
func TestByStrike(t *testing.T) {
	traded := func(interest, volume float64) compute.Quote {
		q := published(0.5, interest)
		q.Volume = volume
		return q
	}
	g := exposure(t, index(7000, closing),
		row{"SPXW260821C05945000", traded(10, 1)}, row{"SPXW260821C05950000", traded(10, 2)},
		row{"SPXW260821P08050000", traded(10, 3)}, row{"SPXW260821P08055000", traded(10, 4)},
		row{"SPXW260821C07000000", traded(0, 5)}, row{"SPXW260821P07000000", traded(0, 6)}, // only volume
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
		got.Call, got.Put, got.Net = nil, nil, nil
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
			t.Errorf("%s: net is %v of gross, so this tests another rule", c.name, share)
		}
	}
	// Without scenario flips the sign decides, unless |net| is under 1 % of gross: (100.9 - 99.1)/200 is 0.9 %.
	for _, c := range []struct {
		calls, puts float64
		want        string
	}{{1009, 991, "neutral"}, {1011, 989, "positive"}, {991, 1009, "neutral"}, {989, 1011, "negative"}, {1000, 1000, "neutral"}} {
		r := exposure(t, index(7000, closing), flat(7000, c.calls, c.puts)...)
		text(t, "sign", r.Data.Regime, c.want)
	}
}
