package compute

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// VolatilityMethod names the method of [VolatilityResult] in receipts.
const VolatilityMethod = "volatility/4"

// Volatility is what the quotes of a chain say about future moves, the `data` of volatility/{u}: by expiration, and for the underlying
// beside its own stored history. Volatilities are a year's, in percent, on a year of 365 days. What the quotes or the history do not
// determine is `null`: `unknown` of the expiration, or of `meta.quality`, has the reason.
type Volatility struct {
	ChainHead
	// At-the-money volatility of the next 30 days, between the listed expirations around them. `null` unless both have it.
	ATM30 *Ratio `json:"atm_30d" jsonschema:"minimum=0" unit:"percent"`
	// Volatility of the next 30 days by the formula of the Cboe Volatility Index, from every quoted strike. That of SPX is near the
	// published VIX. `null` unless both expirations around 30 days have it.
	ModelFree30 *Ratio `json:"model_free_30d" jsonschema:"minimum=0" unit:"percent"`
	// Risk reversal of 25 delta in 30 days. Negative when puts are dearer than calls. `null` when an expiration around has none.
	RiskReversal30 *Ratio `json:"risk_reversal_25_30d" unit:"percentage points"`
	// At-the-money volatility of the expiration nearest 90 days less `atm_30d`. Positive when later dates are dearer. `null` without
	// `atm_30d`, and without an expiration from 45 to 135 days.
	TermSlope *Ratio `json:"term_slope" unit:"percentage points"`
	// Place of `atm_30d` between the lowest and the highest value of the last 252 stored sessions, this one included. `null` under 60
	// sessions.
	Rank *Ratio `json:"rank_1y" jsonschema:"minimum=0,maximum=100,example=41.25" unit:"percent"`
	// Share of these values that are below `atm_30d`. Equal values count half. `null` under 60 sessions.
	Percentile *Ratio `json:"percentile_1y" jsonschema:"minimum=0,maximum=100,example=55.5" unit:"percent"`
	// How many sessions have a value, this one included.
	Sessions int `json:"sessions" jsonschema:"minimum=0,maximum=252" unit:"sessions"`
	// Realised volatility of the 20 moves between the last 21 daily closes. A close is the price in our last answer of a session.
	// `null` when fewer are stored, too many between them are missing, or two differ as after a split: `meta.quality.unknown` says why.
	Realised20 *Ratio `json:"realised_20d" jsonschema:"minimum=0" unit:"percent"`
	// Realised volatility of the 60 moves between the last 61 daily closes. `null` as `realised_20d`.
	Realised60 *Ratio `json:"realised_60d" jsonschema:"minimum=0,example=12.75" unit:"percent"`
	// `atm_30d` − `realised_20d`. `null` without both.
	ImpliedMinusRealised *Ratio `json:"implied_minus_realised" unit:"percentage points"`
	// Open puts over open calls, of all contracts that have not settled. `null` without calls, and while open
	// interest is not known.
	PutCallOpenInterest *Ratio `json:"put_call_open_interest" jsonschema:"minimum=0" unit:"ratio"`
	// Puts over calls that traded in the session, of all contracts that have not settled. `null` without calls, and while over
	// 1 % of the calls or of the puts have no volume.
	PutCallVolume *Ratio `json:"put_call_volume" jsonschema:"minimum=0" unit:"ratio"`
	// The expirations that settle in an hour or later and have a parity forward, nearest first.
	Expirations []ExpirationVolatility `json:"expirations"`
}

