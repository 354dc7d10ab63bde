package compute_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"strikecache/compute"
)

// baseDays are the base days of Tuesday 2026-08-11: 5 sessions back is 2026-08-04. A month back is Saturday 07-11, so
// Friday 07-10. Three months back is Monday 05-11. The last is the last session of 2025.
var baseDays = []string{"2025-12-31", "2026-05-11", "2026-07-10", "2026-08-04"}

// quoteOf is a fund at a price, with the day's return in percent and closes on the base days.
func quoteOf(price, dayReturn float64, closes ...float64) compute.Fund {
	f := compute.Fund{Quote: compute.UnderlyingQuote{Spot: price, PriceChangePercent: dayReturn, AsOf: at("2026-08-11T20:00:00Z")}}
	for i, c := range closes {
		f.Closes = append(f.Closes, compute.Close{Date: day(baseDays[i]), Price: c})
	}
	return f
}

// market is SPY and the 11 funds with the day returns -0.5, -0.4 … 0.5 in the order of the sectors.
func market() map[string]compute.Fund {
	funds := map[string]compute.Fund{"SPY": quoteOf(660, 0.05, 600, 640, 650, 655)}
	for i, s := range compute.Sectors {
		n := float64(i)
		funds[s.Symbol] = quoteOf(110, (n-5)/10, 100, 110-n, 100+n, 105)
	}
	return funds
}

func rotation(t *testing.T, funds map[string]compute.Fund) compute.Rotation {
	t.Helper()
	r, ok := compute.SectorRotation(compute.SectorsInput{Funds: funds, Calendar: cal})
	if !ok {
		t.Fatal("no rotation")
	}
	return r
}

func sector(t *testing.T, r compute.Rotation, symbol string) compute.SectorRow {
	t.Helper()
	i := slices.IndexFunc(r.Sectors, func(s compute.SectorRow) bool { return s.Symbol == symbol })
	if i < 0 {
		t.Fatalf("no %s", symbol)
	}
	return r.Sectors[i]
}

func TestSectorReturns(t *testing.T) {
	r := rotation(t, market())
	equal(t, "session", r.SessionDate, day("2026-08-11"))
	equal(t, "missing", len(r.Missing), 0)
	b := r.Benchmark.Returns
	near(t, "SPY day", b.Day, 0.05, 0)
	near(t, "SPY week", b.Week, (660.0/655-1)*100, 1e-12)
	near(t, "SPY month", b.Month, (660.0/650-1)*100, 1e-12)
	near(t, "SPY quarter", b.Quarter, (660.0/640-1)*100, 1e-12)
	near(t, "SPY ytd", b.YTD, 10, 1e-12)
	near(t, "SPY price", r.Benchmark.Price, 660, 0)
	for i, s := range compute.Sectors {
		got, n := sector(t, r, s.Symbol), float64(i)
		near(t, s.Symbol+" day", got.Returns.Day, (n-5)/10, 0)
		near(t, s.Symbol+" week", got.Returns.Week, (110.0/105-1)*100, 1e-12)
		near(t, s.Symbol+" month", got.Returns.Month, (110/(100+n)-1)*100, 1e-12)
		near(t, s.Symbol+" quarter", got.Returns.Quarter, (110/(110-n)-1)*100, 1e-12)
		near(t, s.Symbol+" ytd", got.Returns.YTD, 10, 1e-12)
		near(t, s.Symbol+" day over SPY", got.Relative.Day, (n-5)/10-0.05, 1e-12)
		near(t, s.Symbol+" month over SPY", got.Relative.Month, (110/(100+n)-660.0/650)*100, 1e-12)
		near(t, s.Symbol+" ytd over SPY", got.Relative.YTD, 0, 1e-12)
		// Returns of the day and quarter rise with n, those of the month fall; week and ytd tie and follow the day.
		equal(t, s.Symbol+" rank", fmt.Sprint(*got.Rank.Day, *got.Rank.Week, *got.Rank.Month, *got.Rank.Quarter, *got.Rank.YTD),
			fmt.Sprint(11-i, 11-i, i+1, 11-i, 11-i))
		nearly(t, s.Symbol+" price", got.Price, 110, 0)
	}
}

