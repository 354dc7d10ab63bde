package compute_test

import (
	"cmp"
	"math"
	"slices"

	"strikecache/compute"
)

// strikeRows is one row per listed strike with T > 0, ascending, whatever its distance and open interest.
func strikeRows(groups []*plainSeries, legs []leg, spot float64) []plainStrike {
	rows := map[float64]*plainStrike{}
	for _, g := range groups {
		for _, c := range g.contracts {
			row := rows[c.Strike]
			if row == nil {
				row = &plainStrike{Strike: c.Strike, Call: known(0), Put: known(0), Net: known(0)}
				rows[c.Strike] = row
			}
			volume := 0.0
			if c.Volume > 0 && isFinite(c.Volume) {
				volume = c.Volume
			}
			if c.Right == compute.Call {
				row.CallOpenInterest += c.OpenInterest
				row.CallVolume += volume
			} else {
				row.PutOpenInterest += c.OpenInterest
				row.PutVolume += volume
			}
		}
	}
	for i := range legs {
		row, gex := rows[legs[i].contract.Strike], legs[i].gex(0, spot)
		if legs[i].sign > 0 {
			*row.Call += gex
		} else {
			*row.Put += gex
		}
		*row.Net += gex
	}
	var sorted []plainStrike
	for _, row := range rows {
		sorted = append(sorted, *row)
	}
	slices.SortFunc(sorted, func(a, b plainStrike) int { return cmp.Compare(a.Strike, b.Strike) })
	return sorted
}

// best returns the strike with the largest positive value. A tie goes to the strike nearest the spot, then to the lower.
func best(rows []plainStrike, spot float64, value func(plainStrike) float64) *float64 {
	var strike *float64
	most := 0.0
	for _, row := range rows {
		x := value(row)
		if !(x > 0) || x < most {
			continue
		}
		if x > most || math.Abs(row.Strike-spot) < math.Abs(*strike-spot) {
			strike, most = known(row.Strike), x
		}
	}
	return strike
}

// levels fills the walls, the trigger and the strike of the largest gamma.
func (r *plainResult) levels(rows []plainStrike, spot float64) {
	if r.ContractsAnalyzed == 0 {
		return
	}
	var above, below []plainStrike
	for _, row := range rows {
		if row.Strike >= spot {
			above = append(above, row)
		}
		if row.Strike <= spot {
			below = append(below, row)
		}
	}
	call := func(x plainStrike) float64 { return *x.Call }
	put := func(x plainStrike) float64 { return -*x.Put }
	r.CallWall, r.PutWall = best(above, spot, call), best(below, spot, put)
	r.Walls.Gross = plainWall{best(rows, spot, call), best(rows, spot, put)}
	r.Walls.Net = plainWall{
		best(rows, spot, func(x plainStrike) float64 { return *x.Net }),
		best(rows, spot, func(x plainStrike) float64 { return -*x.Net }),
	}
	r.Walls.OpenInterest = plainWall{
		best(rows, spot, func(x plainStrike) float64 { return x.CallOpenInterest }),
		best(rows, spot, func(x plainStrike) float64 { return x.PutOpenInterest }),
	}
	r.AbsGammaStrike = best(rows, spot, func(x plainStrike) float64 { return *x.Call - *x.Put })
	if r.CallWall == nil || r.PutWall == nil {
		return
	}
	most := 0.0
	for _, row := range rows {
		most = math.Max(most, math.Abs(*row.Net))
	}
	for _, row := range rows {
		if row.Strike > *r.PutWall && row.Strike < *r.CallWall && *row.Net > 0 && *row.Net >= 0.05*most {
			r.VolTrigger = known(row.Strike)
			return
		}
	}
}

