package compute

import "time"

// quoteDelay is how much older than the document the upstream's delayed quotes are.
const quoteDelay = 15 * time.Minute

// QuoteInstant returns the instant q that the quotes of the chain describe: the later of as_of and captured_at - 15
// minutes. Outside the trading hours of the options, it returns the end of their last trading hours.
func (c *Chain) QuoteInstant(cal *Calendar) time.Time {
	q := c.AsOf
	if quoted := c.CapturedAt.Add(-quoteDelay); quoted.After(q) {
		q = quoted
	}
	day, overnight := DateOf(q.In(NewYork)), UnderlyingOf(c.Symbol).Overnight
	for _, d := range [...]Date{day + 1, day} {
		if opens, closes := quoteHours(overnight, d, cal); cal.IsSession(d) && !q.Before(opens) {
			if q.After(closes) {
				return closes
			}
			return q
		}
	}
	_, closed := quoteHours(overnight, cal.Previous(day), cal)
	return closed
}

// quoteHours returns when the option trading of session d begins and ends. Overnight options trade from 20:15 New York on the
// day before until 17:00, all others from 09:30 to 16:15. An early close ends both at 13:15.
//
// Source: Cboe, U.S. Options Hours & Holidays: global trading hours, regular trading hours and curb session of SPX.
func quoteHours(overnight bool, d Date, cal *Calendar) (opens, closes time.Time) {
	opens, closes = cal.Open(d), d.At(16, 15, 0, NewYork)
	if overnight {
		opens, closes = (d-1).At(20, 15, 0, NewYork), d.At(17, 0, 0, NewYork)
	}
	if cal.IsEarlyClose(d) {
		closes = d.At(13, 15, 0, NewYork)
	}
	return opens, closes
}

// TwoSidedQuotes returns how many contracts of the chain with T > 0 have a bid > 0 and an ask that is not below the bid.
func TwoSidedQuotes(c *Chain, cal *Calendar) (n int) {
	for _, contracts := range c.unsettled(cal) {
		for i := range contracts {
			if contracts[i].TwoSided() {
				n++
			}
		}
	}
	return n
}
