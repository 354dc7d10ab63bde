package compute_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
)

// fullRun says whether the long form of the comparisons was asked for.
func fullRun() bool { return os.Getenv("STRIKECACHE_FULL") != "" }

// markets returns how many synthetic markets are compared: three for each moment, five in a full run.
func markets() int {
	if fullRun() {
		return 5 * len(moments)
	}
	return 3 * len(moments)
}

// comparison compares a result with that of the plain implementation, to the tolerances of METHODS.md §7.
type comparison struct {
	*testing.T
	name  string
	spot  float64
	gross float64
	// exposures has, by name, the sum of the absolute exposures of the rows of by_expiration.
	exposures map[string]float64
	from      float64 // the size of the reference's net
}

// compareWithPlain compares every number of a result.
func compareWithPlain(t *testing.T, name string, got compute.GammaResult, want plainResult) {
	t.Helper()
	j := comparison{T: t, name: name, spot: want.EffectiveSpot}
	if want.Gross != nil {
		j.gross = *want.Gross
	}
	j.exposures = map[string]float64{}
	for _, row := range want.ByExpiration {
		for name, x := range members(reflect.ValueOf(row.plainExposures)) {
			if !x.IsNil() {
				j.exposures[name] += math.Abs(x.Elem().Float())
			}
		}
	}
	if want.Changes != nil {
		p := want.Changes.Net
		for _, part := range []float64{p.From, p.Expired, p.Spot, p.Time, p.Volatility, p.OpenInterest, p.Listed} {
			j.from = max(j.from, math.Abs(part))
		}
	}
	j.compare("", reflect.ValueOf(got.Data), reflect.ValueOf(want))
	j.compare("quality", reflect.ValueOf(got.Quality), reflect.ValueOf(want.quality))
	j.compare("matrix", reflect.ValueOf(got.Matrix), reflect.ValueOf(want.grid))
	c := got.Quality.Contracts
	skipped := c.Skipped.Total() + c.Skipped.Settled + c.Skipped.NoOpenInterest + c.Skipped.NoVolatility
	equal(t, name+": listed = used + skipped", c.Listed, c.Used+skipped)
	note := got.Quality.ExerciseNote
	equal(t, name+": exercise note", note != "", want.SpotSource == "last")
	equal(t, name+": ex-date ahead", strings.Contains(note, " before "+want.exDate.String()+" by more than"), want.exDateAhead)
	equal(t, name+": a date is named", strings.Contains(note, "ex-dividend"), want.exDateAhead)
}

// compare walks over both values. Members of structs are matched by their JSON names, and none of got may be left out.
// A nil pointer is null. A number need not be a pointer on both sides.
func (j comparison) compare(path string, got, want reflect.Value) {
	j.Helper()
	if isNil(got) || isNil(want) {
		if isNil(got) != isNil(want) {
			j.Errorf("%s: %s is null: %v, want %v", j.name, path, isNil(got), isNil(want))
		}
		return
	}
	got, want = reflect.Indirect(got), reflect.Indirect(want)
	if instant, ok := got.Interface().(time.Time); ok {
		equal(j, j.name+": "+path, instant, want.Interface().(time.Time))
		return
	}
	switch got.Kind() {
	case reflect.Struct:
		wanted := members(want)
		for name, value := range members(got) {
			if !j.compared(name) {
				continue
			}
			if w, ok := wanted[name]; ok {
				j.compare(path+" "+name, value, w)
			} else {
				j.Errorf("the plain implementation has no%s %s", path, name)
			}
		}
	case reflect.Slice:
		if got.Len() != want.Len() {
			j.Errorf("%s: %d of%s, want %d", j.name, got.Len(), path, want.Len())
			return
		}
		for i := range got.Len() {
			j.compare(path, got.Index(i), want.Index(i))
		}
	case reflect.Map: // the numbers of series by the sources of their forwards
		sum := 0
		for _, key := range got.MapKeys() {
			n, wanted := got.MapIndex(key).Interface(), want.Interface().(map[string]int)[key.String()]
			equal(j, j.name+": "+path+" "+key.String(), n, any(wanted))
			sum += wanted
		}
		for _, n := range want.Interface().(map[string]int) {
			sum -= n
		}
		equal(j, j.name+": sources that are not listed", sum, 0)
	case reflect.Float64:
		if x, y := got.Float(), want.Float(); !(math.Abs(x-y) <= j.tolerance(path, got.Type(), y)) {
			j.Errorf("%s: %s = %v, want %v", j.name, path, x, y)
		}
	default:
		if x, y := fmt.Sprint(got), fmt.Sprint(want); x != y {
			j.Errorf("%s: %s = %v, want %v", j.name, path, x, y)
		}
	}
}

func isNil(v reflect.Value) bool { return v.Kind() == reflect.Pointer && v.IsNil() }

// members returns the fields of a struct, and of the structs embedded in it, by their JSON names.
func members(v reflect.Value) map[string]reflect.Value {
	byName := map[string]reflect.Value{}
	for _, f := range reflect.VisibleFields(v.Type()) {
		if name := f.Tag.Get("json"); name != "" {
			byName[name] = v.FieldByIndex(f.Index)
		}
	}
	return byName
}

