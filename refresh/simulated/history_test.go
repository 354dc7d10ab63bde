package simulated_test

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"testing"

	"strikecache/compute"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

// rowsOf returns the rows of a history, as written.
func rowsOf(t *testing.T, m *simulated.Market, symbol, at string) [][]member {
	t.Helper()
	body := string(documentAt(t, m, upstream.History(symbol), ny(at)).Body)
	_, list, ok := strings.Cut(body, `"data":[{`)
	if !ok || !strings.HasPrefix(body, `{"symbol":"`+symbol+`",`) || !strings.HasSuffix(body, `}]}`) {
		t.Fatalf("history of %s begins with %.80s", symbol, body)
	}
	var rows [][]member
	for _, row := range strings.Split(strings.TrimSuffix(list, `}]}`), "},{") {
		rows = append(rows, members(row))
	}
	return rows
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestHistoryJoinsQuotes(t *testing.T) {
	m := market
	for _, symbol := range []string{"_SPX", "_VIX", "_VIX3M", "SPY", "XLC", "XLRE", "TSLA"} {
		for _, day := range []string{"2026-03-06", "2026-08-11", "2026-11-27"} {
			rows := rowsOf(t, m, symbol, day+" 18:00:30")
			last, before := rows[len(rows)-1], rows[len(rows)-2]
			quote := members(string(documentAt(t, m, upstream.Quotes(symbol), ny(day+" 16:40:00")).Body))
			if valueOf(last, "date") != day {
				t.Fatalf("%s: the last row after 18:00 is of %s", symbol, valueOf(last, "date"))
			}
			for _, key := range []string{"open", "high", "low", "close", "volume"} {
				if a, b := number(t, valueOf(last, key)), number(t, valueOf(quote, key)); a != b {
					t.Errorf("%s on %s: %s is %v in the history and %v in the quote", symbol, day, key, a, b)
				}
			}
			if a, b := number(t, valueOf(before, "close")), number(t, valueOf(quote, "prev_day_close")); a != b {
				t.Errorf("%s before %s: close is %v in the history and %v in the quote", symbol, day, a, b)
			}
			change := number(t, valueOf(last, "close")) - number(t, valueOf(before, "close"))
			if got := number(t, valueOf(quote, "price_change")); math.Abs(got-change) > 6e-5 {
				t.Errorf("%s on %s: price_change is %v, the closes differ by %v", symbol, day, got, change)
			}
			low, high := number(t, valueOf(last, "low")), number(t, valueOf(last, "high"))
			if open, closed := number(t, valueOf(last, "open")), number(t, valueOf(last, "close")); low > min(open, closed) || high < max(open, closed) {
				t.Errorf("%s on %s: %v", symbol, day, last)
			}
		}
	}
}

func TestRowOfTheDayAppearsAtSix(t *testing.T) {
	m := market
	for at, want := range map[string]string{
		"2026-08-11 09:00:00": "2026-08-10", "2026-08-11 17:59:00": "2026-08-10", "2026-08-11 18:01:00": "2026-08-11",
		"2026-08-12 12:00:00": "2026-08-11", "2026-08-15 12:00:00": "2026-08-14", "2026-08-17 12:00:00": "2026-08-14",
	} {
		rows := rowsOf(t, m, "XLK", at)
		if got := valueOf(rows[len(rows)-1], "date"); got != want {
			t.Errorf("%s: the last row is of %s, want %s", at, got, want)
		}
	}
}

func TestHistoryRows(t *testing.T) {
	m, calendar := market, compute.NewCalendar(nil, nil)
	for _, symbol := range []string{"XLK", "XLC", "_SPX", "_VIX", "_VIX3M", "TSLA"} {
		rows := rowsOf(t, m, symbol, "2026-08-11 12:00:00")
		want := compute.NewDate(2022, 1, 3)
		for i, row := range rows {
			if valueOf(row, "date") != want.String() {
				t.Fatalf("%s: row %d is of %s, want %s", symbol, i, valueOf(row, "date"), want)
			}
			want = calendar.Next(want)
			for _, f := range row[1:] {
				if quoted := strings.HasPrefix(f.value, `"`); quoted != (symbol[0] == '_') {
					t.Fatalf("%s: %s is written %s", symbol, f.key, f.value)
				}
			}
			if unlisted := valueOf(row, "close") == "0.0"; unlisted != (symbol == "XLC" && i < 20) {
				t.Errorf("%s on %s: %v", symbol, valueOf(row, "date"), row)
			}
		}
		if closes := closesOf(t, m, symbol, ny("2026-08-11 12:00:00")); len(closes) < 1130 {
			t.Errorf("%s: %d closes", symbol, len(closes))
		}
	}
	if !bytes.HasPrefix(documentAt(t, m, "charts/historical/XLC.json", ny("2026-08-11 12:00:00")).Body, []byte(`{"symbol":"XLC","data":[{"date":"2022-01-03","open":0.0,"high":0.0,"low":0.0,"close":0.0,"volume":0},`)) {
		t.Error("XLC does not begin with a row from before its listing")
	}
}
