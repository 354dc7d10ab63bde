package compute

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // for machines without time zone files
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
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return 0, fmt.Errorf("parse date %.40q: want YYYY-MM-DD", s)
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

// friday returns the Friday on or after the date.
func (d Date) friday() Date { return d + (Date(time.Friday-d.Weekday())+7)%7 }

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
func (d Date) MarshalJSON() ([]byte, error) {
	return marshalled(func(b []byte) []byte { return d.Midnight().AppendFormat(b, `"`+time.DateOnly+`"`) }), nil
}

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

// Later returns the later of two instants.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Earlier returns the earlier of two instants.
func Earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// NewYork is the exchange's time zone. The program contains the time zone database, so the zone is always found.
var NewYork, _ = time.LoadLocation("America/New_York")

// Calendar knows the regular sessions of the US equity options exchanges: 09:30 to 16:00 New York, 13:00 on an
// early close. It is immutable and safe for concurrent use.
//
// Source: NYSE Rule 7.2 (full holidays and their observance), the exchanges' holiday calendars, which Cboe options follow,
// and the closures that follow no rule (specialClosures).
type Calendar struct {
	closed, early map[Date]bool
}

// specialClosures are full closures outside the rules since 2014.
var specialClosures = []Date{
	NewDate(2018, time.December, 5), // national day of mourning, President G. H. W. Bush
	NewDate(2025, time.January, 9),  // national day of mourning, President Carter
}

// NewCalendar returns the exchange calendar, with further full closures and early closes (both may be nil).
func NewCalendar(closed, early []Date) *Calendar {
	c := &Calendar{closed: map[Date]bool{}, early: map[Date]bool{}}
	for _, d := range slices.Concat(specialClosures, closed) {
		c.closed[d] = true
	}
	for _, d := range early {
		c.early[d] = true
	}
	return c
}

// Closures returns the full closures and the early closes that follow no rule, in rising order. [NewCalendar] makes an
// equal calendar from them.
func (c *Calendar) Closures() (closed, early []Date) {
	return slices.Sorted(maps.Keys(c.closed)), slices.Sorted(maps.Keys(c.early))
}

// ParseClosures reads further closures, one a line: a date YYYY-MM-DD, alone for a full closure or followed by
// the word early for a 13:00 close. A byte order mark, empty lines and text after # are ignored.
func ParseClosures(text []byte) (closed, early []Date, err error) {
	for n, line := range strings.Split(strings.TrimPrefix(string(text), "\ufeff"), "\n") {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		d, err := ParseDate(fields[0])
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		switch {
		case len(fields) == 1:
			closed = append(closed, d)
		case len(fields) == 2 && fields[1] == "early":
			early = append(early, d)
		default:
			return nil, nil, fmt.Errorf("line %d: want YYYY-MM-DD or YYYY-MM-DD early", n+1)
		}
	}
	return closed, early, nil
}

// CalendarNote returns the note for meta.quality.calendar when any of the dates is outside the years whose sessions were
// compared day by day with the exchange's published holidays and early closes, else nil. Other years follow the same rules.
func CalendarNote(dates ...Date) *string {
	for _, d := range dates {
		if y := d.Year(); y < 2014 || y > 2030 {
			return new("some dates lie outside the verified exchange calendar (2014-2030); its rules were applied to them")
		}
	}
	return nil
}

// IsSession says whether the exchange is open on d.
func (c *Calendar) IsSession(d Date) bool {
	return !d.Weekend() && !c.closed[d] && !isHoliday(d)
}

// IsEarlyClose says whether d is a session that ends at 13:00 New York.
func (c *Calendar) IsEarlyClose(d Date) bool {
	return c.IsSession(d) && (c.early[d] || isEarlyClose(d))
}

// Open returns the instant the session of d opens, 09:30 New York.
func (c *Calendar) Open(d Date) time.Time { return d.At(9, 30, 0, NewYork) }

// Close returns the instant the session of d closes: 16:00 New York, 13:00 on an early close.
func (c *Calendar) Close(d Date) time.Time {
	if c.IsEarlyClose(d) {
		return d.At(13, 0, 0, NewYork)
	}
	return d.At(16, 0, 0, NewYork)
}

// FuturesSettlement returns the time of day to which the settlements of VIX futures of d belong: 16:00 New York, until 2020-10-25 16:15, and
// three hours earlier on an early close.
//
// Source: Cboe notice C2020092202; Cboe Futures Exchange, holiday calendar.
func (c *Calendar) FuturesSettlement(d Date) time.Time {
	if d < NewDate(2020, time.October, 26) {
		return c.Close(d).Add(15 * time.Minute)
	}
	return c.Close(d)
}

// OnOrBefore returns the last session on or before d.
func (c *Calendar) OnOrBefore(d Date) Date {
	for !c.IsSession(d) {
		d--
	}
	return d
}

