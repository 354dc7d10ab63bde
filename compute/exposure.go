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

	held positions
}

// add adds the unsigned GEX, 0 unless the contract is used, and the positions of a contract.
func (r *StrikeGamma) add(c *Contract, gex Dollars) {
	r.held.add(c)
	if c.Right == Call {
		*r.Call += gex
	} else {
		*r.Put -= gex
	}
}

// served returns the row with the sums that are known.
func (r StrikeGamma) served() StrikeGamma {
	interest, traded := r.held.interest, r.held.traded
	if !interest.known(Call) {
		r.Call, r.Net = nil, nil
	}
	if !interest.known(Put) {
		r.Put, r.Net = nil, nil
	}
	r.CallOpenInterest, r.PutOpenInterest = interest.served(r.held.openInterest)
	r.CallVolume, r.PutVolume = traded.served(r.held.volume)
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
			for _, c := range row.contracts {
				switch {
				case c == nil:
					continue
				case c.OpenInterest == 0:
					skipped.NoOpenInterest++
					continue
				case row.step == volNone:
					skipped.NoVolatility++
					continue
				}
				s.used++
				s.greeks.add(&one, c.Right, sign(c.Right)*c.OpenInterest, e.level)
				if gex := row.gex * c.OpenInterest; c.Right == Call {
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
	for _, s := range all {
		for row, c := range s.all() {
			total, gex := byStrike[c.Strike], 0.0
			if total == nil {
				total = &StrikeGamma{Strike: Level(c.Strike), Call: new(Dollars), Put: new(Dollars)}
				byStrike[c.Strike] = total
			}
			if row != nil {
				gex = row.gex * c.OpenInterest
			}
			total.add(c, Dollars(gex))
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
		for row, c := range s.all() {
			if row != nil && usedContract(row, c) {
				f(s, row, c)
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
