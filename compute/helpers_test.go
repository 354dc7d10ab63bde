package compute_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"strikecache/compute"

	"strikecache/bench/testkit"
)

var must = testkit.Must

// cal is the exchange's calendar without additions.
var cal = compute.NewCalendar(nil, nil)

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

func day(s string) compute.Date {
	d, err := compute.ParseDate(s)
	if err != nil {
		panic(err)
	}
	return d
}

type row struct {
	symbol string
	compute.Quote
}

// blank is a quote of which only the open interest is known.
func blank(openInterest float64) compute.Quote {
	nan := math.NaN()
	return compute.Quote{Bid: nan, Ask: nan, Last: nan, OpenInterest: openInterest, Volume: nan, IV: nan, Gamma: nan,
		Delta: nan}
}

// published is a quote with only a published volatility and open interest.
func published(iv, openInterest float64) compute.Quote {
	q := blank(openInterest)
	q.IV = iv
	return q
}

// quoted is a quote with only two sides and open interest.
func quoted(bid, ask, openInterest float64) compute.Quote {
	q := blank(openInterest)
	q.Bid, q.Ask = bid, ask
	return q
}

// index is the head of an SPX chain of an instant. The document was generated 15 minutes later, so its quotes are of the
// same instant.
func index(spot float64, asOf string) compute.UnderlyingQuote {
	return compute.UnderlyingQuote{Symbol: "SPX", Spot: spot, PriceChangePercent: -0.25, AsOf: at(asOf),
		CapturedAt: at(asOf).Add(15 * time.Minute)}
}

// of is the head of a chain of a symbol at noon, with quotes of the same instant.
func of(symbol string, spot float64) compute.UnderlyingQuote {
	u := index(spot, noon)
	u.Symbol = symbol
	return u
}

func symbolOf(series string, k float64) string { return fmt.Sprintf("%s%08.0f", series, k*1000) }

func build(t testing.TB, u compute.UnderlyingQuote, rows ...row) *compute.Chain {
	t.Helper()
	var b compute.ChainBuilder
	for _, r := range rows {
		b.Add([]byte(r.symbol), r.Quote)
	}
	chain, err := b.Build(u)
	must(t, err)
	return chain
}

// bothSides returns the rows, and the other right of each without open interest, as the exchange lists both.
func bothSides(rows ...row) []row {
	listed := map[string]bool{}
	for _, r := range rows {
		listed[r.symbol] = true
	}
	for _, r := range rows {
		n := len(r.symbol) - 9
		other := r.symbol[:n] + map[byte]string{'C': "P", 'P': "C"}[r.symbol[n]] + r.symbol[n+1:]
		if !listed[other] {
			listed[other] = true
			rows = append(rows, row{other, blank(0)})
		}
	}
	return rows
}

// exposure computes the exposure with r = 0 and without a previous carry.
func exposure(t testing.TB, u compute.UnderlyingQuote, rows ...row) compute.GammaResult {
	t.Helper()
	return compute.GammaExposure(compute.GammaInput{Chain: build(t, u, rows...), Calendar: cal})
}

// near fails the test unless the number is not null and within an absolute tolerance.
func near[T ~float64](t testing.TB, name string, got *T, want, tolerance float64) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is null, want %v", name, want)
		return
	}
	if !(math.Abs(float64(*got)-want) <= tolerance) {
		t.Errorf("%s = %v, want %v within %g", name, float64(*got), want, tolerance)
	}
}

// nearly is near for a number that cannot be null.
func nearly[T ~float64](t testing.TB, name string, got T, want, tolerance float64) {
	t.Helper()
	near(t, name, &got, want, tolerance)
}

func isNull[T any](t testing.TB, name string, got *T) {
	t.Helper()
	if got != nil {
		t.Errorf("%s = %v, want null", name, *got)
	}
}

func equal[T comparable](t testing.TB, name string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %v, want %v", name, got, want)
	}
}

// text fails the test unless the string is not null and as wanted.
func text(t testing.TB, name string, got *string, want string) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is null, want %s", name, want)
		return
	}
	equal(t, name, *got, want)
}

// marshal returns the JSON of a result, all of whose numbers must be finite.
func marshal(t testing.TB, v any) []byte {
	t.Helper()
	if path := notFinite(reflect.ValueOf(v)); path != "" {
		t.Errorf("%T%s", v, path)
	}
	b, err := json.Marshal(v)
	must(t, err)
	return b
}

// years returns T for a number of hours.
func years(hours float64) float64 { return hours / (365 * 24) }

// term returns T of a series such as SPXW260911 at an instant, in years.
func term(series string, q time.Time) float64 {
	root, date, settlement := series[:len(series)-6], series[len(series)-6:], compute.PM
	if root == "SPX" {
		settlement = compute.AM
	}
	return years(settlement.Instant(day("20"+date[:2]+"-"+date[2:4]+"-"+date[4:]), cal).Sub(q).Hours())
}

// priced returns the rows of a series that quote makes of the prices of a forward f, a rate and a volatility a year.
func priced(series, q string, f, rate float64, strikes []float64, volatility func(k float64) float64, quote func(k float64, right compute.Right, price float64) compute.Quote) (rows []row) {
	t := term(series, at(q))
	for _, k := range strikes {
		for _, right := range []compute.Right{compute.Call, compute.Put} {
			price := compute.BlackValue(right, f, k, volatility(k)*math.Sqrt(t)) * math.Exp(-rate*t)
			rows = append(rows, row{symbolOf(series+"CP"[right:right+1], k), quote(k, right, price)})
		}
	}
	return rows
}

// always is the same volatility at every strike.
func always(volatility float64) func(float64) float64 {
	return func(float64) float64 { return volatility }
}

func strikes(from, to, step float64) (all []float64) {
	for k := from; k <= to; k += step {
		all = append(all, k)
	}
	return all
}
