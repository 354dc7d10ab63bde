package compute

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// VIXMethod names the method of [VIXTermStructure] in receipts.
const VIXMethod = "vix/6"

// VIXCurve is the official daily settlements of the monthly VIX futures and the measures computed from them, the `data` of
// vix-term-structure. Weekly contracts are never on the curve.
type VIXCurve struct {
	SettlementDate Date `json:"settlement_date"` // Date of the settlements.
	// Sessions since the settlement date. A session counts from midnight New York of its day.
	StaleSessions int `json:"stale_sessions" jsonschema:"minimum=0" unit:"sessions"`
	// Monthly contracts that expire after the settlement date, nearest first.
	Curve []VIXFuture `json:"curve" jsonschema:"minItems=1"`
	// Price of the contract that expires on the settlement date. `null` on other dates.
	FinalSettlement *Ratio `json:"final_settlement" jsonschema:"exclusiveMinimum=0,example=17.46" unit:"volatility points"`
	// Close of the VIX on the settlement date. `null` when it is not known.
	VIX *Ratio `json:"vix" jsonschema:"exclusiveMinimum=0" unit:"volatility points"`
	// Close of the VIX3M on the settlement date. `null` when it is not known.
	VIX3M *Ratio `json:"vix3m" jsonschema:"exclusiveMinimum=0" unit:"volatility points"`
	// (M2 / M1 − 1) · 100. Contango is positive. `null` with fewer than 2 months.
	ContangoM1M2 *Ratio `json:"contango_m1_m2_pct" unit:"percent"`
	// (M7 / M4 − 1) · 100. `null` with fewer than 7 months.
	ContangoM4M7 *Ratio `json:"contango_m4_m7_pct" unit:"percent"`
	FrontSpread  *Ratio `json:"front_spread" unit:"volatility points"` // M2 − M1. `null` with fewer than 2 months.
	SpotBasis    *Ratio `json:"spot_basis_pct" unit:"percent"`         // (M1 / VIX − 1) · 100. `null` when the VIX is not known.
	// VIX over VIX3M. Over 1, the VIX is above the VIX3M. `null` when the VIX or the VIX3M is not known.
	VIXRatio *Ratio `json:"vix_vix3m_ratio" jsonschema:"minimum=0" unit:"ratio"`
	// Price for a constant maturity of 30 days, interpolated linearly between the months around it. `null` when every contract
	// expires in under 30 days.
	CM30 *Ratio `json:"cm30" jsonschema:"exclusiveMinimum=0" unit:"volatility points"`
	// Whether the first contract expires in over 30 days. Then `cm30` is the price of that contract.
	CM30Extrapolated bool `json:"cm30_extrapolated"`
	// (M1 / M2 − 1) · 365 / days between the expirations of M1 and M2 · 100. Contango is negative. `null` with fewer than 2
	// months.
	RollYield *Ratio `json:"roll_yield_annualized_pct" unit:"percent a year"`
	// Slope of the least-squares line of price against rank, over M1 to M7. `null` with fewer than 7 months.
	Slope *Ratio `json:"slope_per_month" unit:"volatility points a month"`
	// Moves along the curve. A turn counts when a price is over 0.10 points away from the highest or lowest price since the last
	// turn. `upward`: rises only. `downward`: falls only. `humped`: first rises, then falls. `trough`: first falls, then rises.
	// `mixed`: more turns. `flat`: no two prices are that far apart.
	Shape string `json:"shape" jsonschema:"enum=humped,enum=upward,enum=downward,enum=trough,enum=mixed,enum=flat"`
	// Class of the contango of the pair that `regime_basis` names. `steep_contango`: 8 % or more. `contango`: 1.5 % or more.
	// `flat`: above −1.5 %. `backwardation`: above −8 %. `steep_backwardation`: −8 % or less. `null` when the curve does not
	// have that pair.
	Regime *string `json:"regime" jsonschema:"enum=steep_contango,enum=contango,enum=flat,enum=backwardation,enum=steep_backwardation"`
	// `m1_m2`: the first and the second month. `m2_m3`: the second and the third month, when the first month has at most 2
	// sessions left.
	RegimeBasis string `json:"regime_basis" jsonschema:"enum=m1_m2,enum=m2_m3"`
	// Class of `vix_vix3m_ratio`. `deep_contango`: under 0.85. `contango`: under 0.917. `flattening`: under 1. `inverted`: 1 or
	// more. `null` when the VIX or the VIX3M is not known.
	CashRegime *string `json:"cash_regime" jsonschema:"enum=deep_contango,enum=contango,enum=flattening,enum=inverted"`
	// Class of the VIX. `low`: under 15. `normal`: under 20. `elevated`: under 30. `stress`: 30 or more. `null` when the VIX is
	// not known.
	VolLevel    *string        `json:"vol_level" jsonschema:"enum=low,enum=normal,enum=elevated,enum=stress"`
	Percentiles VIXPercentiles `json:"percentiles"`
	// Newest quotes of the volatility indices. They are delayed by 15 minutes, and go on after the settlement date.
	Cash VIXCash `json:"cash"`
}

