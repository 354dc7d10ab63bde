package compute

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// GammaQuality is `meta.quality` of gex/{u}: which contracts and which kinds of volatility the numbers rest on.
type GammaQuality struct {
	Contracts ContractCounts `json:"contracts"`
	// Shares of the contracts by the step of the volatility rule that gave their volatility, first step first.
	Volatility []VolatilityShare `json:"volatility" jsonschema:"minItems=4,maxItems=4"`
	// Strikes with less than 15 minutes to settlement whose published volatility was scaled as if 15 minutes were left.
	FlooredStrikes int `json:"volatility_floored_strikes" jsonschema:"minimum=0" unit:"strikes"`
	// Strikes whose quotes cannot stand beside the others of their root and expiration: call less put is off the forward by more
	// than both spreads, or the option is dearer than one nearer the money. They give no forward and no volatility.
	Contradictory int `json:"contradictory_strikes" jsonschema:"minimum=0" unit:"strikes"`
	// Share of the used contracts with a bid above 0 and an ask from the bid to 3 times the bid. `null` when no contract could be used.
	TwoSidedShare   *Ratio                `json:"two_sided_quote_pct" jsonschema:"minimum=0,maximum=100" unit:"percent"`
	Forwards        map[forwardSource]int `json:"forwards" jsonschema:"oneof_ref=#/components/schemas/ForwardCounts"`
	GammaDifference GammaDifference       `json:"published_gamma_difference"`
	QuoteAgeSeconds int64                 `json:"quote_age_seconds" unit:"seconds"` // Time from `meta.as_of` to `meta.captured_at`.
	// (level that the forwards imply / published level − 1) · 100. `null` when too few series have a parity forward.
	SpotGap *Ratio `json:"spot_gap_pct" unit:"percent"`
	// Why `effective_spot` is a price of another moment than the quotes. Absent when it belongs to them.
	SpotNote string `json:"spot_note,omitempty" jsonschema:"example=The price is 105 minutes newer than the quotes; too few forwards agree on a spot."`
	// Why `changes` is `null`. `no_reference`: no snapshot of the previous session is stored. `split`: the shares of a fund or stock
	// were split, or their strikes adjusted, so symbols of the reference are gone or are of other contracts. `net_unknown`: net exposure is not known.
	// `reference_net_unknown`: that of the reference is not known. `null` when there are changes.
	ChangesReason *string `json:"changes_reason" jsonschema:"enum=no_reference,enum=split,enum=net_unknown,enum=reference_net_unknown"`
	// Why the figures of `zero_dte` are `null`. `settled`: the session is over. `not_listed`: the document has no contract of the session
	// date, on which the underlying lists some. `open_interest_missing`: the open interest of over 1 % of their calls or puts is not known.
	// `null` when they are known.
	ZeroDTEReason *string `json:"zero_dte_reason" jsonschema:"enum=settled,enum=not_listed,enum=open_interest_missing"`
	// Contracts left out of `open_interest_changes`, because their open interest is not known in one of the two documents.
	// `null` when `open_interest_changes` is.
	InterestUnread *int `json:"open_interest_unread" jsonschema:"minimum=0" unit:"contracts"`
	ChainQuality
}

// ChainQuality is what every quality of figures of a chain ends with.
type ChainQuality struct {
	// A note that some dates lie outside the verified exchange calendar of 2014 to 2030. `null` when none does.
	Calendar *string `json:"calendar"`
	// Numbers of the upstream document that count as absent because no market has them. Absent when every number is usable.
	BadNumbers int `json:"bad_numbers,omitempty" jsonschema:"minimum=1,example=1" unit:"numbers"`
	HoursQuality
	AmericanQuality
}

