// Package levels has the commands `strikecache export` and `strikecache import`. Export writes the daily levels of the stored
// gamma snapshots to a file. Import stores the rows of such a file as snapshots.
//
// A file has one row per session, oldest first, in CSV (RFC 4180) or as a JSON array of objects. For each session, export
// takes the stored snapshot with the latest as_of. It needs no lock, so a server may run. Import checks every cell before it
// writes anything. Then it stores each row under the date of its session, as a snapshot that has only the levels: meta.source
// is imported, meta.imported_from is the name of the file, and every other field of data is null. It never replaces a stored
// date. An imported snapshot is never the current answer, not even after a restart. An answer that is computed for its date
// replaces it.
package levels

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
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
	isText   bool // a string in JSON, otherwise a number
	nullable bool
	parse    func(c *checker, text string) (any, error)
}

// The bounds are far outside what any market had. Within them, a value is exact in all decimals that are served.
var level = number[compute.Level](0.01, 1e6)

var columns = []column{
	{"date", true, false, (*checker).date},
	{"symbol", true, false, oneOf("SPX")},
	{"spot", false, false, level},
	{"net_gex_dollars", false, true, number[compute.Dollars](-1e15, 1e15)},
	{"zero_gamma_flip", false, true, level},
	{"call_wall", false, true, level},
	{"put_wall", false, true, level},
	{"vol_trigger", false, true, level},
	{"abs_gamma_strike", false, true, level},
	{"gamma_regime", true, true, oneOf("positive", "negative", "neutral")},
	{"oi_settle_date", true, true, (*checker).settleDate},
	{"contracts_analyzed", false, false, number[compute.Count](0, 1e7)},
}

// columnNames are the names of the columns, in their order.
var columnNames = func() (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}()

// firstSession is the day on which options on the index were first traded (Cboe).
var firstSession = compute.NewDate(1983, time.July, 1)

// row is a row of a file with checked values.
type row struct {
	line   int
	date   compute.Date   // 0 until it is known
	values map[string]any // by column, without the nulls
}

// checker checks the rows of a file.
type checker struct {
	calendar *compute.Calendar
	now      time.Time
	lines    map[compute.Date]int // of the rows checked
	row      row                  // the one that is checked now
	rows     []row
	faults   []error
}

// check checks a row and keeps its values and its faults.
func (c *checker) check(r record) {
	c.row = row{line: r.line, values: map[string]any{}}
	for i, column := range columns {
		value, err := c.value(column, r.cells[i])
		if err != nil {
			c.faults = append(c.faults, fmt.Errorf("line %d, column %s: %w", r.line, column.name, err))
		}
		if value != nil {
			c.row.values[column.name] = value
		}
	}
	c.rows = append(c.rows, c.row)
}

func (c *checker) value(column column, cell json.RawMessage) (any, error) {
	text := string(cell)
	if text == "null" {
		if column.nullable {
			return nil, nil
		}
		return nil, errors.New("value missing")
	}
	if column.isText {
		if err := json.Unmarshal(cell, &text); err != nil {
			return nil, fmt.Errorf("%.40s is not a string", cell)
		}
	}
	return column.parse(c, text)
}

func (c *checker) date(text string) (any, error) {
	d, err := c.session(text)
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
	d, err := c.session(text)
	if err == nil && c.row.date != 0 && d > c.row.date {
		err = fmt.Errorf("%s is after the row's date, %s", d, c.row.date)
	}
	return d, err
}

// session reads the date of a session.
func (c *checker) session(text string) (compute.Date, error) {
	d, err := compute.ParseDate(text)
	switch {
	case err != nil:
		return 0, err
	case d < firstSession:
		return 0, fmt.Errorf("%s is before %s, when SPX options began", d, firstSession)
	case !c.calendar.IsSession(d):
		return 0, fmt.Errorf("%s, a %s, is not a session of the exchange", d, d.Weekday())
	}
	return d, nil
}

// oneOf returns the parse function of a column that accepts only these words.
func oneOf(words ...string) func(*checker, string) (any, error) {
	return func(_ *checker, text string) (any, error) {
		if !slices.Contains(words, text) {
			return nil, fmt.Errorf("%.40q is not %s", text, strings.Join(words, " or "))
		}
		return text, nil
	}
}

// number returns the parse function of a column of numbers from low to high.
func number[T ~float64](low, high float64) func(*checker, string) (any, error) {
	return func(_ *checker, text string) (any, error) {
		var x float64
		if err := json.Unmarshal([]byte(text), &x); err != nil {
			return nil, fmt.Errorf("%.40s is not a number", text)
		}
		if x < low || x > high {
			return nil, fmt.Errorf("%.40s is not from %.15g to %.15g", text, low, high)
		}
		return T(x), nil
	}
}
