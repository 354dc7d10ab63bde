package product

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
)

// contractRow is a row of a made chain.
type contractRow struct {
	symbol string
	compute.Quote
}

// blank is a quote of which only the open interest is known.
func blank(openInterest float64) compute.Quote {
	nan := math.NaN()
	return compute.Quote{Bid: nan, Ask: nan, Last: nan, OpenInterest: openInterest, Volume: nan, IV: nan, Gamma: nan, Delta: nan}
}

// published is a quote with only a published volatility and open interest.
func published(iv, openInterest float64) compute.Quote {
	q := blank(openInterest)
	q.IV = iv
	return q
}

// with returns a quote with 10 open contracts, two sides and a published volatility.
func with(bid, ask, iv float64) compute.Quote {
	q := published(iv, 10)
	q.Bid, q.Ask = bid, ask
	return q
}

// document returns the chain as the upstream writes it. A number that is NaN is left out.
func document(u compute.UnderlyingQuote, rows []contractRow) []byte {
	var b bytes.Buffer
	local := func(at time.Time) string { return at.In(compute.NewYork).Format("2006-01-02T15:04:05") }
	fmt.Fprintf(&b, `{"timestamp":%q,"data":{"symbol":%q,"current_price":%v,"close":%v,"price_change_percent":%v,"last_trade_time":%q,"options":[`,
		u.CapturedAt.UTC().Format(time.DateTime), u.Symbol, u.Spot, u.Close, u.PriceChangePercent, local(u.AsOf))
	for i, r := range rows {
		fmt.Fprintf(&b, `%.*s{"option":%q`, min(i, 1), ",", r.symbol)
		for _, n := range []struct {
			name string
			x    float64
		}{{"bid", r.Bid}, {"ask", r.Ask}, {"last_trade_price", r.Last}, {"open_interest", r.OpenInterest}, {"volume", r.Volume}, {"iv", r.IV},
			{"gamma", r.Gamma}, {"delta", r.Delta}} {
			if !math.IsNaN(n.x) {
				fmt.Fprintf(&b, `,%q:%s`, n.name, strconv.FormatFloat(n.x, 'g', -1, 64))
			}
		}
		if r.LastTrade != 0 {
			fmt.Fprintf(&b, `,"last_trade_time":%q`, local(time.Unix(r.LastTrade, 0)))
		}
		b.WriteString("}")
	}
	b.WriteString("]}}")
	return b.Bytes()
}

// moment is the instant and size of a synthetic market.
type moment struct {
	asOf string
	spot float64
	step float64 // between strikes
}

// moments are instants on both sides of each rule: in session, before the open, in the last minutes, after the close, on an
// early close, on the morning of an expiration, over the changes of the clock, on a weekend and a holiday. They have spots
// of three sizes.
var moments = []moment{
	{"2026-08-11T16:00:00Z", 7000.37, 25}, {"2026-08-11T12:00:00Z", 7003, 10}, {"2026-08-11T19:47:30Z", 6998.12, 5},
	{"2026-08-11T19:59:40Z", 7001, 5}, {"2026-08-11T20:14:59Z", 7000, 25}, {"2026-08-21T13:20:00Z", 7728.2, 20},
	{"2026-08-21T13:30:00Z", 7728.2, 20}, {"2026-11-27T15:00:00Z", 7100.5, 25}, {"2026-11-27T17:50:00Z", 7100.5, 5},
	{"2026-11-27T18:30:00Z", 7100.5, 25}, {"2026-12-24T17:00:00Z", 6900, 50}, {"2026-03-06T16:00:00Z", 6800, 20},
	{"2026-03-09T16:00:00Z", 6801.01, 20}, {"2026-10-30T16:00:00Z", 7300, 25}, {"2026-11-02T15:00:00Z", 7300, 25},
	{"2026-08-15T15:00:00Z", 7000, 25}, {"2026-09-07T15:00:00Z", 7050, 25}, {"2026-08-11T15:00:00Z", 41.5, 0.5},
	{"2026-08-11T16:00:00Z", 60_000, 250}, {"2026-08-14T20:14:59Z", 7012, 20}, {"2026-11-27T18:14:59Z", 7090, 25},
	{"2026-09-04T20:15:00Z", 7050, 25}, {"2026-09-18T13:29:00Z", 7111, 20},
}

// lags are by how much a document is later than its index: in session, on both sides of the 5 minutes of §1.0 of compute/METHODS.md,
// in the evening, in the night, the next morning, over a weekend and over a long one.
var lags = []time.Duration{
	0, 15 * time.Minute, 16 * time.Minute, 20 * time.Minute, 20*time.Minute + time.Second, 75 * time.Minute, 4*time.Hour + 14*time.Minute,
	4*time.Hour + 20*time.Minute, 9 * time.Hour, 16 * time.Hour, 19 * time.Hour, 30 * time.Hour,
	53 * time.Hour, 64 * time.Hour, 78 * time.Hour, 90 * time.Hour,
}