// HoursQuality says whether T may be wrong, because the hours of the options are not those of the table.
type HoursQuality struct {
	// Median of our volatility over the published one, at the strikes nearest the forward of the next three expirations. It is 1 within
	// a percent while quotes move and T is right. `null` when fewer than 5 strikes of the next 10 days have both.
	PublishedIVRatio *Ratio `json:"published_iv_ratio" jsonschema:"minimum=0" unit:"ratio"`
	// A note that `published_iv_ratio` is too far from 1, or that the quotes are of a day for which the hours of the options are not
	// verified. `null` when neither is so.
	Hours *string `json:"hours" jsonschema:"example=our volatilities are 0.8660 of the published ones: the hours of these options, or their published volatilities, are wrong"`
}

// ContractCounts are the rows that were used and skipped: listed = used + skipped.
type ContractCounts struct {
	Listed  int          `json:"listed" jsonschema:"minimum=0" unit:"rows"` // Rows of the upstream document.
	Used    int          `json:"used" jsonschema:"minimum=0" unit:"rows"`   // Rows from which the numbers were computed.
	Skipped SkippedGamma `json:"skipped"`
	// Contracts that have not settled and whose open interest is not known: their rows cannot be read, or an expiration has rows of the
	// other right alone. A figure over calls or puts of which over 1 % are among them is `null`.
	InterestUnknown InterestUnknown `json:"open_interest_unknown"`
}

// SkippedGamma are the rows that were not used, each by the first reason that applied.
type SkippedGamma struct {
	Skipped
	// The contract had settled when the quotes were made.
	Settled int `json:"settled" jsonschema:"minimum=0" unit:"rows"`
	// The contract has no open interest.
	NoOpenInterest int `json:"no_open_interest" jsonschema:"minimum=0" unit:"rows"`
	// No step of the volatility rule gave a volatility.
	NoVolatility int `json:"no_volatility" jsonschema:"minimum=0" unit:"rows"`
}

// VolatilityShare is the share of the contracts whose volatility comes from one step of the volatility rule. The share of
// open interest is over all contracts with T > 0. The shares of gross exposure are over the used contracts.
type VolatilityShare struct {
	// `implied`: computed from the out-of-the-money quote. `published`: published by the upstream. `interpolated`: interpolated
	// between strikes. `none`: no step gave a volatility.
	Step string `json:"step" jsonschema:"enum=implied,enum=published,enum=interpolated,enum=none"`
	// Share of open interest. `null` without open interest.
	OpenInterest *Ratio `json:"open_interest_pct" jsonschema:"minimum=0,maximum=100" unit:"percent"`
	// Share of gross exposure at the spot. `null` when no contract could be used.
	GrossAtSpot *Ratio `json:"gross_at_spot_pct" jsonschema:"minimum=0,maximum=100" unit:"percent"`
	// Share of gross exposure at the flip. `null` without a flip.
	GrossAtFlip *Ratio `json:"gross_at_flip_pct" jsonschema:"minimum=0,maximum=100" unit:"percent"`
}

// GammaDifference is the absolute difference between the upstream's gamma and the recomputed gamma, over used contracts that
// settle in more than 2 days.
type GammaDifference struct {
	Contracts int `json:"contracts" jsonschema:"minimum=0" unit:"contracts"` // Contracts compared.
	// Median difference. `null` when no contract could be compared.
	Median *GammaDiff `json:"median" jsonschema:"minimum=0" unit:"gamma, per USD or index point"`
	// 95th percentile of the difference. `null` when no contract could be compared.
	Percentile95 *GammaDiff `json:"percentile_95" jsonschema:"minimum=0" unit:"gamma, per USD or index point"`
}

