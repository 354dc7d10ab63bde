package compute_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
)

// flickers bounds what a figure may move by when the spot moves by 1 bp, and when one quote of each date moves by a tick: dollars as a part of
// gross gamma, prices in bp of the spot, other figures as they are. The first row counts whose name is in the name of the figure. Figures that
// compare strikes do not move at all: they jump where two strikes are about equal, as METHODS.md §1.12 says, and here none are.
var flickers = []struct {
	name       string
	spot, tick float64
}{
	{"distance_pct", 0.0105, 0.01}, {"gross_share_pct", 0, 0.5}, {"charm", 4e-3, 6e-3}, {"dollars", 5e-3, 8e-3},
	{"walls.by_side", math.Inf(1), 0}, // the spot crosses a strike
	{"wall", 0, 0}, {"abs_gamma_strike", 0, 0}, {"[max_pain]", 0, 0}, {".strike", 0, 0}, {"pin", 0, 0},
	{"_move", 0.11, 0.5}, {"forward", 0, 0.2},
	{"atm_straddle", 0, 3},                                                                 // the strike nearest the forward changes
	{"gamma_tilt", 0, 0.01}, {"futures[].ratio", 2e-4, 1e-4}, {"futures[].levels", 1.5, 1}, // ticks of the future
	{"_30d", 0, 0.03}, {"term_slope", 0, 0.03}, {"put_call", 0, 0},
	{"model_free_volatility", 0, 0.05}, {"atm_volatility", 0, 0.25}, {"risk_reversal", 0, 0.25}, {"butterfly", 0, 0.15},
	{"spot", 1.1, 0.2}, {"flip", 1.1, 0.8}, {"vol_trigger", 1.1, 0.8}, {"price", 1.1, 0.8},
}

// moves compares two answers of one type, and fails the test for a figure that moves by more than its bound.
type moves struct {
	t           testing.TB
	what        string
	tick        bool
	gross, spot float64
}

func (m *moves) compare(name string, a, b reflect.Value) {
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() != b.IsNil() {
			m.t.Errorf("%s: %s becomes or was null", m.what, name)
		} else if !a.IsNil() {
			m.compare(name, a.Elem(), b.Elem())
		}
	case reflect.Struct:
		for i := range a.NumField() {
			field := a.Type().Field(i)
			if !field.IsExported() {
				continue
			}
			member, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			m.compare(name+map[bool]string{true: "", false: "."}[field.Anonymous]+member, a.Field(i), b.Field(i))
		}
	case reflect.Slice:
		m.rows(name, a, b)
	case reflect.Float64:
		m.figure(name, a, b)
	default:
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			m.t.Errorf("%s: %s is %v, was %v", m.what, name, b, a)
		}
	}
}

// rows compares rows of one name, or else of one place.
func (m *moves) rows(name string, a, b reflect.Value) {
	if a.Len() != b.Len() {
		if !strings.HasSuffix(name, "by_strike") { // at the end of the reach a strike may come or go
			m.t.Errorf("%s: %s has %d rows, had %d", m.what, name, b.Len(), a.Len())
		}
		return
	}
	for i := range a.Len() {
		key, row := "", b.Index(i)
		if a.Index(i).Kind() == reflect.Struct && a.Index(i).FieldByName("Name").IsValid() {
			key = a.Index(i).FieldByName("Name").String()
			for j := range b.Len() {
				if b.Index(j).FieldByName("Name").String() == key {
					row = b.Index(j)
				}
			}
		}
		if strings.Contains(name, "futures") {
			key = ""
		}
		m.compare(name+"["+key+"]", a.Index(i), row)
	}
}

func (m *moves) figure(name string, a, b reflect.Value) {
	moved := math.Abs(b.Float() - a.Float())
	switch a.Type().Name() {
	case "Dollars":
		moved /= m.gross
	case "Level":
		moved *= 1e4 / m.spot
	}
	for _, f := range flickers {
		if strings.Contains(name, f.name) {
			bound := f.spot
			if m.tick {
				bound = f.tick
			}
			if !(moved <= bound+1e-9) {
				m.t.Errorf("%s: %s moves by %.6g, at most %g: from %v to %v", m.what, name, moved, bound, a, b)
			}
			return
		}
	}
	if a.Type().Name() != "Count" || moved != 0 {
		m.t.Errorf("%s has no bound", name)
	}
}

// answers are those of a chain that the test compares.
type answers struct {
	Gamma      compute.Gamma      `json:"gex"`
	Levels     compute.KeyLevels  `json:"levels"`
	Volatility compute.Volatility `json:"volatility"`
}

