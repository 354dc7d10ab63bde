package compute_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"strikecache/compute"
)

// fullRun says whether the long versions of the comparisons are asked for.
func fullRun() bool { return os.Getenv("STRIKECACHE_FULL") != "" }

// markets is how many synthetic markets are compared: each moment three times, and five times in a full run.
func markets() int {
	if fullRun() {
		return 5 * len(moments)
	}
	return 3 * len(moments)
}

// comparison compares the numbers of one market to the tolerances of METHODS.md §7.
type comparison struct {
	*testing.T
	name   string
	spot   float64
	gross  float64
	coarse bool // the grid of METHODS.md §1.2, in points, is too coarse for the spot: finer grids find more flips
}

func (j comparison) failf(what string, got, want any) {
	j.Helper()
	j.Errorf("%s: %s = %v, want %v", j.name, what, got, want)
}

func (j comparison) exact(what string, got, want any) {
	j.Helper()
	if got != want {
		j.failf(what, got, want)
	}
}

func about(j comparison, what string, got, want, tolerance float64) {
	j.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		j.failf(what, got, want)
	}
}

// maybe compares two numbers that may be null.
func maybe[T ~float64](j comparison, what string, got *T, want *float64, tolerance float64) {
	j.Helper()
	switch {
	case got == nil && want == nil:
	case got == nil || want == nil:
		j.failf(what, show(got), show(want))
	default:
		about(j, what, float64(*got), *want, tolerance)
	}
}

func show[T ~float64](x *T) string {
	if x == nil {
		return "null"
	}
	return fmt.Sprint(float64(*x))
}

// The tolerances of METHODS.md §7. That of the flip's distance is for an index of thousands, where 0.02 point is 3e-4 %.
func (j comparison) dollars() float64  { return 1e-6 * j.gross }
func (j comparison) table() float64    { return math.Max(1, 1e-6*j.gross) }
func (j comparison) distance() float64 { return math.Max(6e-4, 0.02/j.spot*100) }

const (
	points = 0.02
	ratios = 2e-4
	// atFlip is for the shares of gross at the flip, which itself is known to 0.02 point alone.
	atFlip = 0.01
)

// flip compares two flips.
func (j comparison) flip(what string, got *compute.Level, want *float64) {
	j.Helper()
	if !j.coarse {
		maybe(j, what, got, want, points)
	}
}

func TestAgainstPlainImplementation(t *testing.T) {
	t.Parallel()
	closed, early := listing(t)
	g := &generator{Rand: rand.New(rand.NewPCG(23, 24)), seen: map[string]int{}}
	for i := range markets() {
		m := g.market(t, i)
		got := compute.GammaExposure(compute.GammaInput{Chain: m.chain, Calendar: cal, RiskFreeRate: m.rate, PreviousCarry: m.previous})
		want := plainGamma(plainInput{Chain: m.chain, Closed: closed, Early: early, Rate: m.rate, PreviousCarry: m.previous})
		j := comparison{T: t, name: fmt.Sprintf("market %d (%s)", i, moments[i%len(moments)].asOf), spot: m.chain.Spot,
			coarse: m.chain.Spot < 1000}
		if want.Gross != nil {
			j.gross = *want.Gross
		}
		compareHead(j, got.Data, want)
		compareFlips(j, got.Data, want)
		compareLevels(j, got.Data, want)
		compareTables(j, got.Data, want)
		compareQuality(j, got.Quality, want)
		marshal(t, got.Data)
		marshal(t, got.Quality)
		countFeatures(g, got)
	}
	for _, feature := range []string{"AM and PM on one date", "missing side", "one-sided quote", "crossed quote", "locked quote", "zero iv",
		"NaN numbers", "zero open interest", "settled rows", "settled", "no_open_interest", "no_volatility", "0DTE", "floored", "strike 0",
		"parity", "other_settlement", "interpolated", "extrapolated", "previous", "none", "volatility implied", "volatility published",
		"volatility interpolated", "volatility none", "found", "multiple", "none_all_positive", "none_all_negative", "positive", "negative",
		"neutral", "updating", "settled interest", "trigger", "no trigger", "move", "no move", "flip of 0DTE", "bad rows"} {
		if g.seen[feature] == 0 {
			t.Errorf("no market has %s: %v", feature, g.seen)
		}
	}
}

