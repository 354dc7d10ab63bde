package compute

import (
	"maps"
	"slices"
	"time"
)

// StrikeGamma is the exposure, open interest and volume of one strike over all roots and expirations. Exposure counts the used
// contracts. Open interest and volume count every contract that has not settled.
type StrikeGamma struct {
	Strike Level `json:"strike" unit:"USD or index points"` // Strike.
	// Gamma exposure of the calls. `null` after `spot_mismatch`, and while open interest of these calls is not known.
	Call *Dollars `json:"call_gex_dollars" jsonschema:"minimum=0" unit:"USD per 1 % move of the underlying"`
	// Gamma exposure of the puts. `null` after `spot_mismatch`, and while open interest of these puts is not known.
	Put *Dollars `json:"put_gex_dollars" jsonschema:"maximum=0" unit:"USD per 1 % move of the underlying"`
	// Exposure of the calls plus exposure of the puts. `null` when one of them is.
	Net *Dollars `json:"net_gex_dollars" unit:"USD per 1 % move of the underlying"`
	// Open calls. `null` while over 1 % of these calls have an open interest that is not known.
	CallOpenInterest *Count `json:"call_open_interest" jsonschema:"minimum=0" unit:"contracts"`
	// Open puts. `null` while over 1 % of these puts have an open interest that is not known.
	PutOpenInterest *Count `json:"put_open_interest" jsonschema:"minimum=0" unit:"contracts"`
	// Calls traded in the session. `null` while over 1 % of these calls have no volume.
	CallVolume *Count `json:"call_volume" jsonschema:"minimum=0" unit:"contracts"`
	// Puts traded in the session. `null` while over 1 % of these puts have no volume.
	PutVolume *Count `json:"put_volume" jsonschema:"minimum=0" unit:"contracts"`

	interest, traded coverage
}

func newStrikeGamma(k float64) *StrikeGamma {
	return &StrikeGamma{Strike: Level(k), Call: new(Dollars), Put: new(Dollars), CallOpenInterest: new(Count), PutOpenInterest: new(Count), CallVolume: new(Count), PutVolume: new(Count)}
}

// add adds the unsigned GEX, 0 unless the contract is used, and the positions of a contract.
func (r *StrikeGamma) add(right Right, c *Contract, gex Dollars) {
	r.interest.count(right, !finite(c.OpenInterest))
	r.traded.count(right, !finite(c.Volume))
	if right == Call {
		*r.Call += gex
		*r.CallOpenInterest += Count(positive(c.OpenInterest))
		*r.CallVolume += Count(positive(c.Volume))
	} else {
		*r.Put -= gex
		*r.PutOpenInterest += Count(positive(c.OpenInterest))
		*r.PutVolume += Count(positive(c.Volume))
	}
}

// served returns the row without the sums that are not known.
func (r StrikeGamma) served() StrikeGamma {
	if !r.interest.known(Call) {
		r.Call, r.Net, r.CallOpenInterest = nil, nil, nil
	}
	if !r.interest.known(Put) {
		r.Put, r.Net, r.PutOpenInterest = nil, nil, nil
	}
	if !r.traded.known(Call) {
		r.CallVolume = nil
	}
	if !r.traded.known(Put) {
		r.PutVolume = nil
	}
	return r
}

// exposure holds the intermediate results of one [GammaExposure] call.
type exposure struct {
	GammaInput
	effectiveSpot
	underlying Underlying
	session    Date      // of the underlying
	quoted     time.Time // the quote instant q
	series     []*series
	contracts  ContractCounts
	call, put  float64       // sums of GEX: >= 0, <= 0
	greeks     greeks        // sums of the other exposures
	strikes    []StrikeGamma // one row per listed strike, rising
	all        positions     // of every series
}

func (e *exposure) net() float64   { return e.call + e.put }
func (e *exposure) gross() float64 { return e.call - e.put }

// dollarsPerGamma is the GEX, in dollars per 1 % move, of one contract with a gamma of 1.
func dollarsPerGamma(spot float64) float64 { return Multiplier * spot * spot * 0.01 }

// gex returns the unsigned GEX of one contract of a strike that has a volatility, at a hypothetical spot.
func (e *exposure) gex(s *series, row *strike, at float64) float64 {
	return BlackGamma(e.level, at, s.forward, row.k, row.v, s.discount) * dollarsPerGamma(at)
}

