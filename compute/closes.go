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

// Misdated returns how many of the closes of the last 400 days have a date without a session, and how many sessions among them have no
// close. is says that both are more than a tenth: then the dates are those of another time zone, a day off.
func Misdated(closes []Close, cal *Calendar) (without, missing int, is bool) {
	i, _ := slices.BinarySearchFunc(closes, closes[len(closes)-1].Date-400, byDate)
	closes = closes[i:]
	for _, c := range closes {
		if !cal.IsSession(c.Date) {
			without++
		}
	}
	sessions := cal.SessionsBetween(closes[0].Date-1, closes[len(closes)-1].Date)
	missing = sessions - (len(closes) - without)
	return without, missing, 10*without > len(closes) && 10*missing > sessions
}

// Fund is the quote and the history of one fund.
type Fund struct {
	Quote  UnderlyingQuote
	Closes []Close // rising dates; may be empty
	// Jump is the last date whose prices cannot be compared with the quote, 0 if those of all closes can: [SectorRotation] finds it.
	Jump Date
}

// The greatest ratios that are no jump.
const (
	// mostApart is of a fund's move and that of the market. The largest that is known is 1.16: XLE lost 20.1 % on 2020-03-09, and SPY 7.8 %.
	// The smallest action of a sector fund that is known is 1.22: XLF gave away XLRE on 2016-09-19.
	mostApart     = 1.18
	mostCorrected = 1.05 // of a close and the same close as the quote of the next session has it
)

// official returns the funds with the closes that count: of sessions that have ended at the latest of the quotes. It finds the jumps.
func (in SectorsInput) official() map[string]Fund {
	var now time.Time
	for _, f := range in.Funds {
		now = Later(now, Later(f.Quote.AsOf, f.Quote.CapturedAt.Add(-quoteDelay)))
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
		own := prices[symbol]
		for i := len(own) - 1; i > 0 && own[i].Date > own[len(own)-1].Date-400; i-- { // the earliest base is 372 days old
			if !jumps(symbol, own[i-1], own[i], prices, in.Calendar) {
				continue
			}
			if f.Jump = own[i-1].Date; i == len(own)-1 {
				f.Quote.PriceChangePercent = math.NaN() // the quote itself has the jump
			}
			break
		}
		funds[symbol] = f
	}
	return funds
}

func (f Fund) comparable() []Close {
	i, _ := slices.BinarySearchFunc(f.Closes, f.Jump+1, byDate)
	return f.Closes[i:]
}

// prices returns the closes before the quote's session, the last of them as the quote has it, and the price of the quote.
func (f Fund) prices(cal *Calendar) []Close {
	session := f.Quote.Session(cal)
	i, _ := slices.BinarySearchFunc(f.Closes, session, byDate)
	out := slices.Clone(f.Closes[:i])
	if before := f.Quote.Spot / (1 + f.Quote.PriceChangePercent/100); finite(before) {
		out = append(out, Close{cal.Previous(session), before})
	}
	return append(out, Close{session, f.Quote.Spot})
}

// jumps says whether a fund's move between two neighbouring prices is none of the market: it is far from the median of the moves of the
// other funds between the same dates. Without others, or over more than 5 sessions, it must be as large as a split. Two prices of a date
// are those of the history and of the quote.
func jumps(symbol string, from, to Close, prices map[string][]Close, cal *Calendar) bool {
	move := to.Price / from.Price
	if from.Date == to.Date {
		return ratioApart(move) > mostCorrected
	}
	if !(ratioApart(move) > mostApart) {
		return false
	}
	var others []float64
	for other, p := range prices {
		if x := priceOn(p, to.Date) / priceOn(p, from.Date); other != symbol && finite(x) {
			others = append(others, x)
		}
	}
	most := mostJump
	if others != nil {
		move /= median(others)
		if cal.SessionsBetween(from.Date, to.Date) <= 5 {
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
