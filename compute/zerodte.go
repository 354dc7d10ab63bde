package compute

import (
	"cmp"
	"math"
	"slices"
)

// nameStrikes fills in the figures that name strikes, from the rows of the part zero_dte of the matrix.
func (z *ZeroDTE) nameStrikes(rows []StrikeGamma, spot Level) {
	if z.CallWalls, z.PutWalls = []StrikeWall{}, []StrikeWall{}; z.Net == nil {
		return
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(r StrikeGamma) bool { return r.Net == nil })
	z.Pin = largest(rows, spot, func(r *StrikeGamma) float64 { return float64(*r.Call - *r.Put) })
	z.CallWalls, z.PutWalls = threeWalls(rows, spot, 1), threeWalls(rows, spot, -1)
}

// threeWalls returns the strikes with the three largest net exposures of a sign, in the order in which [largest] would find them.
func threeWalls(rows []StrikeGamma, spot Level, sign Dollars) []StrikeWall {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r StrikeGamma) bool { return !(sign**r.Net > 0) })
	slices.SortStableFunc(rows, func(a, b StrikeGamma) int {
		return cmp.Or(cmp.Compare(sign**b.Net, sign**a.Net), cmp.Compare(math.Abs(float64(a.Strike-spot)), math.Abs(float64(b.Strike-spot))))
	})
	out := []StrikeWall{}
	for _, r := range rows[:min(len(rows), 3)] {
		out = append(out, StrikeWall{r.Strike, *r.Net})
	}
	return out
}
