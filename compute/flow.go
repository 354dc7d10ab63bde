package compute

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// FlowMethod names the method of [UnusualFlow] in receipts.
const FlowMethod = "flow/2"

// MaxFlowItems is the greatest number of observations in a [Flow] and in a [ChainFlow].
const MaxFlowItems = 100

// Flow is the `data` of options/flow/unusual.
type Flow struct {
	Items       []FlowItem   `json:"items"`
	Count       int          `json:"count"`
	Universe    []string     `json:"universe"`
	Rejected    FlowRejected `json:"rejected"`
	SessionDate Date         `json:"session_date"`
}

// FlowRejected counts the contracts that were not scored, each by the first reason that applied.
type FlowRejected struct {
	Settled        int `json:"settled"`
	NotThisSession int `json:"not_this_session"`
	LowVolume      int `json:"low_volume"`
	LowPrice       int `json:"low_price"`
	LowPremium     int `json:"low_premium"`
}

// FlowItem is one observation: a contract of a delayed chain with the totals of the session. It is not a single trade. Nil
// means unknown.
type FlowItem struct {
	ID               string         `json:"id"`
	Symbol           string         `json:"symbol"`
	Contract         string         `json:"contract"`
	OptionType       Right          `json:"option_type"`
	Strike           Level          `json:"strike"`
	Expiration       Date           `json:"expiration"`
	DaysToExpiration int            `json:"days_to_expiration"`
	Score            Score          `json:"score"`
	Band             string         `json:"band"`
	Volume           Count          `json:"volume"`
	OpenInterest     Count          `json:"open_interest"`
	VolumeOIRatio    *Ratio         `json:"volume_oi_ratio"`
	Premium          Dollars        `json:"premium"`
	PremiumBasis     string         `json:"premium_basis"`
	LastPrice        *Level         `json:"last_price"`
	Bid              *Level         `json:"bid"`
	Ask              *Level         `json:"ask"`
	IV               *Ratio         `json:"implied_volatility"`
	IVChange         *Ratio         `json:"iv_change"` // vol points, + is up
	Delta            *Ratio         `json:"delta"`
	Moneyness        Ratio          `json:"moneyness_pct"`
	UnderlyingPrice  Level          `json:"underlying_price"`
	Side             string         `json:"side"`
	Direction        string         `json:"direction"`
	Confidence       Ratio          `json:"direction_confidence"`
	DirectionBasis   string         `json:"direction_basis"`
	OpeningLikely    bool           `json:"opening_likely"`
	ObservedAt       time.Time      `json:"observed_at"`
	Components       FlowComponents `json:"components"`
	Quality          Ratio          `json:"quality"`
	Reasons          []string       `json:"reasons"`
}

// FlowComponents are the parts of a score before the quality factor.
type FlowComponents struct {
	VolumeOI      Score `json:"volume_oi"`
	Premium       Score `json:"premium"`
	SizeSurprise  Score `json:"size_surprise"`
	QuoteLocation Score `json:"quote_location"`
	IVChange      Score `json:"iv_change"`
}

func (c FlowComponents) sum() float64 {
	return float64(c.VolumeOI + c.Premium + c.SizeSurprise + c.QuoteLocation + c.IVChange)
}

// ChainFlow is the unusual flow of one chain. [MergeFlow] merges the flows of several chains.
type ChainFlow struct {
	Symbol   string
	Session  Date
	Items    []FlowItem // the best, at most MaxFlowItems, in the order they are served
	Eligible int
	Rejected FlowRejected
}

// FlowInput is what [UnusualFlow] reads.
type FlowInput struct {
	Chain    *Chain
	Calendar *Calendar
	// PreviousIV holds the published implied volatility by contract symbol in the last chain of the previous session; nil
	// when that chain is not known.
	PreviousIV map[string]float64
}

// flowLimits are the thresholds of eligibility and of the premium component, in contracts and USD.
type flowLimits struct{ volume, premium float64 }

func limitsOf(underlying string) flowLimits {
	if underlying == "SPX" {
		return flowLimits{volume: 500, premium: 250_000}
	}
	return flowLimits{volume: 100, premium: 25_000}
}

const leastPrice = 0.05

// UnusualFlow scores the contracts of one chain that traded in its session.
func UnusualFlow(in FlowInput) ChainFlow {
	chain := in.Chain
	session := chain.Session(in.Calendar)
	out := ChainFlow{Symbol: chain.Symbol, Session: session}
	var live []*Contract
	for _, contracts := range chain.unsettled(in.Calendar) {
		for i := range contracts {
			live = append(live, &contracts[i])
		}
	}
	out.Rejected.Settled = len(chain.Contracts) - len(live)
	sizes := newSizePeers(live, session)
	limits, quoted := limitsOf(chain.Symbol), chain.QuoteInstant(in.Calendar)
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
	out.Items = make([]FlowItem, len(scored))
	for i := range scored {
		out.Items[i] = scored[i].item(chain, session)
	}
	return out
}

// MergeFlow merges the flows of chains of the same session. It keeps the best items of all chains, at most [MaxFlowItems].
func MergeFlow(chains []ChainFlow) Flow {
	f := Flow{Items: []FlowItem{}, Universe: []string{}}
	for i, c := range chains {
		if i == 0 || c.Session > f.SessionDate {
			f.SessionDate = c.Session
		}
	}
	for _, c := range chains {
		if c.Session != f.SessionDate {
			continue
		}
		f.Items = append(f.Items, c.Items...)
		f.Universe = append(f.Universe, c.Symbol)
		f.Rejected.Settled += c.Rejected.Settled
		f.Rejected.NotThisSession += c.Rejected.NotThisSession
		f.Rejected.LowVolume += c.Rejected.LowVolume
		f.Rejected.LowPrice += c.Rejected.LowPrice
		f.Rejected.LowPremium += c.Rejected.LowPremium
	}
	slices.Sort(f.Universe)
	slices.SortFunc(f.Items, func(a, b FlowItem) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Premium, a.Premium), cmp.Compare(a.Contract, b.Contract))
	})
	return f.Limit(MaxFlowItems)
}

// Limit returns the flow with its first n items.
func (f Flow) Limit(n int) Flow {
	f.Items = f.Items[:min(n, len(f.Items))]
	f.Count = len(f.Items)
	return f
}