// VIXFuture is one monthly contract of the curve.
type VIXFuture struct {
	// Place on the curve. 1 is the first expiration after the settlement date.
	Rank       int    `json:"rank" jsonschema:"minimum=1" unit:"rank"`
	Month      string `json:"month" jsonschema:"pattern=^[0-9]{4}-[0-9]{2}$"` // Contract month, YYYY-MM.
	Symbol     string `json:"symbol"`                                         // Symbol in the settlement file.
	Expiration Date   `json:"expiration"`                                     // Expiration date in the settlement file.
	// Calendar days from the settlement date.
	DaysToExpiration int `json:"days_to_expiration" jsonschema:"minimum=1" unit:"days"`
	// Settlement price.
	Settlement Ratio `json:"settlement" jsonschema:"exclusiveMinimum=0" unit:"volatility points"`
	// Change against the same contract in the previous stored file. `null` when that file is not stored or does not have the
	// contract.
	Change *Ratio `json:"change" unit:"volatility points"`
}

// VIXPercentiles are the places of today's values in the history that this server has stored.
type VIXPercentiles struct {
	ContangoM1M2 PercentileRank `json:"contango_m1_m2_pct"` // Rank of `contango_m1_m2_pct`.
	SpotBasis    PercentileRank `json:"spot_basis_pct"`     // Rank of `spot_basis_pct`.
}

// PercentileRank is the share of the stored values that are below today's value. Today's value is one of the stored values. A
// value equal to today's value counts half.
type PercentileRank struct {
	// Share of the stored values. `null` with fewer than 20 values, or when today's value is not known.
	Percentile *Ratio `json:"percentile" jsonschema:"minimum=0,maximum=100" unit:"percent"`
	N          int    `json:"n" jsonschema:"minimum=0" unit:"dates"` // Number of stored values.
}

// FuturesSettlement is one row of the futures exchange's daily file: a contract and its settlement price.
type FuturesSettlement struct {
	Product    string
	Symbol     string
	Expiration Date
	Price      float64
}

// VIXHistory is what a stored curve leaves to those of later dates; nil where unknown.
type VIXHistory struct {
	Date         Date               `json:"date"`
	ContangoM1M2 *Ratio             `json:"contango_m1_m2_pct"`
	SpotBasis    *Ratio             `json:"spot_basis_pct"`
	Settlements  map[string]float64 `json:"settlements"` // by symbol; read of the last date alone
}

// VIXInput is the input of [VIXTermStructure].
type VIXInput struct {
	Date     Date                // settlement date of the file
	Rows     []FuturesSettlement // all futures of the file, any order
	Calendar *Calendar
	Today    Date // the session up to which stale_sessions counts
	// VIX and VIX3M are the closes of the settlement date, nil when unknown.
	VIX, VIX3M *float64
	History    []VIXHistory               // stored dates before Date, rising
	Cash       map[string]UnderlyingQuote // newest quotes of [VIXIndices], by symbol; may be nil
}

// VIXQuality is `meta.quality` of vix-term-structure.
type VIXQuality struct {
	Rows          int `json:"rows" jsonschema:"minimum=0" unit:"rows"`           // Rows of the file.
	Monthly       int `json:"monthly" jsonschema:"minimum=0" unit:"rows"`        // Rows of monthly VIX futures.
	Weekly        int `json:"weekly" jsonschema:"minimum=0" unit:"rows"`         // Rows of weekly VIX futures. They are not used.
	OtherProducts int `json:"other_products" jsonschema:"minimum=0" unit:"rows"` // Rows of other products.
	// Monthly rows that have no usable price, have expired, or were listed before.
	BadRows int `json:"bad_rows" jsonschema:"minimum=0" unit:"rows"`
	// Contracts whose expiration date in the file differs from the computed date. The date in the file is used.
	ExpirationDiffer []string `json:"expiration_differs" jsonschema:"example=VX/V6"`
	// A note that some dates lie outside the verified exchange calendar of 2014 to 2030. `null` when none does.
	Calendar *string `json:"calendar" jsonschema:"example=some dates lie outside the verified exchange calendar (2014-2030); its rules were applied to them"`
}

