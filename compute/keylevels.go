package compute

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// KeyLevelsMethod names the method of [NewKeyLevels] in receipts.
const KeyLevelsMethod = "levels/6"

// KeyLevels are the prices of gex/{u} and {u}-max-pain that a chart marks, the `data` of gex/{u}/levels. A level that is not known is
// left out.
type KeyLevels struct {
	ChainHead
	Levels []KeyLevel `json:"levels"` // The known levels, highest price first.
	// The levels on the scale of the quarterly stock index future: of SPX, NDX and RUT, while put–call parity gives the forward of a
	// quarterly expiration. They are fair values from option quotes. No price of a future is used. In the last week of a future, the next
	// future comes first, and the expiring one second.
	Futures []FutureLevels `json:"futures" jsonschema:"maxItems=2"`
}

// KeyLevel is one price.
type KeyLevel struct {
	// `call_wall`, `put_wall`, `zero_gamma_flip`, `vol_trigger` and `abs_gamma_strike` are those of gex/{u}. `flip_low` and `flip_high`: its
	// `flip_band`. `expected_low_1d` and `expected_high_1d`: `effective_spot` less and plus its `expected_move_1d`.
	// `zero_dte_call_wall` and `zero_dte_put_wall`, also `_2` and `_3`: the walls of the contracts that settle on the session date, and
	// `zero_dte_pin` their `pin_strike`. `max_pain`: that of the default expiration of {u}-max-pain.
	Name  string `json:"name" jsonschema:"enum=call_wall,enum=put_wall,enum=zero_gamma_flip,enum=flip_low,enum=flip_high,enum=vol_trigger,enum=abs_gamma_strike,enum=max_pain,enum=zero_dte_call_wall,enum=zero_dte_call_wall_2,enum=zero_dte_call_wall_3,enum=zero_dte_put_wall,enum=zero_dte_put_wall_2,enum=zero_dte_put_wall_3,enum=zero_dte_pin,enum=expected_high_1d,enum=expected_low_1d"`
	Label string `json:"label"`                                                            // The name for people.
	Price Level  `json:"price" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"` // The level.
	Away  Ratio  `json:"distance_pct" unit:"percent of the spot"`                          // (price − effective_spot) / effective_spot · 100.
}

// FutureLevels are the levels on the scale of a future: each times `ratio`, rounded to the tick of the contract.
type FutureLevels struct {
	Symbol     string `json:"symbol" jsonschema:"enum=ES,enum=NQ,enum=RTY"`   // Root of the future.
	Month      string `json:"month" jsonschema:"pattern=^[0-9]{4}-[0-9]{2}$"` // Contract month: that of `expiration`, YYYY-MM.
	Expiration Date   `json:"expiration"`                                     // Its last day: a quarterly date on which options settle at the open.
	// Forward of this date by put–call parity, as in gex/{u}.
	Forward Level         `json:"forward" jsonschema:"exclusiveMinimum=0" unit:"index points"`
	Ratio   Ratio         `json:"ratio" jsonschema:"exclusiveMinimum=0" unit:"ratio"` // Forward over `effective_spot`.
	Levels  []FutureLevel `json:"levels"`                                             // In the order of the levels above.
}

// FutureLevel is one level on the scale of a future.
type FutureLevel struct {
	Name  string `json:"name"`                                             // As above.
	Price Level  `json:"price" jsonschema:"minimum=0" unit:"index points"` // The level times the ratio.
}

