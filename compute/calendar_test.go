package compute_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
)

// listing is the published list of testdata/exchange-holidays.txt, with its sources: DATE KIND NAME.
func listing(t *testing.T) (closed, early map[compute.Date]bool) {
	t.Helper()
	text, err := os.ReadFile("testdata/exchange-holidays.txt")
	must(t, err)
	closed, early = map[compute.Date]bool{}, map[compute.Date]bool{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		switch fields[1] {
		case "holiday", "closure":
			closed[day(fields[0])] = true
		case "early":
			early[day(fields[0])] = true
		default:
			t.Fatalf("line %q", line)
		}
	}
	// 9 holidays a year to 2021 and 10 from 2022 with Juneteenth, less New Year's Day of 2022 and 2028 (a Saturday),
	// and two closures; 37 early closes.
	if len(closed) != 8*9+9*10-2+2 || len(early) != 37 {
		t.Fatalf("%d closed days, %d early closes", len(closed), len(early))
	}
	return closed, early
}

func TestCalendarDayByDay(t *testing.T) {
	closed, early := listing(t)
	for d := day("2014-01-01"); d <= day("2030-12-31"); d++ {
		weekend := d.Weekday() == time.Saturday || d.Weekday() == time.Sunday
		if want := !weekend && !closed[d]; cal.IsSession(d) != want {
			t.Errorf("%s %s: session is %v", d.Weekday(), d, !want)
		}
		if cal.IsEarlyClose(d) != early[d] {
			t.Errorf("%s %s: early close is %v", d.Weekday(), d, !early[d])
		}
	}
}

func TestCalendarNote(t *testing.T) {
	isNull(t, "note", compute.CalendarNote())
	isNull(t, "note", compute.CalendarNote(day("2014-01-01"), day("2030-12-31")))
	for _, date := range []string{"2013-12-31", "2031-01-01"} {
		if note := compute.CalendarNote(day("2026-08-11"), day(date)); note == nil || !strings.Contains(*note, "2014-2030") {
			t.Errorf("%s: note %v", date, note)
		}
	}
}

func TestAddedClosures(t *testing.T) {
	closed, early := []compute.Date{day("2026-08-12")}, []compute.Date{day("2026-08-13"), day("2026-08-15")}
	c := compute.NewCalendar(closed, early)
	closed[0], early[0] = 0, 0 // the calendar has its own copies
	equal(t, "closed", c.IsSession(day("2026-08-12")), false)
	equal(t, "early", c.IsEarlyClose(day("2026-08-13")), true)
	equal(t, "a Saturday", c.IsEarlyClose(day("2026-08-15")), false)
	equal(t, "close", c.Close(day("2026-08-13")).UTC(), at("2026-08-13T17:00:00Z"))
	equal(t, "rules stay", c.IsSession(day("2025-01-09")), false)
	equal(t, "next", c.Next(day("2026-08-11")), day("2026-08-13"))
	equal(t, "the other calendar", cal.IsSession(day("2026-08-12")), true)
	// A full closure outranks an early close of the same day.
	c = compute.NewCalendar([]compute.Date{day("2026-11-27")}, []compute.Date{day("2026-11-27")})
	equal(t, "closed early close", c.IsEarlyClose(day("2026-11-27")), false)
	// A calendar made of another's closures is the same calendar.
	a := compute.NewCalendar([]compute.Date{day("2031-03-04"), day("2026-11-19")}, []compute.Date{day("2026-11-18")})
	b := compute.NewCalendar(a.Closures())
	for d := day("2018-01-01"); d < day("2032-01-01"); d++ {
		if a.IsSession(d) != b.IsSession(d) || a.IsEarlyClose(d) != b.IsEarlyClose(d) {
			t.Errorf("%s differs", d)
		}
	}
	equal(t, "closed", b.IsSession(day("2031-03-04")), false)
}

