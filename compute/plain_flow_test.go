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
	q := clock.quoteInstant(chain.AsOf, chain.CapturedAt, plainUnderlying(c.Root))
	age := math.Max(0, q.Sub(time.Unix(c.LastTrade, 0)).Seconds())
	half := (c.Ask - c.Bid) / 2
	moved := math.Abs(c.Delta) * chain.Spot * c.IV * math.Sqrt(math.Max(age, 1)/(252*23400))
	if !(half > 0) || !(moved > 0) || !isFinite(moved) {
		return p
	}
	p.l = math.Round(clampPlain((c.Last-mid(c))/half, -1, 1)*1e9) / 1e9
	p.f = clampPlain(1-age/900, 0, 1) * math.Min(1, half/(2.5*moved))
	p.component = 15 * math.Abs(p.l) * p.f
	if p.f < 0.5 {
		return p
	}
	quality, _ := quoteQuality(c)
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

// quoteQuality is the quality factor of §5, with the code of its reason.
func quoteQuality(c *compute.Contract) (factor float64, code string) {
	switch {
	case !(c.Ask > 0):
		return 0.5, "NO_ASK"
	case c.Bid > c.Ask:
		return 0.5, "CROSSED"
	case !(c.Bid > 0):
		return 0.6, "NO_BID"
	}
	wide := math.Round((c.Ask-c.Bid)/mid(c)*1e9) / 1e9
	if wide > 0.1 {
		code = "WIDE_SPREAD"
	}
	return 1 - 0.4*clampPlain((wide-0.1)/0.4, 0, 1), code
}

// rejected counts the contracts that are not scored, by the first reason that applies.
type rejected struct{ settled, notThisSession, lowVolume, lowPrice, lowPremium int }

// eligible counts the contracts of a chain that are scored, and those that are not.
func eligible(chain *compute.Chain, clock plainClock) (n int, r rejected) {
	today := clock.lastSession(newYorkDate(chain.AsOf))
	from, to := wall(today, 0, 0).Unix(), wall(today+1, 0, 0).Unix()
	series, settled := groupContracts(chain, clock)
	r.settled = settled
	for _, s := range series {
		for _, c := range s.contracts {
			least, price := 100.0, c.Last
			if c.Root == "SPX" || c.Root == "SPXW" {
				least = 500
			}
			if twoSided(c) {
				price = mid(c)
			}
			premium := math.Round(c.Volume*price*100*1e6) / 1e6
			switch {
			case c.LastTrade < from || c.LastTrade >= to:
				r.notThisSession++
			case !(c.Volume >= least):
				r.lowVolume++
			case !(price >= 0.05):
				r.lowPrice++
			case premium < map[float64]float64{100: 25_000, 500: 250_000}[least]:
				r.lowPremium++
			default:
				n++
			}
		}
	}
	return n, r
}

// plainScore is the parts of a score that depend on one contract alone.
type plainScore struct {
	basis                         string
	premium                       float64
	volumeOI, premiumPart, ivPart float64
	change                        *float64 // of the volatility, in points
}

// scoreOf scores a contract whose published volatility was previous, 0 if unknown.
func scoreOf(c *compute.Contract, previous float64) plainScore {
	p := plainScore{basis: "last", premium: c.Volume * c.Last * 100}
	if twoSided(c) {
		p.basis, p.premium = "mid", c.Volume*mid(c)*100
	}
	least := 25_000.0
	if c.Root == "SPX" || c.Root == "SPXW" {
		least = 250_000
	}
	p.volumeOI = 30 * clampPlain(math.Log(c.Volume/(c.OpenInterest+100)/0.5)/math.Log(20), 0, 1)
	p.premiumPart = 25 * clampPlain(math.Log10(p.premium/least)/2, 0, 1)
	if previous > 0 && c.IV > 0 {
		p.change = known((c.IV - previous) * 100)
		p.ivPart = 10 * clampPlain((math.Abs(*p.change)-0.5)/4.5, 0, 1)
	}
	return p
}

// surprises returns the robust z of the volume of each contract among its peers, by symbol.
func surprises(chain *compute.Chain, clock plainClock) map[string]float64 {
	type peers struct {
		right       compute.Right
		days, delta int
	}
	bucket := func(x float64, limits ...float64) (n int) {
		for _, limit := range limits {
			if x >= limit {
				n++
			}
		}
		return n
	}
	groups, today := map[peers][]*compute.Contract{}, clock.lastSession(newYorkDate(chain.AsOf))
	series, _ := groupContracts(chain, clock)
	for _, s := range series {
		for _, c := range s.contracts {
			if isFinite(c.Delta) && c.Volume > 0 {
				k := peers{c.Right, bucket(float64(c.Expiration-today), 1, 8, 31, 91), bucket(math.Abs(c.Delta), 0.1, 0.25, 0.5)}
				groups[k] = append(groups[k], c)
			}
		}
	}
	z := map[string]float64{}
	for _, group := range groups {
		if len(group) < 8 {
			continue
		}
		var sizes, off []float64
		for _, c := range group {
			sizes = append(sizes, math.Log(1+c.Volume))
		}
		middle := percentile(sizes, 0.5)
		for _, x := range sizes {
			off = append(off, math.Abs(x-middle))
		}
		for i, c := range group {
			z[plainSymbol(c)] = (sizes[i] - middle) / math.Max(1.4826*percentile(off, 0.5), 0.25)
		}
	}
	return z
}

func bandOf(score float64) string {
	switch {
	case score < 30:
		return "low"
	case score < 50:
		return "notable"
	case score < 70:
		return "high"
	}
	return "extreme"
}