// ExpirationVolatility is one expiration date and settlement.
type ExpirationVolatility struct {
	Expiration Date `json:"expiration"` // Expiration date.
	// `am`: settles at the opening print, 09:30 New York. `pm`: settles at the close.
	Settlement Settlement `json:"settlement"`
	Forward    Level      `json:"forward" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"` // Forward by put–call parity.
	// Volatility at the forward. `null` when the quotes do not determine it.
	ATM *Ratio `json:"atm_volatility" jsonschema:"minimum=0" unit:"percent"`
	// Volatility of the call of 25 delta less that of the put. Negative when puts are dearer; many publishers show the opposite
	// sign. `null` when one of the two has no usable quotes, and less than a day before the settlement.
	RiskReversal25 *Ratio `json:"risk_reversal_25" unit:"percentage points"`
	// The same of 10 delta. `null` as `risk_reversal_25`.
	RiskReversal10 *Ratio `json:"risk_reversal_10" unit:"percentage points"`
	// Mean of the volatilities of the call and the put of 25 delta less `atm_volatility`. `null` as `risk_reversal_25`.
	Butterfly25 *Ratio `json:"butterfly_25" unit:"percentage points"`
	// The same of 10 delta. `null` as `risk_reversal_10`.
	Butterfly10 *Ratio `json:"butterfly_10" unit:"percentage points"`
	// One standard deviation of the move to the expiration. `null` without `atm_volatility`, and after `spot_mismatch`.
	ExpectedMove *Level `json:"expected_move" jsonschema:"minimum=0" unit:"USD or index points"`
	// Price of the call and the put at the strike nearest the forward: about 0.8 of `expected_move`. `null` unless both have usable quotes.
	Straddle *Level `json:"atm_straddle" jsonschema:"minimum=0" unit:"USD or index points"`
	// Volatility by the formula of the Cboe Volatility Index. `null` without `atm_volatility`, and when the quotes end while options
	// are not cheap.
	ModelFree *Ratio `json:"model_free_volatility" jsonschema:"minimum=0" unit:"percent"`
	// Open puts over open calls. `null` without calls, and while open interest is not known.
	PutCallOpenInterest *Ratio `json:"put_call_open_interest" jsonschema:"minimum=0" unit:"ratio"`
	// Puts over calls that traded in the session. `null` without calls, and while over 1 % of either have no volume.
	PutCallVolume *Ratio            `json:"put_call_volume" jsonschema:"minimum=0" unit:"ratio"`
	Unknown       map[string]string `json:"unknown" jsonschema:"oneof_ref=#/components/schemas/VolatilityUnknown"`
}

// VolatilityQuality is what `meta.quality` of volatility/{u} has beside the counts of gex/{u}/matrix.
type VolatilityQuality struct {
	Expirations VolatilityDates `json:"expirations"`
	// Strikes whose quotes cannot stand beside the others of their root and expiration, as in gex/{u}.
	Contradictory int               `json:"contradictory_strikes" jsonschema:"minimum=0" unit:"strikes"`
	Unknown       map[string]string `json:"unknown" jsonschema:"oneof_ref=#/components/schemas/VolatilityUnknown"`
}

// VolatilityDates counts the pairs of root and expiration that have not settled: listed = used + under_one_hour + no_parity_forward.
type VolatilityDates struct {
	Listed    int `json:"listed" jsonschema:"minimum=0" unit:"root and expiration pairs"`            // Pairs of the chain.
	Used      int `json:"used" jsonschema:"minimum=0" unit:"root and expiration pairs"`              // Pairs with a row.
	Near      int `json:"under_one_hour" jsonschema:"minimum=0" unit:"root and expiration pairs"`    // Pairs that settle within an hour.
	NoForward int `json:"no_parity_forward" jsonschema:"minimum=0" unit:"root and expiration pairs"` // Later pairs with too few quotes for a forward of their own.
}

// VolatilityDay is what a session leaves to the history of later ones.
type VolatilityDay struct {
	Session Date     `json:"session"`
	Close   *float64 `json:"close"`   // price of the underlying; nil: the session was not over
	ATM30   *float64 `json:"atm_30d"` // percent; nil: not known
}

// VolatilityResult is the volatility of a chain. The figures that rest on history are null until [VolatilityResult.With].
type VolatilityResult struct {
	Data    Volatility
	Quality VolatilityQuality
	Today   VolatilityDay // for the history of later sessions
}