func answersOf(chain *compute.Chain) answers {
	r := compute.GammaExposure(compute.GammaInput{Chain: chain, Calendar: cal, RiskFreeRate: 0.04})
	pains := compute.MaxPains(chain, cal)
	levels := compute.NewKeyLevels(&r, pains[compute.DefaultMaxPain(pains)], chain.CapturedAt, cal)
	return answers{r.Data, *levels, r.Volatility.With(nil, cal).Data}
}

func tickOf(price float64) float64 {
	if price < 3 {
		return 0.05
	}
	return 0.1
}

// flickerRows is a chain of nine dates, of which the first settles in four hours, with quotes in ticks around the prices of a smile. The
// strike 7000 has as many calls as puts.
func flickerRows() (rows []row) {
	for n, series := range []string{"SPXW260811", "SPXW260812", "SPXW260814", "SPX260821", "SPXW260828", "SPXW260904", "SPXW260911", "SPX260918", "SPX261218"} {
		t := term(series, at(noon))
		f := 7000.3 * math.Exp(0.025*t)
		first := 6400.0
		if n == 1 {
			first += 13.37 // its forward, 7000.87, lies in the middle between two strikes, within a tick
		}
		smile := func(k float64) float64 {
			x := math.Tanh(math.Log(k/f) / math.Sqrt(t))
			return 0.13 - 0.1*x + 0.1*x*x
		}
		rows = append(rows, priced(series, noon, f, 0.04, strikes(first, 7600, 25), smile, func(k float64, right compute.Right, price float64) compute.Quote {
			tick, half := tickOf(price), math.Max(tickOf(price), 0.005*price)
			side := k - [...]float64{7150, 6900}[right]
			interest := math.Round(4000 * math.Exp(-side*side/2e4) / float64(n+1))
			if k == 7000 {
				interest = 3000
			}
			return quoted(math.Max(0, math.Floor((price-half)/tick)*tick), math.Ceil((price+half)/tick)*tick, interest)
		})...)
	}
	return rows
}

// testFlicker moves the spot of a chain by 1 bp, and then one quote of each root and date at a time by one tick.
func testFlicker(t *testing.T, chain *compute.Chain) {
	base := answersOf(chain)
	equal(t, "spot", base.Gamma.SpotSource, compute.SpotIndex)
	compare := func(what string, tick bool, moved *compute.Chain) {
		m := moves{t, what, tick, float64(*base.Gamma.Gross), float64(base.Gamma.Spot)}
		m.compare("", reflect.ValueOf(base), reflect.ValueOf(answersOf(moved)))
	}
	for _, bp := range []float64{-1, 1} {
		moved := *chain
		moved.Spot *= 1 + bp*1e-4
		compare(fmt.Sprintf("spot %+g bp", bp), false, &moved)
	}
	place, last := map[int][]int{}, compute.Series{} // the contracts by their place in their series
	for i, n := 0, 0; i < len(chain.Contracts); i, n = i+1, n+1 {
		if s := (compute.Series{Root: chain.Contracts[i].Root, Expiration: chain.Contracts[i].Expiration}); s != last {
			last, n = s, 0
		}
		place[n] = append(place[n], i)
	}
	for n, contracts := range place {
		moved := *chain
		moved.Contracts = slices.Clone(chain.Contracts)
		for _, i := range contracts {
			q := &moved.Contracts[i].Quote
			tick := tickOf(q.Bid) * float64(1-i%2*2)
			if q.Bid > 0 {
				q.Bid = math.Max(0, q.Bid+tick)
			}
			q.Ask = math.Max(q.Ask+tick, math.Max(q.Bid, 0.05))
		}
		compare(fmt.Sprint("the quotes of place ", n), true, &moved)
	}
}

// METHODS.md §1.12: no served figure of a made chain moves by more than its bound. The spot crosses the strike 7000.
func TestNothingFlickers(t *testing.T) {
	t.Parallel()
	testFlicker(t, build(t, index(7000.3, noon), flickerRows()...))
}

// The same of the recorded chain, of the strikes within 2 % and the dates of the next 40 days, with its quotes as if of a minute before the close, when
// the index is live.
func TestRecordedNothingFlickers(t *testing.T) {
	t.Parallel()
	chain := recordedChain(t, spxChain)
	chain.AsOf = cal.Close(chain.Session(cal)).Add(-time.Minute)
	chain.CapturedAt = chain.AsOf.Add(15 * time.Minute)
	chain.Contracts = slices.DeleteFunc(chain.Contracts, func(c compute.Contract) bool {
		return math.Abs(c.Strike/chain.Spot-1) > 0.02 || c.Expiration == chain.Session(cal) || c.Expiration > chain.Session(cal)+40
	})
	testFlicker(t, chain)
}
