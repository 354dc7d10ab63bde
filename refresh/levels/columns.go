package levels

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"strikecache/compute"
)

// column is a column of the file.
type column struct {
	name     string
	nullable bool
	parse    func(c *checker, text string) (any, error)
}

var columns = []column{
	{"date", false, (*checker).session},
	{"symbol", false, (*checker).symbol},
	{"spot", false, (*checker).level},
	{"net_gex_dollars", true, (*checker).dollars},
	{"zero_gamma_flip", true, (*checker).level},
	{"call_wall", true, (*checker).level},
	{"put_wall", true, (*checker).level},
	{"vol_trigger", true, (*checker).level},
	{"abs_gamma_strike", true, (*checker).level},
	{"gamma_regime", true, (*checker).regime},
	{"oi_settle_date", true, (*checker).settled},
	{"contracts_analyzed", false, (*checker).contracts},
}

// isText says whether the values of a column are strings in JSON.
func (c column) isText() bool {
	return slices.Contains([]string{"date", "symbol", "gamma_regime", "oi_settle_date"}, c.name)
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

// checker parses the cells of a file.
type checker struct {
	calendar *compute.Calendar
	now      time.Time
	date     compute.Date // of the row, once it is known
	lines    map[compute.Date]int
	line     int
}

func (c *checker) session(text string) (any, error) {
	d, err := compute.ParseDate(text)
	switch {
	case err != nil:
		return nil, err
	case d < firstSession:
		return nil, fmt.Errorf("%s is before %s, when SPX options began", d, firstSession)
	case !c.calendar.IsSession(d):
		return nil, fmt.Errorf("%s, a %s, is no session of the exchange", d, d.Weekday())
	case c.calendar.Close(d).After(c.now):
		return nil, fmt.Errorf("the session of %s is not over", d)
	case c.lines[d] != 0:
		return nil, fmt.Errorf("%s stands in line %d already", d, c.lines[d])
	}
	c.lines[d], c.date = c.line, d
	return d, nil
}

func (c *checker) settled(text string) (any, error) {
	d, err := compute.ParseDate(text)
	switch {
	case err != nil:
		return nil, err
	case !c.calendar.IsSession(d):
		return nil, fmt.Errorf("%s, a %s, is no session of the exchange", d, d.Weekday())
	case c.date != 0 && d > c.date:
		return nil, fmt.Errorf("%s is after the row's date, %s", d, c.date)
	}
	return d, nil
}

const symbol = "SPX"

func (*checker) symbol(text string) (any, error) {
	if text != symbol {
		return nil, fmt.Errorf("%.40q is not %s", text, symbol)
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
		return 0, fmt.Errorf("%.40s is not from %s to %s", text, plain(low), plain(high))
	}
	return x, nil
}

func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