// The reasons of an unknown figure that several places give.
const (
	fewStrikes      = "few_strikes"
	notBracketed    = "not_bracketed"
	quoteGap        = "quote_gap"
	interestMissing = "open_interest_missing"
	noDates         = "no_expirations"
	fewSessions     = "few_sessions"
)

const (
	leastLeft  = time.Hour           // the least T of a row
	leastWings = 24 * time.Hour      // the least T of a risk reversal: METHODS.md says how far one tick moves it
	leastTerm  = 7 * 24 * time.Hour  // the least T of an expiration that a figure of 30 days rests on
	monthTerm  = 30 * 24 * time.Hour // the constant maturity
	// The expiration of the term slope is the nearest to quarterTerm, at most quarterReach away.
	quarterTerm, quarterReach = 90 * 24 * time.Hour, 45 * 24 * time.Hour
)

// known returns a figure, and notes the reason if it is nil.
func known[T any](figure *T, unknown map[string]string, name, reason string) *T {
	if figure == nil {
		unknown[name] = reason
	}
	return figure
}

// volatility computes the figures that rest on the chain alone.
func (e *exposure) volatility() VolatilityResult {
	r := VolatilityResult{Today: VolatilityDay{Session: e.session}, Quality: VolatilityQuality{Unknown: map[string]string{}}}
	v, q := &r.Data, &r.Quality
	*v = Volatility{ChainHead: e.head(), Expirations: []ExpirationVolatility{}}
	var dates []datedVolatility
	for _, s := range e.byDate() {
		q.Expirations.Listed++
		q.Contradictory += s.contradictory()
		d := datedVolatility{s, math.NaN(), math.NaN(), math.NaN(), nil}
		switch {
		case s.left < leastLeft:
			q.Expirations.Near++
		case s.source != forwardParity:
			q.Expirations.NoForward++
		default:
			v.Expirations = append(v.Expirations, e.dateVolatility(&d))
		}
		dates = append(dates, d)
	}
	q.Expirations.Used = len(v.Expirations)
	v.PutCallOpenInterest, v.PutCallVolume = e.all.ratios(q.Unknown)
	v.constantMaturity(dates, e.volatilityIndexDates(dates), q.Unknown)
	if v.ATM30 != nil {
		r.Today.ATM30 = new(float64(*v.ATM30))
	}
	if !e.quoted.Before(e.Calendar.Close(e.session)) {
		r.Today.Close = new(e.then)
	}
	return r
}

// datedVolatility is what the figures of 30 days need of a date: total variances, and a risk reversal in percentage points, each NaN
// where unknown. unknown has the reasons, none for a date without a row.
type datedVolatility struct {
	*series
	atm, modelFree, reversal float64
	unknown                  map[string]string
}

