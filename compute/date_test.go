package compute_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
)

// Every day of four centuries, one period of the calendar, agrees with the standard library.
func TestDateAgainstTime(t *testing.T) {
	first := time.Date(1870, 1, 1, 0, 0, 0, 0, time.UTC)
	days := compute.Date(0)
	for at := first; at.Year() < 2270; at = at.AddDate(0, 0, 1) {
		d := compute.DateOf(at)
		if days == 0 {
			days = d
		}
		if d != days || d != compute.NewDate(at.Year(), at.Month(), at.Day()) {
			t.Fatalf("%s is day %d, want %d", at.Format(time.DateOnly), d, days)
		}
		if d.String() != at.Format(time.DateOnly) || d.Weekday() != at.Weekday() || !d.Midnight().Equal(at) ||
			d.Year() != at.Year() || d.Month() != at.Month() || d.Day() != at.Day() {
			t.Fatalf("%s: %s %s %d %s %d", at.Format(time.DateOnly), d, d.Weekday(), d.Year(), d.Month(), d.Day())
		}
		if d.Weekend() != (at.Weekday() == time.Saturday || at.Weekday() == time.Sunday) {
			t.Fatalf("%s: weekend %v", d, d.Weekend())
		}
		days++
	}
}

func TestDateForms(t *testing.T) {
	equal(t, "epoch", compute.NewDate(1970, 1, 1), 0)
	equal(t, "31 April is 1 May", compute.NewDate(2026, 4, 31), day("2026-05-01"))
	equal(t, "month 14", compute.NewDate(2025, 14, 3), day("2026-02-03"))
	if got := string(marshal(t, day("2026-08-11"))); got != `"2026-08-11"` {
		t.Error(got)
	}
	var d compute.Date
	for _, s := range []string{`20260811`, `""`, `"`, `{}`} { // FuzzParseDate tests other strings
		if err := d.UnmarshalJSON([]byte(s)); err == nil {
			t.Errorf("%s is taken as %s", s, d)
		}
	}
}

var dateForm = regexp.MustCompile(`^([0-9]{4})-([0-9]{2})-([0-9]{2})$`)

// daysIn returns the length of a month, without the package under test.
func daysIn(year, month int) int {
	switch {
	case month == 2 && (year%4 == 0 && year%100 != 0 || year%400 == 0):
		return 29
	case month == 2:
		return 28
	case month == 4 || month == 6 || month == 9 || month == 11:
		return 30
	}
	return 31
}

// FuzzParseDate: an accepted text has four, two and two digits, is a date for package time too, and is the text of the
// parsed date. AddMonths gives the same day of another month, or its last day (METHODS.md §3).
func FuzzParseDate(f *testing.F) {
	for _, s := range []string{"2026-11-20", "2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "0000-01-01", "0001-01-01", "9999-12-31",
		"1969-12-31", "1970-01-01", "2026-01-31", "2026-03-31", "2024-03-31", "2026-05-31", "2026-08-31", "2026-12-31", "2026-00-01", "2026-13-01",
		"2026-04-00", "2026-04-31", "2026-1-1", "26-08-11", "-026-01-01", "+026-08-11", "2026-01-01 ", " 2026-08-11", "2026/08/11", "20260811",
		"2026-08-11T00:00:00Z", "2026-08-1a", "２０-01-01", "２０２６-08", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := compute.ParseDate(text)
		parts := dateForm.FindStringSubmatch(text)
		exists := false
		if parts != nil {
			y, _ := strconv.Atoi(parts[1])
			m, _ := strconv.Atoi(parts[2])
			day, _ := strconv.Atoi(parts[3])
			exists = m >= 1 && m <= 12 && day >= 1 && day <= daysIn(y, m)
		}
		if (err == nil) != exists {
			t.Fatalf("%q: %v, exists %v", text, err, exists)
		}
		var member compute.Date
		if quoted, _ := json.Marshal(text); (json.Unmarshal(quoted, &member) == nil) != exists || member != d {
			t.Errorf("%q as JSON: %v", text, member)
		}
		if err != nil {
			return
		}
		want, err := time.Parse(time.DateOnly, text)
		if err != nil || d.String() != text || !d.Midnight().Equal(want) || d.Weekday() != want.Weekday() || d.Year() != want.Year() || d.Month() != want.Month() || d.Day() != want.Day() {
			t.Errorf("%q: %v, %v, want %v %v", text, d, d.Midnight(), want, err)
		}
		for _, n := range []int{-13, -12, -6, -3, -1, 0, 1, 2, 12, 13, 25, 48} {
			to := d.AddMonths(n)
			month := want.AddDate(0, 0, 1-want.Day()).AddDate(0, n, 0)
			if to.Month() != month.Month() || to.Year() != month.Year() || to.Day() != min(want.Day(), daysIn(month.Year(), int(month.Month()))) {
				t.Errorf("%q and %d months: %v", text, n, to)
			}
		}
	})
}

var closureForm = regexp.MustCompile(`^[ \t\r\v\f]*(?:(\S+)(?:[ \t\r\v\f]+(early))?[ \t\r\v\f]*)?(?:#.*)?$`)

// FuzzParseClosures: a file is accepted if each of its lines is a closure, and gives the closures of its lines.
func FuzzParseClosures(f *testing.F) {
	for _, s := range []string{"2026-12-24 early\n2025-01-09 # mourning\r\n\n", "# nothing", "2026-12-24 late", "2026-12-24early", "2026-02-30", "2026-12-24\t early #early", "early", "2026-12-24#", "\x00", "2026-12-24 early early", "2026-12-24\r2026-12-25",
		"# days of mourning\n2026-08-12 # all day\r\n\n  2026-08-13\tearly\n2026-08-14 early# no space\n2026-09-01", "", "\n", "2026-08-12 Early", "early 2026-08-12"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		closed, early, err := compute.ParseClosures(text)
		var wantClosed, wantEarly []compute.Date
		good := true
		for line := range strings.Lines(string(text)) {
			if len(line) > 60_000 || strings.ContainsFunc(line, func(r rune) bool { return r >= 0x80 }) {
				return // a line is too long, or has spaces beyond ASCII
			}
			line, _, _ = strings.Cut(strings.TrimRight(line, "\r\n"), "#")
			parts := closureForm.FindStringSubmatch(line)
			switch {
			case parts == nil || parts[1] != "" && !dateForm.MatchString(parts[1]):
				good = false
			case parts[1] == "":
			default:
				day, dayErr := time.Parse(time.DateOnly, parts[1])
				good = good && dayErr == nil
				if to := &wantClosed; parts[2] == "" {
					*to = append(*to, compute.DateOf(day))
				} else {
					wantEarly = append(wantEarly, compute.DateOf(day))
				}
			}
		}
		if (err == nil) != good {
			t.Fatalf("%v, want it good: %v", err, good)
		}
		if good && (!slices.Equal(closed, wantClosed) || !slices.Equal(early, wantEarly)) {
			t.Errorf("%v %v, want %v %v", closed, early, wantClosed, wantEarly)
		}
	})
}
