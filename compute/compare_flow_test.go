package compute_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
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
				for _, symbol := range []string{"SPX", "XSP", "NDX", "XLK", "AAPL"} {
					for _, age := range []time.Duration{0, 10 * time.Minute, 3 * time.Hour} {
						u := compute.UnderlyingQuote{Symbol: symbol, Spot: 100, AsOf: captured.Add(-age), CapturedAt: captured}
						chain := &compute.Chain{UnderlyingQuote: u}
						if got, want := chain.QuoteInstant(cal), clock.quoteInstant(u.AsOf, captured, symbol); !got.Equal(want) {
							t.Fatalf("%s, captured %s, as of %s: %s, want %s", symbol, captured, u.AsOf, got, want)
						}
					}
				}
			}
		}
	}
}

// The scores and sides of unusual flow, the dates of max pain and the count of two-sided quotes agree with the plain implementation, on
// random markets of an index and of a fund. In every third market the volumes are almost equal.
func TestFlowAgainstPlain(t *testing.T) {
	t.Parallel()
	closed, early := listing(t)
	clock := plainClock{closed: closed, early: early}
	g, random := &generator{Rand: rand.New(rand.NewPCG(25, 26)), seen: map[string]int{}}, rand.New(rand.NewPCG(33, 34))
	for i := range markets() {
		roots := []string{"SPX", "SPXW"}
		if i%2 == 1 {
			roots = []string{"XLK"}
		}
		chain := g.market(t, i, roots...).chain
		name := fmt.Sprintf("market %d (%s)", i, chain.CapturedAt)
		equal(t, name+": two-sided quotes", compute.TwoSidedQuotes(chain, cal), countTwoSided(chain, clock))
		compareExpirations(t, name, chain, clock)
		contracts, previous := observed(random, chain, i%3 == 0)
		sizes, flow := surprises(chain, clock), compute.UnusualFlow(compute.FlowInput{Chain: chain, Calendar: cal, PreviousIV: previous})
		n, r := eligible(chain, clock)
		equal(t, name+": eligible", flow.Eligible, n)
		equal(t, name+": rejected", flow.Rejected, compute.FlowRejected{Settled: r.settled, NotThisSession: r.notThisSession,
			LowVolume: r.lowVolume, LowPrice: r.lowPrice, LowPremium: r.lowPremium})
		for _, item := range flow.Items {
			c, what := contracts[item.Contract], name+": "+item.Contract
			compareScore(t, what, item, c, previous[item.Contract])
			z, known := sizes[item.Contract]
			nearly(t, what+": size_surprise", item.Components.SizeSurprise, 20*clampPlain((z-1)/4, 0, 1), 1e-6)
			g.note("too few peers", !known)
			g.note("a surprising size", z > 1 && z < 5)
			g.note("band "+item.Band, true)
			g.note("priced by the "+item.PremiumBasis, true)
			want := locate(chain, c, clock)
			nearly(t, what+": quote_location", item.Components.QuoteLocation, want.component, 1e-6)
			nearly(t, what+": direction_confidence", item.Confidence, want.confidence, 1e-6)
			equal(t, what+": side", item.Side, want.side)
			equal(t, what+": direction", item.Direction, want.direction)
			g.note("side "+want.side+" of a "+item.OptionType.String(), true)
			g.note("believed in part", want.f > 0 && want.f < 0.5)
		}
	}
	for _, feature := range []string{"side ask of a call", "side bid of a call", "side mid of a call", "side ask of a put",
		"side bid of a put", "side mid of a put", "side unknown of a call", "side unknown of a put", "believed in part",
		"too few peers", "a surprising size", "priced by the mid", "priced by the last", "band low", "band notable", "band high", "band extreme"} {
		if g.seen[feature] == 0 {
			t.Errorf("no market has %s: %v", feature, g.seen)
		}
	}
}

// observed draws the volume, the delta and the last trade of some contracts of a chain anew, at the thresholds of METHODS.md §5. It
// returns the contracts and their published volatilities of the session before, by symbol.
func observed(random *rand.Rand, chain *compute.Chain, equalVolumes bool) (contracts map[string]*compute.Contract, previous map[string]float64) {
	contracts, previous = map[string]*compute.Contract{}, map[string]float64{}
	midnight := chain.Session(cal).At(0, 0, 0, compute.NewYork).Unix()
	for k := range chain.Contracts {
		c := &chain.Contracts[k]
		contracts[c.Symbol()] = c
		if random.IntN(3) == 0 {
			c.Delta = math.Copysign([]float64{0, 0.0999, 0.1, 0.2499, 0.25, 0.4999, 0.5}[random.IntN(7)], c.Delta)
		}
		if random.IntN(4) == 0 {
			price := []float64{0.04, 0.05, 2, 4.99, 5}[random.IntN(5)]
			c.Bid, c.Ask, c.Volume = price, price, []float64{99, 100, 124, 125, 499, 500, 50_000}[random.IntN(7)]
		}
		if random.IntN(10) == 0 {
			c.LastTrade = midnight + []int64{-1, 0, 86_399, 86_400}[random.IntN(4)]
		}
		if equalVolumes && random.IntN(20) > 0 {
			c.Volume = 1500 + float64(random.IntN(200))
		}
		if moved := []float64{0, 0, 0.005, 0.01, 0.03, 0.05, 0.2}[random.IntN(7)]; random.IntN(5) > 0 {
			previous[c.Symbol()] = math.Max(c.IV+moved*float64(1-2*random.IntN(2)), 0)
		}
	}
	return contracts, previous
}

// compareScore compares the parts of an item's score, and what follows from the score.
func compareScore(t *testing.T, what string, item compute.FlowItem, c *compute.Contract, previous float64) {
	t.Helper()
	want, parts := scoreOf(c, previous), item.Components
	quality, code := quoteQuality(c)
	equal(t, what+": basis", item.PremiumBasis, want.basis)
	nearly(t, what+": premium", item.Premium, want.premium, 0.5+1e-9*want.premium)
	nearly(t, what+": volume_oi", parts.VolumeOI, want.volumeOI, 1e-6)
	nearly(t, what+": premium part", parts.Premium, want.premiumPart, 1e-6)
	nearly(t, what+": iv_change part", parts.IVChange, want.ivPart, 1e-6)
	if want.change == nil {
		isNull(t, what+": iv_change", item.IVChange)
	} else {
		near(t, what+": iv_change", item.IVChange, *want.change, 1e-9)
	}
	nearly(t, what+": quality", item.Quality, quality, 1e-9)
	if reasons := fmt.Sprint(item.Reasons); code != "" && !strings.Contains(reasons, code) {
		t.Errorf("%s: reasons %s lack %s", what, reasons, code)
	}
	sum := float64(parts.VolumeOI + parts.Premium + parts.SizeSurprise + parts.QuoteLocation + parts.IVChange)
	nearly(t, what+": score", item.Score, quality*sum, 0.05+1e-9)
	equal(t, what+": band", item.Band, bandOf(float64(item.Score)))
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
