package compute

import (
	"maps"
	"math"
	"slices"
	"time"
)

// VolatilityMethod names the method of [VolatilityResult] in receipts.
const VolatilityMethod = "volatility/1"

// Volatility is what the quotes of a chain say about future moves, the `data` of volatility/{u}: by expiration, and for the underlying
// beside its own stored history. Volatilities are a year's, in percent, on a year of 365 days. What the quotes or the history do not
// determine is `null`: `unknown` of the expiration, or of `meta.quality`, has the reason.
type Volatility struct {
	Symbol string `json:"symbol" jsonschema:"pattern=^[A-Z]+$"` // The underlying.
	// Published price of the underlying at `meta.as_of`.
	Spot Level `json:"spot" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"`
	// Spot of the expected moves, as in gex/{u}.
	EffectiveSpot Level `json:"effective_spot" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"`
	SessionDate   Date  `json:"session_date"` // Session of `meta.as_of`.
	// At-the-money volatility of the next 30 days, between the expirations around them. `null` without both.
	ATM30 *Ratio `json:"atm_30d" jsonschema:"minimum=0" unit:"percent"`
	// Volatility of the next 30 days by the formula of the Cboe Volatility Index, from every quoted strike. That of SPX is near the
	// published VIX. `null` without expirations on both sides of 30 days.
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
	// Realised volatility of the last 20 daily closes. A close is the price in our last answer of a session. `null` when fewer are
	// stored.
	Realised20 *Ratio `json:"realised_20d" jsonschema:"minimum=0" unit:"percent"`
	// Realised volatility of the last 60 daily closes. `null` when fewer are stored.
	Realised60 *Ratio `json:"realised_60d" jsonschema:"minimum=0,example=12.75" unit:"percent"`
	// `atm_30d` − `realised_20d`. `null` without both.
	ImpliedMinusRealised *Ratio `json:"implied_minus_realised" unit:"percentage points"`
	// Open puts over open calls, of all contracts that have not settled. `null` without calls.
	PutCallOpenInterest *Ratio `json:"put_call_open_interest" jsonschema:"minimum=0" unit:"ratio"`
	// Puts over calls that traded in the session, of all contracts that have not settled. `null` without calls.
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
	// sign. `null` when one of the two is not quoted on both sides.
	RiskReversal25 *Ratio `json:"risk_reversal_25" unit:"percentage points"`
	// The same of 10 delta. `null` when one of the two is not quoted on both sides.
	RiskReversal10 *Ratio `json:"risk_reversal_10" unit:"percentage points"`
	// Mean of the volatilities of the call and the put of 25 delta less `atm_volatility`. `null` as `risk_reversal_25`.
	Butterfly25 *Ratio `json:"butterfly_25" unit:"percentage points"`
	// The same of 10 delta. `null` as `risk_reversal_10`.
	Butterfly10 *Ratio `json:"butterfly_10" unit:"percentage points"`
	// One standard deviation of the move to the expiration. `null` without `atm_volatility`, and after `spot_mismatch`.
	ExpectedMove *Level `json:"expected_move" jsonschema:"minimum=0" unit:"USD or index points"`
	// Price of the call and the put at the strike nearest the forward: about 0.8 of `expected_move`. `null` unless both are quoted.
	Straddle *Level `json:"atm_straddle" jsonschema:"minimum=0" unit:"USD or index points"`
	// Volatility by the formula of the Cboe Volatility Index. `null` without `atm_volatility`, and when the quotes of many strikes
	// are missing.
	ModelFree *Ratio `json:"model_free_volatility" jsonschema:"minimum=0" unit:"percent"`
	// Open puts over open calls. `null` without calls.
	PutCallOpenInterest *Ratio `json:"put_call_open_interest" jsonschema:"minimum=0" unit:"ratio"`
	// Puts over calls that traded in the session. `null` without calls.
	PutCallVolume *Ratio            `json:"put_call_volume" jsonschema:"minimum=0" unit:"ratio"`
	Unknown       map[string]string `json:"unknown" jsonschema:"oneof_ref=#/components/schemas/VolatilityUnknown"`
}