// NewKeyLevels returns the levels of a gamma exposure, whose chain was captured at an instant. pain is the max pain of the default
// expiration, nil without one.
func NewKeyLevels(r *GammaResult, pain *MaxPain, captured time.Time, cal *Calendar) *KeyLevels {
	g := &r.Data
	k := &KeyLevels{ChainHead: ChainHead{g.Symbol, g.Spot, g.EffectiveSpot, g.SessionDate}, Levels: []KeyLevel{}, Futures: []FutureLevels{}}
	add := func(name, label string, price *Level) {
		if price != nil && *price > 0 {
			k.Levels = append(k.Levels, KeyLevel{name, label, *price, Ratio((*price - g.EffectiveSpot) / g.EffectiveSpot * 100)})
		}
	}
	add("call_wall", "Call Wall", g.CallWall)
	add("put_wall", "Put Wall", g.PutWall)
	add("zero_gamma_flip", "Zero Gamma Flip", g.Flip)
	if g.FlipBand != nil {
		add("flip_low", "Flip Low", &g.FlipBand.Low)
		add("flip_high", "Flip High", &g.FlipBand.High)
	}
	add("vol_trigger", "Vol Trigger", g.VolTrigger)
	add("abs_gamma_strike", "Largest Gamma", g.AbsGammaStrike)
	if pain != nil {
		add("max_pain", "Max Pain", pain.MaxPain)
	}
	for i, w := range g.ZeroDTE.CallWalls {
		add("zero_dte_call_wall"+[...]string{"", "_2", "_3"}[i], "0DTE Call Wall"+[...]string{"", " 2", " 3"}[i], &w.Strike)
	}
	for i, w := range g.ZeroDTE.PutWalls {
		add("zero_dte_put_wall"+[...]string{"", "_2", "_3"}[i], "0DTE Put Wall"+[...]string{"", " 2", " 3"}[i], &w.Strike)
	}
	add("zero_dte_pin", "0DTE Pin", g.ZeroDTE.Pin)
	if g.ExpectedMove != nil {
		add("expected_high_1d", "Expected High", new(g.EffectiveSpot+*g.ExpectedMove))
		add("expected_low_1d", "Expected Low", new(g.EffectiveSpot-*g.ExpectedMove))
	}
	slices.SortStableFunc(k.Levels, func(a, b KeyLevel) int { return cmp.Compare(b.Price, a.Price) })
	if f := UnderlyingOf(g.Symbol).future; f != nil {
		k.addFutures(f, g.ByExpiration, captured, cal)
	}
	return k
}

// tradeDate is how long before midnight New York the futures exchange begins a date: at 18:00.
const tradeDate = 6 * time.Hour

// addFutures adds the levels on the scale of the nearest future of which a parity forward is known, and from the Monday of its last week
// on those of the next one before it.
//
// Source: CME Group, Equity Index Roll Dates: from the Monday before the third Friday on, the next month is the lead month. CME Globex
// has had it so since trade date 2022-06-13; before, traders rolled on the Thursday eight days before the expiration.
func (k *KeyLevels) addFutures(f *future, dates []ExpirationGamma, captured time.Time, cal *Calendar) {
	date := DateOf(captured.In(NewYork).Add(tradeDate))
	for _, d := range dates { // nearest first
		quarterly := d.Expiration.Month()%3 == 0 && cal.IsMonthly(d.Expiration)
		if d.Settlement != AM || d.ForwardSource != forwardParity || !quarterly {
			continue
		}
		ratio := float64(d.Forward / k.EffectiveSpot)
		levels := FutureLevels{Symbol: f.symbol, Month: d.Expiration.String()[:len("2006-01")], Expiration: d.Expiration, Forward: d.Forward, Ratio: Ratio(ratio), Levels: []FutureLevel{}}
		for _, l := range k.Levels {
			levels.Levels = append(levels.Levels, FutureLevel{l.Name, Level(math.Round(float64(l.Price)*ratio/f.tick) * f.tick)})
		}
		k.Futures = slices.Insert(k.Futures, 0, levels)
		if monday := ThirdFriday(d.Expiration.Year(), d.Expiration.Month()) - 4; len(k.Futures) == 2 || date < monday {
			return
		}
	}
}

// future is a stock index future. The prices of a contract are multiples of its tick.
type future struct {
	symbol string
	tick   float64 // index points
}

// SummaryMethod names the method of [NewSummary] in receipts.
const SummaryMethod = "summary/3"

