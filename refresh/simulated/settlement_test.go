package simulated_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
)

func settlementAt(t *testing.T, date, at string) ([]compute.FuturesSettlement, *upstream.Document) {
	t.Helper()
	doc := documentAt(t, market, upstream.Settlement(date), ny(at))
	rows, bad, err := cboe.DecodeSettlement(doc.Body)
	if err != nil && !errors.Is(err, cboe.ErrNoRows) || bad > 0 {
		t.Fatalf("settlement %s at %s: %d bad, %v", date, at, bad, err)
	}
	return rows, doc
}

func TestSettlementPublication(t *testing.T) {
	for _, c := range []struct {
		asked, at, date string
		rows            bool
	}{
		{"2026-08-11", "2026-08-11 18:29:00", "2026-08-10", true}, // not published yet: the newest file
		{"2026-08-11", "2026-08-11 18:31:00", "2026-08-11", true},
		{"2026-08-11", "2026-08-14 12:00:00", "2026-08-11", true}, // a past date
		{"2026-08-12", "2026-08-11 18:31:00", "2026-08-11", true},
		{"2026-08-10", "2026-08-10 12:00:00", "2026-08-07", true}, // on a Monday, the file of Friday
		{"2026-11-27", "2026-11-27 18:31:00", "2026-11-27", true}, // early close
		{"2026-08-08", "2026-08-11 12:00:00", "2026-08-08", false},
		{"2026-09-07", "2026-09-08 20:00:00", "2026-09-07", false}, // Labor Day
	} {
		rows, doc := settlementAt(t, c.asked, c.at)
		if doc.FileDate != c.date || len(rows) > 0 != c.rows {
			t.Errorf("%s at %s: file of %s with %d rows", c.asked, c.at, doc.FileDate, len(rows))
		}
		if !doc.Received.Equal(ny(c.at)) || doc.Generated.After(doc.Received) {
			t.Errorf("%s at %s: generated %s, received %s", c.asked, c.at, doc.Generated, doc.Received)
		}
	}
}

func TestSettlementRows(t *testing.T) {
	calendar := compute.NewCalendar(nil, nil)
	sessions, backwardation := 0.0, 0.0
	for d := calendar.Next(compute.NewDate(2024, time.January, 1)); d < compute.NewDate(2027, time.July, 1); d = calendar.Next(d) {
		rows, doc := settlementAt(t, d.String(), d.String()+" 20:00:00")
		body := string(doc.Body)
		if !strings.HasPrefix(body, "Product,Symbol,Expiration Date,Price\r\n") || strings.Count(body, "\n") != strings.Count(body, "\r\n") {
			t.Fatalf("%s: %.60q", d, body)
		}
		curve, q, ok := compute.VIXTermStructure(compute.VIXInput{Date: d, Rows: rows, Calendar: calendar, Now: doc.Received})
		if !ok || len(q.ExpirationDiffer) > 0 || q.BadRows > 0 || q.Monthly != 9 || len(curve.Curve) < 8 {
			t.Fatalf("%s: %+v, %d on the curve", d, q, len(curve.Curve))
		}
		sessions++
		if *curve.ContangoM1M2 <= 0 {
			backwardation++
		}
		final := curve.FinalSettlement != nil
		if expires := calendar.VIXExpiration(d.Year(), d.Month()) == d; final != expires {
			t.Errorf("%s: final settlement %v", d, curve.FinalSettlement)
		}
		if vix := quoteAt(t, market, "_VIX", ny(d.String()+" 16:45:00")).Spot; final && math.Abs(float64(*curve.FinalSettlement)/vix-1) > 0.3 {
			t.Errorf("%s: final settlement %v, VIX %v", d, *curve.FinalSettlement, vix)
		}
	}
	if share := backwardation / sessions; share < 0.03 || share > 0.4 {
		t.Errorf("backwardation on %.2f of sessions", share)
	}
}
