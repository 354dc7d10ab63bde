package compute

import (
	"cmp"
	"math"
	"slices"
)

// MaxPainMethod names the method of [MaxPains] in receipts.
const MaxPainMethod = "maxpain/4"

// MaxPain is the max pain of one expiration date of a chain, the `data` of {u}-max-pain. The fields of this object count all
// contracts of the date. `by_settlement` has the AM-settled and the PM-settled contracts separately.
type MaxPain struct {
	Symbol     string `json:"symbol" jsonschema:"pattern=^[A-Z.]+$"`                           // The underlying.
	Spot       Level  `json:"spot" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"` // Price of the underlying at `meta.as_of`.
	Expiration Date   `json:"expiration"`                                                      // Expiration date.
	// How the contracts of the date settle. `am`: at the opening print. `pm`: at the close. `mixed`: some at the opening print,
	// some at the close.
	Settlement string `json:"settlement" jsonschema:"enum=am,enum=pm,enum=mixed"`
	// Calendar days from the session date.
	DaysToExpiration int       `json:"days_to_expiration" jsonschema:"minimum=0" unit:"days"`
	PainSide                   // all contracts of the date
	BySettlement     PainSides `json:"by_settlement"`
	// Every expiration date that has not settled, nearest first, with its max pain: near and far dates often disagree. These are the values
	// that the parameter `expiration` takes.
	Expirations []PainExpiration `json:"expirations"`
}

// PainSides are the contracts of the date by how they settle.
type PainSides struct {
	// Contracts that settle at the opening print. `null` when the date has no such contracts, or when they have settled.
	AM *PainSide `json:"am"`
	PM *PainSide `json:"pm"` // Contracts that settle at the close. `null` when the date has no such contracts.
}

// PainSide is max pain over one set of contracts that share an expiration date.
type PainSide struct {
	// Listed strike at which the open contracts pay out least. Among strikes with equal payouts: the strike nearest the spot,
	// then the lower strike. `null` without open contracts, and while the open interest of over 1 % of the calls or of the puts is
	// not known.
	MaxPain *Level `json:"max_pain" unit:"USD or index points"`
	// Lowest and highest strike with the least payout. `null` as `max_pain`.
	Range *[2]Level `json:"max_pain_range" unit:"USD or index points"`
	// Lowest and highest listed strike whose payout is at most 1.01 × the least. The wider this band is, the less max pain
	// means. `null` as `max_pain`.
	Flatness *Band `json:"flatness"`
	// Payout at max pain. `null` as `max_pain`.
	Payout *Dollars `json:"payout_at_max_pain_dollars" jsonschema:"minimum=0" unit:"USD"`
	// (max pain − spot) / spot · 100. Positive when max pain is above the spot. `flip_distance_pct` of the exposure has the opposite
	// sign. `null` as `max_pain`.
	Distance *Ratio `json:"distance_pct" unit:"percent of the spot"`

	// Open calls. `null` while the open interest of over 1 % of the calls is not known.
	CallOpenInterest *Count `json:"call_open_interest" jsonschema:"minimum=0" unit:"contracts"`
	// Open puts. `null` while the open interest of over 1 % of the puts is not known.
	PutOpenInterest *Count `json:"put_open_interest" jsonschema:"minimum=0" unit:"contracts"`
	// Open puts over open calls. `null` without open calls, and when one of the two is `null`.
	PutCallRatio *Ratio `json:"put_call_oi_ratio" jsonschema:"minimum=0" unit:"ratio"`
	// Payout at every listed strike, lowest first. Empty when the open calls or the open puts are `null`.
	Curve PayoutCurve `json:"payout_curve"`
	// Strikes with open interest, lowest first, without those with a contract whose open interest is not known.
	OpenInterest StrikeOIs `json:"open_interest"`

	open Count // contracts, of those whose open interest is known
}

// PayoutPoint is what the open contracts would pay at one settlement price.
type PayoutPoint struct {
	Price Level   `json:"settlement_price" unit:"USD or index points"`           // Settlement price, a listed strike.
	Call  Dollars `json:"call_payout_dollars" jsonschema:"minimum=0" unit:"USD"` // Payout of the calls.
	Put   Dollars `json:"put_payout_dollars" jsonschema:"minimum=0" unit:"USD"`  // Payout of the puts.
	// Payout of the calls plus payout of the puts.
	Payout Dollars `json:"total_payout_dollars" jsonschema:"minimum=0" unit:"USD"`
}

