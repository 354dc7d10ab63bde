package compute

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Close is one row of the daily history of a fund or an index.
type Close struct {
	Date  Date
	Price float64 // official close, USD or index points, > 0
}

// Fund is the quote and the history of one fund.
type Fund struct {
	Quote  UnderlyingQuote
	Closes []Close // rising dates; may be empty
	// Jump is the first date whose prices can be compared with the quote, 0 if those of all closes can: [SectorRotation] finds it.
	Jump Date
}

const (
	// mostApart is the greatest ratio of a fund's move in a day and the move of the market. The largest that is known is 1.16: XLE lost
	// 20.1 % on 2020-03-09, and SPY 7.8 %. The smallest action of a sector fund that is known is 1.22: XLF gave away XLRE on 2016-09-19.
	mostApart = 1.18
	// mostCorrected is the greatest ratio of a close and of the same close as the quote of the next session has it.
	mostCorrected = 1.05
	// mostGap is the greatest number of sessions between two closes to which mostApart applies.
	mostGap = 5
	// jumpReach is for how many days jumps are looked for. The earliest base is a year and some days old.
	jumpReach = 400
)

// official returns the funds with the closes that count: of sessions that have ended at the latest of the quotes. It finds the jumps.
func (in SectorsInput) official() map[string]Fund {
	var now time.Time
	for _, f := range in.Funds {
		for _, t := range [...]time.Time{f.Quote.AsOf, f.Quote.CapturedAt.Add(-quoteDelay)} {
			if t.After(now) {
				now = t
			}
		}
	}
	today := DateOf(now.In(NewYork))
	funds, prices := make(map[string]Fund, len(in.Funds)), map[string][]Close{}
	for symbol, f := range in.Funds {
		f.Closes = slices.DeleteFunc(slices.Clone(f.Closes), func(c Close) bool {
			return c.Date > today || !in.Calendar.IsSession(c.Date) || c.Date == today && now.Before(in.Calendar.Close(today))
		})
		funds[symbol], prices[symbol] = f, f.prices(in.Calendar)
	}
	for symbol, f := range funds {
		session := f.Quote.Session(in.Calendar)
		before := in.Calendar.Previous(session)
		f.Jump = lastJump(symbol, prices, in.Calendar)
		if kept, served := priceOn(f.Closes, before), priceOn(prices[symbol], before); ratioApart(kept/served) > mostCorrected {
			f.Jump = max(f.Jump, session)
		}
		if f.Jump == session && jumps(symbol, Close{before, priceOn(prices[symbol], before)}, Close{session, f.Quote.Spot}, prices, in.Calendar) {
			f.Quote.PriceChangePercent = math.NaN() // the quote itself has the jump
		}
		funds[symbol] = f
	}
	return funds
}

// comparable returns the closes that can be compared with the quote.
func (f Fund) comparable() []Close {
	i, _ := slices.BinarySearchFunc(f.Closes, f.Jump, byDate)
	return f.Closes[i:]
}

// prices returns the closes before the quote's session, that of the session before as the quote has it, and the price of the quote.
func (f Fund) prices(cal *Calendar) []Close {
	session := f.Quote.Session(cal)
	before := cal.Previous(session)
	i, _ := slices.BinarySearchFunc(f.Closes, before, byDate)
	last := f.Quote.Spot / (1 + f.Quote.PriceChangePercent/100)
	if !finite(last) {
		last = priceOn(f.Closes, before)
	}
	out := slices.Clone(f.Closes[:i])
	if finite(last) {
		out = append(out, Close{before, last})
	}
	return append(out, Close{session, f.Quote.Spot})
}

// lastJump returns the date after the last jump of a fund's prices, 0 without one.
func lastJump(symbol string, prices map[string][]Close, cal *Calendar) Date {
	own := prices[symbol]
	for i := len(own) - 1; i > 0 && own[i].Date > own[len(own)-1].Date-jumpReach; i-- {
		if jumps(symbol, own[i-1], own[i], prices, cal) {
			return own[i].Date
		}
	}
	return 0
}

// jumps says whether a fund's move between two neighbouring prices is none of the market: it is far from the move of SPY between the same
// dates, or if SPY has none or is the fund, from the median of the others. Without others, or over many sessions, it must be as large as
// a split.
func jumps(symbol string, from, to Close, prices map[string][]Close, cal *Calendar) bool {
	move := to.Price / from.Price
	if !(ratioApart(move) > mostApart) {
		return false
	}
	moveOf := func(other string) float64 { return priceOn(prices[other], to.Date) / priceOn(prices[other], from.Date) }
	market, most := moveOf(Benchmark), mostJump
	if symbol == Benchmark || !finite(market) {
		var others []float64
		for other := range prices {
			if x := moveOf(other); other != symbol && finite(x) {
				others = append(others, x)
			}
		}
		market = median(others)
	}
	if finite(market) {
		move /= market
		if cal.SessionsBetween(from.Date, to.Date) <= mostGap {
			most = mostApart
		}
	}
	return ratioApart(move) > most
}

// ratioApart returns a ratio or its inverse, whichever is larger.
func ratioApart(x float64) float64 { return decimal(max(x, 1/x)) }

// priceOn returns the price of a date, NaN without one.
func priceOn(prices []Close, d Date) float64 {
	i, found := slices.BinarySearchFunc(prices, d, byDate)
	if !found {
		return math.NaN()
	}
	return prices[i].Price
}

func byDate(c Close, d Date) int { return cmp.Compare(c.Date, d) }