// A line is a date, alone or with early, or nothing; behind # there may be anything. An error names its line.
func TestParseClosures(t *testing.T) {
	for s, line := range map[string]string{
		"2026-8-12":                               "line 1:",
		"2026-08-12\n\n# x\n2026-02-30":           "line 4:",
		"2026-08-12\n2026-08-13 early too":        "line 2:",
		"2026-08-12,early":                        "line 1:",
		"2026-08-12early":                         "line 1:",
		"2026-08-12 Early":                        "line 1:",
		"early 2026-08-12":                        "line 1:",
		"2026-08-12\n" + strings.Repeat("x", 1e5): "line 2:",
	} {
		closed, early, err := compute.ParseClosures([]byte(s))
		if err == nil || !strings.Contains(err.Error(), line) || closed != nil || early != nil {
			t.Errorf("%.40q: %v %v %v", s, closed, early, err)
		}
	}
	for s, want := range map[string]string{
		"": "[] []", "\n": "[] []", "# nothing": "[] []", "2026-12-24#": "[2026-12-24] []", "2026-12-24\t early #early": "[] [2026-12-24]",
		"\ufeff2026-12-24\r\n": "[2026-12-24] []", // a byte order mark, of Notepad
		"# mourning\n2026-08-12 # all day\r\n\n  2026-08-13\tearly\n2026-08-14 early# no space\n2026-09-01": "[2026-08-12 2026-09-01] [2026-08-13 2026-08-14]",
	} {
		closed, early, err := compute.ParseClosures([]byte(s))
		equal(t, s, fmt.Sprint(closed, early, err), want+" <nil>")
	}
}

// Every function that moves along the sessions agrees with the published list of sessions.
func TestSessionArithmetic(t *testing.T) {
	closed, _ := listing(t)
	var sessions []compute.Date
	index := map[compute.Date]int{} // day → index of the last session on or before it
	for d := day("2014-01-01"); d <= day("2030-12-31"); d++ {
		if !d.Weekend() && !closed[d] {
			sessions = append(sessions, d)
		}
		index[d] = len(sessions) - 1
	}
	for d := day("2014-02-01"); d <= day("2030-11-01"); d++ {
		i := index[d]
		equal(t, "on or before "+d.String(), cal.OnOrBefore(d), sessions[i])
		equal(t, "next of "+d.String(), cal.Next(d), sessions[i+1])
		previous := i
		if sessions[i] == d {
			previous--
			equal(t, "5 back from "+d.String(), cal.Back(d, 5), sessions[i-5])
			equal(t, "0 back from "+d.String(), cal.Back(d, 0), d)
		}
		equal(t, "previous of "+d.String(), cal.Previous(d), sessions[previous])
		equal(t, "sessions in 20 days to "+d.String(), cal.SessionsBetween(d-20, d), i-index[d-20])
		equal(t, "sessions in no days", cal.SessionsBetween(d, d), 0)
		equal(t, "sessions backwards", cal.SessionsBetween(d, d-9), 0)
	}
}

// The session of an instant is that of its date in New York, or the last before.
func TestSessionDate(t *testing.T) {
	for instant, want := range map[string]string{
		"2026-10-03T15:00:00Z": "2026-10-02", "2026-10-05T03:59:59Z": "2026-10-02", "2026-10-05T04:00:00Z": "2026-10-05", "2026-09-07T15:00:00Z": "2026-09-04",
	} {
		equal(t, instant, cal.SessionDate(at(instant)), day(want))
	}
}

// The Tuesdays are those of METHODS.md §6. Every other monthly expiration is the Wednesday 30 days before the third Friday
// of the next month.
func TestVIXExpiration(t *testing.T) {
	tuesdays := map[string]bool{"2014-03-18": true, "2019-03-19": true, "2022-03-15": true, "2024-06-18": true,
		"2025-03-18": true, "2026-05-19": true, "2027-05-18": true, "2030-03-19": true, "2030-06-18": true}
	found := 0
	for year := 2014; year <= 2030; year++ {
		for month := time.January; month <= time.December; month++ {
			third := time.Date(year, month+1, 15, 0, 0, 0, 0, time.UTC) // the earliest third Friday
			for third.Weekday() != time.Friday {
				third = third.AddDate(0, 0, 1)
			}
			want := third.AddDate(0, 0, -30)
			if tuesday := want.AddDate(0, 0, -1); tuesdays[tuesday.Format(time.DateOnly)] {
				want = tuesday
				found++
			}
			if got := cal.VIXExpiration(year, month); got != compute.DateOf(want) {
				t.Errorf("%s %d: %s, want %s", month, year, got, want.Format(time.DateOnly))
			}
			equal(t, "third Friday", compute.ThirdFriday(year, month+1), compute.DateOf(third))
		}
	}
	equal(t, "Tuesdays", found, len(tuesdays))
}