// PayoutCurve is the payout at every listed strike, rising.
type PayoutCurve []PayoutPoint

// StrikeOI is the open interest of one strike.
type StrikeOI struct {
	Strike Level `json:"strike" unit:"USD or index points"`            // Strike.
	Call   Count `json:"call" jsonschema:"minimum=0" unit:"contracts"` // Open calls.
	Put    Count `json:"put" jsonschema:"minimum=0" unit:"contracts"`  // Open puts.

	unknown bool // of a contract
}

// StrikeOIs are rows of open interest, strikes rising.
type StrikeOIs []StrikeOI

// PainExpiration is one expiration date of the chain. The figures are those of the answer for this date.
type PainExpiration struct {
	Expiration Date `json:"expiration"` // Expiration date.
	// How the contracts of the date settle.
	Settlement string `json:"settlement" jsonschema:"enum=am,enum=pm,enum=mixed"`
	// Open calls and puts. `null` when one of the two is not known.
	OpenInterest *Count `json:"open_interest" jsonschema:"minimum=0" unit:"contracts"`
	// Max pain of the date. `null` as in the answer for the date.
	MaxPain *Level `json:"max_pain" unit:"USD or index points"`
	// (max pain − spot) / spot · 100. `null` as `max_pain`.
	Distance *Ratio `json:"distance_pct" unit:"percent of the spot"`
	// Open puts over open calls. `null` without open calls, and when one of the two is not known.
	PutCallRatio *Ratio `json:"put_call_oi_ratio" jsonschema:"minimum=0" unit:"ratio"`
	// Open calls. `null` when not known.
	CallOpenInterest *Count `json:"call_open_interest" jsonschema:"minimum=0" unit:"contracts"`
	// Open puts. `null` when not known.
	PutOpenInterest *Count `json:"put_open_interest" jsonschema:"minimum=0" unit:"contracts"`
}

// MaxPains computes max pain for every expiration date with T > 0, nearest date first.
func MaxPains(chain *Chain, cal *Calendar) []*MaxPain {
	session := chain.Session(cal)
	var dates []Date
	byDate := map[Date]*[2][]*Contract{} // by settlement
	for _, s := range chain.listed(cal) {
		d := byDate[s.Expiration]
		if d == nil {
			d = &[2][]*Contract{}
			byDate[s.Expiration] = d
			dates = append(dates, s.Expiration)
		}
		for _, rows := range [...][]Contract{s.contracts, s.unknown} {
			for i := range rows {
				d[s.settlement] = append(d[s.settlement], &rows[i])
			}
		}
	}
	slices.Sort(dates)
	out := make([]*MaxPain, len(dates))
	expirations := make([]PainExpiration, len(dates))
	for i, d := range dates {
		p := &MaxPain{Symbol: chain.Symbol, Spot: Level(chain.Spot), Expiration: d, DaysToExpiration: int(d - session)}
		p.fill(byDate[d][AM], byDate[d][PM], chain.Spot)
		p.Expirations = expirations
		expirations[i] = PainExpiration{
			Expiration: d, Settlement: p.Settlement, MaxPain: p.MaxPain, Distance: p.Distance, PutCallRatio: p.PutCallRatio,
			CallOpenInterest: p.CallOpenInterest, PutOpenInterest: p.PutOpenInterest,
		}
		if p.CallOpenInterest != nil && p.PutOpenInterest != nil {
			expirations[i].OpenInterest = new(p.open)
		}
		out[i] = p
	}
	return out
}

// DefaultMaxPain returns the index of the nearest expiration with open interest, or whose open interest is not known. It returns 0 if no
// expiration has open interest, and -1 if there is no expiration.
func DefaultMaxPain(pains []*MaxPain) int {
	i := slices.IndexFunc(pains, func(p *MaxPain) bool { return p.open > 0 || p.CallOpenInterest == nil || p.PutOpenInterest == nil })
	if i < 0 && len(pains) > 0 {
		return 0
	}
	return i
}

// MonthlyPain returns the nearest monthly expiration: that of the third Friday of a month, or of the session before where that is a holiday.
// It returns nil if the chain has none.
func MonthlyPain(pains []*MaxPain, cal *Calendar) *MaxPain {
	for _, p := range pains {
		if cal.IsMonthly(p.Expiration) {
			return p
		}
	}
	return nil
}

