package compute

import "math"

// Walls are the strikes with the largest value of each of three measures, without regard to the spot.
type Walls struct {
	// Strike with the largest call exposure, and strike with the largest absolute put exposure.
	Gross Wall `json:"gross"`
	// Strike with the most positive net exposure, and strike with the most negative net exposure.
	Net          Wall `json:"net"`
	OpenInterest Wall `json:"open_interest"` // Strike with the most open calls, and strike with the most open puts.
}

// Wall is the strikes with the largest values of one measure.
type Wall struct {
	// Strike with the largest value for calls; for net exposure, with the most positive value. `null` when no strike has such a
	// value.
	Call *Level `json:"call" unit:"USD or index points"`
	// Strike with the largest absolute value for puts; for net exposure, with the most negative value. `null` when no strike has
	// such a value.
	Put *Level `json:"put" unit:"USD or index points"`
}

// levels fills in the key levels, which compare strikes.
func (e *exposure) levels(g *Gamma) {
	g.CallWall, g.PutWall = walls(e.strikes, Level(e.level))
	g.AbsGammaStrike = e.largest(func(r *StrikeGamma) float64 { return float64(*r.Call - *r.Put) })
	g.Walls = Walls{
		Gross: Wall{e.largest(callExposure), e.largest(putExposure)},
		Net: Wall{
			e.largest(func(r *StrikeGamma) float64 { return float64(*r.Net) }),
			e.largest(func(r *StrikeGamma) float64 { return float64(-*r.Net) }),
		},
		OpenInterest: Wall{
			e.largest(func(r *StrikeGamma) float64 { return float64(r.CallOpenInterest) }),
			e.largest(func(r *StrikeGamma) float64 { return float64(r.PutOpenInterest) }),
		},
	}
	g.VolTrigger = e.volTrigger(g.PutWall, g.CallWall)
}

// walls returns the strike at or above the spot with the largest call exposure, and the one at or below it with the largest absolute
// put exposure; nil without exposure.
func walls(rows []StrikeGamma, spot Level) (call, put *Level) {
	return largest(rows, spot, func(r *StrikeGamma) float64 { return only(r.Strike >= spot, callExposure(r)) }),
		largest(rows, spot, func(r *StrikeGamma) float64 { return only(r.Strike <= spot, putExposure(r)) })
}

func callExposure(r *StrikeGamma) float64 { return float64(*r.Call) }

func putExposure(r *StrikeGamma) float64 { return float64(-*r.Put) }

func only(ok bool, x float64) float64 {
	if ok {
		return x
	}
	return 0
}

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

// volTrigger is the lowest strike strictly between the walls with a net exposure that is positive and at least
// 5 % of the largest. It is our own estimate of the level above which dealers' hedging dampens moves.
func (e *exposure) volTrigger(putWall, callWall *Level) *Level {
	if putWall == nil || callWall == nil {
		return nil
	}
	var largest Dollars
	for i := range e.strikes {
		largest = max(largest, *e.strikes[i].Net, -*e.strikes[i].Net)
	}
	for i := range e.strikes {
		r := &e.strikes[i]
		if r.Strike > *putWall && r.Strike < *callWall && *r.Net > 0 && *r.Net >= 0.05*largest {
			return new(r.Strike)
		}
	}
	return nil
}

// strikeReach is the greatest distance of a strike of gex/{u}, in percent of the spot.
const strikeReach = 15

// byStrike returns the strikes that have any open interest and are at most reach percent of the spot away from it.
func (e *exposure) byStrike(strikes []StrikeGamma, reach float64) []StrikeGamma {
	out := []StrikeGamma{}
	for _, r := range strikes {
		near := 100*math.Abs(float64(r.Strike)-e.level) <= reach*e.level // exact at round numbers
		if near && (r.CallOpenInterest > 0 || r.PutOpenInterest > 0) {
			out = append(out, r)
		}
	}
	return out
}
