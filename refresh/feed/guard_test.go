package feed

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Each case is a run of documents and the result of the guard for each: ok or a reason. A document is rows@minute, with '
// for other content of the same minute, then perhaps $price, #quotes, and /calls/puts with open interest.
func TestGuard(t *testing.T) {
	for _, c := range []struct{ name, documents, want string }{
		{"the first is accepted", "10@0", "ok"},
		{"exactly half is accepted", "100@0 50@1 25@2", "ok ok ok"},
		{"under half is refused", "100@0 49@1", "ok shrunk"},
		{"an odd count's half is not reached", "101@0 50@1 51@1", "ok shrunk ok"},
		{"growth is accepted", "10@0 1000@1", "ok ok"},
		{"an equal timestamp is accepted", "100@5 100'@5 50@5", "ok ok ok"},
		{"an older timestamp is refused", "100@5 100@4", "ok clock_backwards"},
		{"the clock comes first", "100@5 10@4", "ok clock_backwards"},
		{"a good one between starts the count again", "100@0 10@1 10@2 100@3 10@4 10@5 10@6", "ok shrunk shrunk ok shrunk shrunk ok"},
		{"three that agree are accepted", "100@0 10@1 11@2 10@3 11@4", "ok shrunk shrunk ok ok"},
		{"the third is what later ones are compared with", "100@0 40@1 40@2 40@3 19@4 20@4", "ok shrunk shrunk ok shrunk ok"},
		{"three corrected clocks are accepted", "100@60 100@1 100@2 100@3 100@2", "ok clock_backwards clock_backwards ok clock_backwards"},
		{"a clock that stands still behind, while the rest moves", "100@60 100@1 100'@1 100''@1", "ok clock_backwards clock_backwards ok"},
		{"the same document is no further one", "100@0 10@1 10@1 10@1 10@1 10@2 10@2 10@3", "ok shrunk shrunk shrunk shrunk shrunk shrunk ok"},
		{"a clock that runs backwards never agrees", "100@60 100@59 100@58 100@57 100@56", "ok clock_backwards clock_backwards clock_backwards clock_backwards"},
		{"halving again does not agree", "100@0 40@1 19@2 9@3 9@4 9@5", "ok shrunk shrunk shrunk shrunk ok"},
		{"doubling does not agree", "1000@0 10@1 21@2 43@3 43@4 44@5", "ok shrunk shrunk shrunk shrunk ok"},
		{"the reasons may differ", "100@60 100@59 10@61 10@62 10@63", "ok clock_backwards shrunk shrunk ok"},
		{"a price that moves by 20 %", "10@0$100 10@1$120 10@2$144 10@3$115.2", "ok ok ok ok"},
		{"a price that moves by more", "10@0$100 10@1$120.1 10@2$79.9 10@3$80", "ok price_jump price_jump ok"},
		{"three prices that agree", "10@0$100 10@1$50 10@2$51 10@3$50 10@4$51", "ok price_jump price_jump ok ok"},
		{"three prices that do not agree", "10@0$100 10@1$50 10@2$200 10@3$50 10@4$50 10@5$50", "ok price_jump price_jump price_jump price_jump ok"},
		{"a price after a restart", "10@0 10@1$50 10@2$100", "ok ok price_jump"},
		{"a quarter of the quotes", "10@0#100 10@1#25 10@2#6", "ok ok quotes_missing"},
		{"quotes that are gone and come back", "10@0#18142 10@1#176 10@2#900 10@3#18000", "ok quotes_missing quotes_missing ok"},
		{"quotes that stay away", "10@0#18142 10@1#176 10@2#900 10@3#300 10@4#20000", "ok quotes_missing quotes_missing ok ok"},
		{"quotes that stay away, each newer than the one before", "10@0#18142 10@1#176 10'@1#170 10''@1#160 10@2#150 10@3#140", "ok quotes_missing quotes_missing quotes_missing quotes_missing ok"},
		{"quotes after a restart", "10@0 10@1#1 10@2#4 10@3#1", "ok ok ok ok"},
		{"a tenth of the open interest", "10@0/100/50 10@1/11/6 10@2/1/6 10@3/11/0", "ok ok open_interest_missing open_interest_missing"},
		{"open interest that is gone and comes back", "10@0/900/900 10@1/0/0 10@2/0/0 10@3/890/890", "ok open_interest_missing open_interest_missing ok"},
		{"open interest that stays away", "10@0/900/900 10@1/0/0 10'@1/0/0 10@2/0/0 10@3/0/0", "ok open_interest_missing open_interest_missing open_interest_missing ok"},
		{"open interest that was never there", "10@0/0/0 10@1/0/0", "ok ok"},
		{"nothing readable", "100@0 0@1 0@2 0@3", "ok shrunk shrunk ok"},
	} {
		var g guard
		var got []string
		var accepted *Document
		for _, text := range strings.Fields(c.documents) {
			d := marked(t, text)
			if err := g.check(d.mark, accepted); err != nil {
				got = append(got, string(upstream.ReasonOf(err)))
				continue
			}
			got, accepted = append(got, "ok"), d
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s: %s, want %s", c.name, c.documents, s, c.want)
		}
	}
}

