package plain

import (
	"cmp"
	"math"
	"slices"

	"strikecache/compute"
)

// strikeRows is one row per listed strike with T > 0, ascending, whatever its distance and open interest.
func strikeRows(groups []*group, legs []leg, spot float64) []StrikeRow {
	rows := map[float64]*StrikeRow{}
	for _, g := range groups {
		for _, c := range g.contracts {
			row := rows[c.Strike]
			if row == nil {
				row = &StrikeRow{Strike: c.Strike}
				rows[c.Strike] = row
			}
			volume := 0.0
			if c.Volume > 0 && finite(c.Volume) {
				volume = c.Volume
			}
			if c.Right == compute.Call {
				row.CallOI += c.OpenInterest
				row.CallVolume += volume
			} else {
				row.PutOI += c.OpenInterest
				row.PutVolume += volume
			}
		}
	}
	for i := range legs {
		row, gex := rows[legs[i].contract.Strike], legs[i].gex(spot, spot)
		if legs[i].sign > 0 {
			row.CallGEX += gex
		} else {
			row.PutGEX += gex
		}
		row.Net += gex
	}
	var sorted []StrikeRow
	for _, row := range rows {
		sorted = append(sorted, *row)
	}
	slices.SortFunc(sorted, func(a, b StrikeRow) int { return cmp.Compare(a.Strike, b.Strike) })
	return sorted
}

// best is the strike with the largest positive value: ties nearest the spot, then lower.
func best(rows []StrikeRow, spot float64, value func(StrikeRow) float64) *float64 {
	var strike *float64
	most := 0.0
	for _, row := range rows {
		x := value(row)
		if !(x > 0) || x < most {
			continue
		}
		if x > most || math.Abs(row.Strike-spot) < math.Abs(*strike-spot) {
			strike, most = number(row.Strike), x
		}
	}
	return strike
}

// levels fills the walls, the trigger and the strike of the largest gamma.
func (r *Result) levels(rows []StrikeRow, spot float64) {
	if r.Used == 0 {
		return
	}
	var above, below []StrikeRow
	for _, row := range rows {
		if row.Strike >= spot {
			above = append(above, row)
		}
		if row.Strike <= spot {
			below = append(below, row)
		}
	}
	call := func(x StrikeRow) float64 { return x.CallGEX }
	put := func(x StrikeRow) float64 { return -x.PutGEX }
	r.CallWall, r.PutWall = best(above, spot, call), best(below, spot, put)
	r.Walls.Gross = WallPair{best(rows, spot, call), best(rows, spot, put)}
	r.Walls.Net = WallPair{
		best(rows, spot, func(x StrikeRow) float64 { return x.Net }),
		best(rows, spot, func(x StrikeRow) float64 { return -x.Net }),
	}
	r.Walls.OpenInterest = WallPair{
		best(rows, spot, func(x StrikeRow) float64 { return x.CallOI }),
		best(rows, spot, func(x StrikeRow) float64 { return x.PutOI }),
	}
	r.AbsGammaStrike = best(rows, spot, func(x StrikeRow) float64 { return x.CallGEX - x.PutGEX })
	if r.CallWall == nil || r.PutWall == nil {
		return
	}
	most := 0.0
	for _, row := range rows {
		most = math.Max(most, math.Abs(row.Net))
	}
	for _, row := range rows {
		if row.Strike > *r.PutWall && row.Strike < *r.CallWall && row.Net > 0 && row.Net >= 0.05*most {
			r.VolTrigger = number(row.Strike)
			return
		}
	}
}

// regime fills the regime.
func (r *Result) regime(spot float64) {
	if r.Used == 0 || r.Net == nil || r.Gross == nil {
		return
	}
	name := "negative"
	if *r.Net > 0 {
		name = "positive"
	}
	if *r.Gross == 0 || math.Abs(*r.Net) / *r.Gross < 0.01 {
		name = "neutral"
	}
	down, up := r.Scenarios[0].Flip, r.Scenarios[1].Flip
	if down != nil && up != nil && spot >= math.Min(*down, *up) && spot <= math.Max(*down, *up) {
		name = "neutral"
	}
	r.Regime = &name
}

// zeroDTE fills the part that settles on the session date.
func (r *Result) zeroDTE(legs []leg, spot float64) {
	var today []leg
	for _, l := range legs {
		if l.contract.Expiration == r.SessionDate {
			today = append(today, l)
		}
	}
	r.ZeroDTE = ZeroDTE{Net: exposure(today, spot, spot), Contracts: len(today), SharePct: number(0)}
	if len(today) > 0 {
		r.ZeroDTE.SharePct = ratio(100*grossExposure(today, spot, spot), grossExposure(legs, spot, spot))
		r.ZeroDTE.Flip = findFlips(today, spot).flip
	}
}

// byExpiration fills one row per date and settlement, in the order date, settlement, root.
func (r *Result) byExpiration(groups []*group, legs []leg, spot float64) {
	gross := grossExposure(legs, spot, spot)
	for _, g := range groups {
		row := ExpirationRow{Root: g.root, Expiration: g.expiration, Settlement: g.settlement,
			Forward: g.forward, ForwardSource: g.source, SharePct: number(0)}
		for i := range legs {
			if legs[i].group == g {
				gex := legs[i].gex(spot, spot)
				row.Net += gex
				row.Gross += math.Abs(gex)
				row.Used++
			}
		}
		if row.Used > 0 {
			row.SharePct = ratio(100*row.Gross, gross)
		}
		r.ByExpiration = append(r.ByExpiration, row)
	}
	slices.SortStableFunc(r.ByExpiration, func(a, b ExpirationRow) int {
		return cmp.Or(cmp.Compare(a.Expiration, b.Expiration), cmp.Compare(a.Settlement, b.Settlement),
			cmp.Compare(a.Root, b.Root))
	})
}
