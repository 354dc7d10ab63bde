package compute

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

var testCalendar = NewCalendar(nil, nil)

// The hours of the options are known until a day at least 90 days away. When this test fails, look whether the sources of the table still
// say the same, and whether there are new ones; then move verifiedHours. Its clock is the real one on purpose.
func TestVerifiedHours(t *testing.T) {
	if left := verifiedHours - DateOf(time.Now()); left < 90 {
		t.Errorf("the hours are verified for %d more days only, until %s", left, verifiedHours)
	}
}

func (c clock) String() string { return c.on(NewDate(2026, time.June, 10)).Format("15:04") }

// METHODS.md has the rows of the table, and its lists of symbols.
func TestHoursInMethods(t *testing.T) {
	text, err := os.ReadFile("METHODS.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, r := range hours {
		days, from := map[dayKind]string{beforeSession: "nights", inSession: "sessions", afterSession: "evenings", onHoliday: "holidays", onOneDay: "that day"}[r.days], "ever"
		if r.seen && r.days == beforeSession {
			days = "mornings"
		}
		if r.from != 0 {
			from = r.from.String()
		}
		want = append(want, fmt.Sprintf("| %s | %s | %s | %s to %s | %s |", r.class, days, from, r.opens, r.closes, r.source))
	}
	want = append(want, fmt.Sprintf("| %s | fund | the symbol, PM | funds to 16:15 | American, shares | `last`, `implied`, `close` |", strings.Join(tailFunds, " ")),
		strings.Join(otherIndices, " ")+".", "verified until "+verifiedHours.String())
	for _, line := range want {
		if !strings.Contains(string(text), line) {
			t.Errorf("METHODS.md lacks %s", line)
		}
	}
}