// fill computes the fields that depend on open interest, of the contracts that settle at the opening print and at the close.
func (p *MaxPain) fill(am, pm []*Contract, spot float64) {
	if am != nil {
		p.Settlement, p.PainSide = AM.String(), newPainSide(am, spot)
		p.BySettlement.AM = new(p.PainSide)
	}
	if pm != nil {
		p.Settlement, p.PainSide = PM.String(), newPainSide(pm, spot)
		p.BySettlement.PM = new(p.PainSide)
	}
	if am != nil && pm != nil {
		p.Settlement = "mixed"
		p.PainSide = newPainSide(slices.Concat(am, pm), spot)
	}
}

func newPainSide(contracts []*Contract, spot float64) PainSide {
	var held positions
	rows := StrikeOIs{}
	slices.SortStableFunc(contracts, func(a, b *Contract) int { return cmp.Compare(a.Strike, b.Strike) })
	for _, c := range contracts {
		held.add(c)
		if n := len(rows); n == 0 || rows[n-1].Strike != Level(c.Strike) {
			rows = append(rows, StrikeOI{Strike: Level(c.Strike)})
		}
		row := &rows[len(rows)-1]
		row.unknown = row.unknown || !finite(c.OpenInterest)
		if c.Right == Call {
			row.Call += Count(positive(c.OpenInterest))
		} else {
			row.Put += Count(positive(c.OpenInterest))
		}
	}
	calls, puts := held.openInterest[Call], held.openInterest[Put]
	side := PainSide{Curve: PayoutCurve{}, open: Count(calls + puts)}
	side.OpenInterest = slices.DeleteFunc(slices.Clone(rows), func(r StrikeOI) bool { return r.unknown || r.Call+r.Put == 0 })
	side.CallOpenInterest, side.PutOpenInterest = held.interest.served(held.openInterest)
	if !held.interest.complete() {
		return side
	}
	side.Curve = payoutCurve(rows)
	side.PutCallRatio = finiteOrNil(Ratio(puts / calls))
	if side.open > 0 {
		side.minimise(spot)
	}
	return side
}

// payoutCurve evaluates payout(X) = 100·[Σ calls OI·max(X-K, 0) + Σ puts OI·max(K-X, 0)] at every strike by running sums.
// The sums use strikes in thousandths, which are whole numbers. So they are exact up to 2^53 contract-thousandths, and flat
// minima are found.
func payoutCurve(rows StrikeOIs) PayoutCurve {
	const dollars = Multiplier / 1000.0
	thousandths := func(i int) float64 { return math.Round(float64(rows[i].Strike) * 1000) }
	calls := make([]float64, len(rows))
	var contracts, cost float64 // Σ OI and Σ OI·K of the calls at or below X
	for i, r := range rows {
		contracts += float64(r.Call)
		cost += float64(r.Call) * thousandths(i)
		calls[i] = contracts*thousandths(i) - cost
	}
	curve := make(PayoutCurve, len(rows))
	contracts, cost = 0, 0
	for i := len(rows) - 1; i >= 0; i-- {
		contracts += float64(rows[i].Put)
		cost += float64(rows[i].Put) * thousandths(i)
		puts := cost - contracts*thousandths(i)
		curve[i] = PayoutPoint{rows[i].Strike, Dollars(calls[i] * dollars), Dollars(puts * dollars), Dollars((calls[i] + puts) * dollars)}
	}
	return curve
}

// minimise fills in the fields derived from the minimum of the curve. Of several strikes with the minimum, it takes the
// strike nearest the spot, or the lower of two that are equally near. The curve is convex.
func (side *PainSide) minimise(spot float64) {
	away := func(p PayoutPoint) float64 { return math.Abs(float64(p.Price) - spot) }
	least := slices.MinFunc(side.Curve, func(a, b PayoutPoint) int {
		return cmp.Or(cmp.Compare(a.Payout, b.Payout), cmp.Compare(away(a), away(b)))
	})
	upTo := func(limit Dollars) Band { // the curve is convex, so the prices up to a limit are a run
		band := Band{least.Price, least.Price}
		for _, p := range side.Curve {
			if p.Payout <= limit {
				band.Low, band.High = min(band.Low, p.Price), max(band.High, p.Price)
			}
		}
		return band
	}
	flat := upTo(least.Payout)
	side.Range = &[2]Level{flat.Low, flat.High}
	side.Flatness = new(upTo(1.01 * least.Payout))
	side.MaxPain = new(least.Price)
	side.Payout = new(least.Payout)
	side.Distance = new(Ratio((float64(least.Price) - spot) / spot * 100))
}
