package compute

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// FlowMethod names the method of [UnusualFlow] in receipts.
const FlowMethod = "flow/7"

// MaxFlowItems is the greatest number of observations in a [Flow].
const MaxFlowItems = 100

// Flow is the highest-scoring observations of a session, the `data` of options/flow/{u} and options/flow/unusual. A row is one contract of
// an aggregate delayed chain. A row never describes a print, sweep or block.
type Flow struct {
	// At most `limit` observations, highest score first. Observations with equal scores are sorted by premium, largest first,
	// then by contract.
	Items       []FlowItem   `json:"items" jsonschema:"maxItems=100"`
	Count       int          `json:"count" jsonschema:"minimum=0,maximum=100" unit:"observations"` // Number of `items`.
	Universe    []string     `json:"universe"`                                                     // Underlyings whose chains were scored, sorted: of options/flow/{u} one.
	Rejected    FlowRejected `json:"rejected"`
	SessionDate Date         `json:"session_date"` // Session of the observations.
}

// FlowRejected are the contracts of the chains that were not scored, each by the first reason that applied.
type FlowRejected struct {
	// The contract had settled when the quotes were made.
	Settled int `json:"settled" jsonschema:"minimum=0" unit:"contracts"`
	// The last trade was in an earlier session.
	NotThisSession int `json:"not_this_session" jsonschema:"minimum=0" unit:"contracts"`
	// Volume under 100 contracts; for SPX under 500.
	LowVolume int `json:"low_volume" jsonschema:"minimum=0" unit:"contracts"`
	LowPrice  int `json:"low_price" jsonschema:"minimum=0" unit:"contracts"` // Price under 0.05 USD.
	// Premium under 25,000 USD; for SPX under 250,000.
	LowPremium int `json:"low_premium" jsonschema:"minimum=0" unit:"contracts"`
}

// FlowItem is one observation. Side and direction are inferred from where the last price lies in the quote.
type FlowItem struct {
	ID     string `json:"id"`     // Session date, colon, contract. The id of a contract does not change in a session.
	Symbol string `json:"symbol"` // The underlying. The roots SPX and SPXW both have `SPX`.
	// OCC symbol of the contract.
	Contract   string `json:"contract" jsonschema:"pattern=^[A-Z0-9]+[0-9]{6}[CP][0-9]{8}$"`
	OptionType Right  `json:"option_type"`                       // Right of the contract.
	Strike     Level  `json:"strike" unit:"USD or index points"` // Strike.
	Expiration Date   `json:"expiration"`                        // Expiration date.
	// Calendar days from the session date.
	DaysToExpiration int `json:"days_to_expiration" jsonschema:"minimum=0" unit:"days"`
	// Quality times the sum of the components.
	Score Score `json:"score" jsonschema:"minimum=0,maximum=100" unit:"points of 100"`
	// `extreme`: a score of 70 or more. `high`: 50 or more. `notable`: 30 or more. `low`: under 30.
	Band   string `json:"band" jsonschema:"enum=extreme,enum=high,enum=notable,enum=low"`
	Volume Count  `json:"volume" jsonschema:"minimum=0" unit:"contracts"` // Contracts traded in the session.
	// Contracts open at the last settlement.
	OpenInterest Count `json:"open_interest" jsonschema:"minimum=0" unit:"contracts"`
	// Volume over open interest. `null` without open interest.
	VolumeOIRatio *Ratio  `json:"volume_oi_ratio" jsonschema:"minimum=0" unit:"ratio"`
	Premium       Dollars `json:"premium" jsonschema:"minimum=0" unit:"USD"` // Volume × price × 100.
	// Price with which the premium was computed. `mid`: the middle of the quote. `last`: the last price, when the quote has
	// no bid, or an ask below the bid or above 3 times the bid.
	PremiumBasis string `json:"premium_basis" jsonschema:"enum=mid,enum=last"`
	// Last traded price. `null` when the upstream has no last price.
	LastPrice *Level `json:"last_price" unit:"USD or index points"`
	Bid       *Level `json:"bid" unit:"USD or index points"` // Best bid. `null` when the upstream has no bid.
	Ask       *Level `json:"ask" unit:"USD or index points"` // Best ask. `null` when the upstream has no ask.
	// Implied volatility that the upstream published: 0.2 is 20 % a year. `null` when the upstream published no volatility.
	IV *Ratio `json:"implied_volatility" jsonschema:"minimum=0" unit:"fraction a year"`
	// Change of implied volatility against the last snapshot of the previous session. A rise is positive. `null` when one of the
	// two volatilities is not known, and after a split.
	IVChange *Ratio `json:"iv_change" jsonschema:"example=1.84" unit:"volatility points"`
	// Delta that the upstream published. `null` when the upstream published no delta.
	Delta     *Ratio `json:"delta" jsonschema:"minimum=-1,maximum=1" unit:"ratio"`
	Moneyness Ratio  `json:"moneyness_pct" unit:"percent"` // (strike / underlying − 1) · 100.
	// Price of the underlying at `as_of` of its chain.
	UnderlyingPrice Level `json:"underlying_price" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"`
	// Where the last price lies in the quote. `unknown`: the quote is not valid, the trade is over 7.5 minutes older than the
	// quote, or an option of this kind usually moves by more than 0.4 of the spread in the time since the trade, or both are near these limits.
	Side string `json:"side" jsonschema:"enum=ask,enum=bid,enum=mid,enum=unknown"`
	// `bullish`: a call at the ask or a put at the bid. `bearish`: a put at the ask or a call at the bid. `neutral`: in the
	// middle. `unknown`: the side is not known.
	Direction string `json:"direction" jsonschema:"enum=bullish,enum=bearish,enum=neutral,enum=unknown"`
	// Confidence in the direction. It is never over 0.6, because the direction is inferred.
	Confidence Ratio `json:"direction_confidence" jsonschema:"minimum=0,maximum=0.6" unit:"ratio"`
	// Method by which the direction was found.
	DirectionBasis string `json:"direction_basis" jsonschema:"enum=inferred_from_last_vs_quote"`
	// Whether volume exceeds open interest. This field does not change the score.
	OpeningLikely bool           `json:"opening_likely"`
	ObservedAt    time.Time      `json:"observed_at"` // Time of the contract's last trade.
	Components    FlowComponents `json:"components"`
	// Factor for the width and validity of the quote.
	Quality Ratio `json:"quality" jsonschema:"minimum=0.5,maximum=1" unit:"ratio"`
	// Codes of the parts that raised or lowered the score: `VOL_OI`, `PREMIUM`, `SIZE`, `AT_ASK`, `AT_BID`, `IV`, `WIDE_SPREAD`,
	// `NO_BID`, `NO_ASK`, `CROSSED`. More codes may be added.
	Reasons []string `json:"reasons"`
}

