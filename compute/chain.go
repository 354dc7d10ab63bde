package compute

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Multiplier is the number of index points, or shares, that one contract delivers.
const Multiplier = 100

// Right is the right of an option.
type Right uint8

// The two rights, in their order within a strike.
const (
	Call Right = iota
	Put
)

// String returns call or put.
func (r Right) String() string { return [...]string{"call", "put"}[r] }

// MarshalJSON implements [encoding/json.Marshaler].
func (r Right) MarshalJSON() ([]byte, error) {
	return marshalled(func(b []byte) []byte { return strconv.AppendQuote(b, r.String()) }), nil
}

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (r *Right) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"call"`:
		*r = Call
	case `"put"`:
		*r = Put
	default:
		return fmt.Errorf("parse right %.20q: want call or put", b)
	}
	return nil
}

// Settlement is the time on the expiration date at which a contract settles.
type Settlement uint8

// The two settlements, in their order within a date.
const (
	AM Settlement = iota // the opening print, 09:30 New York; trading ends in the session before
	PM                   // the close, 16:00 New York or 13:00 on an early close
)

// String returns am or pm.
func (s Settlement) String() string { return [...]string{"am", "pm"}[s] }

// MarshalJSON implements [encoding/json.Marshaler].
func (s Settlement) MarshalJSON() ([]byte, error) {
	return marshalled(func(b []byte) []byte { return strconv.AppendQuote(b, s.String()) }), nil
}

// Instant returns the settlement instant of an expiration date. What expires on a day without a session settles in the last session
// before: PM at its close, AM at its opening.
//
// Source: Cboe notice C2018120300, for 2018-12-05; SEC release 34-69480, for the Saturdays until 2015.
func (s Settlement) Instant(d Date, c *Calendar) time.Time {
	if d = c.OnOrBefore(d); s == AM {
		return c.Open(d)
	}
	return c.Close(d)
}

// Quote holds the upstream's numbers of one contract. An absent or unusable number is NaN. So every condition on a number
// must be written to be false for NaN.
type Quote struct {
	Bid, Ask     float64 // USD per unit of the underlying
	Last         float64 // last trade price, USD; may be years old
	OpenInterest float64 // open contracts after the previous session; never NaN in a Chain
	Volume       float64 // contracts traded this session
	IV           float64 // published implied volatility, a decimal per year; 0 means that it could not be computed
	Gamma        float64 // published, per USD or index point, rounded to 4 decimals
	Delta        float64 // published, -1 to 1
	LastTrade    int64   // Unix seconds of the last trade, 0 if never traded
}

// mostSpread is the greatest ask over bid of a price. In a wider quote, the spread is above the mid: it says nothing about the price.
const mostSpread = 3

// TwoSided says whether the quote is a price: a bid > 0, and an ask that is not below the bid and at most 3 times the bid.
func (q *Quote) TwoSided() bool {
	return q.Bid > 0 && q.Ask >= q.Bid && decimal(q.Ask/q.Bid) <= mostSpread
}

// Mid returns the middle of a quote that is [Quote.TwoSided].
func (q *Quote) Mid() float64 { return q.Bid + 0.5*(q.Ask-q.Bid) }

// Contract is one listed option that passed validation.
type Contract struct {
	Root       string
	Expiration Date
	Strike     float64 // index points or USD, >= 0
	Right      Right
	Settlement Settlement
	Quote
}

// Symbol returns the compact OSI symbol, such as SPXW260821P07400000.
func (c *Contract) Symbol() string {
	y, m, d := c.Expiration.Midnight().Date()
	return fmt.Sprintf("%s%02d%02d%02d%c%08.0f", c.Root, y%100, m, d, "CP"[c.Right], c.Strike*1000)
}

// UnderlyingQuote is the price of the underlying, from the head of a chain document or from a quote document.
type UnderlyingQuote struct {
	Symbol             string    // upstream symbol without its prefix: SPX, XLK, BRK.B
	IsIndex            bool      // the document says that it is an index
	Spot               float64   // current price, else close; > 0
	Close              float64   // closing price of the document; 0 or NaN when absent
	PriceChangePercent float64   // the session's change, percent; NaN when absent
	AsOf               time.Time // last trade of the underlying
	CapturedAt         time.Time // generation time of the document
}

// Session returns the session date of as_of.
func (u *UnderlyingQuote) Session(cal *Calendar) Date { return cal.SessionDate(u.AsOf) }

// Skipped counts the rows of a chain that validation left out, by the first reason that applied.
type Skipped struct {
	BadSymbol int `json:"bad_symbol" jsonschema:"minimum=0" unit:"rows"` // The symbol cannot be read.
	// An earlier row has the same contract. The first row is used.
	Duplicate int `json:"duplicate" jsonschema:"minimum=0" unit:"rows"`
	// Open interest is absent or outside 0 to 100,000,000.
	BadNumber int `json:"bad_number" jsonschema:"minimum=0" unit:"rows"`
	// The root is none of the underlying's, such as that of an adjusted series, which ends in a digit.
	UnknownRoot int `json:"unknown_root" jsonschema:"minimum=0" unit:"rows"`
}

// Total returns the number of rows left out.
func (s Skipped) Total() int { return s.BadSymbol + s.Duplicate + s.BadNumber + s.UnknownRoot }

// Chain is a validated option chain. Contracts are sorted by root, expiration, strike and right, without duplicates. They
// include contracts that have already settled. A Chain is immutable once built, and safe for concurrent use.
type Chain struct {
	UnderlyingQuote
	Contracts []Contract
	Unread    []Contract // sorted as Contracts; left out, because their open interest cannot be read
	Listed    int        // rows of the document: len(Contracts) + Skipped.Total()
	Skipped   Skipped
	// Examples has the symbol of one row for each reason in Skipped that applied, by the JSON name of the reason.
	Examples map[string]string
	// BadNumbers counts the numbers of the head and of rows with a good symbol that count as absent because they are outside
	// the range of their kind.
	BadNumbers int
}

// unsettled yields T, the time from the quote instant to settlement, and the contracts of each root and expiration with
// T > 0, in order. The slices are never empty and are parts of c.Contracts.
func (c *Chain) unsettled(cal *Calendar) iter.Seq2[time.Duration, []Contract] {
	return c.settlingAfter(c.QuoteInstant(cal), cal)
}

// settlingAfter is unsettled, with T from another instant.
func (c *Chain) settlingAfter(q time.Time, cal *Calendar) iter.Seq2[time.Duration, []Contract] {
	return func(yield func(time.Duration, []Contract) bool) {
		for rest := c.Contracts; len(rest) > 0; {
			first, n := &rest[0], 1
			for n < len(rest) && rest[n].Root == first.Root && rest[n].Expiration == first.Expiration {
				n++
			}
			left := first.Settlement.Instant(first.Expiration, cal).Sub(q)
			if left > 0 && !yield(left, rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}

// find returns the contract of the chain that is the same as o, nil if it lists none.
func (c *Chain) find(o *Contract) *Contract {
	i, found := slices.BinarySearchFunc(c.Contracts, o, func(x Contract, y *Contract) int { return compareListing(&x, y) })
	if !found {
		return nil
	}
	return &c.Contracts[i]
}

// UnsettledCounts are numbers of contracts with T > 0.
type UnsettledCounts struct {
	Contracts, TwoSided int                   // all, and those with a quote that is [Quote.TwoSided]
	Held                [2]int                // with open interest, by right
	HeldOf              map[Series]SeriesHeld // of each series that has contracts with T > 0
}

// SeriesHeld says how many contracts of a series have open interest, by right, and when they settle.
type SeriesHeld struct {
	Held    [2]int
	Settles time.Time
}

// Unsettled counts the contracts of a chain with T > 0.
func Unsettled(c *Chain, cal *Calendar) (n UnsettledCounts) {
	n.HeldOf = map[Series]SeriesHeld{}
	for _, contracts := range c.unsettled(cal) {
		n.Contracts += len(contracts)
		var held [2]int
		for i := range contracts {
			o := &contracts[i]
			if o.TwoSided() {
				n.TwoSided++
			}
			if o.OpenInterest > 0 {
				n.Held[o.Right]++
				held[o.Right]++
			}
		}
		first := &contracts[0]
		n.HeldOf[Series{first.Root, first.Expiration}] = SeriesHeld{held, first.Settlement.Instant(first.Expiration, cal)}
	}
	return n
}

// ErrEmptyChain is the error of a document without rows. It means an outage of the upstream, not an exposure of 0.
var ErrEmptyChain = errors.New("option chain is empty")

// ErrNoSpot is the error of a document without a usable price of the underlying.
var ErrNoSpot = errors.New("underlying has no price")

// MaxRows bounds the rows of one chain. SPX lists about 31,000.
const MaxRows = 200_000

// ChainBuilder collects the rows of one document and validates them. The zero value is ready. It is not safe
// for concurrent use.
type ChainBuilder struct {
	rows  []Contract // an open interest that is absent or outside its range is NaN
	chain Chain      // without its contracts
}

// skip counts a row that is left out for a reason, and keeps the symbol of the first.
func (b *ChainBuilder) skip(count *int, reason string, symbol func() string) {
	if *count++; b.chain.Examples == nil {
		b.chain.Examples = map[string]string{}
	}
	if b.chain.Examples[reason] == "" {
		b.chain.Examples[reason] = symbol()
	}
}

// Grow makes room for n rows.
func (b *ChainBuilder) Grow(n int) { b.rows = slices.Grow(b.rows, n) }

// Add collects one row of the document. It does not keep the bytes of symbol.
func (b *ChainBuilder) Add(symbol []byte, q Quote) {
	b.chain.Listed++
	bad := 0
	for _, n := range [...]struct {
		kind NumberKind
		x    *float64
	}{
		{OptionPrice, &q.Bid}, {OptionPrice, &q.Ask}, {OptionPrice, &q.Last}, {ContractCount, &q.OpenInterest}, {ContractCount, &q.Volume},
		{ImpliedVolatility, &q.IV}, {OptionGamma, &q.Gamma}, {OptionDelta, &q.Delta},
	} {
		y := n.kind.Usable(*n.x)
		if math.IsNaN(y) && !math.IsNaN(*n.x) {
			bad++
		}
		*n.x = y
	}
	c := Contract{Quote: q}
	root, ok := parseSymbol(symbol, &c)
	if !ok {
		b.skip(&b.chain.Skipped.BadSymbol, "bad_symbol", func() string { return string(symbol[:min(len(symbol), 40)]) })
		return
	}
	b.chain.BadNumbers += bad
	n := len(b.rows)
	if n > 0 && b.rows[n-1].Root == string(root) {
		c.Root = b.rows[n-1].Root // rows of one root share a string
	} else {
		c.Root = string(root)
	}
	b.rows = append(b.rows, c)
}

// Build validates the collected rows and returns the chain. The chain takes over the memory of the rows: do not use the
// builder afterwards. The error is [ErrEmptyChain], [ErrNoSpot], or says that there are more than [MaxRows] rows.
func (b *ChainBuilder) Build(u UnderlyingQuote) (*Chain, error) {
	chain := &b.chain
	switch {
	case chain.Listed == 0:
		return nil, ErrEmptyChain
	case chain.Listed > MaxRows:
		return nil, fmt.Errorf("option chain has %d rows, over the limit of %d", chain.Listed, MaxRows)
	case math.IsNaN(Price.Usable(u.Spot)):
		return nil, ErrNoSpot
	}
	slices.SortStableFunc(b.rows, func(x, y Contract) int { return compareListing(&x, &y) }) // the first of two duplicates stays first
	chain.UnderlyingQuote = u
	kept, row := b.rows[:0], UnderlyingOf(u.Symbol)
	var last Contract // the previous row, kept or not
	for i := range b.rows {
		c := b.rows[i]
		settlement, known := row.settlement(c.Root)
		switch {
		case i > 0 && compareListing(&last, &c) == 0:
			b.skip(&chain.Skipped.Duplicate, "duplicate", b.rows[i].Symbol)
		case math.IsNaN(c.OpenInterest):
			b.skip(&chain.Skipped.BadNumber, "bad_number", b.rows[i].Symbol)
			if c.Settlement = settlement; known {
				chain.Unread = append(chain.Unread, c)
			}
		case !known:
			b.skip(&chain.Skipped.UnknownRoot, "unknown_root", b.rows[i].Symbol)
		default:
			c.Settlement = settlement
			kept = append(kept, c)
		}
		last = c
	}
	chain.Contracts = kept
	return chain, nil
}

// compareListing orders contracts by root, expiration, strike and right; 0 means the same contract.
func compareListing(a, b *Contract) int {
	switch {
	case a.Root != b.Root:
		return strings.Compare(a.Root, b.Root)
	case a.Expiration != b.Expiration:
		return int(a.Expiration) - int(b.Expiration)
	case a.Strike != b.Strike:
		return cmp.Compare(a.Strike, b.Strike)
	}
	return int(a.Right) - int(b.Right)
}

// parseSymbol parses an OSI symbol, root (1 to 6 characters: a letter, more letters, then digits; OCC fills it with spaces to 6), YYMMDD, C or P,
// and the strike in thousandths with 8 digits. It fills all but the root of c.
func parseSymbol(s []byte, c *Contract) (root []byte, ok bool) {
	const tail = 6 + 1 + 8
	n := len(s) - tail
	if n < 1 || n > 6 {
		return nil, false
	}
	if root = s[:n]; n == 6 {
		root = bytes.TrimRight(root, " ")
	}
	if !validRoot(root) {
		return nil, false
	}
	date, okDate := digits(s[n : n+6])
	strike, okStrike := digits(s[n+7:])
	switch s[n+6] {
	case 'C':
		c.Right = Call
	case 'P':
		c.Right = Put
	default:
		return nil, false
	}
	y, m, d := 2000+date/10000, time.Month(date/100%100), date%100
	if !okDate || !okStrike || m < 1 || m > 12 || d < 1 || d > 31 {
		return nil, false
	}
	c.Expiration = NewDate(y, m, d)
	c.Strike = float64(strike) / 1000
	return root, c.Expiration.Month() == m // false when the month has no such day
}

func validRoot(s []byte) bool {
	if len(s) == 0 || s[0] < 'A' || s[0] > 'Z' {
		return false
	}
	for i := 1; i < len(s); i++ {
		letter, digit := s[i] >= 'A' && s[i] <= 'Z', s[i] >= '0' && s[i] <= '9'
		if !letter && !digit || letter && s[i-1] <= '9' {
			return false
		}
	}
	return true
}

func digits(s []byte) (n int, ok bool) {
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
