package compute_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"strikecache/compute"
)

// The exposure, the matrix and the changes of an index, a fund and a stock agree with the plain implementation. Every third later
// chain of a fund or stock is that of a split.
func TestUnderlyingsAgainstPlain(t *testing.T) {
	t.Parallel()
	closed, early := listing(t)
	for _, c := range []struct {
		roots    []string
		small    float64
		features []string
	}{
		{[]string{"NDX", "NDXP"}, 0.35, []string{"AM and PM on one date", "index", "implied", "index_stale", "other_settlement", "0DTE settled",
			"no split"}},
		{[]string{"SPY"}, 10, []string{"last", "spot_mismatch", "ex-date", "no ex-date", "beyond 60 days", "split", "no split", "settled rows"}},
		{[]string{"AAPL"}, 30, []string{"last", "spot_mismatch", "ex-date", "no ex-date", "beyond 60 days", "split", "no split", "bad rows"}},
	} {
		g := &generator{Rand: rand.New(rand.NewPCG(43, 46)), seen: map[string]int{}, small: c.small}
		compare := func(name string, m synthetic, state *compute.GammaState, plain *plainState) (compute.GammaResult, plainResult) {
			got := compute.GammaExposure(compute.GammaInput{Chain: m.chain, Calendar: cal, RiskFreeRate: m.rate, Reference: state})
			want := plainGamma(plainInput{Underlying: c.roots[0], Chain: m.chain, Closed: closed, Early: early, Rate: m.rate, Reference: plain})
			compareWithPlain(t, c.roots[0]+", "+name, got, want)
			countFeatures(g, m.chain, got, want)
			g.note("ex-date", want.exDateAhead)
			g.note("no ex-date", got.Quality.ExerciseNote != "" && !want.exDateAhead)
			g.note("beyond 60 days", got.Quality.GrossBeyond60Days != nil && *got.Quality.GrossBeyond60Days > 0)
			return got, want
		}
		for i := 0; i < len(moments); i += 2 {
			before := g.market(t, i, c.roots...)
			got, want := compare(fmt.Sprintf("market %d (%s)", i, moments[i].asOf), before, nil, nil)
			if len(before.chain.Contracts) == 0 {
				continue
			}
			now := g.later(t, before)
			if i%3 == 0 {
				now = halved(t, now)
			}
			got, _ = compare(fmt.Sprintf("after market %d", i), now, got.State, want.state)
			reason := got.Quality.ChangesReason
			isSplit := reason != nil && *reason == "split"
			g.note("split", isSplit)
			g.note("no split", !isSplit)
			equal(t, "changes of open interest are null", got.Data.OIChanges == nil, isSplit)
		}
		for _, feature := range c.features {
			if g.seen[feature] == 0 {
				t.Errorf("no market of %s has %s: %v", c.roots[0], feature, g.seen)
			}
		}
	}
}

// halved is a market after a split in half: prices and strikes are half of what they were, and an adjusted root holds what cannot
// be halved.
func halved(t *testing.T, m synthetic) synthetic {
	u := m.chain.UnderlyingQuote
	u.Spot /= 2
	var rows []row
	for i, c := range m.chain.Contracts {
		c.Strike = math.Round(c.Strike*500) / 1000
		c.Bid, c.Ask, c.Last = c.Bid/2, c.Ask/2, c.Last/2
		if i%7 == 0 && c.Root == u.Symbol {
			c.Root += "1"
		}
		rows = append(rows, row{c.Symbol(), c.Quote})
	}
	return synthetic{chain: build(t, u, rows...), rate: m.rate}
}
