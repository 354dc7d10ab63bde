package compute

import "math"

// GammaQuality is `meta.quality` of gex/spx: which contracts and which kinds of volatility the numbers rest on.
type GammaQuality struct {
	Contracts       ContractCounts        `json:"contracts"`
	Volatility      []VolatilityShare     `json:"volatility"`
	FlooredStrikes  int                   `json:"volatility_floored_strikes"`
	TwoSidedShare   *Ratio                `json:"two_sided_quote_pct"`
	Forwards        map[forwardSource]int `json:"forwards"`
	GammaDifference GammaDifference       `json:"published_gamma_difference"`
	QuoteAgeSeconds int64                 `json:"quote_age_seconds"`
	SpotGap         *Ratio                `json:"spot_gap_pct"`
	ChangesReason   *string               `json:"changes_reason"` // why there are no changes
	Calendar        *string               `json:"calendar"`
	BadNumbers      int                   `json:"bad_numbers,omitempty"`
}

// ContractCounts accounts for every row: listed = used + skipped.
type ContractCounts struct {
	Listed  int          `json:"listed"`
	Used    int          `json:"used"`
	Skipped SkippedGamma `json:"skipped"`
}

// SkippedGamma counts the rows that were not used, each by the first reason that applied.
type SkippedGamma struct {
	Skipped
	Settled        int `json:"settled"`
	NoOpenInterest int `json:"no_open_interest"`
	NoVolatility   int `json:"no_volatility"`
}

// VolatilityShare is the share of the contracts whose volatility comes from one step of the volatility rule. The share of
// open interest is over all contracts with T > 0. The shares of gross exposure are over the used contracts.
type VolatilityShare struct {
	Step         string `json:"step"`
	OpenInterest *Ratio `json:"open_interest_pct"`
	GrossAtSpot  *Ratio `json:"gross_at_spot_pct"`
	GrossAtFlip  *Ratio `json:"gross_at_flip_pct"`
}

// GammaDifference compares the published gammas with the recomputed ones, over the used contracts with T > 2 days.
type GammaDifference struct {
	Contracts    int        `json:"contracts"`
	Median       *GammaDiff `json:"median"`
	Percentile95 *GammaDiff `json:"percentile_95"`
}

func (e *exposure) quality(flip *Level) GammaQuality {
	q := GammaQuality{
		Contracts:       e.contracts,
		Volatility:      e.volatilityShares(flip),
		Forwards:        map[forwardSource]int{},
		QuoteAgeSeconds: int64(e.Chain.CapturedAt.Sub(e.Chain.AsOf).Seconds()),
		SpotGap:         finiteOrNil(Ratio(e.gap)),
		BadNumbers:      e.Chain.BadNumbers,
	}
	for _, source := range forwardSources {
		q.Forwards[source] = 0
	}
	dates := []Date{e.session}
	for _, s := range e.series {
		q.Forwards[s.source]++
		q.FlooredStrikes += s.floored
		dates = append(dates, s.Expiration)
	}
	q.Calendar = CalendarNote(dates...)
	e.compareQuotes(&q)
	return q
}

// compareQuotes fills in the fields that are measured contract by contract.
func (e *exposure) compareQuotes(q *GammaQuality) {
	const twoDays = 2 * secondsPerDay / float64(secondsPerYear)
	twoSided := 0
	var differences []float64
	e.eachUsed(func(s *series, row *strike, c *Contract) {
		if c.TwoSided() {
			twoSided++
		}
		if s.years > twoDays && finite(c.Gamma) {
			own := row.gex / dollarsPerGamma(e.level)
			differences = append(differences, math.Abs(own-c.Gamma))
		}
	})
	q.TwoSidedShare = percentOf(float64(twoSided), float64(e.contracts.Used))
	q.GammaDifference = GammaDifference{
		Contracts:    len(differences),
		Median:       finiteOrNil(GammaDiff(median(differences))),
		Percentile95: finiteOrNil(GammaDiff(quantile(differences, 0.95))),
	}
}

func (e *exposure) volatilityShares(flip *Level) []VolatilityShare {
	var openInterest, atSpot, atFlip [volSteps]float64
	for _, s := range e.series {
		for i := range s.strikes {
			row := &s.strikes[i]
			held := 0.0
			for _, c := range row.contracts {
				if c != nil {
					held += c.OpenInterest
				}
			}
			openInterest[row.step] += held
			if held == 0 || row.step == volNone {
				continue
			}
			atSpot[row.step] += held * row.gex
			if flip != nil {
				atFlip[row.step] += held * e.gex(s, row, float64(*flip))
			}
		}
	}
	out := make([]VolatilityShare, volSteps)
	for step := range volSteps {
		out[step] = VolatilityShare{
			Step:         step.String(),
			OpenInterest: percentOf(openInterest[step], total(openInterest)),
			GrossAtSpot:  percentOf(atSpot[step], total(atSpot)),
			GrossAtFlip:  percentOf(atFlip[step], total(atFlip)),
		}
	}
	return out
}

func total(xs [volSteps]float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum
}
