package compute_test

import (
	"encoding/json"
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

// FuzzParseDate: the dates are those of package time, and each is the text of the parsed date. AddMonths gives the same day of another month, or its
// last day (METHODS.md §3).
func FuzzParseDate(f *testing.F) {
	for _, s := range []string{"2026-11-20", "2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "0000-01-01", "0001-01-01", "9999-12-31",
		"1969-12-31", "1970-01-01", "2026-01-31", "2026-03-31", "2024-03-31", "2026-05-31", "2026-08-31", "2026-12-31", "2026-00-01", "2026-13-01",
		"2026-04-00", "2026-04-31", "2026-1-1", "26-08-11", "-026-01-01", "+026-08-11", "2026-01-01 ", " 2026-08-11", "2026/08/11", "20260811",
		"2026-08-11T00:00:00Z", "2026-08-1a", "２０-01-01", "２０２６-08", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := compute.ParseDate(text)
		want, wantErr := time.Parse(time.DateOnly, text)
		exists := wantErr == nil
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
		if d.String() != text || !d.Midnight().Equal(want) || d.Weekday() != want.Weekday() || d.Year() != want.Year() || d.Month() != want.Month() || d.Day() != want.Day() {
			t.Errorf("%q: %v, %v, want %v %v", text, d, d.Midnight(), want, err)
		}
		for _, n := range []int{-13, -12, -6, -3, -1, 0, 1, 2, 12, 13, 25, 48} {
			to := d.AddMonths(n)
			month := want.AddDate(0, 0, 1-want.Day()).AddDate(0, n, 0)
			last := month.AddDate(0, 1, -1).Day()
			if to.Month() != month.Month() || to.Year() != month.Year() || to.Day() != min(want.Day(), last) {
				t.Errorf("%q and %d months: %v", text, n, to)
			}
		}
	})
}