// Previous returns the last session before d.
func (c *Calendar) Previous(d Date) Date { return c.OnOrBefore(d - 1) }

// Next returns the first session after d.
func (c *Calendar) Next(d Date) Date {
	d++
	for !c.IsSession(d) {
		d++
	}
	return d
}

// Back returns the session n sessions before the session d.
func (c *Calendar) Back(d Date, n int) Date {
	for ; n > 0; n-- {
		d = c.Previous(d)
	}
	return d
}

// SessionDate returns the last session on or before the New York date of t.
func (c *Calendar) SessionDate(t time.Time) Date { return c.OnOrBefore(DateOf(t.In(NewYork))) }

// SessionsBetween returns the number of sessions in (after, through].
func (c *Calendar) SessionsBetween(after, through Date) int {
	n := 0
	for d := after + 1; d <= through; d++ {
		if c.IsSession(d) {
			n++
		}
	}
	return n
}

// VIXExpiration returns the computed expiration of the monthly VIX future of a month: the Wednesday 30 days
// before the third Friday of the next month, or the business day before when that Wednesday or that Friday is
// a holiday. Source: Cboe Futures Exchange rule 1202(b).
func (c *Calendar) VIXExpiration(year int, month time.Month) Date {
	friday := ThirdFriday(year, month+1)
	wednesday := friday - 30
	if !c.IsSession(friday) || !c.IsSession(wednesday) {
		return c.Previous(wednesday)
	}
	return wednesday
}

// ThirdFriday returns the third Friday of a month. Months are normalised: 13 is January of the next year.
func ThirdFriday(year int, month time.Month) Date { return nthWeekday(year, month, time.Friday, 3) }

// IsMonthly says whether a date is the third Friday of a month, or the session before it where that is a holiday.
func (c *Calendar) IsMonthly(d Date) bool { return d == c.OnOrBefore(ThirdFriday(d.Year(), d.Month())) }

// nthWeekday returns the n-th given weekday of a month, n from 1.
func nthWeekday(year int, month time.Month, w time.Weekday, n int) Date {
	first := NewDate(year, month, 1)
	return first + Date((int(w)-int(first.Weekday())+7)%7+7*(n-1))
}

func isHoliday(d Date) bool {
	y := d.Year()
	switch d.Month() {
	case time.January:
		// New Year's Day on a Saturday is not observed on the Friday before, which ends the year (Rule 7.2).
		return d == sundayToMonday(NewDate(y, time.January, 1)) || d == nthWeekday(y, time.January, time.Monday, 3)
	case time.February:
		return d == nthWeekday(y, time.February, time.Monday, 3)
	case time.March, time.April:
		return d == easterSunday(y)-2
	case time.May:
		return d == nthWeekday(y, time.June, time.Monday, 1)-7
	case time.June:
		return y >= 2022 && d == observed(NewDate(y, time.June, 19))
	case time.July:
		return d == observed(NewDate(y, time.July, 4))
	case time.September:
		return d == nthWeekday(y, time.September, time.Monday, 1)
	case time.November:
		return d == nthWeekday(y, time.November, time.Thursday, 4)
	case time.December:
		return d == observed(NewDate(y, time.December, 25))
	}
	return false
}

// tradesOnHoliday says whether d is a holiday on which options of indices may trade until noon: none but New Year's Day, Good Friday and
// Christmas.
func tradesOnHoliday(d Date) bool {
	m := d.Month()
	return isHoliday(d) && m != time.March && m != time.April && m != time.December && (m != time.January || d.Day() > 2)
}

// isEarlyClose says whether the rules end the session of d at 13:00: on the day after Thanksgiving, 3 July and 24 December.
// d must be a session. 3 July and 24 December are holidays when they are Fridays.
func isEarlyClose(d Date) bool {
	switch d.Month() {
	case time.July:
		return d.Day() == 3
	case time.November:
		return d == nthWeekday(d.Year(), time.November, time.Thursday, 4)+1
	case time.December:
		return d.Day() == 24
	}
	return false
}

// observed moves a holiday on a Saturday to Friday and one on a Sunday to Monday.
func observed(d Date) Date {
	if d.Weekday() == time.Saturday {
		return d - 1
	}
	return sundayToMonday(d)
}

func sundayToMonday(d Date) Date {
	if d.Weekday() == time.Sunday {
		return d + 1
	}
	return d
}

// easterSunday is the anonymous Gregorian computus (Meeus, Astronomical Algorithms, chapter 8).
func easterSunday(y int) Date {
	a, b, c := y%19, y/100, y%100
	d, e := b/4, b%4
	g := (8*b + 13) / 25
	h := (19*a + b - d - g + 15) % 30
	i, k := c/4, c%4
	l := (32 + 2*e + 2*i - h - k) % 7
	m := (a + 11*h + 22*l) / 451
	n := h + l - 7*m + 114
	return NewDate(y, time.Month(n/31), n%31+1)
}
