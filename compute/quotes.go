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
	day, u := DateOf(q.In(NewYork)), UnderlyingOf(c.Symbol)
	for _, d := range [...]Date{day + 1, day} {
		if opens, closes := u.quoteHours(d, cal); cal.IsSession(d) && !q.Before(opens) {
			if q.After(closes) {
				return closes
			}
			return q
		}
	}
	_, closed := u.quoteHours(cal.Previous(day), cal)
	return closed
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