// VIXTermStructure builds the curve of monthly VIX futures. It returns false when the file has no monthly contract that
// expires after the date of the file.
func VIXTermStructure(in VIXInput) (VIXCurve, VIXQuality, bool) {
	c := VIXCurve{
		SettlementDate: in.Date,
		StaleSessions:  in.Calendar.SessionsBetween(in.Date, in.Today),
		Curve:          []VIXFuture{},
	}
	q := c.selectMonthly(in)
	if len(c.Curve) == 0 {
		return c, q, false
	}
	c.spreads()
	c.constantMaturity()
	c.regimes(in)
	c.cash(in)
	c.percentiles(in.History)
	c.Cash = vixCash(in.Cash)
	return c, q, true
}

// selectMonthly puts the monthly contracts on the curve.
func (c *VIXCurve) selectMonthly(in VIXInput) VIXQuality {
	q := VIXQuality{Rows: len(in.Rows), ExpirationDiffer: []string{}}
	dates := []Date{in.Date}
	seen := map[string]bool{}
	var previous VIXHistory
	if n := len(in.History); n > 0 {
		previous = in.History[n-1]
	}
	for _, row := range in.Rows {
		if row.Product != "VX" {
			q.OtherProducts++
			continue
		}
		year, month, ok := monthlyVX(row.Symbol, row.Expiration)
		if !ok {
			q.Weekly++
			continue
		}
		if !(row.Price > 0) || math.IsInf(row.Price, 1) || row.Expiration < in.Date || seen[row.Symbol] {
			q.BadRows++
			continue
		}
		seen[row.Symbol] = true
		q.Monthly++
		if row.Expiration != in.Calendar.VIXExpiration(year, month) {
			q.ExpirationDiffer = append(q.ExpirationDiffer, row.Symbol)
		}
		if row.Expiration == in.Date {
			c.FinalSettlement = new(Ratio(row.Price))
			continue
		}
		dates = append(dates, row.Expiration)
		f := VIXFuture{
			Month:            NewDate(year, month, 1).String()[:len("2006-01")],
			Symbol:           row.Symbol,
			Expiration:       row.Expiration,
			DaysToExpiration: int(row.Expiration - in.Date),
			Settlement:       Ratio(row.Price),
		}
		if before, ok := previous.Settlements[row.Symbol]; ok {
			f.Change = new(Ratio(row.Price - before))
		}
		c.Curve = append(c.Curve, f)
	}
	slices.SortStableFunc(c.Curve, func(a, b VIXFuture) int { return cmp.Compare(a.Expiration, b.Expiration) })
	for i := range c.Curve {
		c.Curve[i].Rank = i + 1
	}
	q.Calendar = CalendarNote(dates...)
	return q
}

const monthLetters = "FGHJKMNQUVXZ" // January to December

// monthlyVX parses VX/<month letter><year>. The year has 1, 2 or 4 digits. Of the years that end in these digits, monthlyVX
// returns the year nearest the expiration. ok is false for a weekly future, which has a week number: VX40/V6.
func monthlyVX(symbol string, expiration Date) (year int, month time.Month, ok bool) {
	rest, ok := strings.CutPrefix(symbol, "VX/")
	if n := len(rest) - 1; !ok || n != 1 && n != 2 && n != 4 {
		return 0, 0, false
	}
	letter := strings.IndexByte(monthLetters, rest[0])
	n, err := strconv.ParseUint(rest[1:], 10, 16)
	if letter < 0 || err != nil {
		return 0, 0, false
	}
	cycle := 1
	for range rest[1:] {
		cycle *= 10
	}
	for _, y := range [...]int{expiration.Year(), expiration.Year() - 1, expiration.Year() + 1} {
		if y%cycle == int(n) {
			return y, time.Month(letter + 1), true
		}
	}
	return 0, 0, false
}

// settlement returns the price of a rank, NaN where the curve has none.
func (c *VIXCurve) settlement(rank int) float64 {
	if rank > len(c.Curve) {
		return math.NaN()
	}
	return float64(c.Curve[rank-1].Settlement)
}

// contango returns how much the price of rank far exceeds that of rank near, in percent.
func (c *VIXCurve) contango(near, far int) float64 {
	return (c.settlement(far)/c.settlement(near) - 1) * 100
}

func (c *VIXCurve) spreads() {
	c.ContangoM1M2 = finiteOrNil(Ratio(c.contango(1, 2)))
	c.ContangoM4M7 = finiteOrNil(Ratio(c.contango(4, 7)))
	c.FrontSpread = finiteOrNil(Ratio(c.settlement(2) - c.settlement(1)))
	if len(c.Curve) >= 2 {
		days := float64(c.Curve[1].DaysToExpiration - c.Curve[0].DaysToExpiration)
		c.RollYield = finiteOrNil(Ratio((c.settlement(1)/c.settlement(2) - 1) * 365 / days * 100))
	}
	const months = 7
	if len(c.Curve) >= months {
		var sxy, sxx float64
		for rank := 1; rank <= months; rank++ {
			x := float64(rank) - (months+1)/2.0
			sxy += x * c.settlement(rank)
			sxx += x * x
		}
		c.Slope = finiteOrNil(Ratio(sxy / sxx))
	}
	c.Shape = c.shape()
}

