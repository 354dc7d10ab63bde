package compute_test

import (
	"math"
	"time"

	"strikecache/compute"
)

// plainLocation is METHODS.md §5 quote_location of one contract, with the fields that follow from it.
type plainLocation struct {
	l, f       float64
	component  float64
	side       string
	direction  string
	confidence float64
}

// locate compares the last trade of a contract with its quote.
func locate(chain *compute.Chain, c *compute.Contract, clock plainClock) plainLocation {
	p := plainLocation{side: "unknown", direction: "unknown"}
	if !twoSided(c) || !isFinite(c.Last) {
		return p
	}
	q := clock.quoteInstant(chain.AsOf, chain.CapturedAt, c.Root)
	age := math.Max(0, q.Sub(time.Unix(c.LastTrade, 0)).Seconds())
	half := (c.Ask - c.Bid) / 2
	moved := math.Abs(c.Delta) * chain.Spot * c.IV * math.Sqrt(math.Max(age, 1)/(252*23400))
	if !(half > 0) || !(moved > 0) || !isFinite(moved) {
		return p
	}
	p.l = math.Round(clampPlain((c.Last-mid(c))/half, -1, 1)*1e9) / 1e9
	p.f = clampPlain(1-age/900, 0, 1) * math.Min(1, half/moved)
	p.component = 15 * math.Abs(p.l) * p.f
	if p.f < 0.5 {
		return p
	}
	wide := (c.Ask - c.Bid) / mid(c)
	quality := 1 - 0.4*clampPlain((wide-0.1)/0.4, 0, 1)
	p.confidence = math.Min(0.6, math.Abs(p.l)*p.f*quality)
	switch {
	case p.l >= 0.5:
		p.side, p.direction = "ask", "bullish"
	case p.l <= -0.5:
		p.side, p.direction = "bid", "bearish"
	default:
		p.side, p.direction = "mid", "neutral"
	}
	if c.Right == compute.Put { // buying a put is bearish
		p.direction = map[string]string{"bullish": "bearish", "bearish": "bullish", "neutral": "neutral"}[p.direction]
	}
	return p
}

func clampPlain(x, low, high float64) float64 { return math.Max(low, math.Min(high, x)) }