func (e *exposure) quality(flip *Level) GammaQuality {
	q := GammaQuality{
		Contracts:       e.contracts,
		Volatility:      e.volatilityShares(flip),
		Forwards:        map[forwardSource]int{},
		QuoteAgeSeconds: int64(e.Chain.CapturedAt.Sub(e.Chain.AsOf).Seconds()),
		SpotGap:         finiteOrNil(Ratio(e.gap)),
		SpotNote:        e.spotNote(),
		ChainQuality:    ChainQuality{BadNumbers: e.Chain.BadNumbers, HoursQuality: e.hoursQuality(), AmericanQuality: e.american()},
	}
	for _, source := range forwardSources {
		q.Forwards[source] = 0
	}
	dates := []Date{e.session}
	for _, s := range e.series {
		q.Forwards[s.source]++
		q.FlooredStrikes += s.floored
		q.Contradictory += s.contradictory()
		dates = append(dates, s.Expiration)
	}
	q.Calendar = CalendarNote(dates...)
	e.compareQuotes(&q)
	return q
}

const (
	ratioDates     = 3  // the most dates
	ratioStrikes   = 10 // the most strikes of a date
	leastRatios    = 5
	leastRatioTerm = 12 * time.Hour // the least T of a date: below, T of the exchange is half an hour longer
	mostRatioTerm  = 10 * 24 * time.Hour
)

// The ratios that are not noted. While quotes move, 7 recorded chains had 1.0002 to 1.0028. While they stand still, the published
// volatilities go on by a clock of their own, and 9 had 0.9526 to 1.0128.
var movingRatios, stillRatios = [2]float64{0.99, 1.01}, [2]float64{0.94, 1.03}

// hoursQuality compares our volatilities with the published ones: they differ by √(T of the exchange/T).
func (e *exposure) hoursQuality() (q HoursQuality) {
	q.Hours = e.Chain.HoursNote(e.Calendar)
	near := slices.DeleteFunc(parityWithin(e.series, mostRatioTerm), func(s *series) bool { return s.left < leastRatioTerm })
	var ratios []float64
	for _, s := range near[:min(len(near), ratioDates)] {
		ratios = append(ratios, s.publishedRatios()...)
	}
	if len(ratios) < leastRatios {
		return q
	}
	ratio, usual := median(ratios), stillRatios
	if moving := e.Chain.CapturedAt.Add(-quoteDelay); !e.quoted.Before(moving) && !e.quoted.Before(e.Chain.AsOf) {
		usual = movingRatios
	}
	q.PublishedIVRatio = new(Ratio(ratio))
	if q.Hours == nil && (ratio < usual[0] || ratio > usual[1]) {
		q.Hours = new(fmt.Sprintf("our volatilities are %.4f of the published ones: the hours of these options, or their published volatilities, are wrong", ratio))
	}
	return q
}

// publishedRatios returns our volatility over the published one at the strikes nearest the forward that have both, out of the money.
func (s *series) publishedRatios() (ratios []float64) {
	rows := slices.Clone(s.strikes)
	slices.SortStableFunc(rows, s.byDistance)
	for i := range rows {
		if c := rows[i].contracts[s.outOf(rows[i].k)]; rows[i].step == volImplied && c.IV > 0 && len(ratios) < ratioStrikes {
			ratios = append(ratios, rows[i].v/math.Sqrt(s.years)/c.IV)
		}
	}
	return ratios
}

