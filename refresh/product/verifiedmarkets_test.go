package product

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strikecache/bench/testkit"
	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/folder"
)

// count notes the features of an answer of gex/{u} on a chain.
func (g *generator) count(chain *compute.Chain, answer map[string]any) {
	g.figures("", answer["data"])
	quality := answer["meta"].(map[string]any)["quality"].(map[string]any)
	g.figures("quality", quality)
	for _, v := range quality["volatility"].([]any) {
		share, _ := v.(map[string]any)["open_interest_pct"].(float64)
		g.note(fmt.Sprint("volatility ", v.(map[string]any)["step"]), share > 0)
	}
	instant := chain.QuoteInstant(calendar)
	late, day := instant.Sub(chain.AsOf) > 5*time.Minute, compute.DateOf(instant.In(compute.NewYork))
	gap, known := quality["spot_gap_pct"].(float64)
	parity, _ := quality["forwards"].(map[string]any)["parity"].(float64)
	g.note("implied within 5 minutes", !late && answer["data"].(map[string]any)["spot_source"] == "implied")
	g.note("fitted late", late && known && math.Abs(gap) < 0.5)
	g.note("too few parity series", parity > 0 && parity < 5)
	g.note("parity series too near", parity >= 5 && !known)
	g.note("after hours", instant.Equal(day.At(16, 15, 0, compute.NewYork)))
	g.note("night", instant.Before(calendar.Open(day)) && late)
	g.note("after a weekend", chain.AsOf.Weekday() == time.Friday && instant.Sub(chain.AsOf) > 48*time.Hour)
}

// figures notes the words of an object, its figures that are not 0, and what is null, each with the name of its member, and of the member
// around that.
func (g *generator) figures(name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for member, x := range v {
			g.figures(strings.TrimPrefix(name[strings.LastIndexByte(name, '.')+1:]+"."+member, "."), x)
		}
	case []any:
		g.note(fmt.Sprintf("%d %s", len(v), name), true)
		for _, x := range v {
			g.figures(name, x)
		}
	case string:
		g.note(name+" "+v, true)
		g.note("ex-date", strings.Contains(v, "ex-dividend"))
		g.note(name, true)
	case float64:
		g.note(name, v != 0)
	case bool:
		g.note(name, v)
	case nil:
		g.note("no "+name, true)
	}
}

// saw fails the test unless every feature was seen.
func (g *generator) saw(t testing.TB, features ...string) {
	t.Helper()
	for _, feature := range features {
		if g.seen[feature] == 0 {
			t.Errorf("no market has %s: %v", feature, g.seen)
		}
	}
}

func newGenerator(seed1, seed2 uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed1, seed2)), seen: map[string]int{}}
}

// Every answer on a made market of SPX agrees with the second program.
func TestMadeMarketsAreVerified(t *testing.T) {
	long(t)
	t.Parallel()
	g, a := newGenerator(23, 27), newAnswers(t)
	for i := range 3 * len(moments) {
		m := g.market(t, i, "SPX", "SPXW")
		g.count(m.chain, a.every(m))
	}
	a.verify()
	g.saw(t, "AM and PM on one date", "missing side", "one-sided quote", "crossed quote", "locked quote", "zero iv",
		"NaN numbers", "zero open interest", "settled rows", "skipped.settled", "skipped.no_open_interest", "skipped.no_volatility", "skipped.bad_symbol",
		"zero_dte.contracts", "quality.volatility_floored_strikes", "strike 0", "forwards.parity", "forwards.other_settlement", "forwards.interpolated",
		"forwards.extrapolated", "forwards.none", "volatility implied", "volatility published", "volatility interpolated", "volatility none",
		"flip_status found", "flip_status multiple", "flip_status none_all_positive", "flip_status none_all_negative", "flip_status open_interest_missing",
		"flip_status spot_mismatch", "gamma_regime positive", "gamma_regime negative", "gamma_regime neutral", "oi_state updating", "oi_state settled",
		"expected_move_1d", "no expected_move_1d", "zero_dte.zero_gamma_flip", "spot_source index", "spot_source implied", "spot_source index_stale",
		"quality.spot_note", "quality.bad_numbers", "implied within 5 minutes", "fitted late", "zero_dte.settled", "too few parity series", "parity series too near", "after hours", "night", "after a weekend")
}