// moves are by how much the quotes have moved against the index.
var moves = []float64{0, 0.001, -0.001, 0.006, -0.006, 0.013, -0.013, 0.12, -0.12}

// synthetic is a random market: its document, and the chain that is decoded from it.
type synthetic struct {
	head  compute.UnderlyingQuote
	rows  []contractRow
	body  []byte
	chain *compute.Chain
	rate  float64
}

func newSynthetic(t testing.TB, u compute.UnderlyingQuote, rate float64, rows []contractRow) synthetic {
	t.Helper()
	m := synthetic{head: u, rows: rows, body: document(u, rows), rate: rate}
	var err error
	if m.chain, err = cboe.DecodeChain(m.body); err != nil {
		t.Fatal(err)
	}
	return m
}

// quoting is how well a series is quoted.
type quoting int

const (
	quotedWell  quoting = iota // most strikes have two sides
	quotedThree                // a few strikes near the money
	quotedTwo                  // too few for a parity forward
	quotedNever                // only published volatilities
	quotedDark                 // not even published volatilities
	quotings
)

// generator draws markets and counts what they contain.
type generator struct {
	*rand.Rand
	seen  map[string]int
	rows  []contractRow
	carry float64 // of every series; negative: each has its own
	ex    int     // a share falls by a dividend before dates that are so many days away; 0: none
	small float64 // by how much the spots are less than those of moments, 0: as there
}

func (g *generator) note(feature string, when bool) {
	if when {
		g.seen[feature]++
	}
}

func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

// market draws a market of the given roots. The first root is its symbol. Of every five markets, one quotes no series well,
// so that no parity forward exists. Three quote most series well and with the same carry, so that the quotes imply a spot.
// About half of the markets of the first of these three have only near expirations.
func (g *generator) market(t *testing.T, i int, roots ...string) synthetic {
	s, last := moments[i%len(moments)], roots[len(roots)-1]
	if g.small > 0 {
		s.spot, s.step = s.spot/g.small, s.step/g.small
	}
	asOf, err := time.Parse(time.RFC3339, s.asOf)
	must(t, err)
	u := compute.UnderlyingQuote{Symbol: roots[0], Spot: s.spot, PriceChangePercent: -0.25, AsOf: asOf}
	lag, session := g.IntN(len(lags)), calendar.SessionDate(u.AsOf)
	if u.AsOf.After(calendar.Close(session)) { // the index stands still
		lag = max(lag, g.IntN(len(lags)))
	}
	u.CapturedAt = u.AsOf.Add(lags[lag] + time.Duration(g.IntN(2)*g.IntN(300))*time.Second)
	rate := []float64{0, 0.04, 0.055}[g.IntN(3)]
	g.rows = nil
	dark, fitted := i%5 == 4, i%5 < 3
	s.spot *= 1 + moves[g.IntN(len(moves))] // of the quotes
	if compute.UnderlyingOf(roots[0]).American() {
		g.ex, u.Close = []int{0, 8, 1, 15}[i/2%4], s.spot*float64(1-i/2%2)
		switch {
		case i == 6: // the quotes contradict the price
			u.Spot, u.Close = s.spot/1.15, 0
		case g.ex == 1:
			u.Spot, u.CapturedAt = s.spot, u.AsOf.Add(15*time.Minute)
		}
	}
	today := compute.DateOf(u.AsOf.In(compute.NewYork))
	offsets := []int{-1, 0, 1, 3 + g.IntN(4), 10 + g.IntN(10), 30 + g.IntN(60), 89, 90, 91, 120 + g.IntN(300)}
	g.carry = -1
	if fitted {
		g.carry = g.Float64() * 0.05
		offsets = append(offsets, 2, 7, 8, 14, 21, 28, 60)
		if i%5 == 0 && g.chance(2) {
			offsets = []int{0, 1, 2, 3, 4, 5, 7 + g.IntN(2)}
		}
	}
	for _, off := range offsets {
		expiration := calendar.OnOrBefore(today + compute.Date(off))
		if g.chance(4) {
			continue
		}
		both := g.chance(2)
		g.note("AM and PM on one date", both)
		for _, root := range roots {
			if morning(root) && !both {
				continue
			}
			how := quoting(g.IntN(int(quotings)))
			if dark && how < quotedTwo {
				how = quotedTwo
			}
			if fitted && !g.chance(4) {
				how = quotedWell
			}
			g.series(s, u, rate, root, expiration, how)
		}
	}
	if len(g.rows) == 0 || g.chance(8) {
		g.rows = append(g.rows, contractRow{roots[0] + "1260821C07000000", blank(5)}, contractRow{last + "26082x", blank(5)}, contractRow{last + "260821P01234000", blank(math.NaN())})
	}
	if g.chance(6) {
		g.rows = append(g.rows, contractRow{last + "261218C00000000", with(s.spot-1, s.spot+1, 0.5)}, contractRow{last + "261218P00000000", published(0.3, 7)})
		g.note("strike 0", true)
	}
	return newSynthetic(t, u, rate, g.rows)
}

