package compute_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"strikecache/compute"
)

// The quote instants of index options and of fund options, and the date of open interest, agree with the plain implementation,
// around every boundary of a week with a holiday and an early close, of a week with two holidays, and of a change of the clock.
func TestClocksAgainstPlain(t *testing.T) {
	closed, early := listing(t)
	clock := plainClock{closed: closed, early: early}
	for _, from := range []string{"2026-11-23T00:00:00Z", "2026-12-23T00:00:00Z", "2026-03-05T00:00:00Z"} {
		for minutes := 0; minutes < 11*24*60; minutes += 5 {
			for second := -1; second <= 1; second++ {
				captured := at(from).Add(time.Duration(minutes)*time.Minute + time.Duration(second)*time.Second)
				date, state := compute.OpenInterestDate(captured, cal)
				if wantDate, wantState := clock.openInterestDate(captured); date != wantDate || state != wantState {
					t.Fatalf("open interest, captured %s: %s %s, want %s %s", captured, date, state, wantDate, wantState)
				}
				for _, symbol := range []string{"SPX", "XLK"} {
					for _, age := range []time.Duration{0, 10 * time.Minute, 3 * time.Hour} {
						u := compute.Underlying{Symbol: symbol, Spot: 100, AsOf: captured.Add(-age), CapturedAt: captured}
						chain := &compute.Chain{Underlying: u}
						if got, want := chain.QuoteInstant(cal), clock.quoteInstant(u.AsOf, captured, symbol); !got.Equal(want) {
							t.Fatalf("%s, captured %s, as of %s: %s, want %s", symbol, captured, u.AsOf, got, want)
						}
					}
				}
			}
		}
	}
}

// The side of the last trade, the dates of max pain and the count of two-sided quotes agree with the plain implementation,
// on random markets of an index and of a fund.
func TestFlowAgainstPlain(t *testing.T) {
	t.Parallel()
	closed, early := listing(t)
	clock := plainClock{closed: closed, early: early}
	g := &generator{Rand: rand.New(rand.NewPCG(25, 26)), seen: map[string]int{}}
	for i := range markets() {
		roots := []string{"SPX", "SPXW"}
		if i%2 == 1 {
			roots = []string{"XLK"}
		}
		chain := g.market(t, i, roots...).chain
		name := fmt.Sprintf("market %d (%s)", i, chain.CapturedAt)
		equal(t, name+": two-sided quotes", compute.TwoSidedQuotes(chain, cal), countTwoSided(chain, clock))
		compareExpirations(t, name, chain, clock)
		plain := map[string]plainLocation{}
		for k := range chain.Contracts {
			c := &chain.Contracts[k]
			plain[c.Symbol()] = locate(chain, c, clock)
		}
		for _, item := range compute.UnusualFlow(compute.FlowInput{Chain: chain, Calendar: cal}).Items {
			want, what := plain[item.Contract], name+": "+item.Contract
			nearly(t, what+": quote_location", item.Components.QuoteLocation, want.component, 1e-6)
			nearly(t, what+": direction_confidence", item.Confidence, want.confidence, 1e-6)
			equal(t, what+": side", item.Side, want.side)
			equal(t, what+": direction", item.Direction, want.direction)
			g.note("side "+want.side+" of a "+item.OptionType.String(), true)
			g.note("believed in part", want.f > 0 && want.f < 0.5)
		}
	}
	for _, feature := range []string{"side ask of a call", "side bid of a call", "side mid of a call", "side ask of a put",
		"side bid of a put", "side mid of a put", "side unknown of a call", "side unknown of a put", "believed in part"} {
		if g.seen[feature] == 0 {
			t.Errorf("no market has %s: %v", feature, g.seen)
		}
	}
}

// compareExpirations compares the dates of max pain with the dates that have not settled at the quote instant.
func compareExpirations(t *testing.T, name string, chain *compute.Chain, clock plainClock) {
	t.Helper()
	groups, _ := groupContracts(chain, clock)
	var want, got []compute.Date
	for _, group := range groups {
		want = append(want, group.expiration)
	}
	for _, p := range compute.MaxPains(chain, cal) {
		got = append(got, p.Expiration)
	}
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("%s: max pain of %v, want %v", name, got, want)
	}
}

// The shape agrees on random curves, whose differences are often exactly the threshold.
func TestShapeAgainstPlain(t *testing.T) {
	g := rand.New(rand.NewPCG(27, 28))
	seen := map[string]int{}
	for range 5000 {
		prices := []float64{15 + float64(g.IntN(200))/20}
		for range g.IntN(8) {
			step := []float64{0, 0.05, 0.1, 0.1001, 0.4, -0.05, -0.1, -0.1001, -0.4}[g.IntN(9)]
			prices = append(prices, math.Round((prices[len(prices)-1]+step)*1e4)/1e4)
		}
		in := compute.VIXInput{Date: day("2026-10-05"), Calendar: cal, Now: at("2026-10-06T12:00:00Z")}
		for i, price := range prices {
			month := time.Month(10 + i)
			year := 2026 + (int(month)-1)/12
			month = (month-1)%12 + 1
			in.Rows = append(in.Rows, compute.FuturesSettlement{Product: "VX", Symbol: fmt.Sprintf("VX/%c%d", "FGHJKMNQUVXZ"[month-1], year%10),
				Expiration: cal.VIXExpiration(year, month), Price: price})
		}
		curve, _, ok := compute.VIXTermStructure(in)
		want := plainShape(prices)
		if !ok || len(curve.Curve) != len(prices) || curve.Shape != want {
			t.Errorf("%v: %v %s of %d months, want %s", prices, ok, curve.Shape, len(curve.Curve), want)
		}
		seen[want]++
	}
	for _, shape := range []string{"flat", "upward", "downward", "humped", "trough", "mixed"} {
		if seen[shape] == 0 {
			t.Errorf("no curve is %s: %v", shape, seen)
		}
	}
}
