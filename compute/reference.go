package compute

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"
)

// GammaState is the state of a gamma exposure that [Changes] of the next session compare with. It holds every contract with
// T > 0 and a volatility, with or without open interest.
type GammaState struct {
	AsOf      time.Time
	Spot      float64  // effective
	Rate      float64  // per year, continuously compounded
	Net, Flip *float64 // as served, unrounded; nil: unknown, or no flip
	Series    []SeriesState
}

// SeriesState is one series of a [GammaState]. The series are in the order of sums.
type SeriesState struct {
	Series
	Seconds float64       // T, > 0
	Forward float64       // F, > 0
	Strikes []StrikeState // rising
}

// StrikeState is one strike of a [SeriesState].
type StrikeState struct {
	Strike       float64
	Volatility   float64    // total volatility v of both rights, > 0
	OpenInterest [2]float64 // by right; NaN where not listed
}

// state returns the reference of the next session. net and flip are the figures as served.
func (e *exposure) state(net *Dollars, flip *Level) *GammaState {
	out := &GammaState{AsOf: e.Chain.AsOf, Spot: e.level, Rate: e.RiskFreeRate}
	if net != nil {
		out.Net = new(float64(*net))
	}
	if flip != nil {
		out.Flip = new(float64(*flip))
	}
	for _, s := range e.series {
		held := make([]StrikeState, 0, len(s.strikes))
		for i := range s.strikes {
			if row := &s.strikes[i]; row.step != volNone {
				held = append(held, StrikeState{row.k, row.v, [2]float64{openInterest(row.contracts[Call]), openInterest(row.contracts[Put])}})
			}
		}
		if len(held) > 0 {
			out.Series = append(out.Series, SeriesState{s.Series, s.left.Seconds(), s.forward, held})
		}
	}
	return out
}

// openInterest returns the open interest of a contract, NaN where c is nil.
func openInterest(c *Contract) float64 {
	if c == nil {
		return math.NaN()
	}
	return c.OpenInterest
}

// compared yields each series of the reference with the same series of today, in the order of sums. One of the two is nil
// where only the other side has the series. Series of the reference that have settled are left out.
func (e *exposure) compared() iter.Seq2[*SeriesState, *series] {
	before, now := e.Reference.Series, e.series
	return func(yield func(*SeriesState, *series) bool) {
		for i, j := range merged(len(before), len(now), func(i, j int) int { return compareSeries(before[i].Series, now[j].Series) }) {
			var was *SeriesState
			var is *series
			if i >= 0 {
				was = &before[i]
			}
			if j >= 0 {
				is = now[j]
			} else if e.settled(was.Series) {
				continue
			}
			if !yield(was, is) {
				return
			}
		}
	}
}

// comparedStrikes yields the strikes of a series that the reference or today holds, rising: nil where one side does not hold
// the strike. before or now may be nil.
func comparedStrikes(before *SeriesState, now *series) iter.Seq2[*StrikeState, *strike] {
	var was []StrikeState
	var is []strike
	if before != nil {
		was = before.Strikes
	}
	if now != nil {
		is = now.strikes
	}
	return func(yield func(*StrikeState, *strike) bool) {
		for i, j := range merged(len(was), len(is), func(i, j int) int { return cmp.Compare(was[i].Strike, is[j].k) }) {
			var a *StrikeState
			var b *strike
			if i >= 0 {
				a = &was[i]
			}
			if j >= 0 && is[j].step != volNone {
				b = &is[j]
			}
			if (a != nil || b != nil) && !yield(a, b) {
				return
			}
		}
	}
}

// merged yields the indices of two sorted lists of n and m items, in their common order: equal items as one pair, any other
// item with -1.
func merged(n, m int, compare func(i, j int) int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for i, j := 0, 0; i < n || j < m; {
			order := 0
			switch {
			case i == n:
				order = 1
			case j == m:
				order = -1
			default:
				order = compare(i, j)
			}
			a, b := -1, -1
			if order <= 0 {
				a, i = i, i+1
			}
			if order >= 0 {
				b, j = j, j+1
			}
			if !yield(a, b) {
				return
			}
		}
	}
}

func compareSeries(a, b Series) int {
	return cmp.Or(cmp.Compare(a.Root, b.Root), cmp.Compare(a.Expiration, b.Expiration))
}

// settled says whether a series has settled at the quote instant.
func (e *exposure) settled(s Series) bool {
	settlement, _ := settlementOf(e.Chain.Symbol, s.Root)
	return !settlement.Instant(s.Expiration, e.Calendar).After(e.quoted)
}

// unknownNumber stands in the text of a state for a number that is not there.
const unknownNumber = "-"