// shape describes the rises and falls along the curve. A turn counts when a price is over 0.10 away from the highest or lowest price
// since the last turn: smaller moves are noise of the settlement prices.
func (c *VIXCurve) shape() string {
	const significant = 0.10 // points
	low, high := c.settlement(1), c.settlement(1)
	var moves []bool // true is a rise
	for rank := 2; rank <= len(c.Curve); rank++ {
		p, n := c.settlement(rank), len(moves)
		switch {
		case (n == 0 || !moves[n-1]) && roundTo(p-low, 6) > significant:
			moves, high = append(moves, true), p
		case (n == 0 || moves[n-1]) && roundTo(high-p, 6) > significant:
			moves, low = append(moves, false), p
		}
		low, high = min(low, p), max(high, p)
	}
	switch n := len(moves); {
	case n == 0:
		return "flat"
	case n > 2:
		return "mixed"
	case n == 2 && moves[0]:
		return "humped"
	case n == 2:
		return "trough"
	case moves[0]:
		return "upward"
	}
	return "downward"
}

// constantMaturity interpolates the price for 30 days between the months around it.
func (c *VIXCurve) constantMaturity() {
	const target = 30
	for i, far := range c.Curve {
		if far.DaysToExpiration < target {
			continue
		}
		if i == 0 {
			c.CM30 = new(far.Settlement)
			c.CM30Extrapolated = far.DaysToExpiration > target
			return
		}
		near := c.Curve[i-1]
		w := Ratio(target-near.DaysToExpiration) / Ratio(far.DaysToExpiration-near.DaysToExpiration)
		c.CM30 = new(near.Settlement + w*(far.Settlement-near.Settlement))
		return
	}
}

// regimes judges the front of the curve, and the next pair when M1 is about to expire.
func (c *VIXCurve) regimes(in VIXInput) {
	near := 1
	c.RegimeBasis = "m1_m2"
	if in.Calendar.SessionsBetween(in.Date, c.Curve[0].Expiration) <= 2 {
		near = 2
		c.RegimeBasis = "m2_m3"
	}
	switch x := decimal(c.contango(near, near+1)); {
	case math.IsNaN(x):
	case x >= 8:
		c.Regime = new("steep_contango")
	case x >= 1.5:
		c.Regime = new("contango")
	case x > -1.5:
		c.Regime = new("flat")
	case x > -8:
		c.Regime = new("backwardation")
	default:
		c.Regime = new("steep_backwardation")
	}
}

// cash compares the curve with the indices' closes.
func (c *VIXCurve) cash(in VIXInput) {
	if in.VIX != nil {
		vix := *in.VIX
		c.VIX = new(Ratio(vix))
		c.SpotBasis = finiteOrNil(Ratio((c.settlement(1)/vix - 1) * 100))
		c.VolLevel = new(classOf(vix, "low", rung{15, "normal"}, rung{20, "elevated"}, rung{30, "stress"}))
	}
	if in.VIX3M != nil {
		c.VIX3M = new(Ratio(*in.VIX3M))
	}
	if in.VIX == nil || in.VIX3M == nil {
		return
	}
	c.VIXRatio = finiteOrNil(Ratio(*in.VIX / *in.VIX3M))
	ratio := decimal(*in.VIX / *in.VIX3M)
	c.CashRegime = new(classOf(ratio, "deep_contango", rung{0.85, "contango"}, rung{0.917, "flattening"}, rung{1, "inverted"}))
}

// leastHistory is how many stored values a percentile needs.
const leastHistory = 20

// percentiles ranks today's values among the stored values and themselves. Values that are served alike are equal: the stored ones are
// rounded.
func (c *VIXCurve) percentiles(history []VIXHistory) {
	rank := func(today *Ratio, of func(VIXHistory) *Ratio) (p PercentileRank) {
		var values []float64
		if today != nil {
			values = append(values, roundTo(float64(*today), 4))
		}
		for _, h := range history {
			if x := of(h); x != nil {
				values = append(values, roundTo(float64(*x), 4))
			}
		}
		if p.N = len(values); today != nil && p.N >= leastHistory {
			p.Percentile = new(midRank(values[0], values))
		}
		return p
	}
	c.Percentiles.ContangoM1M2 = rank(c.ContangoM1M2, func(h VIXHistory) *Ratio { return h.ContangoM1M2 })
	c.Percentiles.SpotBasis = rank(c.SpotBasis, func(h VIXHistory) *Ratio { return h.SpotBasis })
}