// dateVolatility returns the row of a date and fills in what the figures of 30 days need of it.
func (e *exposure) dateVolatility(d *datedVolatility) ExpirationVolatility {
	s, unknown := d.series, map[string]string{}
	d.unknown = unknown
	row := ExpirationVolatility{Expiration: s.Expiration, Settlement: s.settlement, Forward: Level(s.forward), Unknown: unknown}
	held := positionsOf(s)
	row.PutCallOpenInterest, row.PutCallVolume = held.ratios(unknown)
	row.Straddle = known(s.straddle(), unknown, "atm_straddle", "no_quote")
	m := s.smile(func(*strike) bool { return true })
	w, why := m.atTheMoney()
	if why != "" {
		for _, name := range []string{"atm_volatility", "risk_reversal_25", "risk_reversal_10", "butterfly_25", "butterfly_10", "expected_move", "model_free_volatility"} {
			unknown[name] = why
		}
		return row
	}
	percent := func(w float64) Ratio { return Ratio(100 * math.Sqrt(w/s.years)) } // NaN of NaN
	d.atm, row.ATM = w, new(percent(w))
	if row.ExpectedMove = new(Level(e.level * math.Sqrt(w))); e.mismatch {
		row.ExpectedMove = known[Level](nil, unknown, "expected_move", string(FlipSpotMismatch))
	}
	wings := func(delta float64, suffix string) (reversal, butterfly *Ratio) {
		call, put, why := percent(m.atDelta(-delta)), percent(m.atDelta(delta)), notBracketed
		if s.left < leastWings {
			call, why = Ratio(math.NaN()), "under_one_day"
		}
		return known(finiteOrNil(call-put), unknown, "risk_reversal_"+suffix, why),
			known(finiteOrNil((call+put)/2-*row.ATM), unknown, "butterfly_"+suffix, why)
	}
	row.RiskReversal25, row.Butterfly25 = wings(delta25, "25")
	row.RiskReversal10, row.Butterfly10 = wings(delta10, "10")
	if row.RiskReversal25 != nil {
		d.reversal = float64(*row.RiskReversal25)
	}
	d.modelFree, why = s.modelFree(m, w)
	row.ModelFree = known(finiteOrNil(percent(d.modelFree)), unknown, "model_free_volatility", why)
	return row
}

// constantMaturity fills in the figures of 30 days, and the slope. indexDates are those of the model-free figure.
func (v *Volatility) constantMaturity(dates, indexDates []datedVolatility, unknown map[string]string) {
	inMonth := func(dates []datedVolatility, name string, figure func(*datedVolatility) float64) (*Ratio, string) {
		a, b := aroundMonth(dates)
		if a == nil || b == nil {
			return nil, noDates
		}
		x := figure(a) + (monthTerm-a.left).Seconds()/(b.left-a.left).Seconds()*(figure(b)-figure(a))
		return finiteOrNil(Ratio(x)), cmp.Or(a.unknown[name], b.unknown[name], noDates)
	}
	percent := func(w *Ratio) *Ratio {
		if w == nil {
			return nil
		}
		return finiteOrNil(Ratio(100 * math.Sqrt(float64(*w)*secondsPerYear/monthTerm.Seconds())))
	}
	w, why := inMonth(dates, "atm_volatility", func(d *datedVolatility) float64 { return d.atm })
	v.ATM30 = known(percent(w), unknown, "atm_30d", why)
	v.RiskReversal30, why = inMonth(dates, "risk_reversal_25", func(d *datedVolatility) float64 { return d.reversal })
	known(v.RiskReversal30, unknown, "risk_reversal_25_30d", why)
	w, why = inMonth(indexDates, "model_free_volatility", func(d *datedVolatility) float64 { return d.modelFree })
	v.ModelFree30 = known(percent(w), unknown, "model_free_30d", why)
	away := quarterReach + 1
	for i := range dates {
		if d := &dates[i]; v.ATM30 != nil && finite(d.atm) && (d.left-quarterTerm).Abs() < away { // the earlier of two
			away, v.TermSlope = (d.left - quarterTerm).Abs(), new(Ratio(100*math.Sqrt(d.atm/d.years))-*v.ATM30)
		}
	}
	known(v.TermSlope, unknown, "term_slope", noDates)
}

// aroundMonth returns the dates nearest 30 days on both sides, whether their figures are known or not: nil without one.
func aroundMonth(dates []datedVolatility) (a, b *datedVolatility) {
	for i := range dates {
		d := &dates[i]
		switch {
		case d.left < leastTerm:
		case d.left <= monthTerm && (a == nil || d.left > a.left):
			a = d
		case d.left > monthTerm && (b == nil || d.left < b.left):
			b = d
		}
	}
	return a, b
}

