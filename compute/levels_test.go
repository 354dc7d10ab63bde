package compute_test

import (
	"testing"
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
