package compute_test

import (
	"math"
	"testing"

	"strikecache/compute"
)

// future is a row of the settlement file.
func future(symbol, expiration string, price float64) compute.FuturesSettlement {
	return compute.FuturesSettlement{Product: "VX", Symbol: symbol, Expiration: day(expiration), Price: price}
}

// october5 returns rows of the settlement file of 2026-10-05: the monthly contracts, five weeklies that repeat the price of
// the front month, and two other products.
func october5() []compute.FuturesSettlement {
	return []compute.FuturesSettlement{
		future("VX40/V6", "2026-10-07", 17.4555), future("VX41/V6", "2026-10-14", 17.4555),
		future("VX/V6", "2026-10-21", 17.4555), future("VX43/V6", "2026-10-28", 17.4555),
		future("VX44/X6", "2026-11-04", 17.4555), future("VX45/X6", "2026-11-11", 17.4555),
		future("VX/X6", "2026-11-18", 18.1393), future("VX/Z6", "2026-12-16", 18.5508),
		future("VX/F7", "2027-01-20", 19.3327), future("VX/G7", "2027-02-17", 19.8344),
		future("VX/H7", "2027-03-17", 20.0151), future("VX/J7", "2027-04-21", 20.375),
		future("VX/K7", "2027-05-18", 20.525), future("VX/M7", "2027-06-16", 20.7995),
		{Product: "VXM", Symbol: "VXM/V6", Expiration: day("2026-10-21"), Price: 17.4555},
		{Product: "PBT", Symbol: "PBT/Z35", Expiration: day("2035-12-28"), Price: 85718},
	}
}

// evening returns the input for a file that is read on the evening of its date.
func evening(date string, rows ...compute.FuturesSettlement) compute.VIXInput {
	return compute.VIXInput{Date: day(date), Rows: rows, Calendar: cal, Now: at(date + "T23:00:00Z")}
}

func curve(t *testing.T, in compute.VIXInput) (compute.VIXCurve, compute.VIXQuality) {
	t.Helper()
	c, q, ok := compute.VIXTermStructure(in)
	if !ok {
		t.Fatal("no curve")
	}
	return c, q
}

// A contract of the past is a bad row. A curve needs a contract that has not expired.
func TestExpiredContracts(t *testing.T) {
	_, q := curve(t, evening("2026-10-22", october5()...))
	equal(t, "a contract in the past", q.BadRows, 1)
	if _, _, ok := compute.VIXTermStructure(evening("2027-06-16", october5()...)); ok {
		t.Error("a curve without a contract")
	}
	if _, _, ok := compute.VIXTermStructure(evening("2026-10-05")); ok {
		t.Error("a curve from a header alone")
	}
}

// Monthly symbols are VX/<month letter><year>. Every other symbol of product VX is weekly. The calendar is verified to 2030.
func TestMonthlySymbols(t *testing.T) {
	for _, c := range []struct {
		symbol, expiration string
		month              string // empty: not monthly
	}{
		{"VX/X6", "2026-11-18", "2026-11"}, {"VX/X26", "2026-11-18", "2026-11"}, {"VX/X2026", "2026-11-18", "2026-11"},
		{"VX/F7", "2027-01-20", "2027-01"}, {"VX/F0", "2030-01-16", "2030-01"}, {"VX/F1", "2031-01-22", "2031-01"},
		{"VX45/X6", "2026-11-11", ""}, {"VX/A6", "2026-11-18", ""}, {"VX/x6", "2026-11-18", ""}, {"VX/X", "2026-11-18", ""},
		{"VX/X6x", "2026-11-18", ""}, {"VX/X-6", "2026-11-18", ""}, {"VX/X+6", "2026-11-18", ""}, {"VX/6", "2026-11-18", ""},
		{"VXX6", "2026-11-18", ""}, {"VX/X06666", "2026-11-18", ""}, {"VX/X2", "2026-11-18", ""}, {"", "2026-11-18", ""},
	} {
		r, q, ok := compute.VIXTermStructure(evening("2026-10-05", future(c.symbol, c.expiration, 18)))
		if c.month == "" {
			if ok || q.Weekly != 1 {
				t.Errorf("%q is on the curve", c.symbol)
			}
			continue
		}
		if !ok || r.Curve[0].Month != c.month || len(q.ExpirationDiffer) > 0 || (q.Calendar != nil) != (c.month > "2031") {
			t.Errorf("%q: %+v, %+v", c.symbol, r.Curve, q)
		}
	}
}

func TestBadSettlements(t *testing.T) {
	rows := []compute.FuturesSettlement{future("VX/V6", "2026-10-21", 17)}
	for i, price := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		rows = append(rows, future("VX/"+string("XZFG"[i])+string("6677"[i]), []string{"2026-11-18", "2026-12-16", "2027-01-20", "2027-02-17"}[i], price))
	}
	rows = append(rows, rows[0], future("VX/X026", "2026-11-18", 18)) // a symbol for the second time, and a year of 3 digits
	c, q := curve(t, evening("2026-10-05", rows...))
	equal(t, "contracts", len(c.Curve), 1)
	equal(t, "bad rows", q.BadRows, 5)
	equal(t, "weekly", q.Weekly, 1)
	marshal(t, c)
}

// stale_sessions counts the sessions after the date of the file. Weekends and holidays do not count.
func TestStaleSessions(t *testing.T) {
	for now, want := range map[string]int{
		"2026-10-02T20:30:00Z": 0, "2026-10-03T15:00:00Z": 0, "2026-10-04T23:00:00Z": 0,
		"2026-10-05T03:59:59Z": 0, "2026-10-05T04:00:00Z": 1, // Monday begins in New York
		"2026-10-06T15:00:00Z": 2, "2026-10-10T15:00:00Z": 5,
	} {
		in := evening("2026-10-02", october5()...)
		in.Now = at(now)
		c, _ := curve(t, in)
		equal(t, now, c.StaleSessions, want)
	}
	in := evening("2026-09-04", october5()...)
	in.Now = at("2026-09-07T15:00:00Z") // Labor Day
	c, _ := curve(t, in)
	equal(t, "Labor Day", c.StaleSessions, 0)
}
