package compute_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"strikecache/compute"
)

// future is a row of the settlement file.
func future(symbol, expiration string, price float64) compute.FuturesSettlement {
	return compute.FuturesSettlement{Product: "VX", Symbol: symbol, Expiration: day(expiration), Price: price}
}

// prices returns monthly contracts from October 2026 on.
func prices(values ...float64) (rows []compute.FuturesSettlement) {
	contracts := strings.Fields(`VX/V6 2026-10-21 VX/X6 2026-11-18 VX/Z6 2026-12-16 VX/F7 2027-01-20 VX/G7 2027-02-17 VX/H7 2027-03-17
		VX/J7 2027-04-21 VX/K7 2027-05-18`)
	for i, price := range values {
		rows = append(rows, future(contracts[2*i], contracts[2*i+1], price))
	}
	return rows
}

// evening returns the input for a file that is read on its date.
func evening(date string, rows ...compute.FuturesSettlement) compute.VIXInput {
	return compute.VIXInput{Date: day(date), Rows: rows, Calendar: cal, Today: day(date)}
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
	_, q := curve(t, evening("2026-10-22", prices(17, 18)...))
	equal(t, "a contract in the past", q.BadRows, 1)
	if _, _, ok := compute.VIXTermStructure(evening("2026-11-18", prices(17, 18)...)); ok {
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

// On contango M1 to M2, M1 = 20: ≥ 8 steep_contango, ≥ 1.5 contango, > -1.5 flat, > -8 backwardation, else steep.
func TestVIXRegime(t *testing.T) {
	for _, c := range []struct {
		m2   float64
		want string
	}{
		{25, "steep_contango"}, {21.6, "steep_contango"}, {21.5999, "contango"}, {20.3001, "contango"}, {20.2999, "flat"},
		{20, "flat"}, {19.7001, "flat"}, {19.7, "backwardation"}, {18.4001, "backwardation"}, {18.3999, "steep_backwardation"},
		{10, "steep_backwardation"},
	} {
		r, _ := curve(t, evening("2026-10-05", prices(20, c.m2, 30)...))
		text(t, fmt.Sprint("M2 ", c.m2), r.Regime, c.want)
		equal(t, "basis", r.RegimeBasis, "m1_m2")
	}
}

// A percentile needs 20 values, including today's, and compares them as they are served. Today's contango is 5.88235… %, of which 5.8824 is
// stored: equal values count half.
func TestPercentiles(t *testing.T) {
	for n, want := range map[int]string{18: "null", 19: "50"} {
		in := evening("2026-10-05", prices(17, 18)...)
		in.History = slices.Repeat([]compute.VIXHistory{{ContangoM1M2: new(compute.Ratio(5.8824))}}, n)
		r, _ := curve(t, in)
		equal(t, fmt.Sprint("percentile of ", n+1), string(marshal(t, r.Percentiles.ContangoM1M2.Percentile)), want)
	}
}