// usedContract says whether a contract enters the sums.
func usedContract(row *strike, c *Contract) bool {
	return c != nil && c.OpenInterest > 0 && row.step != volNone
}

// sum adds up the exposure at the spot: in total, by series and by strike.
func (e *exposure) sum() {
	skipped := &e.contracts.Skipped
	for _, s := range e.series {
		for j := range s.strikes {
			row := &s.strikes[j]
			var one Greeks
			if row.step != volNone {
				row.gex = e.gex(s, row, e.level)
				one = BlackGreeks(e.level, s.forward, row.k, row.v, s.years, e.RiskFreeRate)
			}
			for right, c := range row.contracts {
				if c == nil {
					continue
				}
				switch {
				case c.OpenInterest == 0:
					skipped.NoOpenInterest++
					continue
				case row.step == volNone:
					skipped.NoVolatility++
					continue
				}
				s.used++
				s.greeks.add(&one, Right(right), sign(Right(right))*c.OpenInterest, e.level)
				if gex := row.gex * c.OpenInterest; Right(right) == Call {
					s.call += gex
				} else {
					s.put -= gex
				}
			}
		}
		e.contracts.Used += s.used
		e.call += s.call
		e.put += s.put
		e.greeks.delta += s.greeks.delta
		e.greeks.vanna += s.greeks.vanna
		e.greeks.charm += s.greeks.charm
		if s.settles != e.session {
			s.greeks.laterCharm = s.greeks.charm
		}
		e.greeks.laterCharm += s.greeks.laterCharm
	}
	e.strikes, e.all = sumStrikes(e.series), positionsOf(e.series...)
}

// sumStrikes returns a row per listed strike of the series, rising.
func sumStrikes(all []*series) []StrikeGamma {
	byStrike := map[float64]*StrikeGamma{}
	at := func(k float64) *StrikeGamma {
		if byStrike[k] == nil {
			byStrike[k] = newStrikeGamma(k)
		}
		return byStrike[k]
	}
	for _, s := range all {
		for i := range s.unknown {
			at(s.unknown[i].Strike).add(s.unknown[i].Right, &s.unknown[i], 0)
		}
		for j := range s.strikes {
			row := &s.strikes[j]
			total := at(row.k)
			for right, c := range row.contracts {
				if c != nil {
					total.add(Right(right), c, Dollars(row.gex*c.OpenInterest))
				}
			}
		}
	}
	rows := make([]StrikeGamma, 0, len(byStrike))
	for _, k := range slices.Sorted(maps.Keys(byStrike)) {
		total := byStrike[k]
		total.Net = new(*total.Call + *total.Put)
		rows = append(rows, *total)
	}
	return rows
}

// summed returns the series whose contracts a sum over all of them counts: none when the document contradicts itself, or their open
// interest is not known.
func (e *exposure) summed() []*series {
	if e.mismatch || !e.all.interest.complete() {
		return nil
	}
	return e.series
}

// eachUsed calls f for every used contract, in the fixed order of sums.
func eachUsed(all []*series, f func(*series, *strike, *Contract)) {
	for _, s := range all {
		for i := range s.strikes {
			row := &s.strikes[i]
			for _, c := range row.contracts {
				if usedContract(row, c) {
					f(s, row, c)
				}
			}
		}
	}
}

// variant is a change to the base model for one profile. variant{volScale: 1} is the base model.
type variant struct {
	volScale float64                 // factor on every v
	noCarry  bool                    // F = S in every series
	keep     func(*series) bool      // nil keeps all
	weight   func(*Contract) float64 // nil is open interest
}

// profile builds G of the used contracts of some series under a variant.
func (e *exposure) profile(some []*series, v variant) *profile {
	p := &profile{spot: e.level, terms: make([]term, 0, e.contracts.Used)}
	for _, s := range some {
		if v.keep != nil && !v.keep(s) {
			continue
		}
		f := s.forward
		if v.noCarry {
			f = e.level
		}
		growth := f / e.level * s.discount
		for i := range s.strikes {
			row, weight := &s.strikes[i], 0.0
			for _, c := range row.contracts {
				if !usedContract(row, c) {
					continue
				}
				p.contracts++
				w := c.OpenInterest
				if v.weight != nil {
					w = v.weight(c)
				}
				weight += sign(c.Right) * w
			}
			p.add(weight, row.v*v.volScale, logMoneyness(f, row.k), growth)
		}
	}
	return p
}
