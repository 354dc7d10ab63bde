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

var dateForm = regexp.MustCompile(`^([0-9]{4})-([0-9]{2})-([0-9]{2})$`)

// daysIn is the length of a month, counted on the fingers.
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

// FuzzParseDate: what is taken is a date of four, two and two digits that exists, as package time reads it, and spells
// itself again.
func FuzzParseDate(f *testing.F) {
	for _, s := range []string{"2026-11-20", "2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "0000-01-01", "9999-12-31", "2026-00-01", "2026-13-01", "2026-1-1", "-026-01-01", "2026-01-01 ", "２０-01-01", "", "2026-04-31"} {
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
		for _, n := range []int{-13, -1, 0, 1, 12, 25} {
			to := d.AddMonths(n)
			month := want.AddDate(0, 0, 1-want.Day()).AddDate(0, n, 0)
			if to.Month() != month.Month() || to.Year() != month.Year() || to.Day() != min(want.Day(), daysIn(month.Year(), int(month.Month()))) {
				t.Errorf("%q and %d months: %v", text, n, to)
			}
		}
	})
}

var closureForm = regexp.MustCompile(`^[ \t\r\v\f]*(?:(\S+)(?:[ \t\r\v\f]+(early))?[ \t\r\v\f]*)?(?:#.*)?$`)

// FuzzParseClosures: a file is taken when each of its lines is one, and then says what its lines say.
func FuzzParseClosures(f *testing.F) {
	for _, s := range []string{"2026-12-24 early\n2025-01-09 # mourning\r\n\n", "# nothing", "2026-12-24 late", "2026-12-24early", "2026-02-30", "2026-12-24\t early #early", "early", "2026-12-24#", "\x00", "2026-12-24 early early", "2026-12-24\r2026-12-25"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		closed, early, err := compute.ParseClosures(text)
		var wantClosed, wantEarly []compute.Date
		good := true
		for line := range strings.Lines(string(text)) {
			if len(line) > 60_000 || strings.ContainsFunc(line, func(r rune) bool { return r >= 0x80 }) {
				return // too long a line, or spaces beyond ASCII
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