// AppendText appends the state as lines of text. Numbers have the digits that give the same float64 again.
//
//	2026-11-20T20:59:59Z 7564.34 0.04 4635198617.25 7551.541      as_of, spot, rate, net, flip
//	SPXW 2026-11-23 259200 7564.9                                 a series: root, expiration, T in seconds, forward
//	7500 0.0121 120 -                                             its strikes: strike, v, open interest of call and put
func (s *GammaState) AppendText(b []byte) ([]byte, error) {
	number := func(x float64) {
		b = append(b, ' ')
		if math.IsNaN(x) {
			b = append(b, unknownNumber...)
		} else {
			b = strconv.AppendFloat(b, x, 'g', -1, 64)
		}
	}
	rows := 1
	for _, series := range s.Series {
		rows += 1 + len(series.Strikes)
	}
	b = slices.Grow(b, 40*rows)
	b = s.AsOf.UTC().AppendFormat(b, time.RFC3339Nano)
	number(s.Spot)
	number(s.Rate)
	number(orNaN(s.Net))
	number(orNaN(s.Flip))
	for _, series := range s.Series {
		b = append(append(b, '\n'), series.Root...)
		b = append(append(b, ' '), series.Expiration.String()...)
		number(series.Seconds)
		number(series.Forward)
		for _, row := range series.Strikes {
			b = strconv.AppendFloat(append(b, '\n'), row.Strike, 'f', -1, 64)
			number(row.Volatility)
			number(row.OpenInterest[Call])
			number(row.OpenInterest[Put])
		}
	}
	return append(b, '\n'), nil
}

// ParseGammaState reads the text of [GammaState.AppendText].
func ParseGammaState(text []byte) (*GammaState, error) {
	var s GammaState
	n := 0
	for line := range bytes.Lines(text) {
		n++
		fields := bytes.Fields(line)
		var err error
		switch {
		case n == 1:
			err = s.parseHead(fields)
		case len(fields) > 0 && fields[0][0] >= 'A':
			err = s.parseSeries(fields)
		default:
			err = s.parseStrike(fields)
		}
		if err != nil {
			return nil, fmt.Errorf("parse gamma state: line %d: %w", n, err)
		}
	}
	if n == 0 {
		return nil, errors.New("parse gamma state: it is empty")
	}
	return &s, nil
}

func (s *GammaState) parseHead(fields [][]byte) (err error) {
	var x [4]float64
	if err := parseNumbers(fields, 1, x[:]); err != nil {
		return err
	}
	s.Spot, s.Rate = x[0], x[1]
	if !(s.Spot > 0) || math.IsNaN(s.Rate) {
		return errors.New("spot or rate is not usable")
	}
	s.Net, s.Flip = finiteOrNil(x[2]), finiteOrNil(x[3])
	s.AsOf, err = time.Parse(time.RFC3339Nano, string(fields[0]))
	return err
}

func (s *GammaState) parseSeries(fields [][]byte) (err error) {
	var x [2]float64
	if err := parseNumbers(fields, 2, x[:]); err != nil {
		return err
	}
	if !(x[0] > 0) || !(x[1] > 0) {
		return errors.New("the time to settlement or the forward is not above 0")
	}
	series := SeriesState{Series: Series{Root: string(fields[0])}, Seconds: x[0], Forward: x[1]}
	if series.Expiration, err = ParseDate(string(fields[1])); err != nil {
		return err
	}
	if n := len(s.Series); n > 0 && compareSeries(s.Series[n-1].Series, series.Series) >= 0 {
		return errors.New("series are not in order")
	}
	s.Series = append(s.Series, series)
	return nil
}

func (s *GammaState) parseStrike(fields [][]byte) error {
	var x [4]float64
	if err := parseNumbers(fields, 0, x[:]); err != nil {
		return err
	}
	if len(s.Series) == 0 {
		return errors.New("a strike before the first series")
	}
	into := &s.Series[len(s.Series)-1].Strikes
	if n := len(*into); !(x[0] >= 0) || !(x[1] > 0) || x[2] < 0 || x[3] < 0 || n > 0 && (*into)[n-1].Strike >= x[0] {
		return errors.New("a number is out of range, or strikes are not in order")
	}
	*into = append(*into, StrikeState{x[0], x[1], [2]float64{x[2], x[3]}})
	return nil
}

// parseNumbers reads the fields after the first ones. There must be as many as into has room for.
func parseNumbers(fields [][]byte, first int, into []float64) error {
	if len(fields) != first+len(into) {
		return fmt.Errorf("%d fields instead of %d", len(fields), first+len(into))
	}
	for i := range into {
		field := string(fields[first+i])
		if field == unknownNumber {
			into[i] = math.NaN()
			continue
		}
		var err error
		if into[i], err = strconv.ParseFloat(field, 64); err != nil || !finite(into[i]) {
			return fmt.Errorf("%.40q is not a number", field)
		}
	}
	return nil
}

func orNaN(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}
