package compute_test

import (
	"fmt"
	"math"
	"slices"
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

// Every field of METHODS.md §6 agrees with a computation by hand.
func TestRecordedCurve(t *testing.T) {
	in := evening("2026-10-05", october5()...)
	in.VIX, in.VIX3M = new(16.5), new(18.75)
	in.Previous = map[string]float64{"VX/V6": 17.5, "VX/X6": 18.1393, "VX/M7": 20.6}
	c, q := curve(t, in)
	prices := []float64{17.4555, 18.1393, 18.5508, 19.3327, 19.8344, 20.0151, 20.375, 20.525, 20.7995}
	equal(t, "contracts", len(c.Curve), len(prices))
	months := []string{"2026-10", "2026-11", "2026-12", "2027-01", "2027-02", "2027-03", "2027-04", "2027-05", "2027-06"}
	days := []int{16, 44, 72, 107, 135, 163, 198, 225, 254}
	for i, f := range c.Curve {
		nearly(t, "price", f.Settlement, prices[i], 0)
		equal(t, "rank", f.Rank, i+1)
		equal(t, "month", f.Month, months[i])
		equal(t, "days to "+f.Symbol, f.DaysToExpiration, days[i])
	}
	equal(t, "symbol", c.Curve[7].Symbol, "VX/K7")
	equal(t, "expiration", c.Curve[7].Expiration, day("2027-05-18"))
	near(t, "change of V6", c.Curve[0].Change, -0.0445, 1e-12)
	near(t, "change of X6", c.Curve[1].Change, 0, 0)
	isNull(t, "change of Z6", c.Curve[2].Change)
	near(t, "change of M7", c.Curve[8].Change, 0.1995, 1e-12)

	near(t, "contango M1 M2", c.ContangoM1M2, (18.1393/17.4555-1)*100, 1e-12) // 3.9174 %
	nearly(t, "that", *c.ContangoM1M2, 3.9174, 5e-5)
	near(t, "contango M4 M7", c.ContangoM4M7, (20.375/19.3327-1)*100, 1e-12)
	near(t, "front spread", c.FrontSpread, 0.6838, 1e-12)
	near(t, "spot basis", c.SpotBasis, (17.4555/16.5-1)*100, 1e-12)
	near(t, "ratio", c.VIXRatio, 0.88, 1e-12)
	near(t, "cm30", c.CM30, 17.4555+14.0/28*(18.1393-17.4555), 1e-12) // between 16 and 44 days: 17.7974
	equal(t, "extrapolated", c.CM30Extrapolated, false)
	near(t, "roll yield", c.RollYield, (17.4555/18.1393-1)*365/28*100, 1e-9)
	// Σ (rank - 4)·price / 28 over M1..M7: -3·17.4555 - 2·18.1393 - 18.5508 + 19.8344 + 2·20.0151 + 3·20.375 = 13.7937.
	near(t, "slope", c.Slope, 13.7937/28, 1e-9)
	equal(t, "shape", c.Shape, "upward")
	text(t, "regime", c.Regime, "contango")
	equal(t, "basis", c.RegimeBasis, "m1_m2")
	text(t, "cash regime", c.CashRegime, "contango")
	text(t, "level", c.VolLevel, "normal")
	near(t, "vix", c.VIX, 16.5, 0)
	near(t, "vix3m", c.VIX3M, 18.75, 0)
	isNull(t, "final settlement", c.FinalSettlement)
	equal(t, "stale", c.StaleSessions, 0)
	equal(t, "date", c.SettlementDate, day("2026-10-05"))
	equal(t, "rows", fmt.Sprint(q.Rows, q.Monthly, q.Weekly, q.OtherProducts, q.BadRows, q.ExpirationDiffer), "16 9 5 2 0 []")
	isNull(t, "calendar", q.Calendar)
	equal(t, "percentile", string(marshal(t, c.Percentiles.SpotBasis)), `{"percentile":null,"n":1}`)
}

// The order of the rows does not matter. The rows of the caller are not changed.
func TestCurveIsSorted(t *testing.T) {
	rows := october5()
	slices.Reverse(rows)
	first := rows[0]
	c, _ := curve(t, evening("2026-10-05", rows...))
	want, _ := curve(t, evening("2026-10-05", october5()...))
	equal(t, "curve", string(marshal(t, c)), string(marshal(t, want)))
	equal(t, "the caller's row", rows[0], first)
}

// The contract that expires on the settlement date leaves the curve; M1 is the first strictly after it.
func TestExpirationDay(t *testing.T) {
	rows := october5()
	rows[2].Price = 16.91 // the final settlement is a VIX value
	c, q := curve(t, evening("2026-10-21", rows...))
	near(t, "final settlement", c.FinalSettlement, 16.91, 0)
	equal(t, "M1", c.Curve[0].Symbol, "VX/X6")
	equal(t, "rank", c.Curve[0].Rank, 1)
	equal(t, "days", c.Curve[0].DaysToExpiration, 28)
	near(t, "front spread", c.FrontSpread, 18.5508-18.1393, 1e-12)
	equal(t, "monthly", q.Monthly, 9)
	c, q = curve(t, evening("2026-10-22", rows...))
	isNull(t, "final settlement the day after", c.FinalSettlement)
	equal(t, "M1", c.Curve[0].Symbol, "VX/X6")
	equal(t, "a contract in the past", q.BadRows, 1)
	if _, _, ok := compute.VIXTermStructure(evening("2027-06-16", october5()...)); ok {
		t.Error("a curve without a contract")
	}
	if _, _, ok := compute.VIXTermStructure(evening("2026-10-05")); ok {
		t.Error("a curve from a header alone")
	}
}

// Monthly symbols are VX/<month letter><year>. Every other symbol of product VX is weekly.
func TestMonthlySymbols(t *testing.T) {
	for _, c := range []struct {
		symbol, expiration string
		month              string // empty: not monthly
	}{
		{"VX/X6", "2026-11-18", "2026-11"}, {"VX/X26", "2026-11-18", "2026-11"}, {"VX/X2026", "2026-11-18", "2026-11"},
		{"VX/F7", "2027-01-20", "2027-01"}, {"VX/F0", "2030-01-16", "2030-01"},
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
		if !ok || r.Curve[0].Month != c.month || len(q.ExpirationDiffer) > 0 {
			t.Errorf("%q: %+v, %+v", c.symbol, r.Curve, q)
		}
	}
}

// A monthly contract whose expiration is not the computed one keeps the date of the file and is named.
func TestExpirationDiffers(t *testing.T) {
	c, q := curve(t, evening("2026-10-05", future("VX/V6", "2026-10-21", 17), future("VX/X6", "2026-11-17", 18)))
	equal(t, "date", c.Curve[1].Expiration, day("2026-11-17"))
	equal(t, "differs", fmt.Sprint(q.ExpirationDiffer), "[VX/X6]")
	// The Tuesdays of 2026 and 2027 are computed: nothing differs.
	_, q = curve(t, evening("2026-05-01", future("VX/K6", "2026-05-19", 17), future("VX/K7", "2027-05-18", 18)))
	equal(t, "differs", len(q.ExpirationDiffer), 0)
	_, q = curve(t, evening("2026-10-05", future("VX/V6", "2026-10-21", 17), future("VX/F1", "2031-01-15", 18)))
	if q.Calendar == nil {
		t.Error("no note says that 2031 is not verified")
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
