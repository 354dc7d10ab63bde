package compute_test

import (
	"encoding/json"
	"testing"
	"time"

	"strikecache/compute"
)

// Every day of four centuries, the calendar's own period, against the standard library.
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

func TestDateOfTakesTheLocation(t *testing.T) {
	late := at("2026-08-12T03:59:59Z") // 23:59:59 of the 11th in New York
	equal(t, "New York date", compute.DateOf(late.In(compute.NewYork)), day("2026-08-11"))
	equal(t, "UTC date", compute.DateOf(late), day("2026-08-12"))
	equal(t, "epoch", compute.NewDate(1970, 1, 1), 0)
	equal(t, "31 April is 1 May", compute.NewDate(2026, 4, 31), day("2026-05-01"))
	equal(t, "month 14", compute.NewDate(2025, 14, 3), day("2026-02-03"))
}

func TestDateAt(t *testing.T) {
	for _, c := range []struct{ date, want string }{
		{"2026-03-07", "2026-03-07T14:30:00Z"}, // the day before the clocks go forward
		{"2026-03-08", "2026-03-08T13:30:00Z"},
		{"2026-10-31", "2026-10-31T13:30:00Z"}, // the day before they go back
		{"2026-11-01", "2026-11-01T14:30:00Z"},
		{"1969-12-31", "1969-12-31T14:30:00Z"},
	} {
		if got := day(c.date).At(9, 30, 0, compute.NewYork); !got.Equal(at(c.want)) {
			t.Errorf("09:30 on %s is %s, want %s", c.date, got.UTC().Format(time.RFC3339), c.want)
		}
	}
}

func TestParseDate(t *testing.T) {
	for _, s := range []string{"2026-08-11", "1970-01-01", "1969-12-31", "2024-02-29", "2000-02-29", "0001-01-01", "9999-12-31"} {
		d, err := compute.ParseDate(s)
		if err != nil || d.String() != s {
			t.Errorf("%s: %s, %v", s, d, err)
		}
	}
	for _, s := range []string{"", "2026-8-11", "2026-08-1", "26-08-11", " 2026-08-11", "2026-08-11 ", "+026-08-11",
		"-026-08-11", "2026-02-30", "2025-02-29", "1900-02-29", "2026-13-01", "2026-00-10", "2026-04-00", "2026/08/11",
		"20260811", "2026-08-11T00:00:00Z", "2026-08-1a", "２０２６-08"} {
		if d, err := compute.ParseDate(s); err == nil {
			t.Errorf("%q is taken as %s", s, d)
		}
	}
}

func TestDateJSON(t *testing.T) {
	if got := string(marshal(t, day("2026-08-11"))); got != `"2026-08-11"` {
		t.Error(got)
	}
	var d compute.Date
	if err := json.Unmarshal([]byte(`"2024-02-29"`), &d); err != nil || d != day("2024-02-29") {
		t.Errorf("%s, %v", d, err)
	}
	for _, s := range []string{`"2026-02-30"`, `20260811`, `""`, `"`, `{}`, `"2026-08-11 "`} {
		if err := d.UnmarshalJSON([]byte(s)); err == nil {
			t.Errorf("%s is taken as %s", s, d)
		}
	}
}

// The same day of another month, or its last day (METHODS.md §3).
func TestAddMonths(t *testing.T) {
	for _, c := range []struct {
		date   string
		months int
		want   string
	}{
		{"2026-08-11", -1, "2026-07-11"}, {"2026-08-11", -3, "2026-05-11"}, {"2026-03-31", -1, "2026-02-28"},
		{"2024-03-31", -1, "2024-02-29"}, {"2026-05-31", -3, "2026-02-28"}, {"2026-05-31", -1, "2026-04-30"},
		{"2026-07-31", -1, "2026-06-30"}, {"2026-01-15", -1, "2025-12-15"}, {"2026-02-28", -3, "2025-11-28"},
		{"2026-12-31", -1, "2026-11-30"}, {"2026-01-31", 1, "2026-02-28"}, {"2026-01-31", 13, "2027-02-28"},
		{"2026-12-31", 2, "2027-02-28"}, {"2026-08-11", 0, "2026-08-11"}, {"2024-02-29", -12, "2023-02-28"},
		{"2024-02-29", 48, "2028-02-29"}, {"2026-03-30", -1, "2026-02-28"}, {"2026-08-31", -6, "2026-02-28"},
	} {
		if got := day(c.date).AddMonths(c.months); got != day(c.want) {
			t.Errorf("%s %+d months is %s, want %s", c.date, c.months, got, c.want)
		}
	}
}