func newYork(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.ParseInLocation("2006-01-02 15:04:05", s, NewYork)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// The instant of the quotes of a document, by the exchanges' hours.
func TestHoursOfQuotes(t *testing.T) {
	for _, c := range []struct{ symbol, quoted, want string }{ // quoted: 15 minutes before the document was made
		{"SPX", "2026-08-11 18:20:00", "2026-08-11 16:15:00"}, {"SPX", "2026-08-11 20:15:00", "2026-08-11 20:15:00"},
		{"XSP", "2026-08-11 20:14:59", "2026-08-11 16:15:00"}, {"XSP", "2023-07-09 02:00:00", "2023-07-07 16:15:00"}, // a Sunday
		{"SPX", "2023-07-09 20:15:00", "2023-07-09 20:15:00"}, {"SPX", "2026-08-14 21:00:00", "2026-08-14 16:15:00"}, // a Friday
		{"SPX", "2015-03-06 04:00:00", "2015-03-05 16:15:00"}, {"SPX", "2015-03-09 04:00:00", "2015-03-09 04:00:00"},
		{"SPX", "2021-11-19 02:59:00", "2021-11-18 16:15:00"}, {"SPX", "2021-11-21 20:30:00", "2021-11-21 20:30:00"},
		{"SPX", "2024-08-23 09:24:00", "2024-08-23 09:15:00"}, {"SPX", "2024-08-26 09:24:00", "2024-08-26 09:24:00"}, {"SPX", "2024-08-26 09:29:59", "2024-08-26 09:25:00"},
		{"SPX", "2021-09-06 03:30:00", "2021-09-03 16:15:00"}, {"SPX", "2022-05-30 03:00:00", "2022-05-30 03:00:00"}, // Labor Day, Memorial Day
		{"XSP", "2026-07-02 21:00:00", "2026-07-02 21:00:00"}, {"XSP", "2026-07-03 12:00:00", "2026-07-03 11:30:00"}, // Independence Day, kept on a Friday
		{"SPX", "2026-07-03 21:00:00", "2026-07-03 11:30:00"}, {"SPX", "2026-01-19 21:00:00", "2026-01-19 21:00:00"}, // MLK, a Monday
		{"SPX", "2025-12-25 08:00:00", "2025-12-24 13:15:00"}, {"SPX", "2025-12-24 21:00:00", "2025-12-24 13:15:00"}, {"SPX", "2025-12-25 20:15:00", "2025-12-25 20:15:00"},
		{"SPX", "2027-12-31 16:20:00", "2027-12-31 16:15:00"}, {"SPX", "2025-01-09 09:26:00", "2025-01-09 09:25:00"}, {"SPX", "2018-12-05 04:00:00", "2018-12-04 16:15:00"},
		{"SPX", "2026-03-08 20:15:00", "2026-03-08 20:15:00"}, {"SPX", "2026-11-01 20:14:00", "2026-10-30 16:15:00"}, // the clocks changed that morning
		{"RUT", "2026-02-06 03:00:00", "2026-02-05 16:15:00"}, {"RUT", "2026-02-08 20:15:00", "2026-02-08 20:15:00"}, {"RUT", "2026-09-07 11:00:00", "2026-09-07 11:00:00"},
		{"NDX", "2026-09-07 11:00:00", "2026-09-04 16:15:00"}, {"MRUT", "2026-11-18 03:00:00", "2026-11-18 03:00:00"}, {"XND", "2026-11-18 03:00:00", "2026-11-17 16:15:00"}, {"DJX", "2026-11-27 13:16:00", "2026-11-27 13:15:00"},
		{"SPX", "2026-11-27 12:59:00", "2026-11-27 12:59:00"}, {"AAPL", "2026-11-27 13:16:00", "2026-11-27 13:00:00"}, {"SPY", "2026-11-27 13:16:00", "2026-11-27 13:15:00"},
		{"GLD", "2026-08-11 16:10:00", "2026-08-11 16:10:00"}, {"IBIT", "2025-11-07 16:10:00", "2025-11-07 16:00:00"}, {"IBIT", "2025-11-10 16:10:00", "2025-11-10 16:10:00"},
		{"BRK.B", "2026-08-11 16:10:00", "2026-08-11 16:00:00"}, {"NVDA", "2026-10-07 08:00:00", "2026-10-06 16:00:00"},
	} {
		quoted := newYork(t, c.quoted)
		chain := Chain{UnderlyingQuote: UnderlyingQuote{Symbol: c.symbol, AsOf: quoted.Add(-time.Hour), CapturedAt: quoted.Add(quoteDelay)}}
		if q := chain.QuoteInstant(testCalendar); !q.Equal(newYork(t, c.want)) {
			t.Errorf("%s at %s: %s, want %s", c.symbol, c.quoted, q.In(NewYork), c.want)
		}
	}
}

// Stocks have a morning and an evening only where a contract has traded in it.
func TestMorningAndEveningOfStocks(t *testing.T) {
	for _, c := range []struct{ symbol, quoted, traded, want string }{
		{"NVDA", "2026-10-07 08:00:00", "2026-10-07 08:00:01", "2026-10-07 08:00:00"},
		{"NVDA", "2026-10-07 08:00:00", "2026-10-06 15:59:59", "2026-10-06 16:00:00"},
		{"NVDA", "2026-10-07 08:00:00", "2026-10-07 07:29:59", "2026-10-06 16:00:00"},
		{"SPY", "2026-10-07 08:00:00", "2026-10-07 08:00:01", "2026-10-06 16:15:00"},
		{"NVDA", "2026-10-07 08:00:00", "2026-10-06 16:14:00", "2026-10-06 16:15:00"},
		{"NVDA", "2026-10-06 16:10:00", "2026-10-06 16:09:00", "2026-10-06 16:10:00"},
		{"NVDA", "2026-10-06 19:00:00", "2026-10-06 16:09:00", "2026-10-06 16:15:00"},
		{"NVDA", "2026-10-06 19:00:00", "2026-10-06 16:01:29", "2026-10-06 16:00:00"}, // reported late
		{"NVDA", "2026-07-10 19:00:00", "2026-07-10 16:09:00", "2026-07-10 16:00:00"}, // before 2026-07-13
		{"NVDA", "2026-11-27 13:10:00", "2026-11-27 13:09:00", "2026-11-27 13:10:00"}, // an early close
		{"NVDA", "2026-11-27 19:10:00", "2026-11-27 15:59:59", "2026-11-27 13:00:00"},
	} {
		quoted := newYork(t, c.quoted)
		head := UnderlyingQuote{Symbol: c.symbol, AsOf: quoted, CapturedAt: quoted.Add(quoteDelay)}
		chain := Chain{UnderlyingQuote: head, Contracts: []Contract{{Quote: Quote{LastTrade: newYork(t, c.traded).Unix()}}}}
		if q := chain.QuoteInstant(testCalendar); !q.Equal(newYork(t, c.want)) {
			t.Errorf("%s, traded at %s: %s, want %s", c.symbol, c.traded, q.In(NewYork), c.want)
		}
	}
}

// What expires on a day without a session settles in the session before.
func TestSettlementOfClosedDays(t *testing.T) {
	for _, c := range []struct {
		settlement Settlement
		date, want string
	}{
		{PM, "2018-12-05", "2018-12-04 16:00:00"}, {AM, "2018-12-05", "2018-12-04 09:30:00"}, {AM, "2015-01-17", "2015-01-16 09:30:00"},
		{PM, "2014-11-29", "2014-11-28 13:00:00"}, {PM, "2026-07-03", "2026-07-02 16:00:00"}, {PM, "2025-04-17", "2025-04-17 16:00:00"},
	} {
		d, err := ParseDate(c.date)
		if got := c.settlement.Instant(d, testCalendar); err != nil || !got.Equal(newYork(t, c.want)) {
			t.Errorf("%s %s: %s, want %s (%v)", c.date, c.settlement, got.In(NewYork), c.want, err)
		}
	}
}

// Where T is wrong, our volatilities and the published ones differ by the root of the two T, and a note says so. The prices are Black–76
// of the true T; the published volatility is the one of the prices.
func TestPublishedRatio(t *testing.T) {
	for _, c := range []struct {
		quoted   string        // the instant of the document
		off      time.Duration // by which T of the document is too long
		ratio    float64
		isNoted  bool
		contract float64 // published volatility of a contract; 0: absent
	}{
		{"2026-10-08 03:00:00", 0, 1, false, 0.2}, {"2026-10-08 03:00:00", time.Hour, math.Sqrt(36.0 / 37), true, 0.2},
		{"2026-10-08 03:00:00", 6 * time.Hour, math.Sqrt(31.0 / 37), true, 0.2}, {"2026-10-08 03:00:00", 16 * time.Hour, math.Sqrt(21.0 / 37), true, 0.2},
		{"2026-10-08 18:00:00", time.Hour, math.Sqrt(22.75 / 23.75), false, 0.2}, {"2026-10-08 18:00:00", 6 * time.Hour, math.Sqrt(17.75 / 23.75), true, 0.2},
		{"2026-10-08 03:00:00", 6 * time.Hour, math.NaN(), false, 0},
	} {
		quoted := newYork(t, c.quoted)
		head := UnderlyingQuote{Symbol: "SPX", Spot: 6000, AsOf: quoted, CapturedAt: quoted.Add(quoteDelay)}
		settles := newYork(t, "2026-10-09 16:00:00")
		v := 0.2 * math.Sqrt((settles.Sub((&Chain{UnderlyingQuote: head}).QuoteInstant(testCalendar))-c.off).Hours()/(365*24))
		var b ChainBuilder
		for k := 5950.0; k <= 6050; k += 10 {
			for right, letter := range "CP" {
				price := BlackValue(Right(right), 6000, k, v)
				b.Add(fmt.Appendf(nil, "SPXW261009%c%08.0f", letter, k*1000), Quote{Bid: price, Ask: price, OpenInterest: 1, IV: c.contract})
			}
		}
		chain, err := b.Build(head)
		if err != nil {
			t.Fatal(err)
		}
		q := GammaExposure(GammaInput{Chain: chain, Calendar: testCalendar}).Quality.HoursQuality
		if got := ratioOf(q.PublishedIVRatio); !(math.Abs(got-c.ratio) < 1e-6) && !(math.IsNaN(got) && math.IsNaN(c.ratio)) || (q.Hours != nil) != c.isNoted {
			t.Errorf("%s, T too long by %s: %v, want %v; noted %v", c.quoted, c.off, got, c.ratio, q.Hours)
		}
	}
}

func ratioOf(r *Ratio) float64 {
	if r == nil {
		return math.NaN()
	}
	return float64(*r)
}

// Quotes of a later day than the table is verified for are noted.
func TestHoursNote(t *testing.T) {
	for at, want := range map[string]bool{"2027-12-31 12:00:00": false, "2028-01-01 12:00:00": false, "2028-01-03 12:00:00": true} {
		chain := Chain{UnderlyingQuote: UnderlyingQuote{Symbol: "SPY", AsOf: newYork(t, at), CapturedAt: newYork(t, at)}}
		if note := chain.HoursNote(testCalendar); (note != nil) != want {
			t.Errorf("%s: %v", at, note)
		}
	}
}