// countFeatures counts what the result of a market says it contained.
func countFeatures(g *generator, r compute.GammaResult) {
	d, q := r.Data, r.Quality
	g.note("settled", q.Contracts.Skipped.Settled > 0)
	g.note("no_open_interest", q.Contracts.Skipped.NoOpenInterest > 0)
	g.note("no_volatility", q.Contracts.Skipped.NoVolatility > 0)
	g.note("bad rows", q.Contracts.Skipped.Total() > 0)
	g.note("0DTE", d.ZeroDTE.Contracts > 0)
	g.note("flip of 0DTE", d.ZeroDTE.Flip != nil)
	g.note("floored", q.FlooredStrikes > 0)
	for source, n := range q.Forwards {
		g.note(string(source), n > 0)
	}
	for _, s := range q.Volatility {
		g.note("volatility "+s.Step, s.OpenInterest != nil && *s.OpenInterest > 0)
	}
	g.note(string(d.FlipStatus), true)
	if d.Regime != nil {
		g.note(*d.Regime, true)
	}
	g.note("updating", d.OIState == "updating")
	g.note("settled interest", d.OIState == "settled")
	g.note("trigger", d.VolTrigger != nil)
	g.note("no trigger", d.VolTrigger == nil)
	g.note("move", d.ExpectedMove != nil)
	g.note("no move", d.ExpectedMove == nil)
}

func compareHead(j comparison, got compute.Gamma, want plainResult) {
	j.Helper()
	j.exact("session date", got.SessionDate, want.SessionDate)
	j.exact("settle date", got.OISettleDate, want.OISettleDate)
	j.exact("state", got.OIState, want.OIState)
	j.exact("used", got.ContractsAnalyzed, want.Used)
	maybe(j, "net", got.Net, want.Net, j.dollars())
	maybe(j, "call", got.Call, want.Call, j.dollars())
	maybe(j, "put", got.Put, want.Put, j.dollars())
	maybe(j, "gross", got.Gross, want.Gross, j.dollars())
	if want.Tilt != nil && math.Abs(*want.Tilt) > 100 { // a ratio to next to nothing has no such absolute tolerance
		maybe(j, "tilt", got.Tilt, want.Tilt, 1e-6**want.Tilt)
	} else {
		maybe(j, "tilt", got.Tilt, want.Tilt, ratios)
	}
	maybe(j, "move", got.ExpectedMove, want.ExpectedMove1D, points)
	z := want.ZeroDTE
	j.exact("0DTE contracts", got.ZeroDTE.Contracts, z.Contracts)
	about(j, "0DTE net", float64(got.ZeroDTE.Net), z.Net, j.dollars())
	maybe(j, "0DTE share", got.ZeroDTE.Share, z.SharePct, ratios)
	j.flip("0DTE flip", got.ZeroDTE.Flip, z.Flip)
}

func compareFlips(j comparison, got compute.Gamma, want plainResult) {
	j.Helper()
	if len(got.Scenarios) != len(want.Scenarios) {
		j.failf("scenarios", len(got.Scenarios), len(want.Scenarios))
		return
	}
	for i, s := range got.Scenarios {
		j.exact("scenario", s.Name, want.Scenarios[i].Name)
		maybe(j, s.Name+" net", s.Net, want.Scenarios[i].Net, j.dollars())
		j.flip(s.Name+" flip", s.Flip, want.Scenarios[i].Flip)
	}
	c := want.Conventions
	for i, w := range []plainNetAndFlip{c.Model, c.PublishedGamma, c.Perfiliev, c.VolumeWeighted} {
		name := got.Conventions[i].Name
		size := j.gross // the other conventions have sizes of their own
		if w.Net != nil {
			size = math.Max(size, math.Abs(*w.Net))
		}
		maybe(j, name+" net", got.Conventions[i].Net, w.Net, 1e-6*size)
		j.flip(name+" flip", got.Conventions[i].Flip, w.Flip)
	}
	if j.coarse {
		return
	}
	j.exact("status", string(got.FlipStatus), want.FlipStatus)
	j.flip("flip", got.Flip, want.Flip)
	maybe(j, "distance", got.FlipDistance, want.FlipDistancePct, j.distance())
	if len(got.Flips) != len(want.Flips) {
		j.failf("flips", got.Flips, want.Flips)
	} else {
		for i, f := range got.Flips {
			about(j, "flips", float64(f.Price), want.Flips[i].Level, points)
			j.exact("direction", f.Direction, want.Flips[i].Direction)
		}
	}
	if (got.FlipBand == nil) != (want.FlipBand == nil) {
		j.failf("band", got.FlipBand, want.FlipBand)
	} else if got.FlipBand != nil {
		about(j, "band low", float64(got.FlipBand.Low), want.FlipBand.Low, points)
		about(j, "band high", float64(got.FlipBand.High), want.FlipBand.High, points)
	}
}

