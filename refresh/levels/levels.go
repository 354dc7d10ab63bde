// Package levels is the commands `strikecache export` and `strikecache import`: the daily levels of the stored gamma
// snapshots as a file, and such a file as snapshots.
//
// A file has one row per session, oldest first, in CSV as of RFC 4180 or as a JSON array of objects. Export takes, of
// each session, the stored snapshot with the greatest as_of; it needs no lock, so a server may run. Import checks every
// cell before it writes anything, and then stores each row under the date of its session as a snapshot that knows the
// levels alone: meta.source is imported, meta.imported_from the name of the file, and every other field null. A date that
// is stored already keeps what it has. An imported snapshot is history: no restart makes it the current answer, and an
// answer of the source's own for the same date takes its place.
package levels

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"strikecache/compute"
)

// Streams are what a command reads and prints to.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// column is a column of the file.
type column struct {
	name     string
	isText   bool // in JSON a string, else a number
	nullable bool
	parse    func(c *checker, text string) (any, error)
}

var columns = []column{
	{"date", true, false, (*checker).session},
	{"symbol", true, false, (*checker).symbol},
	{"spot", false, false, (*checker).level},
	{"net_gex_dollars", false, true, (*checker).dollars},
	{"zero_gamma_flip", false, true, (*checker).level},
	{"call_wall", false, true, (*checker).level},
	{"put_wall", false, true, (*checker).level},
	{"vol_trigger", false, true, (*checker).level},
	{"abs_gamma_strike", false, true, (*checker).level},
	{"gamma_regime", true, true, (*checker).regime},
	{"oi_settle_date", true, true, (*checker).settleDate},
	{"contracts_analyzed", false, false, (*checker).contracts},
}

func names() []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = c.name
	}
	return out
}

// The bounds of numbers. They are far from what any market had, and keep every value exact in the decimals served.
const (
	minLevel     = 0.01
	maxLevel     = 1e6
	maxDollars   = 1e15
	maxContracts = 10_000_000
)

// firstSession is when options on the index were first traded (Cboe).
var firstSession = compute.NewDate(1983, time.July, 1)

// row is a row of a file, all of its values checked. A column without a value is null.
type row struct {
	line   int
	date   compute.Date
	values map[string]any
}

// cell is a value of a file as it is spelt. A JSON value is a string or a number; CSV does not tell, so it may be both.
type cell struct {
	value              string
	null, text, number bool
}

// checker checks the rows of a file.
type checker struct {
	calendar *compute.Calendar
	now      time.Time
	lines    map[compute.Date]int // of the rows checked
	row      row                  // under way; its date is 0 until it is known
}

// check returns a row and what is wrong with its cells.
func (c *checker) check(line int, cells []cell) (row, []error) {
	c.row = row{line: line, values: map[string]any{}}
	var faults []error
	for i, column := range columns {
		value, err := c.value(column, cells[i])
		if err != nil {
			faults = append(faults, faultAt(line, column.name, err))
		}
		if value != nil {
			c.row.values[column.name] = value
		}
	}
	return c.row, faults
}

// faultAt says where in a file an error is; column is "" for a whole line.
func faultAt(line int, column string, err error) error {
	if column == "" {
		return fmt.Errorf("line %d: %w", line, err)
	}
	return fmt.Errorf("line %d, column %s: %w", line, column, err)
}

func (c *checker) value(column column, cell cell) (any, error) {
	switch {
	case cell.null && column.nullable:
		return nil, nil
	case cell.null:
		return nil, errors.New("value missing")
	case column.isText && !cell.text:
		return nil, fmt.Errorf("%.40s is not a string", cell.value)
	case !column.isText && !cell.number:
		return nil, fmt.Errorf("%.40q is not a number", cell.value)
	}
	return column.parse(c, cell.value)
}

func (c *checker) session(text string) (any, error) {
	d, err := c.sessionDate(text, firstSession)
	switch {
	case err != nil:
		return nil, err
	case c.calendar.Close(d).After(c.now):
		return nil, fmt.Errorf("the session of %s is not over", d)
	case c.lines[d] != 0:
		return nil, fmt.Errorf("%s is already in line %d", d, c.lines[d])
	}
	c.lines[d], c.row.date = c.row.line, d
	return d, nil
}

func (c *checker) settleDate(text string) (any, error) {
	d, err := c.sessionDate(text, math.MinInt32)
	if err == nil && c.row.date != 0 && d > c.row.date {
		err = fmt.Errorf("%s is after the row's date, %s", d, c.row.date)
	}
	return d, err
}

// sessionDate reads the date of a session that is not before first.
func (c *checker) sessionDate(text string, first compute.Date) (compute.Date, error) {
	d, err := compute.ParseDate(text)
	switch {
	case err != nil:
		return 0, err
	case d < first:
		return 0, fmt.Errorf("%s is before %s, when SPX options began", d, first)
	case !c.calendar.IsSession(d):
		return 0, fmt.Errorf("%s, a %s, is not a session of the exchange", d, d.Weekday())
	}
	return d, nil
}

func (*checker) symbol(text string) (any, error) {
	if text != "SPX" {
		return nil, fmt.Errorf("%.40q is not SPX", text)
	}
	return text, nil
}

func (*checker) regime(text string) (any, error) {
	if known := []string{"positive", "negative", "neutral"}; !slices.Contains(known, text) {
		return nil, fmt.Errorf("%.40q is not one of %s", text, strings.Join(known, ", "))
	}
	return text, nil
}

func (*checker) level(text string) (any, error) {
	x, err := number(text, minLevel, maxLevel)
	return compute.Level(x), err
}

func (*checker) dollars(text string) (any, error) {
	x, err := number(text, -maxDollars, maxDollars)
	return compute.Dollars(x), err
}

func (*checker) contracts(text string) (any, error) {
	x, err := number(text, 0, maxContracts)
	if err == nil && x != math.Trunc(x) {
		err = fmt.Errorf("%s is not a whole number", text)
	}
	return compute.Count(x), err
}

// number reads a number in the form of JSON: no infinity, no hexadecimal, no space, no sign but a minus.
func number(text string, low, high float64) (float64, error) {
	digit := func(b byte) bool { return '0' <= b && b <= '9' }
	if text == "" || text[0] != '-' && !digit(text[0]) || !digit(text[len(text)-1]) || !json.Valid([]byte(text)) {
		return 0, fmt.Errorf("%.40q is not a number", text)
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, err
	}
	if x < low || x > high {
		return 0, fmt.Errorf("%.40s is not from %s to %s", text, strconv.FormatFloat(low, 'f', -1, 64), strconv.FormatFloat(high, 'f', -1, 64))
	}
	return x, nil
}