// FlowComponents are the parts of a score before the quality factor. An unknown part scores 0.
type FlowComponents struct {
	// Volume against open interest.
	VolumeOI Score `json:"volume_oi" jsonschema:"minimum=0,maximum=30" unit:"points of 30"`
	Premium  Score `json:"premium" jsonschema:"minimum=0,maximum=25" unit:"points of 25"` // Size of the premium.
	// Volume compared with the volume of similar contracts.
	SizeSurprise Score `json:"size_surprise" jsonschema:"minimum=0,maximum=20" unit:"points of 20"`
	// Distance of the last price from the middle of the quote. It counts less for an older trade, and less the more an option of
	// this delta and volatility usually moves in the time since the trade.
	QuoteLocation Score `json:"quote_location" jsonschema:"minimum=0,maximum=15" unit:"points of 15"`
	// Change of implied volatility.
	IVChange Score `json:"iv_change" jsonschema:"minimum=0,maximum=10" unit:"points of 10"`
}

// ChainFlow is the unusual flow of one chain.
type ChainFlow struct {
	Flow
	Eligible int
	Split    bool // the shares were split since the previous session: no change of volatility is known
}

// FlowInput is what [UnusualFlow] reads.
type FlowInput struct {
	Chain    *Chain
	Calendar *Calendar
	Before   *Chain // the last of the previous session; nil: not known
}

// flowLimits are the thresholds of eligibility and of the premium component, in contracts and USD.
type flowLimits struct{ volume, premium float64 }

const leastPrice = 0.05

// UnusualFlow scores the contracts of one chain that traded in its session.
func UnusualFlow(in FlowInput) ChainFlow {
	chain := in.Chain
	session := chain.Session(in.Calendar)
	out := ChainFlow{Flow: Flow{Universe: []string{chain.Symbol}, SessionDate: session}}
	if b := in.Before; b != nil && chain.splitSince(b, chain.Spot/b.Spot, in.Calendar) {
		out.Split, in.Before = true, nil
	}
	var live []*Contract
	for _, contracts := range chain.unsettled(in.Calendar) {
		for i := range contracts {
			live = append(live, &contracts[i])
		}
	}
	out.Rejected.Settled = len(chain.Contracts) - len(live)
	sizes := newSizePeers(live, session)
	limits, quoted := UnderlyingOf(chain.Symbol).flow, chain.QuoteInstant(in.Calendar)
	opened, closed := session.At(0, 0, 0, NewYork).Unix(), (session+1).At(0, 0, 0, NewYork).Unix()
	var scored []observation
	for _, c := range live {
		o := observation{Contract: c, days: int(c.Expiration - session)}
		o.price()
		switch {
		case c.LastTrade < opened || c.LastTrade >= closed:
			out.Rejected.NotThisSession++
			continue
		case !(c.Volume >= limits.volume):
			out.Rejected.LowVolume++
			continue
		case !(o.unitPrice >= leastPrice):
			out.Rejected.LowPrice++
			continue
		case !(o.premium >= limits.premium):
			out.Rejected.LowPremium++
			continue
		}
		o.score(in, quoted, sizes, limits)
		scored = append(scored, o)
	}
	out.Eligible = len(scored)
	slices.SortFunc(scored, func(a, b observation) int {
		return cmp.Or(cmp.Compare(b.rounded, a.rounded),
			cmp.Compare(math.Round(b.premium), math.Round(a.premium)), cmp.Compare(a.symbol, b.symbol))
	})
	scored = scored[:min(len(scored), MaxFlowItems)]
	out.Items, out.Count = make([]FlowItem, len(scored)), len(scored)
	for i := range scored {
		out.Items[i] = scored[i].item(chain, session)
	}
	return out
}

// Add adds the counts of another chain.
func (r *FlowRejected) Add(other FlowRejected) {
	r.Settled += other.Settled
	r.NotThisSession += other.NotThisSession
	r.LowVolume += other.LowVolume
	r.LowPrice += other.LowPrice
	r.LowPremium += other.LowPremium
}
