package compute_test

import (
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