// The changes since an earlier market agree, and the reasons for which there are none.
func TestMadeChangesAreVerified(t *testing.T) {
	long(t)
	t.Parallel()
	g, a := newGenerator(31, 33), newAnswers(t)
	for i := range 3 * len(moments) / 4 {
		before := g.market(t, i, "SPX", "SPXW")
		now := g.later(t, before)
		before, now = unread(t, before, []int{0, 1, 0, 2}[i%4]), unread(t, now, []int{0, 0, 3, 4}[i%4])
		got := a.gamma(now, &before)
		g.count(now.chain, got)
		g.note("unread before", len(before.chain.Unread) > 0)
		exposures, _ := got["data"].(map[string]any)["exposures"].(map[string]any)
		g.note("0DTE has charm", exposures["charm_dollars_per_day"] != exposures["charm_ex_zero_dte_dollars_per_day"])
	}
	a.verify()
	for _, part := range []string{"expired", "spot", "time", "volatility", "open_interest", "listed"} {
		g.saw(t, "net_gex_dollars."+part)
	}
	g.saw(t, "10 open_interest_changes", "quality.open_interest_unread", "unread before", "0DTE has charm", "quality.changes_reason net_unknown",
		"quality.changes_reason reference_net_unknown")
}

// Around the second of a settlement: contracts with T = 0 are left out, and zero_dte is settled from that second on.
func TestMadeSettlementsAreVerified(t *testing.T) {
	long(t)
	t.Parallel()
	g, a := newGenerator(29, 30), newAnswers(t)
	for _, c := range []struct {
		market   int
		instants []string
	}{
		{3, []string{"2026-08-11T19:59:59Z", "2026-08-11T20:00:00Z"}},
		{5, []string{"2026-08-21T13:29:59Z", "2026-08-21T13:30:00Z", "2026-08-21T13:30:01Z"}},
		{8, []string{"2026-11-27T17:59:59Z", "2026-11-27T18:00:00Z"}},
	} {
		m := g.market(t, c.market, "SPX", "SPXW")
		for _, instant := range c.instants {
			at, err := time.Parse(time.RFC3339, instant)
			must(t, err)
			u := m.head
			u.AsOf, u.CapturedAt = at, at
			moved := newSynthetic(t, u, m.rate, m.rows)
			g.count(m.chain, a.every(moved))
			a.seal(GammaResource, m.rate, madeInput{Name: spx, Body: moved.body},
				madeInput{Name: "state/closed-dates", Body: []byte(`{"closed":["2026-08-12","2026-08-24"],"early":["2026-08-11","2026-08-25"]}`)})
		}
	}
	a.verify()
	g.saw(t, "zero_dte.settled", "zero_dte.contracts", "skipped.settled")
}

// The answers on an index with other roots and hours, a fund and a stock agree. Every third later chain of a fund or stock is that of a
// split.
func TestMadeUnderlyingsAreVerified(t *testing.T) {
	long(t)
	t.Parallel()
	a := newAnswers(t)
	for _, c := range []struct {
		roots    []string
		small    float64
		features []string
	}{
		{[]string{"NDX", "NDXP"}, 0.35, []string{"AM and PM on one date", "spot_source index", "spot_source implied", "spot_source index_stale",
			"forwards.other_settlement", "zero_dte.settled", "net_gex_dollars.spot"}},
		{[]string{"SPY"}, 10, []string{"spot_source last"}},
		{[]string{"AAPL"}, 30, []string{"spot_source close"}},
	} {
		g := newGenerator(43, 46)
		g.small = c.small
		for i := 0; i < len(moments); i += 2 {
			before := g.market(t, i, c.roots...)
			g.count(before.chain, a.gamma(before, nil))
			a.surfaces(before)
			if len(before.chain.Contracts) == 0 {
				continue
			}
			now := g.later(t, before)
			if i%3 == 0 {
				now = halved(t, now)
			}
			g.count(now.chain, a.gamma(now, &before))
			a.surfaces(now)
		}
		if g.saw(t, c.features...); len(c.roots) == 1 {
			g.saw(t, "spot_source last", "spot_source implied", "quality.spot_note", "flip_status spot_mismatch", "ex-date", "quality.exercise_note",
				"quality.gross_beyond_60_days_pct", "quality.changes_reason split", "net_gex_dollars.spot")
		}
	}
	a.verify()
}