func compareLevels(j comparison, got compute.Gamma, want plainResult) {
	j.Helper()
	for _, c := range []struct {
		name string
		got  *compute.Level
		want *float64
	}{
		{"call wall", got.CallWall, want.CallWall}, {"put wall", got.PutWall, want.PutWall}, {"trigger", got.VolTrigger, want.VolTrigger},
		{"most gamma", got.AbsGammaStrike, want.AbsGammaStrike},
		{"gross call", got.Walls.Gross.Call, want.Walls.Gross.Call}, {"gross put", got.Walls.Gross.Put, want.Walls.Gross.Put},
		{"net call", got.Walls.Net.Call, want.Walls.Net.Call}, {"net put", got.Walls.Net.Put, want.Walls.Net.Put},
	} {
		maybe(j, c.name, c.got, c.want, 0)
	}
	if want.Used > 0 {
		maybe(j, "open interest call", got.Walls.OpenInterest.Call, want.Walls.OpenInterest.Call, 0)
		maybe(j, "open interest put", got.Walls.OpenInterest.Put, want.Walls.OpenInterest.Put, 0)
	}
	if (got.Regime == nil) != (want.Regime == nil) {
		j.failf("regime", got.Regime, want.Regime)
	} else if got.Regime != nil && !j.coarse { // it asks for the scenarios' flips
		j.exact("regime", *got.Regime, *want.Regime)
	}
}

func compareTables(j comparison, got compute.Gamma, want plainResult) {
	j.Helper()
	if len(got.ByExpiration) != len(want.ByExpiration) || len(got.ByStrike) != len(want.ByStrike) || len(got.Profile) != len(want.Profile) {
		j.failf("table lengths", fmt.Sprint(len(got.ByExpiration), len(got.ByStrike), len(got.Profile)),
			fmt.Sprint(len(want.ByExpiration), len(want.ByStrike), len(want.Profile)))
		return
	}
	for i, g := range got.ByExpiration {
		w := want.ByExpiration[i]
		j.exact("expiration", g.Expiration, w.Expiration)
		j.exact("settlement", g.Settlement, w.Settlement)
		j.exact("forward source", string(g.ForwardSource), w.ForwardSource)
		about(j, "forward", float64(g.Forward), w.Forward, 1e-9*j.spot)
		about(j, "expiration net", float64(g.Net), w.Net, j.table())
		about(j, "expiration gross", float64(g.Gross), w.Gross, j.table())
		maybe(j, "expiration share", g.Share, w.SharePct, ratios)
	}
	for i, g := range got.ByStrike {
		w := want.ByStrike[i]
		about(j, "strike", float64(g.Strike), w.Strike, 0)
		about(j, "strike call", float64(g.Call), w.CallGEX, j.table())
		about(j, "strike put", float64(g.Put), w.PutGEX, j.table())
		about(j, "strike net", float64(g.Net), w.Net, j.table())
		j.exact("call open interest", float64(g.CallOpenInterest), w.CallOI)
		j.exact("put open interest", float64(g.PutOpenInterest), w.PutOI)
		j.exact("call volume", float64(g.CallVolume), w.CallVolume)
		j.exact("put volume", float64(g.PutVolume), w.PutVolume)
	}
	for i, g := range got.Profile {
		about(j, "profile spot", float64(g.Spot), want.Profile[i].Spot, 1e-9*j.spot)
		maybe(j, "profile net", g.Net, want.Profile[i].Net, j.table())
	}
}

func compareQuality(j comparison, got compute.GammaQuality, want plainResult) {
	j.Helper()
	c, q := got.Contracts, want.Quality
	j.exact("listed", c.Listed, want.Listed)
	j.exact("skipped", c.Skipped, compute.SkippedGamma{Skipped: want.Skipped.Skipped, Settled: want.Skipped.Settled,
		NoOpenInterest: want.Skipped.NoOpenInterest, NoVolatility: want.Skipped.NoVolatility})
	s := c.Skipped
	j.exact("listed = used + skipped", c.Listed, c.Used+s.Total()+s.Settled+s.NoOpenInterest+s.NoVolatility)
	j.exact("floored", got.FlooredStrikes, q.FlooredStrikes)
	maybe(j, "two-sided", got.TwoSidedShare, q.TwoSidedPct, ratios)
	j.exact("compared gammas", got.GammaDifference.Contracts, q.GammaContracts)
	maybe(j, "median difference", got.GammaDifference.Median, q.GammaMedian, 1e-9)
	maybe(j, "95th percentile", got.GammaDifference.Percentile95, q.GammaP95, 1e-9)
	about(j, "age", float64(got.QuoteAgeSeconds), q.QuoteAgeSeconds, 0)
	sources := 0
	for source, n := range got.Forwards {
		j.exact("forwards "+string(source), n, q.ForwardSources[string(source)])
		sources += n
	}
	j.exact("forwards", sources, len(want.ByExpiration))
	for _, s := range got.Volatility {
		maybe(j, s.Step+" interest", s.OpenInterest, ofStep(q.ShareOpenInterest, s.Step), ratios)
		maybe(j, s.Step+" at the spot", s.GrossAtSpot, ofStep(q.ShareGrossSpot, s.Step), ratios)
		if !j.coarse {
			maybe(j, s.Step+" at the flip", s.GrossAtFlip, ofStep(q.ShareGrossFlip, s.Step), atFlip)
		}
	}
}

// ofStep is the share of a step, nil where there is nothing to share.
func ofStep(shares map[string]float64, step string) *float64 {
	if shares == nil {
		return nil
	}
	return new(shares[step])
}