// morning says whether a root settles at the opening print.
func morning(root string) bool { return root == "SPX" || root == "NDX" || root == "RUT" }

// series adds the rows of one root and expiration: priced by Black's formula with a smile, and then disturbed.
func (g *generator) series(s moment, u compute.UnderlyingQuote, rate float64, root string, expiration compute.Date, how quoting) {
	settlement := compute.PM
	if morning(root) {
		settlement = compute.AM
	}
	left := settlement.Instant(expiration, calendar).Sub(u.AsOf).Hours()
	t := math.Max(left, 0.01) / (365 * 24)
	carry := g.carry
	if carry < 0 {
		carry = g.Float64()*0.08 - 0.02
	}
	forward := s.spot * math.Exp(carry*t)
	if g.ex > 0 && left > 24*float64(g.ex) {
		forward *= 0.996
	}
	wide := 6 + g.IntN(14)
	tilt := g.IntN(4)
	g.note("settled rows", left <= 0)
	for j := -wide; j <= wide; j++ {
		k := math.Round((math.Round(s.spot/s.step)+float64(j))*s.step*1000) / 1000
		if k <= 0 {
			continue
		}
		iv := 0.12 + 0.3*math.Abs(math.Log(k/s.spot)) + 0.05*g.Float64()
		for right, letter := range "CP" {
			if g.chance(15) {
				g.note("missing side", true)
				continue
			}
			price := compute.BlackValue(compute.Right(right), forward, k, iv*math.Sqrt(t)) * math.Exp(-rate*t)
			q := g.quote(s, price, iv, how, j)
			g.trade(&q, u.AsOf)
			switch {
			case tilt == 0 && right == 0, tilt == 1 && right == 1 && g.chance(2): // a book of one right has no flip
				q.OpenInterest = 0
			case tilt == 2 && (j/3%2 == 0) == (right == 0): // a book of alternating rights has several
				q.OpenInterest *= 50
			}
			g.note("zero open interest", q.OpenInterest == 0)
			g.rows = append(g.rows, contractRow{fmt.Sprintf("%s%s%c%08.0f", root, expiration.Midnight().Format("060102"), letter, k*1000), q})
		}
	}
}

// quote draws the numbers of one contract around its price.
func (g *generator) quote(s moment, price, iv float64, how quoting, j int) compute.Quote {
	tick := s.spot / 140_000 // 0.05 of an index of 7000
	half := tick * float64(1+g.IntN(6))
	q := blank(float64(g.IntN(2000)))
	q.Bid, q.Ask = math.Max(0, math.Round((price-half)/tick)*tick), math.Round((price+half)/tick)*tick
	q.IV, q.Gamma, q.Volume = math.Round(iv*1e4)/1e4, math.Round(g.Float64()*20)/1e4, float64(g.IntN(4000))
	near := map[quoting]int{quotedWell: 1000, quotedThree: 1 + g.IntN(3), quotedTwo: 0, quotedNever: -1, quotedDark: -1}[how]
	if j > near || j < -near {
		q.Bid = 0
	}
	if how == quotedDark {
		q.IV = 0
	}
	switch g.IntN(20) {
	case 0:
		q.Bid, q.Ask = q.Ask, q.Bid
	case 1:
		q.Bid = 0
	case 2:
		q.Bid, q.Ask = math.NaN(), math.NaN()
	case 3:
		q.Ask = q.Bid
	case 4, 5:
		q.IV = 0
	case 6:
		q.IV, q.Gamma, q.Volume = math.NaN(), math.NaN(), math.NaN()
	case 7:
		q.Bid, q.IV = 0, 0
	case 8:
		q.OpenInterest = 0
	}
	g.note("crossed quote", q.Bid > q.Ask)
	g.note("one-sided quote", q.Bid == 0 && q.Ask > 0)
	g.note("locked quote", q.Bid > 0 && q.Bid == q.Ask)
	g.note("zero iv", q.IV == 0)
	g.note("NaN numbers", math.IsNaN(q.IV) || math.IsNaN(q.Bid))
	return q
}