// compared says whether a member is compared.
func (j comparison) compared(name string) bool {
	return !slices.Contains([]string{"note", "calendar", "exercise_note,omitempty"}, name) // texts
}

func (j comparison) tolerance(path string, kind reflect.Type, want float64) float64 {
	name, point := path[strings.LastIndex(path, " ")+1:], 1.0
	if j.spot < 1000 {
		point = j.spot / 5000
	}
	switch kind {
	case reflect.TypeFor[compute.Dollars]():
		if sum, ok := j.exposures[name]; ok {
			return math.Max(1, 1e-6*sum)
		}
		if strings.HasPrefix(path, " changes") {
			return 1e-6 * math.Max(j.gross, j.from)
		}
		if strings.HasPrefix(path, " by_") || strings.HasPrefix(path, " profile") || strings.HasPrefix(path, "matrix") {
			return math.Max(1, 1e-6*j.gross)
		}
		return 1e-6 * math.Max(j.gross, math.Abs(want)) // the net of a convention may be larger than the gross
	case reflect.TypeFor[compute.Level]():
		switch {
		case strings.Contains(path, "flip") || name == "expected_move_1d":
			return 0.02 * point
		case strings.HasSuffix(name, "spot"):
			return 0.01
		}
		return 1e-9 * j.spot
	case reflect.TypeFor[compute.Ratio]():
		switch name {
		case "flip_distance_pct":
			return math.Max(6e-4, 0.02*point/j.spot*100) // 0.02 points
		case "gross_at_flip_pct":
			return 0.01 // the flip itself is known to 0.02 points
		case "gamma_tilt":
			return math.Max(2e-4, 1e-6*math.Abs(want)) // a ratio to a number near 0 may have any size
		}
		return 2e-4
	case reflect.TypeFor[compute.GammaDiff]():
		return 1e-9
	}
	return 0
}

func TestAgainstPlainImplementation(t *testing.T) {
	t.Parallel()
	closed, early := listing(t)
	g := &generator{Rand: rand.New(rand.NewPCG(23, 25)), seen: map[string]int{}}
	for i := range markets() {
		m := g.market(t, i, "SPX", "SPXW")
		in := compute.GammaInput{Chain: m.chain, Calendar: cal, RiskFreeRate: m.rate}
		got := compute.GammaExposure(in)
		want := plainGamma(plainInput{Underlying: m.chain.Symbol, Chain: m.chain, Closed: closed, Early: early, Rate: m.rate})
		compareWithPlain(t, fmt.Sprintf("market %d (%s)", i, moments[i%len(moments)].asOf), got, want)
		marshal(t, got.Data)
		marshal(t, got.Quality)
		marshal(t, got.Matrix)
		countFeatures(g, m.chain, got, want)
	}
	for _, feature := range []string{"AM and PM on one date", "missing side", "one-sided quote", "crossed quote", "locked quote", "zero iv",
		"NaN numbers", "zero open interest", "settled rows", "settled", "no_open_interest", "no_volatility", "0DTE", "floored", "strike 0",
		"parity", "other_settlement", "interpolated", "extrapolated", "none", "volatility implied", "volatility published",
		"volatility interpolated", "volatility none", "found", "multiple", "none_all_positive", "none_all_negative", "positive", "negative",
		"neutral", "updating", "settled interest", "trigger", "no trigger", "move", "no move", "flip of 0DTE", "bad rows",
		"index", "implied", "index_stale", "index beside a gap", "implied within 5 minutes", "fitted late", "spot_mismatch", "0DTE settled",
		"too few parity series", "parity series too near", "after hours", "night", "after a weekend",
		"strikes of 0DTE", "strikes of the rest of the week", "no strike of the week", "strikes of a week without dollars"} {
		if g.seen[feature] == 0 {
			t.Errorf("no market has %s: %v", feature, g.seen)
		}
	}
}