// The scores and sides of unusual flow agree, on markets of an index and of a fund. In every third market the volumes are almost
// equal.
func TestMadeFlowIsVerified(t *testing.T) {
	long(t)
	t.Parallel()
	g, random, a := newGenerator(25, 26), rand.New(rand.NewPCG(33, 34)), newAnswers(t)
	for i := range 3 * len(moments) {
		roots, name := []string{"SPX", "SPXW"}, "options/_SPX.json"
		if i%2 == 1 {
			roots, name = []string{"XLK"}, "options/XLK.json"
		}
		now, before := observed(t, random, g.market(t, i, roots...), i%3 == 0)
		if i%6 == 1 {
			now = halved(t, now)
		}
		s := a.seal("options/flow/"+map[int]string{0: "spx", 1: "xlk"}[i%2], 0, madeInput{Name: name, Body: now.body}, madeInput{Name: "previous/" + name, Body: before.body})
		g.note("split", bytes.Contains(s.Meta.Quality, []byte("split of XLK")))
		for _, item := range dataOf[compute.Flow](t, s).Items {
			g.note("side "+item.Side+" of a "+item.OptionType.String(), true)
			g.note("believed in part", item.Side == "unknown" && item.Components.QuoteLocation > 0)
			g.note("a surprising size", item.Components.SizeSurprise > 0 && item.Components.SizeSurprise < 20)
			g.note("no surprising size", item.Components.SizeSurprise == 0)
			g.note("band "+item.Band, true)
			g.note("priced by the "+item.PremiumBasis, true)
		}
	}
	a.verify()
	g.saw(t, "split", "side ask of a call", "side bid of a call", "side mid of a call", "side ask of a put", "side bid of a put", "side mid of a put",
		"side unknown of a call", "side unknown of a put", "believed in part", "a surprising size", "no surprising size", "priced by the mid",
		"priced by the last", "band low", "band notable", "band high", "band extreme")
}

// observed draws the volume, the delta and the last trade of some contracts of a market anew, at the thresholds of §5 of compute/METHODS.md. It also
// returns a market of the session before with the published volatility of most contracts.
func observed(t testing.TB, random *rand.Rand, m synthetic, equalVolumes bool) (now, before synthetic) {
	rows, earlier := m.contracts(), []contractRow(nil)
	midnight := m.chain.Session(calendar).At(0, 0, 0, compute.NewYork).Unix()
	for k := range rows {
		c := &rows[k]
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
			earlier = append(earlier, contractRow{c.symbol, published(math.Max(c.IV+moved*float64(1-2*random.IntN(2)), 0), 1)})
		}
	}
	u := m.head
	u.AsOf, u.CapturedAt = u.AsOf.Add(-24*time.Hour), u.CapturedAt.Add(-24*time.Hour)
	return newSynthetic(t, m.head, m.rate, rows), newSynthetic(t, u, m.rate, earlier)
}

// The answers on recorded chains agree, also on one of many oddities.
func TestRecordedChainsAreVerified(t *testing.T) {
	long(t)
	t.Parallel()
	paths, err := filepath.Glob(testkit.Shared(t, "recorded/chains/*.json.gz"))
	must(t, err)
	names := []string{"spx-chain-2026-08-11-pathological.json"}
	for _, path := range paths {
		names = append(names, "chains/"+filepath.Base(path))
	}
	a := newAnswers(t)
	for _, name := range names {
		body := testkit.Document(t, "recorded/"+name)
		chain, err := cboe.DecodeChain(body)
		must(t, err)
		a.every(synthetic{head: chain.UnderlyingQuote, body: body, rate: rate})
	}
	a.verify()
}

// A replay goes on at the time of its newest document.
func TestTimeOfAReplay(t *testing.T) {
	source, err := folder.NewRecorded(testkit.Shared(t, "recorded/replay"))
	must(t, err)
	if want := time.Date(2026, 10, 6, 17, 56, 38, 0, time.UTC); !source.Now().Equal(want) {
		t.Errorf("it is %v, want %v", source.Now(), want)
	}
}
