package simulated_test

import (
	"reflect"
	"testing"
	"time"

	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
)

func TestClocks(t *testing.T) {
	for _, c := range []struct{ at, generated, index, stock string }{
		// at, index and stock are New York times; generated is UTC
		{"2026-08-11 12:00:05", "2026-08-11 15:59:56", "2026-08-11 11:44:52", "2026-08-11 11:44:52"},
		{"2026-08-11 16:20:00", "2026-08-11 20:19:56", "2026-08-11 16:04:52", "2026-08-11 16:00:00"},
		{"2026-08-11 16:36:50", "2026-08-11 20:36:41", "2026-08-11 16:14:59", "2026-08-11 16:00:00"},
		{"2026-08-11 21:25:33", "2026-08-12 01:25:26", "2026-08-11 16:14:59", "2026-08-11 16:00:00"},
		{"2026-08-12 09:40:00", "2026-08-12 13:39:56", "2026-08-11 16:14:59", "2026-08-11 16:00:00"},
		{"2026-08-12 09:46:00", "2026-08-12 13:45:56", "2026-08-12 09:30:52", "2026-08-12 09:30:52"},
		{"2026-08-09 18:38:43", "2026-08-09 22:38:41", "2026-08-07 16:14:59", "2026-08-07 16:00:00"}, // Sunday
		{"2026-09-07 12:00:00", "2026-09-07 15:59:56", "2026-09-04 16:14:59", "2026-09-04 16:00:00"}, // Labor Day
		{"2026-11-27 14:30:00", "2026-11-27 19:29:56", "2026-11-27 13:14:59", "2026-11-27 13:00:00"}, // early close
		{"2026-03-06 12:00:00", "2026-03-06 16:59:56", "2026-03-06 11:44:52", "2026-03-06 11:44:52"}, // before the clocks go forward
		{"2026-03-09 12:00:00", "2026-03-09 15:59:56", "2026-03-09 11:44:52", "2026-03-09 11:44:52"}, // and after
		{"2026-11-02 12:00:00", "2026-11-02 16:59:56", "2026-11-02 11:44:52", "2026-11-02 11:44:52"}, // after they go back
	} {
		for _, symbol := range []string{"_SPX", "_NDX", "_RUT", "_VIX", "XLK", "IWM"} {
			doc := documentAt(t, market, upstream.Quotes(symbol), ny(c.at))
			quote := quoteAt(t, market, symbol, ny(c.at))
			want := c.index
			if symbol[0] != '_' {
				want = c.stock
			}
			if got := doc.Generated.Format(time.DateTime); got != c.generated || !quote.CapturedAt.Equal(doc.Generated) || !quote.AsOf.Equal(ny(want)) {
				t.Errorf("%s, %s: generated %s, timestamp %s, last trade %s, want %s", c.at, symbol, got, quote.CapturedAt, quote.AsOf, want)
			}
			if want := doc.Generated.Format("Mon, 02 Jan 2006 15:04:05 GMT"); doc.LastModified != want || !doc.Received.Equal(ny(c.at)) {
				t.Errorf("%s: last modified %s, received %s", c.at, doc.LastModified, doc.Received)
			}
		}
	}
}

// Between two sessions a document has no new data, except that quotes of SPX and RUT options change at night.
func TestFrozenBody(t *testing.T) {
	for _, c := range []struct {
		symbol, a, b string
		frozen       bool
	}{
		{"_SPX", "2026-08-11 17:01:00", "2026-08-11 20:29:00", true},
		{"_SPX", "2026-08-11 20:29:00", "2026-08-11 21:01:00", false},
		{"TSLA", "2026-08-11 21:01:00", "2026-08-12 02:30:00", true},
		{"_NDX", "2026-08-11 17:01:00", "2026-08-12 02:30:00", true},
		{"_RUT", "2026-08-11 17:01:00", "2026-08-12 09:44:00", false}, // the listing of 07:00
		{"_RUT", "2026-08-11 21:01:00", "2026-08-12 02:30:00", false},
		{"_NDX", "2026-08-12 07:01:00", "2026-08-12 09:44:00", true},
		{"IWM", "2026-08-11 21:01:00", "2026-08-12 02:30:00", true},
		{"_SPX", "2026-08-12 09:16:00", "2026-08-12 09:44:00", false}, // to 09:25
		{"_SPX", "2026-08-12 09:41:00", "2026-08-12 09:44:00", true},
		{"_SPX", "2026-09-05 12:00:00", "2026-09-07 02:00:00", false}, // a holiday, to 11:30
		{"_SPX", "2026-09-07 11:46:00", "2026-09-07 20:29:00", true},
		{"_NDX", "2026-09-05 12:00:00", "2026-09-07 02:00:00", true},
		{"_SPX", "2026-08-14 21:01:00", "2026-08-16 19:00:00", true},  // over a weekend
		{"_SPX", "2026-08-16 19:00:00", "2026-08-16 23:00:00", false}, // to the night before Monday
	} {
		name := upstream.Options(c.symbol)
		one, two := documentAt(t, small, name, ny(c.a)), documentAt(t, small, name, ny(c.b))
		before, err := cboe.DecodeChain(one.Body)
		after, laterErr := cboe.DecodeChain(two.Body)
		if err != nil || laterErr != nil || before.Spot != after.Spot || !before.AsOf.Equal(after.AsOf) || before.CapturedAt.Equal(after.CapturedAt) {
			t.Fatalf("from %s to %s: %+v, %v, %+v, %v", c.a, c.b, before.UnderlyingQuote, err, after.UnderlyingQuote, laterErr)
		}
		was := *after
		was.UnderlyingQuote = before.UnderlyingQuote // its clock alone has moved
		if reflect.DeepEqual(before, &was) != c.frozen {
			t.Errorf("from %s to %s: want frozen %v", c.a, c.b, c.frozen)
		}
	}
}