// Summary is the figures of gex/{u} and volatility/{u} that one looks at first, the `data` of gex/{u}/summary. Those answers describe
// each figure, and have the same value of the same chain.
type Summary struct {
	Symbol      string `json:"symbol" jsonschema:"pattern=^[A-Z.]+$"` // The underlying.
	SessionDate Date   `json:"session_date"`                          // Session of `meta.as_of`.
	// Published price of the underlying at `meta.as_of`.
	Spot Level `json:"spot" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"`
	// Change of `spot` in its session. `null` when the upstream gives none.
	SpotChange *Ratio `json:"spot_change_pct" unit:"percent"`
	// Spot of every figure: the price at the time of the quotes.
	EffectiveSpot Level `json:"effective_spot" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"`
	// Source of `effective_spot`.
	SpotSource SpotSource `json:"spot_source" jsonschema:"enum=index,enum=implied,enum=index_stale,enum=last,enum=close"`
	// Net gamma exposure. `null` when gex/{u} has none.
	Net *Dollars `json:"net_gex_dollars" unit:"USD per 1 % move of the underlying"`
	// Sign of net exposure. `null` when gex/{u} has none.
	Regime *string `json:"gamma_regime" jsonschema:"enum=positive,enum=negative,enum=neutral"`
	// Flip nearest the spot. `null` without a flip.
	Flip *Level `json:"zero_gamma_flip" unit:"USD or index points"`
	// Result of the search for the flip.
	FlipStatus FlipStatus `json:"flip_status" jsonschema:"enum=found,enum=multiple,enum=none_all_positive,enum=none_all_negative,enum=insufficient_data,enum=spot_mismatch,enum=open_interest_missing"`
	// (effective_spot − flip) / effective_spot · 100. `null` without a flip.
	FlipDistance *Ratio `json:"flip_distance_pct" unit:"percent of the spot"`
	FlipLow      *Level `json:"flip_low" unit:"USD or index points"`  // Lower end of `flip_band`. `null` without a band.
	FlipHigh     *Level `json:"flip_high" unit:"USD or index points"` // Upper end of `flip_band`. `null` without a band.
	// Strike with the most positive net exposure. `null` when no strike has a positive one.
	CallWall *Level `json:"call_wall" unit:"USD or index points"`
	// Strike with the most negative net exposure. `null` when no strike has a negative one.
	PutWall *Level `json:"put_wall" unit:"USD or index points"`
	// Flip of the contracts that expire within 7 days. `null` without one.
	VolTrigger *Level `json:"vol_trigger" unit:"USD or index points"`
	// One standard deviation of the move in one session. `null` when gex/{u} has none.
	ExpectedMove *Level `json:"expected_move_1d" jsonschema:"minimum=0" unit:"USD or index points"`
	// `net_gex_dollars` of `zero_dte`: net gamma exposure of the contracts that settle on the session date. `null` as there.
	ZeroDTENet *Dollars `json:"zero_dte_net_gex_dollars" unit:"USD per 1 % move of the underlying"`
	// `gross_share_pct` of `zero_dte`: share of these contracts in gross exposure. `null` as there.
	ZeroDTEShare *Ratio `json:"zero_dte_gross_share_pct" jsonschema:"minimum=0,maximum=100" unit:"percent"`
	// Open puts over open calls. `null` when volatility/{u} has none.
	PutCallOpenInterest *Ratio `json:"put_call_open_interest" jsonschema:"minimum=0" unit:"ratio"`
	// At-the-money volatility of the next 30 days. `null` when volatility/{u} has none.
	ATM30 *Ratio `json:"atm_30d" jsonschema:"minimum=0" unit:"percent"`
}

// NewSummary returns the summary of a gamma exposure. It shares the memory of r.
func NewSummary(r *GammaResult) *Summary {
	g, v := &r.Data, &r.Volatility.Data
	s := &Summary{
		Symbol: g.Symbol, SessionDate: g.SessionDate,
		Spot: g.Spot, SpotChange: g.SpotChange, EffectiveSpot: g.EffectiveSpot, SpotSource: g.SpotSource,
		Net: g.Net, Regime: g.Regime, Flip: g.Flip, FlipStatus: g.FlipStatus, FlipDistance: g.FlipDistance,
		CallWall: g.CallWall, PutWall: g.PutWall, VolTrigger: g.VolTrigger, ExpectedMove: g.ExpectedMove,
		ZeroDTENet: g.ZeroDTE.Net, ZeroDTEShare: g.ZeroDTE.Share,
		PutCallOpenInterest: v.PutCallOpenInterest, ATM30: v.ATM30,
	}
	if g.FlipBand != nil {
		s.FlipLow, s.FlipHigh = &g.FlipBand.Low, &g.FlipBand.High
	}
	return s
}
