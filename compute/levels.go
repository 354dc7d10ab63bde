package compute

import (
	"cmp"
	"math"
	"slices"
)

// StrikeGamma is the exposure and the positions of one strike over all roots and expirations with T > 0.
type StrikeGamma struct {
	Strike           Level   `json:"strike"`
	Call             Dollars `json:"call_gex_dollars"`
	Put              Dollars `json:"put_gex_dollars"`
	Net              Dollars `json:"net_gex_dollars"`
	CallOpenInterest Count   `json:"call_open_interest"`
	PutOpenInterest  Count   `json:"put_open_interest"`
	CallVolume       Count   `json:"call_volume"`
	PutVolume        Count   `json:"put_volume"`
}

func (r *StrikeGamma) gross() Dollars { return r.Call - r.Put }

// count adds the positions of a contract.
func (r *StrikeGamma) count(right Right, c *Contract) {
	if right == Call {
		r.CallOpenInterest += Count(c.OpenInterest)
		r.CallVolume += Count(positive(c.Volume))
	} else {
		r.PutOpenInterest += Count(c.OpenInterest)
		r.PutVolume += Count(positive(c.Volume))
	}
}

// strikeTable holds one row per listed strike, rising.
type strikeTable struct{ rows []StrikeGamma }

func newStrikeTable(s *surface) *strikeTable {
	var strikes []float64
	for _, g := range s.series {
		for i := range g.strikes {
			strikes = append(strikes, g.strikes[i].k)
		}
	}
	slices.Sort(strikes)
	strikes = slices.Compact(strikes)
	t := &strikeTable{rows: make([]StrikeGamma, len(strikes))}
	for i, k := range strikes {
		t.rows[i].Strike = Level(k)
	}
	return t
}

// row returns the row of a listed strike.
func (t *strikeTable) row(k float64) *StrikeGamma {
	i, _ := slices.BinarySearchFunc(t.rows, Level(k), func(r StrikeGamma, k Level) int { return cmp.Compare(r.Strike, k) })
	return &t.rows[i]
}

// Walls are the strikes with the largest call and put side by three measures, without regard to the spot.
type Walls struct {
	Gross        Wall `json:"gross"`
	Net          Wall `json:"net"`
	OpenInterest Wall `json:"open_interest"`
}

// Wall is a call and a put strike.
type Wall struct {
	Call *Level `json:"call"`
	Put  *Level `json:"put"`
}

// levels fills in the key levels, which compare strikes.
func (e *exposure) levels(g *Gamma) {
	for i := range e.strikes {
		e.strikes[i].Net = e.strikes[i].Call + e.strikes[i].Put
	}
	spot := Level(e.surface.spot)
	call := func(r *StrikeGamma) float64 { return float64(r.Call) }
	put := func(r *StrikeGamma) float64 { return float64(-r.Put) }
	g.CallWall = e.largest(func(r *StrikeGamma) float64 { return only(r.Strike >= spot, call(r)) })
	g.PutWall = e.largest(func(r *StrikeGamma) float64 { return only(r.Strike <= spot, put(r)) })
	g.AbsGammaStrike = e.largest(func(r *StrikeGamma) float64 { return float64(r.gross()) })
	g.Walls = Walls{
		Gross: Wall{e.largest(call), e.largest(put)},
		Net: Wall{
			e.largest(func(r *StrikeGamma) float64 { return float64(r.Net) }),
			e.largest(func(r *StrikeGamma) float64 { return float64(-r.Net) }),
		},
		OpenInterest: Wall{
			e.largest(func(r *StrikeGamma) float64 { return float64(r.CallOpenInterest) }),
			e.largest(func(r *StrikeGamma) float64 { return float64(r.PutOpenInterest) }),
		},
	}
	g.VolTrigger = e.volTrigger(g.PutWall, g.CallWall)
}

func only(ok bool, x float64) float64 {
	if ok {
		return x
	}
	return 0
}

// largest returns the strike with the largest positive value; of equals the one nearest the spot, then the
// lower.
func (e *exposure) largest(value func(*StrikeGamma) float64) *Level {
	best, at := 0.0, (*StrikeGamma)(nil)
	distance := func(r *StrikeGamma) float64 { return math.Abs(float64(r.Strike) - e.surface.spot) }
	for i := range e.strikes {
		r := &e.strikes[i]
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
// 5 % of the largest: our own estimate of where dealers' hedging turns supportive.
func (e *exposure) volTrigger(putWall, callWall *Level) *Level {
	if putWall == nil || callWall == nil {
		return nil
	}
	var largest Dollars
	for i := range e.strikes {
		largest = max(largest, e.strikes[i].Net, -e.strikes[i].Net)
	}
	for i := range e.strikes {
		r := &e.strikes[i]
		if r.Strike > *putWall && r.Strike < *callWall && r.Net > 0 && r.Net >= 0.05*largest {
			return new(r.Strike)
		}
	}
	return nil
}

// byStrike returns the strikes within ±15 % of the spot that have any open interest.
func (e *exposure) byStrike() []StrikeGamma {
	out := []StrikeGamma{}
	for _, r := range e.strikes {
		near := 100*math.Abs(float64(r.Strike)-e.surface.spot) <= 15*e.surface.spot // exact at round numbers
		if near && (r.CallOpenInterest > 0 || r.PutOpenInterest > 0) {
			out = append(out, r)
		}
	}
	return out
}

func sortByExpiration(rows []ExpirationGamma) {
	slices.SortStableFunc(rows, func(a, b ExpirationGamma) int {
		return cmp.Or(cmp.Compare(a.Expiration, b.Expiration), cmp.Compare(a.Settlement, b.Settlement))
	})
}