// Sectors with equal returns of the period and of the day are ranked by symbol.
func TestSectorRankTies(t *testing.T) {
	funds := market()
	for symbol := range funds {
		funds[symbol] = quoteOf(110, 1, 100, 100, 100, 100)
	}
	funds["XLE"] = quoteOf(110, 2, 100, 100, 100, 100)
	r := rotation(t, funds)
	for i, symbol := range []string{"XLE", "XLB", "XLC", "XLF", "XLI", "XLK", "XLP", "XLRE", "XLU", "XLV", "XLY"} {
		got := sector(t, r, symbol).Rank
		equal(t, symbol, fmt.Sprint(*got.Day, *got.Week, *got.Month, *got.Quarter, *got.YTD), fmt.Sprint(i+1, i+1, i+1, i+1, i+1))
	}
	equal(t, "leaders", fmt.Sprint(r.Leaders), "[{XLE Energy 2} {XLB Materials 1} {XLC Communication Services 1}]")
	for _, m := range r.Laggards {
		nearly(t, "laggard", m.Return, 1, 0)
	}
	equal(t, "above benchmark", *r.Breadth.AboveBenchmark, 1)
	r.Breadth.AboveBenchmark = nil
	equal(t, "breadth", r.Breadth, compute.Breadth{Advancing: 11}) // SPY, too, returned 1 %
}

func TestSectorSummary(t *testing.T) {
	r := rotation(t, market())
	// In the order XLC XLY XLP XLE XLF XLV XLI XLK XLB XLRE XLU the returns are -0.5 to 0.5.
	equal(t, "leaders", fmt.Sprint(r.Leaders), "[{XLU Utilities 0.5} {XLRE Real Estate 0.4} {XLB Materials 0.3}]")
	equal(t, "laggards", fmt.Sprint(r.Laggards), "[{XLC Communication Services -0.5} {XLY Consumer Discretionary -0.4} {XLP Consumer Staples -0.3}]")
	equal(t, "above benchmark", *r.Breadth.AboveBenchmark, 5)
	r.Breadth.AboveBenchmark = nil
	equal(t, "breadth", r.Breadth, compute.Breadth{Advancing: 5, Declining: 5, Unchanged: 1})
	// Σ n² for n = -5 … 5 is 110: the deviation with n in the denominator is √10 tenths.
	near(t, "stdev", r.Dispersion.Stdev, math.Sqrt(10)/10, 1e-12)
	near(t, "range", r.Dispersion.Range, 1, 1e-12)
	// XLY -0.4, XLF -0.1, XLI 0.1, XLB 0.3, XLK 0.2 average 0.02; XLP -0.3, XLU 0.5, XLV 0 average 0.2/3.
	near(t, "cyclical minus defensive", r.CycMinusDef, 0.02-0.2/3, 1e-12)
	text(t, "tone", r.Tone, "mixed")
	equal(t, "mixed session", r.Mixed, false)
}

// The tone is risk_on above +0.5 and risk_off below -0.5. At exactly ±0.5 it is mixed.
func TestTone(t *testing.T) {
	for spread, want := range map[float64]string{0.5: "mixed", 0.501: "risk_on", -0.5: "mixed", -0.501: "risk_off", 3: "risk_on", -3: "risk_off"} {
		funds := market()
		for _, s := range []string{"XLY", "XLF", "XLI", "XLB", "XLK"} {
			funds[s] = quoteOf(110, 1+spread)
		}
		for _, s := range []string{"XLP", "XLU", "XLV"} {
			funds[s] = quoteOf(110, 1)
		}
		r := rotation(t, funds)
		near(t, "spread", r.CycMinusDef, spread, 1e-12)
		text(t, fmt.Sprint("tone of ", spread), r.Tone, want)
	}
	for _, symbol := range []string{"XLK", "XLV"} { // missing, and without the day's return
		funds := market()
		delete(funds, symbol)
		isNull(t, "spread without "+symbol, rotation(t, funds).CycMinusDef)
		isNull(t, "tone without "+symbol, rotation(t, funds).Tone)
		funds[symbol] = quoteOf(110, math.NaN())
		isNull(t, "spread without a return of "+symbol, rotation(t, funds).CycMinusDef)
		isNull(t, "tone without a return of "+symbol, rotation(t, funds).Tone)
	}
	funds := market()
	delete(funds, "XLE")
	text(t, "tone without XLE", rotation(t, funds).Tone, "mixed")
}

