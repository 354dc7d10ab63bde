package compute

import (
	"fmt"
	"time"
)

// Date is a calendar date without a time zone, counted in days since 1970-01-01. Dates compare and subtract as
// integers: b - a is the number of calendar days from a to b.
type Date int32

// NewDate returns the date of the given year, month and day. Values outside their usual ranges are normalised
// as by [time.Date].
func NewDate(year int, month time.Month, day int) Date {
	return Date(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay)
}

// DateOf returns the date that t has in its own location.
func DateOf(t time.Time) Date {
	y, m, d := t.Date()
	return NewDate(y, m, d)
}

// ParseDate parses YYYY-MM-DD. It accepts nothing else: no spaces, no signs, no date that does not exist.
func ParseDate(s string) (Date, error) {
	if len(s) != len(time.DateOnly) {
		return 0, fmt.Errorf("parse date %.40q: want YYYY-MM-DD", s)
	}
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return 0, fmt.Errorf("parse date %q: want YYYY-MM-DD", s)
	}
	return DateOf(t), nil
}

const secondsPerDay = 24 * 60 * 60

// Midnight returns the start of the date in UTC.
func (d Date) Midnight() time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }

// At returns the instant of the date at the given wall clock time in loc.
func (d Date) At(hour, minute, second int, loc *time.Location) time.Time {
	y, m, day := d.Midnight().Date()
	return time.Date(y, m, day, hour, minute, second, 0, loc)
}

// Weekday returns the day of the week.
func (d Date) Weekday() time.Weekday { return time.Weekday(((int(d)+4)%7 + 7) % 7) }

// Weekend says whether the date is a Saturday or a Sunday.
func (d Date) Weekend() bool { w := d.Weekday(); return w == time.Saturday || w == time.Sunday }

// Year returns the year.
func (d Date) Year() int { return d.Midnight().Year() }

// Month returns the month.
func (d Date) Month() time.Month { return d.Midnight().Month() }

// Day returns the day of the month.
func (d Date) Day() int { return d.Midnight().Day() }

// AddMonths returns the same day n months later (earlier if n is negative), or the last day of that month when
// it has no such day.
func (d Date) AddMonths(n int) Date {
	y, m, day := d.Midnight().Date()
	first := NewDate(y, m+time.Month(n), 1)
	last := NewDate(first.Year(), first.Month()+1, 0)
	return min(first+Date(day-1), last)
}

// String returns YYYY-MM-DD.
func (d Date) String() string { return d.Midnight().Format(time.DateOnly) }

// MarshalJSON implements [encoding/json.Marshaler].
func (d Date) MarshalJSON() ([]byte, error) { return []byte(`"` + d.String() + `"`), nil }

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (d *Date) UnmarshalJSON(b []byte) error {
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return fmt.Errorf("parse date %.40q: want a string", b)
	}
	parsed, err := ParseDate(string(b[1 : len(b)-1]))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}