// volatilityIndexDates returns the dates that the exchange's volatility index of the underlying takes, every date without such an index: AM on
// the third Friday of a month, PM on the other Fridays. Where a Friday is a holiday, the session before it counts.
func (e *exposure) volatilityIndexDates(dates []datedVolatility) []datedVolatility {
	return slices.DeleteFunc(slices.Clone(dates), func(d datedVolatility) bool {
		friday := d.settles.friday()
		third := friday == ThirdFriday(friday.Year(), friday.Month())
		taken := d.settles == e.Calendar.OnOrBefore(friday) && third == (d.settlement == AM)
		return e.underlying.volatilityIndex && !taken
	})
}

// ratios returns put/call by open interest and by volume.
func (p *positions) ratios(unknown map[string]string) (openInterest, volume *Ratio) {
	ratio := func(of [2]float64, c coverage, name, missing string) *Ratio {
		if !c.complete() {
			return known[Ratio](nil, unknown, name, missing)
		}
		return known(finiteOrNil(Ratio(of[Put]/of[Call])), unknown, name, "no_calls")
	}
	return ratio(p.openInterest, p.interest, "put_call_open_interest", interestMissing), ratio(p.volume, p.traded, "put_call_volume", "volume_missing")
}

const (
	// VolatilityHistory is how many earlier sessions a rank counts at most: 252 with its own.
	VolatilityHistory = 251
	leastRanked       = 60 // values that a rank needs
	// mostJump is the greatest ratio of neighbouring closes: a larger one is a split, not a return.
	mostJump = 1.5
)

// With returns the result with the figures that rest on earlier sessions, which must be rising, before that of the result, and at most
// [VolatilityHistory]. It does not change the receiver.
func (r VolatilityResult) With(earlier []VolatilityDay, cal *Calendar) VolatilityResult {
	v, unknown, now := &r.Data, maps.Clone(r.Quality.Unknown), r.Today.ATM30
	r.Quality.Unknown = unknown
	var values []float64
	var closes []VolatilityDay
	for _, d := range append(slices.Clone(earlier), r.Today) {
		if d.ATM30 != nil {
			values = append(values, *d.ATM30)
		}
		if d.Close != nil {
			closes = append(closes, d)
		}
	}
	v.Sessions = len(values)
	why := noDates
	if now != nil {
		why = fewSessions
	}
	if now != nil && len(values) >= leastRanked {
		low, high := slices.Min(values), slices.Max(values)
		v.Percentile = new(midRank(*now, values))
		v.Rank, why = finiteOrNil(Ratio((*now-low)/(high-low)*100)), "no_range" // 0/0 is NaN
	}
	known(v.Percentile, unknown, "percentile_1y", why)
	known(v.Rank, unknown, "rank_1y", why)
	v.Realised60, why = realised(closes, 60, cal)
	known(v.Realised60, unknown, "realised_60d", why)
	v.Realised20, why = realised(closes, 20, cal)
	if known(v.Realised20, unknown, "realised_20d", why) != nil && now != nil {
		v.ImpliedMinusRealised = new(Ratio(*now) - *v.Realised20)
	} else if v.Realised20 != nil {
		why = noDates
	}
	known(v.ImpliedMinusRealised, unknown, "implied_minus_realised", why)
	return r
}

// realised returns √(252/m · Σ ln²(C/C before)) in percent over the last n+1 closes, m being the sessions from the first to the last: n
// unless closes are missing. why says why it is unknown.
func realised(closes []VolatilityDay, n int, cal *Calendar) (_ *Ratio, why string) {
	if len(closes) <= n {
		return nil, fewSessions
	}
	closes = closes[len(closes)-n-1:]
	m := cal.SessionsBetween(closes[0].Session, closes[n].Session)
	if 4*m > 5*n {
		return nil, "missing_sessions"
	}
	sum := 0.0
	for i, d := range closes[1:] {
		move := math.Log(*d.Close / *closes[i].Close)
		if math.Abs(move) > math.Log(mostJump) {
			return nil, "price_jump"
		}
		sum += move * move
	}
	return new(Ratio(100 * math.Sqrt(252/float64(m)*sum))), ""
}