// If a fund is missing, the others are served. The fund is listed as missing and has no rank.
func TestMissingFunds(t *testing.T) {
	funds := market()
	delete(funds, "XLU")
	delete(funds, "XLC")
	funds["XLE"] = quoteOf(90, math.NaN(), 100, 100, 100, 100)
	r := rotation(t, funds)
	equal(t, "missing", fmt.Sprint(r.Missing), "[XLC XLU]")
	equal(t, "sectors", len(r.Sectors), 9)
	energy := sector(t, r, "XLE")
	isNull(t, "rank of an unknown day", energy.Rank.Day)
	isNull(t, "unknown day", energy.Returns.Day)
	isNull(t, "unknown day over SPY", energy.Relative.Day)
	equal(t, "rank of a known week", *energy.Rank.Week, 9)
	equal(t, "best day", *sector(t, r, "XLRE").Rank.Day, 1)
	equal(t, "worst day", *sector(t, r, "XLY").Rank.Day, 8)
	equal(t, "above benchmark", *r.Breadth.AboveBenchmark, 4)
	r.Breadth.AboveBenchmark = nil
	equal(t, "breadth", r.Breadth, compute.Breadth{Advancing: 4, Declining: 3, Unchanged: 1})
	near(t, "range", r.Dispersion.Range, 0.8, 1e-12)

	for symbol := range funds {
		if symbol != "SPY" && symbol != "XLK" {
			delete(funds, symbol)
		}
	}
	r = rotation(t, funds)
	equal(t, "the only leader", fmt.Sprint(r.Leaders, r.Laggards), "[{XLK Information Technology 0.2}] [{XLK Information Technology 0.2}]")
	near(t, "stdev of one", r.Dispersion.Stdev, 0, 0)
	delete(funds, "XLK")
	if _, ok := compute.SectorRotation(compute.SectorsInput{Funds: funds, Calendar: cal}); ok {
		t.Error("a rotation without a sector")
	}
	if _, ok := compute.SectorRotation(compute.SectorsInput{Calendar: cal}); ok {
		t.Error("a rotation of nothing")
	}
}

// A return is null if the history begins after its base day. A fund without a history has only its day's return.
func TestShortHistories(t *testing.T) {
	funds := market()
	short := quoteOf(110, 0.1, 100, 105, 100, 105)
	short.Closes = short.Closes[2:]
	funds["XLK"] = short
	funds["XLB"] = quoteOf(110, 0.3)
	r := rotation(t, funds)
	tech, none := sector(t, r, "XLK"), sector(t, r, "XLB")
	near(t, "week", tech.Returns.Week, (110.0/105-1)*100, 1e-12)
	near(t, "month", tech.Returns.Month, 10, 1e-12)
	isNull(t, "quarter", tech.Returns.Quarter)
	isNull(t, "ytd", tech.Returns.YTD)
	isNull(t, "quarter over SPY", tech.Relative.Quarter)
	isNull(t, "rank of the quarter", tech.Rank.Quarter)
	isNull(t, "rrg", tech.RRG)
	near(t, "day", none.Returns.Day, 0.3, 0)
	isNull(t, "week of no history", none.Returns.Week)
	funds["SPY"] = quoteOf(660, 0.05)
	isNull(t, "week over an unknown benchmark", sector(t, rotation(t, funds), "XLK").Relative.Week)
	near(t, "day over it", sector(t, rotation(t, funds), "XLK").Relative.Day, 0.05, 1e-12)
}

