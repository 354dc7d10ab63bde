package compute

import (
	"math"
	"strconv"
	"time"
)

// observation holds the intermediate results of one contract, before it becomes a [FlowItem].
type observation struct {
	*Contract
	symbol      string
	days        int
	unitPrice   float64 // mid or last; NaN when neither is usable
	basis       string
	premium     float64
	location    float64 // L, NaN when unknown
	trust       float64 // f, 0 to 1: how well the quote shows the side of an older trade
	ivChange    float64 // vol points, NaN when unknown
	surprise    float64 // z, NaN when unknown
	components  FlowComponents
	quality     float64
	qualityNote string
	rounded     float64
}

func (o *observation) price() {
	o.unitPrice, o.basis = o.Last, "last"
	if o.TwoSided() {
		o.unitPrice, o.basis = o.Mid(), "mid"
	}
	o.unitPrice = decimal(o.unitPrice)
	o.premium = decimal(o.Volume * o.unitPrice * Multiplier)
}

// clamp01 limits x to [0, 1]. It returns 0 for NaN, which is an absent input.
func clamp01(x float64) float64 {
	if !(x > 0) {
		return 0
	}
	return min(x, 1)
}

func (o *observation) score(in FlowInput, quoted time.Time, sizes sizePeers, limits flowLimits) {
	o.symbol = o.Symbol()
	o.locate(quoted, in.Chain.Spot)
	o.ivChange = math.NaN()
	if in.Before != nil {
		if before := in.Before.find(o.Contract); before != nil && before.IV > 0 && o.IV > 0 {
			o.ivChange = (o.IV - before.IV) * 100
		}
	}
	o.surprise = sizes.z(o.Contract, o.days)
	o.judgeQuote()
	ratio := o.Volume / (o.OpenInterest + 100)
	o.components = FlowComponents{
		VolumeOI:      Score(30 * clamp01(math.Log(ratio/0.5)/math.Log(20))),
		Premium:       Score(25 * clamp01(math.Log10(o.premium/limits.premium)/2)),
		SizeSurprise:  Score(20 * clamp01((o.surprise-1)/4)),
		QuoteLocation: Score(15 * clamp01(math.Abs(o.location)) * o.trust),
		IVChange:      Score(10 * clamp01((math.Abs(o.ivChange)-0.5)/4.5)),
	}
	c := &o.components
	o.rounded = roundTo(o.quality*float64(c.VolumeOI+c.Premium+c.SizeSurprise+c.QuoteLocation+c.IVChange), 1)
}

// locate sets the location of the last price in the quote, from -1 (bid) to 1 (ask), and the trust in it. The trade is
// older than the quote, which is of the instant quoted. So the location can show the move of the market since the trade
// instead of the side. The trust falls to 0 as the trade's age grows to 15 minutes. It also falls when 2.5 standard
// deviations of the option's move since the trade exceed the half-spread. Without trust, the location is NaN.
func (o *observation) locate(quoted time.Time, spot float64) {
	const maxAge = 900                         // seconds
	const secondsPerTradingYear = 252 * 23_400 // sessions of 6.5 hours
	o.location = math.NaN()
	age := max(quoted.Sub(time.Unix(o.LastTrade, 0)).Seconds(), 0)
	moved := math.Abs(o.Delta) * spot * o.IV * math.Sqrt(max(age, 1)/secondsPerTradingYear)
	half := 0.5 * (o.Ask - o.Bid)
	if o.TwoSided() && o.Last > 0 && half > 0 && moved > 0 && age < maxAge {
		o.location = min(max(decimal((o.Last-o.Mid())/half), -1), 1)
		o.trust = (1 - age/maxAge) * min(1, half/(2.5*moved))
	}
}

// judgeQuote sets the quality factor, 0.5 to 1, and the note that explains a factor below 1.
func (o *observation) judgeQuote() {
	switch {
	case !(o.Ask > 0):
		o.quality, o.qualityNote = 0.5, "NO_ASK"
	case o.Bid > o.Ask:
		o.quality, o.qualityNote = 0.5, "CROSSED"
	case !(o.Bid > 0):
		o.quality, o.qualityNote = 0.6, "NO_BID"
	default:
		spread := decimal((o.Ask - o.Bid) / o.Mid())
		o.quality = 1 - 0.4*clamp01((spread-0.1)/0.4)
		if spread > 0.1 {
			o.qualityNote = "WIDE_SPREAD " + fixed(spread*100, 0) + "%"
		}
	}
}

// side returns the side of the quote on which the last price lies, or unknown when the trust in the location is too low.
func (o *observation) side() string {
	switch {
	case math.IsNaN(o.location) || o.trust < 0.5:
		return "unknown"
	case o.location >= 0.5:
		return "ask"
	case o.location <= -0.5:
		return "bid"
	}
	return "mid"
}

func (o *observation) direction(side string) string {
	switch {
	case side == "mid":
		return "neutral"
	case side == "ask" && o.Right == Call, side == "bid" && o.Right == Put:
		return "bullish"
	case side == "ask" && o.Right == Put, side == "bid" && o.Right == Call:
		return "bearish"
	}
	return "unknown"
}

