package simulated_test

import (
	"math"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
)

const clockForm = "2006-01-02T15:04:05"

func TestClocks(t *testing.T) {
	m := market
	for _, c := range []struct{ at, timestamp, index, stock string }{
		// at and last trades New York, timestamp UTC; "" is the delayed instant
		{"2026-08-11 12:00:05", "2026-08-11 15:59:56", "", ""},
		{"2026-08-11 16:20:00", "2026-08-11 20:19:56", "", "2026-08-11T16:00:00"},
		{"2026-08-11 16:36:50", "2026-08-11 20:36:41", "2026-08-11T16:14:59", "2026-08-11T16:00:00"},
		{"2026-08-11 21:25:33", "2026-08-12 01:25:26", "2026-08-11T16:14:59", "2026-08-11T16:00:00"},
		{"2026-08-12 09:40:00", "2026-08-12 13:39:56", "2026-08-11T16:14:59", "2026-08-11T16:00:00"},
		{"2026-08-12 09:46:00", "2026-08-12 13:45:56", "", ""},
		{"2026-08-08 08:06:00", "2026-08-08 12:05:56", "2026-08-07T16:14:59", "2026-08-07T16:00:00"},
		{"2026-08-08 13:00:00", "2026-08-08 12:06:13", "2026-08-07T16:14:59", "2026-08-07T16:00:00"},
		{"2026-08-09 18:38:43", "2026-08-08 12:06:13", "2026-08-07T16:14:59", "2026-08-07T16:00:00"},
		{"2026-08-10 00:00:05", "2026-08-08 12:06:13", "2026-08-07T16:14:59", "2026-08-07T16:00:00"},
		{"2026-08-10 00:00:15", "2026-08-10 04:00:11", "2026-08-07T16:14:59", "2026-08-07T16:00:00"},
		{"2026-09-07 12:00:00", "2026-09-07 15:59:56", "2026-09-04T16:14:59", "2026-09-04T16:00:00"}, // Labor Day
		{"2026-11-27 12:00:00", "2026-11-27 16:59:56", "", ""},
		{"2026-11-27 14:30:00", "2026-11-27 19:29:56", "2026-11-27T13:14:59", "2026-11-27T13:00:00"}, // early close
		{"2026-03-06 12:00:00", "2026-03-06 16:59:56", "", ""},                                       // before the clocks go forward
		{"2026-03-09 12:00:00", "2026-03-09 15:59:56", "", ""},                                       // and after
		{"2026-10-30 12:00:00", "2026-10-30 15:59:56", "", ""},                                       // before they go back
		{"2026-11-02 12:00:00", "2026-11-02 16:59:56", "", ""},                                       // and after
		{"2026-11-02 16:36:00", "2026-11-02 21:35:56", "2026-11-02T16:14:59", "2026-11-02T16:00:00"},
	} {
		for _, symbol := range []string{"_SPX", "_VIX", "XLK"} {
			doc := documentAt(t, m, upstream.Quotes(symbol), ny(c.at))
			all := members(string(doc.Body[15:]))
			timestamp := string(doc.Body[len(`{"timestamp":"`):][:19])
			if timestamp != c.timestamp || doc.Generated.Format(time.DateTime) != c.timestamp {
				t.Errorf("%s, %s: timestamp %s, generated %s, want %s", c.at, symbol, timestamp, doc.Generated, c.timestamp)
			}
			if want := doc.Generated.Format("Mon, 02 Jan 2006 15:04:05 GMT"); doc.LastModified != want || !doc.Received.Equal(ny(c.at)) {
				t.Errorf("%s: last modified %s, received %s", c.at, doc.LastModified, doc.Received)
			}
			last, want := valueOf(all, "last_trade_time"), c.index
			if symbol == "XLK" {
				want = c.stock
			}
			if want != "" && last != want {
				t.Errorf("%s, %s: last trade %s, want %s", c.at, symbol, last, want)
			}
			if want != "" {
				continue
			}
			trade, err := time.ParseInLocation(clockForm, last, compute.NewYork)
			if lag := doc.Generated.Sub(trade); err != nil || lag < 904*time.Second || lag > 927*time.Second {
				t.Errorf("%s, %s: last trade %s is %s late", c.at, symbol, last, lag)
			}
		}
	}
}

// Between the sessions a document says nothing new, but that options trade at night.
func TestFrozenBody(t *testing.T) {
	for _, c := range []struct {
		a, b   string
		frozen bool
	}{
		{"2026-08-11 17:01:00", "2026-08-11 20:14:00", true},
		{"2026-08-11 21:01:00", "2026-08-12 02:30:00", false},
		{"2026-08-12 09:16:00", "2026-08-12 09:44:00", true},
		{"2026-08-14 21:01:00", "2026-08-15 05:00:00", true}, // not on the night to Saturday
	} {
		name := upstream.Options("TSLA")
		one, two := documentAt(t, market, name, ny(c.a)), documentAt(t, market, name, ny(c.b))
		before, content, err := cboe.DecodeChain(one.Body)
		after, later, laterErr := cboe.DecodeChain(two.Body)
		if err != nil || laterErr != nil || before.Spot != after.Spot || !before.AsOf.Equal(after.AsOf) || before.CapturedAt.Equal(after.CapturedAt) {
			t.Fatalf("from %s to %s: %+v, %v, %+v, %v", c.a, c.b, before.Underlying, err, after.Underlying, laterErr)
		}
		if (content == later) != c.frozen {
			t.Errorf("from %s to %s: want frozen %v", c.a, c.b, c.frozen)
		}
		now := bySymbol(after)
		for i := range before.Contracts {
			c := &before.Contracts[i]
			if k := now[c.Symbol()]; k != nil && (k.LastTrade != c.LastTrade || math.Abs(k.Mid()-c.Mid()) > 0.02*after.Spot+0.1*c.Mid()) {
				t.Errorf("%s went from %+v to %+v", c.Symbol(), c.Quote, k.Quote)
			}
		}
	}
}

func TestPreviousCloseRollsInTheEvening(t *testing.T) {
	m := market
	for _, symbol := range []string{"_SPX", "XLK", "_VIX"} {
		at := func(s string) []member {
			return members(string(documentAt(t, m, upstream.Quotes(symbol), ny(s)).Body))
		}
		before, after := at("2026-08-11 20:59:30"), at("2026-08-11 21:00:30")
		if valueOf(after, "prev_day_close") != valueOf(after, "close") {
			t.Errorf("%s: at 21:00 the previous close is %s, the close %s", symbol, valueOf(after, "prev_day_close"), valueOf(after, "close"))
		}
		if valueOf(before, "prev_day_close") == valueOf(before, "close") {
			t.Errorf("%s: rolled before 21:00", symbol)
		}
		if valueOf(before, "price_change") != valueOf(after, "price_change") {
			t.Errorf("%s: price_change went from %s to %s", symbol, valueOf(before, "price_change"), valueOf(after, "price_change"))
		}
	}
}
