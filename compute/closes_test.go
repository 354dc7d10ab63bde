package compute_test

import (
	"fmt"
	"math"
	"testing"

	"strikecache/compute"
)

// steady returns 12 funds with closes of 100 in 300 sessions up to Tuesday 2026-08-11, and quotes of 100 at noon of the day after.
func steady() map[string]compute.Fund {
	funds := map[string]compute.Fund{}
	for n, symbol := range compute.FundSymbols() {
		f := compute.Fund{Quote: compute.UnderlyingQuote{Symbol: symbol, Spot: 100, AsOf: at("2026-08-12T16:00:00Z"), CapturedAt: at("2026-08-12T16:15:00Z")}}
		for i, d := 0, cal.Back(day("2026-08-12"), 300); d < day("2026-08-12"); i, d = i+1, cal.Next(d) {
			f.Closes = append(f.Closes, compute.Close{Date: d, Price: 100 * (1 + 0.01*math.Sin(float64(i*(n+3))/9))})
		}
		f.Closes[len(f.Closes)-1].Price = 100
		funds[symbol] = f
	}
	return funds
}

// moved multiplies the closes before a date.
func moved(f compute.Fund, before string, by float64) compute.Fund {
	for i := range f.Closes {
		if f.Closes[i].Date < day(before) {
			f.Closes[i].Price *= by
		}
	}
	return f
}

// shown is which figures of a fund are known: day, week, month, quarter, ytd, rrg.
func shown(p compute.Periods, g *compute.RRG) string {
	out := ""
	for i, x := range []*compute.Ratio{p.Day, p.Week, p.Month, p.Quarter, p.YTD} {
		if x != nil {
			out += "dwmqy"[i : i+1]
		}
	}
	if g != nil {
		out += "g"
	}
	return out
}

// A jump that no market made takes every figure whose base lies before it, whatever its size and direction. A crash takes none.
func TestPriceJump(t *testing.T) {
	for _, c := range []struct {
		name, symbol, date string
		factor             float64 // of the closes before the date
		want               string
	}{
		{"2:1", "XLK", "2026-07-20", 2, "dw"},
		{"1231:1000", "XLF", "2026-07-20", 1.231, "dw"},
		{"3:2", "XLU", "2026-06-01", 1.5, "dwm"},
		{"5:4", "XLU", "2026-03-02", 1.25, "dwmq"},
		{"10:1 in the week", "XLB", "2026-08-10", 10, "d"},
		{"1:4", "XLRE", "2026-07-20", 0.25, "dw"},
		{"1:10 long ago", "XLV", "2025-08-01", 0.1, "dwmqyg"},
		{"on the day: only the quote has it", "XLE", "2026-08-12", 2, "d"},
		{"XLE of 2020-03-09 beside a still SPY", "XLE", "2026-07-20", 1.154, "dwmqyg"},
	} {
		funds := steady()
		funds[c.symbol] = moved(funds[c.symbol], c.date, c.factor)
		r, used := compute.SectorRotation(compute.SectorsInput{Funds: funds, Calendar: cal})
		equal(t, c.name+": jump", used[c.symbol].Jump == cal.Previous(day(c.date)), max(c.factor, 1/c.factor) > 1.18)
		for _, s := range r.Sectors {
			want := "dwmqyg"
			if s.Symbol == c.symbol {
				want = c.want
			}
			equal(t, c.name+": "+s.Symbol, shown(s.Returns, s.RRG), want)
			equal(t, c.name+": relative "+s.Symbol, shown(s.Relative, s.RRG), want)
			equal(t, c.name+": rank of the month "+s.Symbol, s.Rank.Month != nil, s.Relative.Month != nil)
		}
	}
}

// On 2025-12-05 five sector funds were split 2:1. On a day on which the whole market falls by 25 %, none is.
func TestPriceJumpsTogether(t *testing.T) {
	funds := steady()
	for _, symbol := range []string{"XLB", "XLE", "XLK", "XLU", "XLY"} {
		funds[symbol] = moved(funds[symbol], "2026-07-20", 2)
	}
	split := ""
	_, used := compute.SectorRotation(compute.SectorsInput{Funds: funds, Calendar: cal})
	for _, symbol := range compute.FundSymbols() {
		if used[symbol].Jump == day("2026-07-17") {
			split += " " + symbol
		}
	}
	equal(t, "split", split, " XLY XLE XLK XLB XLU")
	funds = steady()
	for symbol := range funds {
		funds[symbol] = moved(funds[symbol], "2026-07-20", 1/0.75)
	}
	for _, s := range rotation(t, funds).Sectors {
		equal(t, s.Symbol, shown(s.Relative, s.RRG), "dwmqyg")
	}
	funds = steady()
	funds["SPY"] = moved(funds["SPY"], "2026-07-20", 2)
	for _, s := range rotation(t, funds).Sectors {
		equal(t, "without SPY's past: "+s.Symbol, shown(s.Returns, nil)+shown(s.Relative, s.RRG), "dwmqydw")
	}
	funds = map[string]compute.Fund{"XLK": moved(steady()["XLK"], "2026-07-20", 1.45), "XLE": {Quote: steady()["XLE"].Quote}}
	equal(t, "no other fund knows the day", shown(rotation(t, funds).Sectors[1].Returns, nil), "dwmqy")
	funds["XLK"] = moved(steady()["XLK"], "2026-07-20", 1.6)
	equal(t, "as large as a split", shown(rotation(t, funds).Sectors[1].Returns, nil), "dw")
}

// A day of -50 % in a still market is a split that the quote has not heard of.
func TestQuoteJump(t *testing.T) {
	funds := steady()
	f := funds["XLI"]
	f.Quote.Spot, f.Quote.PriceChangePercent = 50, -50
	funds["XLI"] = f
	r := rotation(t, funds)
	equal(t, "XLI", shown(r.Sectors[6].Returns, nil), "")
	equal(t, "breadth", fmt.Sprint(r.Breadth.Advancing, r.Breadth.Declining, r.Breadth.Unchanged), "0 0 10")
}

// A row counts when a session of its date has ended.
func TestRowsThatAreNoCloses(t *testing.T) {
	for _, c := range []struct {
		name, row, captured string
		kept                bool
	}{
		{"today at noon", "2026-08-12", "2026-08-12T16:15:00Z", false},
		{"today at the close, 15 minutes later", "2026-08-12", "2026-08-12T20:15:00Z", true},
		{"today a second before", "2026-08-12", "2026-08-12T20:14:59Z", false},
		{"tomorrow", "2026-08-13", "2026-08-12T23:00:00Z", false},
		{"Sunday", "2026-08-09", "2026-08-12T16:15:00Z", false},
		{"Saturday", "2026-08-08", "2026-08-12T16:15:00Z", false},
		{"Independence Day, kept on the Friday", "2026-07-03", "2026-08-12T16:15:00Z", false},
	} {
		funds := steady()
		f := funds["XLK"]
		f.Quote.CapturedAt = at(c.captured)
		i := len(f.Closes)
		for i > 0 && f.Closes[i-1].Date > day(c.row) {
			i--
		}
		rows := len(f.Closes)
		f.Closes = append(f.Closes[:i:i], append([]compute.Close{{Date: day(c.row), Price: 103}}, f.Closes[i:]...)...)
		funds["XLK"] = f
		_, used := compute.SectorRotation(compute.SectorsInput{Funds: funds, Calendar: cal})
		equal(t, c.name, len(used["XLK"].Closes) == rows+1, c.kept)
	}
}