// The changes since an earlier market, and the reasons for which there are none.
func TestChangesAgainstPlain(t *testing.T) {
	t.Parallel()
	closed, early := listing(t)
	g := &generator{Rand: rand.New(rand.NewPCG(31, 32)), seen: map[string]int{}}
	for i := range markets() / 4 {
		before := g.market(t, i, "SPX", "SPXW")
		now := g.later(t, before)
		unread(before.chain, i%7)
		unread(now.chain, i%5)
		first := compute.GammaExposure(compute.GammaInput{Chain: before.chain, Calendar: cal, RiskFreeRate: before.rate})
		plain := plainGamma(plainInput{Underlying: before.chain.Symbol, Chain: before.chain, Closed: closed, Early: early, Rate: before.rate})
		got := compute.GammaExposure(compute.GammaInput{Chain: now.chain, Calendar: cal, RiskFreeRate: now.rate, Reference: first.State})
		want := plainGamma(plainInput{Underlying: now.chain.Symbol, Chain: now.chain, Closed: closed, Early: early, Rate: now.rate, Reference: plain.state})
		compareWithPlain(t, fmt.Sprintf("market %d (%s)", i, moments[i%len(moments)].asOf), got, want)
		if got.Data.Changes == nil {
			g.note(*got.Quality.ChangesReason, len(*got.Data.OIChanges) > 0)
			continue
		}
		n := got.Data.Changes.Net
		for name, part := range map[string]compute.Dollars{"expired": n.Expired, "spot": n.Spot, "time": n.Time,
			"volatility": n.Volatility, "open interest": n.OpenInterest, "listed": n.Listed} {
			g.note(name, part != 0)
		}
		g.note("ten changes", len(*got.Data.OIChanges) == 10)
		g.note("unread", *got.Quality.InterestUnread > 0)
		g.note("unread before", len(before.chain.Unread) > 0)
		g.note("0DTE has charm", *got.Data.Exposures.Charm != *got.Data.Exposures.LaterCharm)
		sum := n.Expired + n.Spot + n.Time + n.Volatility + n.OpenInterest + n.Listed
		nearly(t, "sum of the parts", sum, float64(n.To-n.From), 1e-9*float64(*got.Data.Gross))
		equal(t, "from", n.From, *first.Data.Net)
		equal(t, "to", n.To, *got.Data.Net)
	}
	for _, feature := range []string{"expired", "spot", "time", "volatility", "open interest", "listed", "ten changes", "unread", "unread before", "0DTE has charm", "net_unknown",
		"reference_net_unknown"} {
		if g.seen[feature] == 0 {
			t.Errorf("no market has %s: %v", feature, g.seen)
		}
	}
}

// unread makes the open interest of every 20th contract unreadable, from a number on. With the number 0 it changes nothing.
func unread(chain *compute.Chain, from int) {
	for i := from; from > 0 && i < len(chain.Contracts); i += 20 {
		chain.Unread = append(chain.Unread, chain.Contracts[i])
		chain.Contracts = slices.Delete(chain.Contracts, i, i+1)
		chain.Skipped.BadNumber++
	}
}

// Around the second of a settlement: contracts with T = 0 are left out, and zero_dte is settled from that second on.
func TestSettlementAgainstPlain(t *testing.T) {
	closed, early := listing(t)
	g := &generator{Rand: rand.New(rand.NewPCG(29, 30)), seen: map[string]int{}}
	for i, instants := range map[int][]string{
		3: {"2026-08-11T19:59:59Z", "2026-08-11T20:00:00Z"},
		5: {"2026-08-21T13:29:59Z", "2026-08-21T13:30:00Z", "2026-08-21T13:30:01Z"},
		8: {"2026-11-27T17:59:59Z", "2026-11-27T18:00:00Z"},
	} {
		m := g.market(t, i, "SPX", "SPXW")
		for _, instant := range instants {
			chain := *m.chain
			chain.AsOf, chain.CapturedAt = at(instant), at(instant)
			got := compute.GammaExposure(compute.GammaInput{Chain: &chain, Calendar: cal, RiskFreeRate: m.rate})
			want := plainGamma(plainInput{Underlying: chain.Symbol, Chain: &chain, Closed: closed, Early: early, Rate: m.rate})
			compareWithPlain(t, instant, got, want)
		}
	}
}

// countFeatures counts the features that the results of a market show.
func countFeatures(g *generator, chain *compute.Chain, r compute.GammaResult, plain plainResult) {
	gap, q := plain.quality.SpotGap, chain.QuoteInstant(cal)
	late := q.Sub(chain.AsOf) > 5*time.Minute
	g.note(plain.SpotSource, true)
	g.note("index beside a gap", plain.SpotSource == "index" && gap != nil && *gap != 0)
	g.note("implied within 5 minutes", plain.SpotSource == "implied" && !late)
	g.note("fitted late", late && gap != nil && math.Abs(*gap) < 0.5)
	g.note("0DTE settled", plain.ZeroDTE.Settled)
	parity := plain.quality.Forwards["parity"]
	g.note("too few parity series", parity > 0 && parity < 5)
	g.note("parity series too near", parity >= 5 && gap == nil)
	day := compute.DateOf(q.In(compute.NewYork))
	g.note("after hours", q.Equal(day.At(17, 0, 0, compute.NewYork)))
	g.note("night", q.Before(cal.Open(day)) && late)
	g.note("after a weekend", chain.AsOf.Weekday() == time.Friday && q.Sub(chain.AsOf) > 48*time.Hour)
	today, week := len(plain.grid.Parts[0].ByStrike), len(plain.grid.Parts[1].ByStrike)
	g.note("strikes of 0DTE", today > 0)
	g.note("strikes of the rest of the week", week > today)
	g.note("no strike of the week", week == 0)
	g.note("strikes of a week without dollars", week > 0 && plain.FlipStatus == "spot_mismatch")
	countGamma(g, r.Data, r.Quality)
}

// countGamma counts what the exposure of a market contains.
func countGamma(g *generator, d compute.Gamma, q compute.GammaQuality) {
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