func (r *plainResult) regime(spot float64) {
	if r.ContractsAnalyzed == 0 || r.Net == nil || r.Gross == nil {
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

// zeroDTE fills the exposure that settles on the session date.
func (r *plainResult) zeroDTE(legs []leg, spot float64) {
	var today []leg
	for _, l := range legs {
		if l.contract.Expiration == r.SessionDate {
			today = append(today, l)
		}
	}
	r.ZeroDTE = plainZeroDTE{Net: known(netExposure(today, spot, spot)), Contracts: len(today)}
	r.ZeroDTE.Share = ratio(100*grossExposure(today, spot, spot), grossExposure(legs, spot, spot))
	if len(today) > 0 {
		r.ZeroDTE.Flip = findFlips(today, spot).flip
	}
}

// byExpiration fills one row per date and settlement, in the order date, settlement, root.
func (r *plainResult) byExpiration(groups []*plainSeries, legs []leg, spot, rate float64) {
	gross := grossExposure(legs, spot, spot)
	for _, g := range groups {
		row := plainExpiration{Expiration: g.expiration, Settlement: g.settlement, Forward: g.forward, ForwardSource: g.source,
			Net: known(0), Gross: known(0)}
		for i := range legs {
			if legs[i].group == g {
				gex := legs[i].gex(0, spot)
				*row.Net += gex
				*row.Gross += math.Abs(gex)
			}
		}
		row.Share = ratio(100**row.Gross, gross)
		row.plainExposures = exposuresOf(slices.DeleteFunc(slices.Clone(legs), func(l leg) bool { return l.group != g }), spot, rate, r.SessionDate)
		r.ByExpiration = append(r.ByExpiration, row)
	}
	slices.SortStableFunc(r.ByExpiration, func(a, b plainExpiration) int {
		return cmp.Or(cmp.Compare(a.Expiration, b.Expiration), cmp.Compare(a.Settlement, b.Settlement))
	})
}

// measure fills the quality of the figures.
func (q *plainQuality) measure(groups []*plainSeries, legs []leg, chain *compute.Chain, spot float64, flip *float64) {
	q.QuoteAgeSeconds = chain.CapturedAt.Sub(chain.AsOf).Seconds()
	q.BadNumbers = chain.BadNumbers
	q.Forwards = map[string]int{}
	openInterest := map[string]float64{}
	for _, g := range groups {
		q.Forwards[g.source]++
		for _, s := range g.smiles {
			if s.floored {
				q.FlooredStrikes++
			}
		}
		for _, c := range g.contracts {
			openInterest[g.smileAt(c.Strike).step] += c.OpenInterest
		}
	}
	atFlip := map[string]float64{}
	if flip != nil {
		atFlip = grossBySteps(legs, spot, *flip)
	}
	atSpot := grossBySteps(legs, spot, spot)
	for _, step := range []string{stepImplied, stepPublished, stepInterpolated, stepNone} {
		q.Volatility = append(q.Volatility, plainShare{step, share(openInterest, step), share(atSpot, step), share(atFlip, step)})
	}
	quoted := 0
	var differences []float64
	for i := range legs {
		l := &legs[i]
		if twoSided(l.contract) {
			quoted++
		}
		if l.group.seconds > 2*86400 && isFinite(l.contract.Gamma) {
			differences = append(differences, math.Abs(l.contract.Gamma-l.gamma(0, spot)))
		}
	}
	q.TwoSidedShare = ratio(100*float64(quoted), float64(len(legs)))
	q.GammaDifference.Contracts = len(differences)
	if len(differences) > 0 {
		q.GammaDifference.Median = known(percentile(differences, 0.5))
		q.GammaDifference.Percentile95 = known(percentile(differences, 0.95))
	}
}

// grossBySteps is the gross exposure at a hypothetical spot by step.
func grossBySteps(legs []leg, spot, at float64) map[string]float64 {
	sums := map[string]float64{}
	for i := range legs {
		sums[legs[i].step] += math.Abs(legs[i].gex(math.Log(at/spot), at))
	}
	return sums
}

// share returns the percentage of a step in the sums of all steps, nil when the total is 0.
func share(sums map[string]float64, step string) *float64 {
	total := 0.0
	for _, step := range []string{stepImplied, stepPublished, stepInterpolated, stepNone} {
		total += sums[step]
	}
	return ratio(100*sums[step], total)
}
