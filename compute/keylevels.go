package compute

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// KeyLevelsMethod names the method of [NewKeyLevels] in receipts.
const KeyLevelsMethod = "levels/4"

// KeyLevels are the prices of gex/{u} and {u}-max-pain that a chart marks, the `data` of gex/{u}/levels. A level that is not known is
// left out.
type KeyLevels struct {
	Symbol string `json:"symbol" jsonschema:"pattern=^[A-Z.]+$"` // The underlying.
	// Published price of the underlying at `meta.as_of`.
	Spot Level `json:"spot" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"`
	// Spot that the distances count from, as in gex/{u}.
	EffectiveSpot Level      `json:"effective_spot" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"`
	SessionDate   Date       `json:"session_date"` // Session of `meta.as_of`.
	Levels        []KeyLevel `json:"levels"`       // The known levels, highest price first.
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
	k := &KeyLevels{Symbol: g.Symbol, Spot: g.Spot, EffectiveSpot: g.EffectiveSpot, SessionDate: g.SessionDate, Levels: []KeyLevel{}, Futures: []FutureLevels{}}
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