// trade draws the last trade of a contract, most often within 15 minutes of the last trade of the index, and its delta.
// With a small delta, the quote is wider than the move of the option.
func (g *generator) trade(q *compute.Quote, asOf time.Time) {
	where := []float64{-1.5, -1, -0.5, -0.25, 0, 0.4, 0.5, 1, 2}[g.IntN(9)]
	q.Last = (q.Bid+q.Ask)/2 + where*(q.Ask-q.Bid)/2
	q.Delta = math.Pow(g.Float64(), 4)
	if g.chance(2) {
		q.Delta = -q.Delta
	}
	q.LastTrade = asOf.Unix() + 30 - int64(g.IntN(400))
	switch g.IntN(20) {
	case 0:
		q.Last = math.NaN()
	case 1:
		q.Delta = math.NaN()
	case 2:
		q.Delta = 0
	case 7:
		q.Delta = 5e8 // a bad number
	case 3:
		q.LastTrade = 0
	case 4:
		q.LastTrade -= 86_400
	case 5, 6:
		q.LastTrade = asOf.Unix() - 900 + int64(g.IntN(3)) - 1
	}
	if g.small > 0 && asOf.Month() == time.November { // stocks without an evening
		q.LastTrade -= 1200
	}
}

// later draws what became of a market one or two sessions later: the spot, the volatilities, the quotes and the positions have
// moved, some contracts have gone and others have come.
func (g *generator) later(t *testing.T, m synthetic) synthetic {
	u := m.head
	next := calendar.Next(calendar.SessionDate(u.AsOf))
	if g.chance(4) {
		next = calendar.Next(next)
	}
	lag := u.CapturedAt.Sub(u.AsOf)
	u.AsOf = calendar.Open(next).Add(time.Duration(g.IntN(390)) * time.Minute)
	u.CapturedAt = u.AsOf.Add(lag)
	moved := 1 + 0.02*(g.Float64()-0.5)
	u.Spot *= moved
	var rows []contractRow
	gone := m.chain.Contracts[g.IntN(len(m.chain.Contracts))] // its series is no longer listed
	explained := g.chance(2)
	for _, c := range m.chain.Contracts {
		if c.Root == gone.Root && c.Expiration == gone.Expiration {
			continue
		}
		q := c.Quote
		scale := moved * (0.95 + 0.1*g.Float64())
		q.Bid, q.Ask, q.IV = q.Bid*scale, q.Ask*scale, q.IV*(0.9+0.2*g.Float64())
		switch g.IntN(12) {
		case 0:
			q.OpenInterest = float64(g.IntN(100_000))
		case 1:
			q.OpenInterest = 0
		}
		if traded := c.Volume; explained && traded >= 0 { // by the trades of the session before
			q.OpenInterest = max(c.OpenInterest-traded, min(q.OpenInterest, c.OpenInterest+traded))
		}
		switch g.IntN(12) {
		case 2:
			q.Bid, q.IV = 0, 0
		case 3:
			continue // no longer listed
		case 4:
			c.Strike += 0.5 // listed since
		case 5:
			c.Expiration += 7
			other := c // the exchange lists both rights
			other.Right = compute.Call + compute.Put - c.Right
			rows = append(rows, contractRow{other.Symbol(), blank(0)})
		}
		rows = append(rows, contractRow{c.Symbol(), q})
	}
	return newSynthetic(t, u, m.rate+0.01*float64(g.IntN(2)), rows)
}

// halved is a market after a split in half: prices and strikes are half of what they were, and an adjusted root holds what cannot
// be halved.
func halved(t testing.TB, m synthetic) synthetic {
	u := m.head
	u.Spot /= 2
	var rows []contractRow
	for i, c := range m.chain.Contracts {
		c.Strike = math.Round(c.Strike*500) / 1000
		c.Bid, c.Ask, c.Last = c.Bid/2, c.Ask/2, c.Last/2
		if i%7 == 0 && c.Root == u.Symbol {
			c.Root += "1"
		}
		rows = append(rows, contractRow{c.Symbol(), c.Quote})
	}
	return newSynthetic(t, u, m.rate, rows)
}

// unread is a market in which the open interest of every 20th contract is unreadable, from an odd number on, and of every 401st from an
// even number on, so that sums stay known. With the number 0 it changes nothing.
func unread(t testing.TB, m synthetic, from int) synthetic {
	rows := m.contracts()
	step := 20
	if from%2 == 0 {
		step = 401
	}
	for i := from; from > 0 && i < len(rows); i += step {
		rows[i].OpenInterest = -1
	}
	return newSynthetic(t, m.head, m.rate, rows)
}

// contracts returns the rows that can be read.
func (m synthetic) contracts() (rows []contractRow) {
	for _, c := range m.chain.Contracts {
		rows = append(rows, contractRow{c.Symbol(), c.Quote})
	}
	return rows
}