func (o *observation) item(chain *Chain, session Date) FlowItem {
	side := o.side()
	it := FlowItem{
		ID:               session.String() + ":" + o.symbol,
		Symbol:           chain.Symbol,
		Contract:         o.symbol,
		OptionType:       o.Right,
		Strike:           Level(o.Strike),
		Expiration:       o.Expiration,
		DaysToExpiration: o.days,
		Score:            Score(o.rounded),
		Band:             classOf(o.rounded, "low", rung{30, "notable"}, rung{50, "high"}, rung{70, "extreme"}),
		Volume:           Count(o.Volume),
		OpenInterest:     Count(o.OpenInterest),
		Premium:          Dollars(math.Round(o.premium)),
		PremiumBasis:     o.basis,
		LastPrice:        finiteOrNil(Level(o.Last)),
		Bid:              finiteOrNil(Level(o.Bid)),
		Ask:              finiteOrNil(Level(o.Ask)),
		IVChange:         finiteOrNil(Ratio(o.ivChange)),
		Delta:            finiteOrNil(Ratio(o.Delta)),
		Moneyness:        Ratio((o.Strike/chain.Spot - 1) * 100),
		UnderlyingPrice:  Level(chain.Spot),
		Side:             side,
		Direction:        o.direction(side),
		DirectionBasis:   "inferred_from_last_vs_quote",
		OpeningLikely:    o.Volume > o.OpenInterest,
		ObservedAt:       time.Unix(o.LastTrade, 0).UTC(),
		Components:       o.components,
		Quality:          Ratio(o.quality),
		Reasons:          o.reasons(side),
	}
	if o.OpenInterest > 0 {
		it.VolumeOIRatio = new(Ratio(o.Volume / o.OpenInterest))
	}
	if o.IV > 0 {
		it.IV = finiteOrNil(Ratio(o.IV))
	}
	if side != "unknown" {
		it.Confidence = Ratio(min(0.6, math.Abs(o.location)*o.trust*o.quality))
	}
	return it
}

// reasons returns the conditions that raised or lowered the score, each with its number.
func (o *observation) reasons(side string) []string {
	out := []string{}
	if o.components.VolumeOI > 0 {
		if o.OpenInterest > 0 {
			out = append(out, "VOL_OI "+fixed(o.Volume/o.OpenInterest, 1)+"x")
		} else {
			out = append(out, "VOL_OI no_oi")
		}
	}
	if o.components.Premium > 0 {
		out = append(out, "PREMIUM "+shortDollars(o.premium))
	}
	if o.components.SizeSurprise > 0 {
		out = append(out, "SIZE z="+fixed(o.surprise, 1))
	}
	switch side {
	case "ask":
		out = append(out, "AT_ASK L="+fixed(o.location, 2))
	case "bid":
		out = append(out, "AT_BID L="+fixed(o.location, 2))
	}
	if o.components.IVChange > 0 {
		change := fixed(o.ivChange, 1)
		if o.ivChange > 0 {
			change = "+" + change
		}
		out = append(out, "IV "+change)
	}
	if o.qualityNote != "" {
		out = append(out, o.qualityNote)
	}
	return out
}

func fixed(x float64, decimals int) string {
	return strconv.FormatFloat(roundTo(x, decimals), 'f', decimals, 64)
}

func shortDollars(x float64) string {
	switch {
	case x >= 1e9:
		return fixed(x/1e9, 1) + "B"
	case x >= 1e6:
		return fixed(x/1e6, 1) + "M"
	}
	return fixed(x/1e3, 0) + "K"
}

// sizePeers holds the median and spread of ln(1+V) of each group of comparable contracts.
type sizePeers map[peerGroup]peerSize

type peerGroup struct {
	right       Right
	days, delta uint8 // buckets
}

type peerSize struct{ median, spread float64 }

const (
	leastPeers  = 8
	leastSpread = 0.25
)

// newSizePeers groups the unsettled contracts that have volume, by right, days to expiration and absolute published delta.
func newSizePeers(live []*Contract, session Date) sizePeers {
	groups := map[peerGroup][]float64{}
	for _, c := range live {
		if g, ok := groupOf(c, int(c.Expiration-session)); ok && c.Volume > 0 {
			groups[g] = append(groups[g], math.Log1p(c.Volume))
		}
	}
	peers := sizePeers{}
	for g, sizes := range groups {
		if len(sizes) < leastPeers {
			continue
		}
		mid := median(sizes)
		for i, x := range sizes {
			sizes[i] = math.Abs(x - mid)
		}
		peers[g] = peerSize{median: mid, spread: max(1.4826*median(sizes), leastSpread)}
	}
	return peers
}

func groupOf(c *Contract, days int) (peerGroup, bool) {
	if !finite(c.Delta) {
		return peerGroup{}, false
	}
	bucket := func(x float64, limits ...float64) (n uint8) {
		for _, l := range limits {
			if x >= l {
				n++
			}
		}
		return n
	}
	return peerGroup{
		right: c.Right,
		days:  bucket(float64(days), 1, 8, 31, 91),
		delta: bucket(math.Abs(c.Delta), 0.1, 0.25, 0.5),
	}, true
}

// z returns the robust z-score of a contract's volume among its peers, NaN where there are too few.
func (p sizePeers) z(c *Contract, days int) float64 {
	g, ok := groupOf(c, days)
	size, known := p[g]
	if !ok || !known {
		return math.NaN()
	}
	return (math.Log1p(c.Volume) - size.median) / size.spread
}