// VolatilityQuality is what `meta.quality` of volatility/{u} has beside the counts of gex/{u}/matrix.
type VolatilityQuality struct {
	Expirations VolatilityDates   `json:"expirations"`
	Unknown     map[string]string `json:"unknown" jsonschema:"oneof_ref=#/components/schemas/VolatilityUnknown"`
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

// The reasons of an unknown figure.
const (
	fewStrikes      = "few_strikes"
	flatPrices      = "flat_prices"
	notBracketed    = "not_bracketed"
	wideGap         = "wide_gap"
	noQuote         = "no_quote"
	quoteGap        = "quote_gap"
	noCalls         = "no_calls"
	notPositive     = "not_positive"
	spotMismatch    = string(FlipSpotMismatch)
	noDates         = "no_expirations"
	fewSessions     = "few_sessions"
	missingSessions = "missing_sessions"
	priceJump       = "price_jump"
	noRange         = "no_range"
)

const (
	leastLeft = time.Hour           // the least T of a row
	leastTerm = 7 * 24 * time.Hour  // the least T of an expiration that a figure of 30 days rests on
	monthTerm = 30 * 24 * time.Hour // the constant maturity
	// The expiration of the term slope is the nearest to quarterTerm, at most quarterReach away.
	quarterTerm, quarterReach = 90 * 24 * time.Hour, 45 * 24 * time.Hour
)

// datedVolatility is a series and its unrounded figures as fractions, NaN where unknown.
type datedVolatility struct {
	*series
	atm, reversal, modelFree float64
}

// volatility computes the figures that rest on the chain alone.
func (e *exposure) volatility() VolatilityResult {
	r := VolatilityResult{Today: VolatilityDay{Session: e.session}, Quality: VolatilityQuality{Unknown: map[string]string{}}}
	v, q := &r.Data, &r.Quality
	*v = Volatility{Symbol: e.Chain.Symbol, Spot: Level(e.Chain.Spot), EffectiveSpot: Level(e.level), SessionDate: e.session, Expirations: []ExpirationVolatility{}}
	var dates []datedVolatility
	var all positions
	for _, s := range e.byDate() {
		q.Expirations.Listed++
		held := s.positions()
		all.add(held)
		switch {
		case s.left < leastLeft:
			q.Expirations.Near++
		case s.source != forwardParity:
			q.Expirations.NoForward++
		default:
			row, d := e.dateVolatility(s)
			row.PutCallOpenInterest, row.PutCallVolume = held.ratios(row.Unknown)
			v.Expirations, dates = append(v.Expirations, row), append(dates, d)
		}
	}
	q.Expirations.Used = len(dates)
	v.PutCallOpenInterest, v.PutCallVolume = all.ratios(q.Unknown)
	e.constantMaturity(v, dates, q.Unknown)
	if v.ATM30 != nil {
		r.Today.ATM30 = new(float64(*v.ATM30))
	}
	if !e.quoted.Before(e.Calendar.Close(e.session)) {
		r.Today.Close = new(e.Chain.Spot)
	}
	return r
}

// dateVolatility returns the row of a series, still without its positions.
func (e *exposure) dateVolatility(s *series) (ExpirationVolatility, datedVolatility) {
	row := ExpirationVolatility{Expiration: s.Expiration, Settlement: s.settlement, Forward: Level(s.forward), Unknown: map[string]string{}}
	d := datedVolatility{s, math.NaN(), math.NaN(), math.NaN()}
	if row.Straddle = s.straddle(); row.Straddle == nil {
		row.Unknown["atm_straddle"] = noQuote
	}
	m := s.smile()
	w, why := m.atTheMoney()
	if why != "" {
		for _, name := range []string{"atm_volatility", "risk_reversal_25", "risk_reversal_10", "butterfly_25", "butterfly_10", "expected_move", "model_free_volatility"} {
			row.Unknown[name] = why
		}
		return row, d
	}
	percent := func(x float64) *Ratio { return new(Ratio(100 * x)) }
	d.atm = math.Sqrt(w / s.years)
	row.ATM = percent(d.atm)
	if row.ExpectedMove = new(Level(e.level * math.Sqrt(w))); e.mismatch() {
		row.ExpectedMove, row.Unknown["expected_move"] = nil, spotMismatch
	}
	wings := func(delta float64, suffix string) (reversal, butterfly *Ratio) {
		call, put := math.Sqrt(m.atDelta(-delta)/s.years), math.Sqrt(m.atDelta(delta)/s.years)
		if !finite(call) || !finite(put) {
			row.Unknown["risk_reversal_"+suffix], row.Unknown["butterfly_"+suffix] = notBracketed, notBracketed
			return nil, nil
		}
		return percent(call - put), percent((call+put)/2 - d.atm)
	}
	row.RiskReversal25, row.Butterfly25 = wings(delta25, "25")
	row.RiskReversal10, row.Butterfly10 = wings(delta10, "10")
	if row.RiskReversal25 != nil {
		d.reversal = float64(*row.RiskReversal25)
	}
	if variance, why := s.modelFreeVariance(); why == "" {
		d.modelFree = math.Sqrt(variance)
		row.ModelFree = percent(d.modelFree)
	} else {
		row.Unknown["model_free_volatility"] = why
	}
	return row, d
}

// constantMaturity fills in the figures of 30 days, and the slope.
func (e *exposure) constantMaturity(v *Volatility, dates []datedVolatility, unknown map[string]string) {
	// between returns the figures before and after 30 days and the weight of the second, or ok false without both.
	between := func(figure func(*datedVolatility) float64) (a, b *datedVolatility, weight float64, ok bool) {
		for i := range dates {
			d := &dates[i]
			switch {
			case d.left < leastTerm || !finite(figure(d)):
			case d.left <= monthTerm && (a == nil || d.left > a.left):
				a = d
			case d.left > monthTerm && (b == nil || d.left < b.left):
				b = d
			}
		}
		if a == nil || b == nil {
			return a, b, 0, false
		}
		return a, b, (monthTerm - a.left).Seconds() / (b.left - a.left).Seconds(), true
	}
	month := monthTerm.Seconds() / secondsPerYear
	volatility := func(figure func(*datedVolatility) float64) *Ratio {
		a, b, weight, ok := between(figure)
		if !ok {
			return nil
		}
		total := func(d *datedVolatility) float64 { return figure(d) * figure(d) * d.years }
		return new(Ratio(100 * math.Sqrt((total(a)+weight*(total(b)-total(a)))/month)))
	}
	atm := func(d *datedVolatility) float64 { return d.atm }
	if v.ATM30 = volatility(atm); v.ATM30 == nil {
		unknown["atm_30d"], unknown["risk_reversal_25_30d"], unknown["term_slope"] = noDates, noDates, noDates
	} else {
		a, b, weight, _ := between(atm)
		if v.RiskReversal30 = finiteOrNil(Ratio(a.reversal + weight*(b.reversal-a.reversal))); v.RiskReversal30 == nil {
			unknown["risk_reversal_25_30d"] = notBracketed
		}
		if far := nearestQuarter(dates); far != nil {
			v.TermSlope = new(Ratio(100*far.atm) - *v.ATM30)
		} else {
			unknown["term_slope"] = noDates
		}
	}
	v.ModelFree30 = volatility(func(d *datedVolatility) float64 {
		if e.underlying.volatilityIndex && !d.ofVolatilityIndex(e.Calendar) {
			return math.NaN()
		}
		return d.modelFree
	})
	if v.ModelFree30 == nil {
		unknown["model_free_30d"] = noDates
	}
}

// nearestQuarter returns the expiration with an at-the-money volatility that is nearest 90 days, the earlier of two; nil if none is near.
func nearestQuarter(dates []datedVolatility) (nearest *datedVolatility) {
	away := func(d *datedVolatility) time.Duration { return (d.left - quarterTerm).Abs() }
	for i := range dates {
		d := &dates[i]
		if finite(d.atm) && away(d) <= quarterReach && (nearest == nil || away(d) < away(nearest)) {
			nearest = d
		}
	}
	return nearest
}

// ofVolatilityIndex says whether the exchange's volatility index takes the series: AM on the third Friday of a month, PM on the other
// Fridays. Where a Friday is a holiday, the session before it counts.
func (s *series) ofVolatilityIndex(cal *Calendar) bool {
	friday := s.Expiration + Date(time.Friday-s.Expiration.Weekday()+7)%7
	third := friday == ThirdFriday(friday.Year(), friday.Month())
	return s.Expiration == cal.OnOrBefore(friday) && third == (s.settlement == AM)
}

// positions are the contracts of a series or a chain by right.
type positions struct{ openInterest, volume [2]float64 }

func (s *series) positions() (p positions) {
	for i := range s.strikes {
		for right, c := range s.strikes[i].contracts {
			if c != nil {
				p.openInterest[right] += c.OpenInterest
				p.volume[right] += positive(c.Volume)
			}
		}
	}
	return p
}

func (p *positions) add(other positions) {
	for right := range p.volume {
		p.openInterest[right] += other.openInterest[right]
		p.volume[right] += other.volume[right]
	}
}

// ratios returns put/call by open interest and by volume, and notes which is unknown.
func (p *positions) ratios(unknown map[string]string) (openInterest, volume *Ratio) {
	ratio := func(name string, of [2]float64) *Ratio {
		if of[Call] == 0 {
			unknown[name] = noCalls
			return nil
		}
		return new(Ratio(of[Put] / of[Call]))
	}
	return ratio("put_call_open_interest", p.openInterest), ratio("put_call_volume", p.volume)
}

// VolatilityHistory is how many earlier sessions a rank counts at most: 252 with its own.
const VolatilityHistory = 251

const (
	leastRanked = 60 // values that a rank needs
	// mostJump is the greatest ratio of neighbouring closes: a larger one is a split, not a return.
	mostJump = 1.5
)

// With returns the result with the figures that rest on earlier sessions, which must be rising, before that of the result, and at most
// [VolatilityHistory]. It does not change the receiver.
func (r VolatilityResult) With(earlier []VolatilityDay, cal *Calendar) VolatilityResult {
	r.Quality.Unknown = maps.Clone(r.Quality.Unknown)
	v, unknown := &r.Data, r.Quality.Unknown
	days := append(slices.Clone(earlier), r.Today)
	r.rank(days)
	for name, f := range map[string]struct {
		n    int
		into **Ratio
	}{"realised_20d": {20, &v.Realised20}, "realised_60d": {60, &v.Realised60}} {
		var why string
		if *f.into, why = realised(days, f.n, cal); why != "" {
			unknown[name] = why
		}
	}
	switch {
	case v.Realised20 == nil:
		unknown["implied_minus_realised"] = unknown["realised_20d"]
	case v.ATM30 == nil:
		unknown["implied_minus_realised"] = noDates
	default:
		v.ImpliedMinusRealised = new(*v.ATM30 - *v.Realised20)
	}
	return r
}

// rank places today's value, the last one, among the values of the days.
func (r *VolatilityResult) rank(days []VolatilityDay) {
	v, unknown := &r.Data, r.Quality.Unknown
	low, high, below := math.Inf(1), math.Inf(-1), 0.0
	for _, d := range days {
		if d.ATM30 == nil {
			continue
		}
		v.Sessions++
		low, high = min(low, *d.ATM30), max(high, *d.ATM30)
		switch today := r.Today.ATM30; {
		case today == nil:
		case *d.ATM30 < *today:
			below++
		case *d.ATM30 == *today:
			below += 0.5
		}
	}
	why := ""
	switch {
	case r.Today.ATM30 == nil:
		why = noDates
	case v.Sessions < leastRanked:
		why = fewSessions
	default:
		v.Percentile = new(Ratio(below / float64(v.Sessions) * 100))
		if high > low {
			v.Rank = new(Ratio((*r.Today.ATM30 - low) / (high - low) * 100))
			return
		}
		unknown["rank_1y"] = noRange
		return
	}
	unknown["rank_1y"], unknown["percentile_1y"] = why, why
}

// realised returns √(252/m · Σ ln²(C/C before)) in percent over the last n+1 closes, m being the sessions from the first to the last: n
// unless closes are missing. why says why it is unknown.
func realised(days []VolatilityDay, n int, cal *Calendar) (_ *Ratio, why string) {
	var closes []VolatilityDay
	for _, d := range days {
		if d.Close != nil {
			closes = append(closes, d)
		}
	}
	if len(closes) <= n {
		return nil, fewSessions
	}
	closes = closes[len(closes)-n-1:]
	m := cal.SessionsBetween(closes[0].Session, closes[n].Session)
	if 4*m > 5*n {
		return nil, missingSessions
	}
	sum := 0.0
	for i, d := range closes[1:] {
		move := math.Log(*d.Close / *closes[i].Close)
		if math.Abs(move) > math.Log(mostJump) {
			return nil, priceJump
		}
		sum += move * move
	}
	return new(Ratio(100 * math.Sqrt(252/float64(m)*sum))), ""
}