// The last day of a shorter month, holidays and the turn of the year. Every day of 2025 and 2026 has a different close, so
// that a return shows its base day.
func TestBaseDays(t *testing.T) {
	for _, c := range []struct{ session, week, month, quarter, ytd string }{
		{"2026-08-11", "2026-08-04", "2026-07-10", "2026-05-11", "2025-12-31"},
		{"2026-03-31", "2026-03-24", "2026-02-27", "2025-12-31", "2025-12-31"}, // 31 February, a Saturday
		{"2026-05-29", "2026-05-21", "2026-04-29", "2026-02-27", "2025-12-31"}, // Memorial Day in the week; 29 February
		{"2026-07-31", "2026-07-24", "2026-06-30", "2026-04-30", "2025-12-31"},
		{"2026-01-02", "2025-12-24", "2025-12-02", "2025-10-02", "2025-12-31"}, // Christmas and New Year in the week
		{"2026-04-20", "2026-04-13", "2026-03-20", "2026-01-20", "2025-12-31"},
		{"2026-12-31", "2026-12-23", "2026-11-30", "2026-09-30", "2025-12-31"},
	} {
		session := day(c.session)
		f := compute.Fund{Quote: compute.UnderlyingQuote{Spot: 1000, PriceChangePercent: 1, AsOf: session.At(16, 0, 0, compute.NewYork)}}
		for d := day("2025-01-02"); d <= session; d++ {
			if cal.IsSession(d) {
				f.Closes = append(f.Closes, compute.Close{Date: d, Price: float64(d)})
			}
		}
		r := rotation(t, map[string]compute.Fund{"SPY": f, "XLK": f})
		for _, p := range []struct {
			name string
			got  *compute.Ratio
			base string
		}{{"week", r.Benchmark.Returns.Week, c.week}, {"month", r.Benchmark.Returns.Month, c.month},
			{"quarter", r.Benchmark.Returns.Quarter, c.quarter}, {"ytd", r.Benchmark.Returns.YTD, c.ytd}} {
			near(t, c.session+" "+p.name, p.got, (1000/float64(day(p.base))-1)*100, 1e-9)
		}
	}
}

// The session is the newest session of the quotes. If a quote has an older one, mixed_session is true.
func TestMixedSession(t *testing.T) {
	for _, stale := range []string{"SPY", "XLC", "XLU"} {
		funds := market()
		f := funds[stale]
		f.Quote.AsOf = at("2026-08-10T20:00:00Z")
		funds[stale] = f
		r := rotation(t, funds)
		equal(t, stale+" is older", r.Mixed, true)
		equal(t, "session", r.SessionDate, day("2026-08-11"))
	}
	funds := market()
	for symbol, f := range funds {
		f.Quote.AsOf = at("2026-08-16T15:00:00Z") // a Sunday
		funds[symbol] = f
	}
	r := rotation(t, funds)
	equal(t, "one session", r.Mixed, false)
	equal(t, "the Friday's", r.SessionDate, day("2026-08-14"))
}

// Without the benchmark, the sectors are still served.
func TestRotationWithoutBenchmark(t *testing.T) {
	funds := market()
	delete(funds, compute.Benchmark)
	r := rotation(t, funds)
	equal(t, "sectors", len(r.Sectors), 11)
	equal(t, "missing", r.Missing[0], compute.Benchmark)
	isNull(t, "price", r.Benchmark.Price)
	isNull(t, "relative", r.Sectors[0].Relative.Day)
	isNull(t, "above benchmark", r.Breadth.AboveBenchmark)
	if r.Sectors[0].Rank.Day == nil || r.Tone == nil {
		t.Error("ranks and tone do not rest on the benchmark")
	}
}
