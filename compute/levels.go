package compute

import (
	"cmp"
	"math"
	"slices"
)

// Walls are the strikes with the largest value of each of four measures.
type Walls struct {
	// The strike at or above the spot with the largest call exposure, and the strike at or below the spot with the largest absolute put
	// exposure. A strike changes its side, and a wall of this kind can jump, when the spot crosses it.
	BySide Wall `json:"by_side"`
	// Strike with the largest call exposure, and strike with the largest absolute put exposure.
	Gross        Wall `json:"gross"`
	Net          Wall `json:"net"`           // `call_wall` and `put_wall`.
	OpenInterest Wall `json:"open_interest"` // Strike with the most open calls, and strike with the most open puts.
}

// Wall is the strikes with the largest values of one measure.
type Wall struct {
	// Strike with the largest value for calls. `null` when no such strike has a value.
	Call *Level `json:"call" unit:"USD or index points"`
	// Strike with the largest absolute value for puts. `null` when no such strike has a value.
	Put *Level `json:"put" unit:"USD or index points"`
}

// levels fills in the key levels, which compare strikes.
func (e *exposure) levels(g *Gamma) {
	spot := Level(e.level)
	above := slices.DeleteFunc(slices.Clone(e.strikes), func(r StrikeGamma) bool { return r.Strike < spot })
	below := slices.DeleteFunc(slices.Clone(e.strikes), func(r StrikeGamma) bool { return r.Strike > spot })
	g.CallWall, g.PutWall = e.largest(netExposure), e.largest(func(r *StrikeGamma) float64 { return -netExposure(r) })
	g.AbsGammaStrike = e.largest(func(r *StrikeGamma) float64 { return float64(*r.Call - *r.Put) })
	g.Walls = Walls{
		BySide: Wall{largest(above, spot, callExposure), largest(below, spot, putExposure)},
		Gross:  Wall{e.largest(callExposure), e.largest(putExposure)},
		Net:    Wall{g.CallWall, g.PutWall},
		OpenInterest: Wall{
			e.largest(func(r *StrikeGamma) float64 { return r.held.openInterest[Call] }),
			e.largest(func(r *StrikeGamma) float64 { return r.held.openInterest[Put] }),
		},
	}
}

func callExposure(r *StrikeGamma) float64 { return float64(*r.Call) }

func putExposure(r *StrikeGamma) float64 { return -float64(*r.Put) }

func netExposure(r *StrikeGamma) float64 { return float64(*r.Net) }

func (e *exposure) largest(value func(*StrikeGamma) float64) *Level {
	return largest(e.strikes, Level(e.level), value)
}

// largest returns the strike with the largest positive value. Of strikes with equal values it returns the strike nearest
// the spot, or the lower of two that are equally near.
func largest(rows []StrikeGamma, spot Level, value func(*StrikeGamma) float64) *Level {
	best, at := 0.0, (*StrikeGamma)(nil)
	distance := func(r *StrikeGamma) float64 { return math.Abs(float64(r.Strike - spot)) }
	for i := range rows {
		r := &rows[i]
		if v := value(r); v > best || at != nil && v == best && distance(r) < distance(at) {
			best, at = v, r
		}
	}
	if at == nil {
		return nil
	}
	return new(at.Strike)
}

// triggerDays is how many calendar days after the session date the contracts of vol_trigger expire at most.
const triggerDays = 7

// strikeReach is the greatest distance of a strike of gex/{u}, in percent of the spot.
const strikeReach = 15

// near says whether a strike is at most reach percent of the spot away from it.
func (e *exposure) near(k Level, reach float64) bool {
	return 100*math.Abs(float64(k)-e.level) <= reach*e.level // exact at round numbers
}

// byStrike returns the strikes that have any open interest, or one that is not known, and are at most reach percent of the spot away from it.
func (e *exposure) byStrike(strikes []StrikeGamma, reach float64) []StrikeGamma {
	out := []StrikeGamma{}
	for _, r := range strikes {
		if e.near(r.Strike, reach) && (r.held.openInterest != [2]float64{} || !r.held.interest.complete()) {
			if r = r.served(); e.mismatch {
				r.Call, r.Put, r.Net = nil, nil, nil
			}
			out = append(out, r)
		}
	}
	return out
}

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
