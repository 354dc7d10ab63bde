package plain

import (
	"math"

	"strikecache/compute"
)

// Quality is METHODS §1.4 but for the counts that [Result] itself has. All shares are percentages.
type Quality struct {
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

func quality(groups []*group, legs []leg, chain *compute.Chain, flip *float64) Quality {
	q := Quality{ForwardSources: map[string]int{}}
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
		if l.group.seconds > 2*86400 && finite(l.contract.Gamma) {
			differences = append(differences, math.Abs(l.contract.Gamma-l.gamma(chain.Spot, chain.Spot)))
		}
	}
	q.TwoSidedPct = ratio(100*float64(quoted), float64(len(legs)))
	q.GammaContracts = len(differences)
	if len(differences) > 0 {
		q.GammaMedian = number(percentile(differences, 0.5))
		q.GammaP95 = number(percentile(differences, 0.95))
	}
	return q
}

// grossBySteps is the gross exposure at a hypothetical spot by step.
func grossBySteps(legs []leg, spot, at float64) map[string]float64 {
	sums := map[string]float64{}
	for i := range legs {
		sums[legs[i].step] += math.Abs(legs[i].gex(spot, at))
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
	if !(total > 0) || !finite(total) {
		return nil
	}
	percentages := map[string]float64{}
	for _, step := range steps {
		percentages[step] = 100 * sums[step] / total
	}
	return percentages
}