// marked returns a document with rows@minute$price#quotes. Price and quotes may be missing.
func marked(t *testing.T, text string) *Document {
	t.Helper()
	var minute int
	m := mark{sha256: text}
	bare, held, _ := strings.Cut(strings.ReplaceAll(text, "'", ""), "/")
	bare, quotes, _ := strings.Cut(bare, "#")
	bare, price, _ := strings.Cut(bare, "$")
	if _, err := fmt.Sscanf(bare, "%d@%d", &m.rows, &minute); err != nil {
		t.Fatal(err)
	}
	fmt.Sscan(quotes, &m.quotes)
	fmt.Sscan(price, &m.price)
	_, _ = fmt.Sscanf(held, "%d/%d", &m.held[compute.Call], &m.held[compute.Put])
	m.captured = ny(t, "2026-11-20 11:00:00").Add(time.Duration(minute) * time.Minute)
	return &Document{mark: m}
}

// A document is refused when one of its times is more than 10 minutes ahead of the clock.
func TestClockAhead(t *testing.T) {
	now := ny(t, "2026-11-20 11:00:00")
	intake := NewIntake(NewClock(now, 0), cal, slog.New(slog.DiscardHandler))
	head := func(captured, asOf time.Duration) compute.UnderlyingQuote {
		return compute.UnderlyingQuote{CapturedAt: now.Add(captured), AsOf: now.Add(asOf), Spot: 1}
	}
	const limit, over = 10 * time.Minute, 10*time.Minute + time.Second
	today := compute.NewDate(2026, 11, 20)
	modified := func(date compute.Date, ahead time.Duration) Document {
		return Document{StoredInput: snapshots.StoredInput{Generated: now.Add(ahead)}, Settlement: &Settlement{Date: date}}
	}
	for _, c := range []struct {
		name  string
		d     Document
		ahead bool
	}{
		{"chain", Document{Chain: &compute.Chain{Contracts: []compute.Contract{{Expiration: today + 3}}}, Underlying: head(limit, limit)}, false},
		{"timestamp of a chain", Document{Chain: &compute.Chain{}, Underlying: head(over, 0)}, true},
		{"trade of a chain", Document{Chain: &compute.Chain{}, Underlying: head(0, over)}, true},
		{"quote", Document{Quote: &cboe.Quote{}, Underlying: head(limit, limit)}, false},
		{"timestamp of a quote", Document{Quote: &cboe.Quote{}, Underlying: head(over, 0)}, true},
		{"trade of a quote", Document{Quote: &cboe.Quote{}, Underlying: head(0, over)}, true},
		{"settlement", Document{Settlement: &Settlement{Date: today - 1}}, false},
		{"settlement of the close to come", Document{Settlement: &Settlement{Date: today}}, true},
		{"Last-Modified of a settlement", modified(today-1, limit), false},
		{"Last-Modified of a settlement, ahead", modified(today-1, over), true},
		{"history", Document{Closes: []compute.Close{{Date: today, Price: 1}}}, false},
		{"history of tomorrow", Document{Closes: []compute.Close{{Date: today, Price: 1}, {Date: today + 1, Price: 1}}}, true},
	} {
		err := intake.validate(&c.d)
		if ahead := err != nil && upstream.ReasonOf(err) == upstream.ClockAhead; ahead != c.ahead || (err != nil) != c.ahead {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A chain at the limits is served. A larger chain is refused, in one pass over its rows.
func TestTooManyExpirations(t *testing.T) {
	chain := func(expirations, strikes int) *compute.Chain {
		c := &compute.Chain{}
		for e := range expirations {
			for s := range strikes {
				for _, right := range []compute.Right{compute.Call, compute.Put} {
					c.Contracts = append(c.Contracts, compute.Contract{Root: "SPXW", Expiration: compute.NewDate(2026, 12, 1+e), Strike: float64(s), Right: right})
				}
			}
		}
		return c
	}
	for _, c := range []struct {
		expirations, strikes int
		fits                 bool
	}{{1, 1, true}, {128, 1, true}, {129, 1, false}, {1, 40_000, true}, {1, 40_001, false}, {128, 312, true}, {128, 313, false}, {0, 0, true}} {
		intake := NewIntake(NewClock(ny(t, "2026-11-20 11:00:00"), 0), cal, slog.New(slog.DiscardHandler))
		if err := intake.validate(&Document{Chain: chain(c.expirations, c.strikes)}); (upstream.ReasonOf(err) != upstream.TooMany) != c.fits {
			t.Errorf("%d expirations of %d strikes: %v", c.expirations, c.strikes, err)
		}
	}
}

// A document that passes the guard and fails in a later step is not accepted: the next one is compared with the one
// before it, and it counts as agreed when it comes again.
func TestGuardAcceptsNothingItself(t *testing.T) {
	var g guard
	first := marked(t, "100@0")
	for _, text := range []string{"100@90000", "100@1"} {
		if err := g.check(marked(t, text).mark, first); err != nil {
			t.Errorf("%s after a document that was not accepted: %v", text, err)
		}
	}
	for i, want := range []bool{false, false, true, true} {
		if got := g.check(marked(t, fmt.Sprintf("10@%d", min(i, 2))).mark, first) == nil; got != want {
			t.Errorf("shrunk document %d: passes %v, want %v", i, got, want)
		}
	}
}