// compareQuotes fills in the fields that are measured contract by contract.
func (e *exposure) compareQuotes(q *GammaQuality) {
	const twoDays = 2 * secondsPerDay / float64(secondsPerYear)
	twoSided := 0
	var differences []float64
	eachUsed(e.series, func(s *series, row *strike, c *Contract) {
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
		share := func(of [volSteps]float64) *Ratio { return percentOf(of[step], of[0]+of[1]+of[2]+of[3]) }
		out[step] = VolatilityShare{step.String(), share(openInterest), share(atSpot), share(atFlip)}
	}
	return out
}

// Split says whether the shares of a fund or stock were split since the previous session. It is nil when no snapshot of that is known.
func (q *GammaQuality) Split() *bool {
	if q.ChangesReason != nil && *q.ChangesReason == noReference {
		return nil
	}
	return new(q.ChangesReason != nil && *q.ChangesReason == split)
}

// AmericanQuality says how American options were treated. Its fields are absent for options that are not American.
type AmericanQuality struct {
	// How the early exercise of these options is treated, and how large the error of gross exposure may be. Before an ex-dividend
	// date, also that the error may be larger. Absent for European options.
	ExerciseNote string `json:"exercise_note,omitempty" jsonschema:"example=American options are computed as European options on the parity forward."`
	// Share of contracts with more than 60 days to expiration in gross exposure. Absent for European options, and when gross exposure
	// is 0 or not known. `null` does not occur.
	GrossBeyond60Days *Ratio `json:"gross_beyond_60_days_pct,omitempty" jsonschema:"minimum=0,maximum=100,example=8.25" unit:"percent"`
}

// exerciseNote takes the errors that METHODS.md §1.8 gives for the kind, rounded up.
const exerciseNote = "American options are computed as European options on the parity forward. On made chains, the error of gross " +
	"exposure is then at most %s."

var exerciseErrors = map[Kind]string{
	KindIndex: "2.5 % to 60 days, 6 % to 120 days and 12 % to a year", // OEX pays dividends as a fund does
	KindFund:  "2.5 % to 60 days, 6 % to 120 days and 12 % to a year",
	KindStock: "5 % to 60 days, 8 % to 120 days and 13 % to a year, and about half of that without a dividend",
}

const (
	dividendReach = 60 * 24 * time.Hour // the greatest T of a forward that shows the carry, and the limit of AmericanQuality
	dividendStep  = 0.001               // the least fall of a forward that a dividend explains: 10 bp
	dividendDays  = 7                   // the greatest number of days from the session to the expiration after the fall
	dividendPairs = 3                   // the least number of pairs of neighbouring dates that show the carry
	lastAge       = 15 * time.Minute    // the greatest difference between the last price and the quotes
)

// american returns the quality of American options, nothing for others.
func (e *exposure) american() (q AmericanQuality) {
	if !e.underlying.American() {
		return q
	}
	q.ExerciseNote = fmt.Sprintf(exerciseNote, exerciseErrors[e.underlying.Kind])
	if next, falls := e.dividendBefore(); falls {
		q.ExerciseNote += fmt.Sprintf(" The forwards fall before %s by more than the carry, as before an ex-dividend date. On the eve of "+
			"such a date, gross exposure of the nearest expiration was 11 %% too small.", next)
	}
	var beyond float64
	for _, s := range e.series {
		if s.left > dividendReach {
			beyond += s.call - s.put
		}
	}
	if !e.mismatch && e.all.interest.complete() {
		q.GrossBeyond60Days = percentOf(beyond, e.gross())
	}
	return q
}

// dividendBefore looks for a dividend between the session date and the nearest expiration after it, which it returns: the forward
// falls by more than 10 bp on top of the carry. The fall counts from the forward of the session date. Without such a forward, it
// counts from the last price, if that is as old as the quotes. The carry is the median slope of ln F between neighbouring parity
// forwards within 60 days. One dividend among them does not move a median.
func (e *exposure) dividendBefore() (next Date, falls bool) {
	parity := parityWithin(e.series, dividendReach)
	var slopes []float64
	for i := 1; i < len(parity); i++ {
		if years := parity[i].years - parity[i-1].years; years > 0 { // two expirations may settle in one session
			slopes = append(slopes, (parity[i].logCarry-parity[i-1].logCarry)/years)
		}
	}
	if len(slopes) < dividendPairs || e.mismatch {
		return 0, false
	}
	first, second := &series{}, parity[0] // ln(F/S) is 0 at T = 0
	if parity[0].Expiration <= e.session {
		first, second = parity[0], parity[1]
	} else if age := e.quoted.Sub(e.Chain.AsOf); age.Abs() > lastAge {
		return 0, false
	}
	fall := first.logCarry + median(slopes)*(second.years-first.years) - second.logCarry
	return second.Expiration, fall > dividendStep && second.Expiration-e.session <= dividendDays
}
