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
				row = &plainStrike{Strike: c.Strike}
				rows[c.Strike] = row
			}
			volume := 0.0
			if c.Volume > 0 && isFinite(c.Volume) {
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
		row, gex := rows[legs[i].contract.Strike], legs[i].gex(0, spot)
		if legs[i].sign > 0 {
			row.CallGEX += gex
		} else {
			row.PutGEX += gex
		}
		row.Net += gex
	}
	var sorted []plainStrike
	for _, row := range rows {
		sorted = append(sorted, *row)
	}
	slices.SortFunc(sorted, func(a, b plainStrike) int { return cmp.Compare(a.Strike, b.Strike) })
	return sorted
}

// best is the strike with the largest positive value: ties nearest the spot, then lower.
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
	if r.Used == 0 {
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
	call := func(x plainStrike) float64 { return x.CallGEX }
	put := func(x plainStrike) float64 { return -x.PutGEX }
	r.CallWall, r.PutWall = best(above, spot, call), best(below, spot, put)
	r.Walls.Gross = plainWallPair{best(rows, spot, call), best(rows, spot, put)}
	r.Walls.Net = plainWallPair{
		best(rows, spot, func(x plainStrike) float64 { return x.Net }),
		best(rows, spot, func(x plainStrike) float64 { return -x.Net }),
	}
	r.Walls.OpenInterest = plainWallPair{
		best(rows, spot, func(x plainStrike) float64 { return x.CallOI }),
		best(rows, spot, func(x plainStrike) float64 { return x.PutOI }),
	}
	r.AbsGammaStrike = best(rows, spot, func(x plainStrike) float64 { return x.CallGEX - x.PutGEX })
	if r.CallWall == nil || r.PutWall == nil {
		return
	}
	most := 0.0
	for _, row := range rows {
		most = math.Max(most, math.Abs(row.Net))
	}
	for _, row := range rows {
		if row.Strike > *r.PutWall && row.Strike < *r.CallWall && row.Net > 0 && row.Net >= 0.05*most {
			r.VolTrigger = known(row.Strike)
			return
		}
	}
}

// regime fills the regime.
func (r *plainResult) regime(spot float64) {
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
func (r *plainResult) zeroDTE(legs []leg, spot float64) {
	var today []leg
	for _, l := range legs {
		if l.contract.Expiration == r.SessionDate {
			today = append(today, l)
		}
	}
	r.ZeroDTE = plainZeroDTE{Net: netExposure(today, spot, spot), Contracts: len(today), SharePct: known(0)}
	if len(today) > 0 {
		r.ZeroDTE.SharePct = ratio(100*grossExposure(today, spot, spot), grossExposure(legs, spot, spot))
		r.ZeroDTE.Flip = findFlips(today, spot).flip
	}
}

// byExpiration fills one row per date and settlement, in the order date, settlement, root.
func (r *plainResult) byExpiration(groups []*plainSeries, legs []leg, spot float64) {
	gross := grossExposure(legs, spot, spot)
	for _, g := range groups {
		row := plainExpiration{Root: g.root, Expiration: g.expiration, Settlement: g.settlement,
			Forward: g.forward, ForwardSource: g.source, SharePct: known(0)}
		for i := range legs {
			if legs[i].group == g {
				gex := legs[i].gex(0, spot)
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
	slices.SortStableFunc(r.ByExpiration, func(a, b plainExpiration) int {
		return cmp.Or(cmp.Compare(a.Expiration, b.Expiration), cmp.Compare(a.Settlement, b.Settlement),
			cmp.Compare(a.Root, b.Root))
	})
}

// plainQuality is METHODS.md §1.7 but for the counts that plainResult itself has. All shares are percentages.
type plainQuality struct {
	FlooredStrikes    int
	ShareOpenInterest map[string]float64 // by step, none included; nil when there is no open interest
	ShareGrossSpot    map[string]float64 // by step; nil when the gross is 0
	ShareGrossFlip    map[string]float64 // by step; nil without a flip
	TwoSidedPct       *float64
	ForwardSources    map[string]int // expirations by source
	GammaMedian       *float64       // |published - recomputed|
	GammaP95          *float64
	GammaContracts    int
	QuoteAgeSeconds   float64 // captured_at - as_of
}

func measureQuality(groups []*plainSeries, legs []leg, chain *compute.Chain, flip *float64) plainQuality {
	q := plainQuality{ForwardSources: map[string]int{}}
	q.QuoteAgeSeconds = chain.CapturedAt.Sub(chain.AsOf).Seconds()
	openInterest := map[string]float64{}
	for _, g := range groups {
		q.ForwardSources[g.source]++
		for _, s := range g.smiles {
			if s.floored {
				q.FlooredStrikes++
			}
		}
		for _, c := range g.contracts {
			openInterest[g.smileAt(c.Strike).step] += c.OpenInterest
		}
	}
	q.ShareOpenInterest = shares(openInterest)
	q.ShareGrossSpot = shares(grossBySteps(legs, chain.Spot, chain.Spot))
	if flip != nil {
		q.ShareGrossFlip = shares(grossBySteps(legs, chain.Spot, *flip))
	}
	quoted := 0
	var differences []float64
	for i := range legs {
		l := &legs[i]
		if twoSided(l.contract) {
			quoted++
		}
		if l.group.seconds > 2*86400 && isFinite(l.contract.Gamma) {
			differences = append(differences, math.Abs(l.contract.Gamma-l.gamma(0, chain.Spot)))
		}
	}
	q.TwoSidedPct = ratio(100*float64(quoted), float64(len(legs)))
	q.GammaContracts = len(differences)
	if len(differences) > 0 {
		q.GammaMedian = known(percentile(differences, 0.5))
		q.GammaP95 = known(percentile(differences, 0.95))
	}
	return q
}

// grossBySteps is the gross exposure at a hypothetical spot by step.
func grossBySteps(legs []leg, spot, at float64) map[string]float64 {
	sums := map[string]float64{}
	for i := range legs {
		sums[legs[i].step] += math.Abs(legs[i].gex(math.Log(at/spot), at))
	}
	return sums
}

// shares turns sums by step into percentages of all four steps, nil when there is nothing to share.
func shares(sums map[string]float64) map[string]float64 {
	steps := []string{stepImplied, stepPublished, stepInterpolated, stepNone}
	total := 0.0
	for _, step := range steps {
		total += sums[step]
	}
	if !(total > 0) || !isFinite(total) {
		return nil
	}
	percentages := map[string]float64{}
	for _, step := range steps {
		percentages[step] = 100 * sums[step] / total
	}
	return percentages
}
