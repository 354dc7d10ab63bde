package compute_test

import (
	"testing"
	"time"

	"strikecache/compute"
)

func TestQuoteInstant(t *testing.T) {
	for _, c := range []struct{ name, symbol, asOf, captured, want string }{
		{"in session the document is the clock", "SPX", "2026-08-11T11:00:00-04:00", "2026-08-11T11:20:00-04:00", "2026-08-11T11:05:00-04:00"},
		{"the index is later than the quotes", "SPX", "2026-08-11T11:00:00-04:00", "2026-08-11T11:10:00-04:00", "2026-08-11T11:00:00-04:00"},
		{"curb session", "SPX", "2026-08-11T16:00:00-04:00", "2026-08-11T17:00:00-04:00", "2026-08-11T16:45:00-04:00"},
		{"after 17:00", "SPX", "2026-08-11T16:00:00-04:00", "2026-08-11T18:00:00-04:00", "2026-08-11T17:00:00-04:00"},
		{"one second before the night", "SPX", "2026-08-11T16:00:00-04:00", "2026-08-11T20:29:59-04:00", "2026-08-11T17:00:00-04:00"},
		{"the night begins at 20:15", "SPX", "2026-08-11T16:00:00-04:00", "2026-08-11T20:30:00-04:00", "2026-08-11T20:15:00-04:00"},
		{"at night", "SPX", "2026-08-11T16:00:00-04:00", "2026-08-12T03:15:00-04:00", "2026-08-12T03:00:00-04:00"},
		{"between night and session", "SPX", "2026-08-11T16:00:00-04:00", "2026-08-12T09:40:00-04:00", "2026-08-12T09:25:00-04:00"},
		{"Friday evening", "SPX", "2026-08-14T16:00:00-04:00", "2026-08-14T21:00:00-04:00", "2026-08-14T17:00:00-04:00"},
		{"Saturday", "SPX", "2026-08-14T16:00:00-04:00", "2026-08-15T12:00:00-04:00", "2026-08-14T17:00:00-04:00"},
		{"Sunday, before the night", "SPX", "2026-08-14T16:00:00-04:00", "2026-08-16T20:00:00-04:00", "2026-08-14T17:00:00-04:00"},
		{"Sunday night", "SPX", "2026-08-14T16:00:00-04:00", "2026-08-16T20:45:00-04:00", "2026-08-16T20:30:00-04:00"},
		{"eve of a holiday", "SPX", "2026-11-25T16:00:00-05:00", "2026-11-25T21:00:00-05:00", "2026-11-25T17:00:00-05:00"},
		{"holiday", "SPX", "2026-11-25T16:00:00-05:00", "2026-11-26T12:00:00-05:00", "2026-11-25T17:00:00-05:00"},
		{"night after a holiday", "SPX", "2026-11-25T16:00:00-05:00", "2026-11-26T22:15:00-05:00", "2026-11-26T22:00:00-05:00"},
		{"early close", "SPX", "2026-11-27T13:00:00-05:00", "2026-11-27T15:00:00-05:00", "2026-11-27T13:15:00-05:00"},
		{"clocks changed during the weekend", "SPX", "2026-10-30T16:00:00-04:00", "2026-11-01T21:00:00-05:00", "2026-11-01T20:45:00-05:00"},
		{"an index that trades after its options", "SPX", "2026-08-11T17:30:00-04:00", "2026-08-11T17:31:00-04:00", "2026-08-11T17:00:00-04:00"},
		{"a fund in session", "XLK", "2026-08-11T11:00:00-04:00", "2026-08-11T11:20:00-04:00", "2026-08-11T11:05:00-04:00"},
		{"a fund after the close", "XLK", "2026-08-11T16:00:00-04:00", "2026-08-11T20:00:00-04:00", "2026-08-11T16:15:00-04:00"},
		{"a fund at night", "XLK", "2026-08-11T20:00:00-04:00", "2026-08-12T03:00:00-04:00", "2026-08-11T16:15:00-04:00"},
		{"a fund before the open", "XLK", "2026-08-12T09:00:00-04:00", "2026-08-12T09:20:00-04:00", "2026-08-11T16:15:00-04:00"},
		{"a fund on an early close", "XLK", "2026-11-27T13:00:00-05:00", "2026-11-27T15:00:00-05:00", "2026-11-27T13:15:00-05:00"},
	} {
		chain := compute.Chain{Underlying: compute.Underlying{Symbol: c.symbol, AsOf: at(c.asOf), CapturedAt: at(c.captured)}}
		if got := chain.QuoteInstant(cal); !got.Equal(at(c.want)) {
			t.Errorf("%s: %s, want %s", c.name, got.In(compute.NewYork).Format(time.RFC3339), c.want)
		}
	}
}

func TestTwoSidedQuotes(t *testing.T) {
	chain := build(t, index(7000, "2026-08-11T11:00:00-04:00"),
		row{"SPXW260810C07000000", quoted(1, 2, 5)}, // settled
		row{"SPXW260812C06900000", quoted(1, 2, 0)},
		row{"SPXW260812C07000000", quoted(2, 2, 5)},
		row{"SPXW260812P07000000", quoted(2, 1, 5)}, // crossed
		row{"SPXW260812P06900000", quoted(0, 1, 5)},
		row{"SPX260821P06900000", blank(5)},
		row{"SPXX60821P06900000", quoted(1, 2, 5)})
	equal(t, "two-sided", compute.TwoSidedQuotes(chain, cal), 2)
}
