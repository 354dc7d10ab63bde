package compute

import (
	"fmt"
	"time"
)

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
