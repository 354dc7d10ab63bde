package compute

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is the kind of an underlying.
type Kind uint8

// The kinds of underlyings.
const (
	KindIndex Kind = iota // options are settled in cash
	KindFund              // American options, settled in shares
	KindStock             // American options, settled in shares; also every fund that is not in the list of funds
)

// Underlying is what the methods must know about an underlying beside its chain. It is a value without state.
type Underlying struct {
	Symbol string // without an underscore: SPX, SPY, AAPL, BRK.B
	Kind   Kind

	hours  class // of an index in the table of hours; "": as most indices
	roots  []optionRoot
	flow   flowLimits
	future *future // quarterly, on the index; nil: none
	// volatilityIndex says that the exchange publishes a volatility index from these options. Its figure of 30 days then takes the
	// expirations of that index.
	volatilityIndex bool
	american        bool // of an index: its options can be exercised before they expire
	// Unusable says why no exposure can be computed, "" if it can: of VIX, of an index without a row, and of a root of an index, such as SPXW.
	Unusable string
}

type optionRoot struct {
	name       string
	settlement Settlement
}

// The thresholds of unusual flow. One contract of SPX is worth about ten of SPY.
var (
	largeFlow = flowLimits{volume: 500, premium: 250_000}
	usualFlow = flowLimits{volume: 100, premium: 25_000}
)

// indices are the underlyings with index options.
//
// Source: Cboe, contract specifications of the options of each index, U.S. Options Hours & Holidays, and Volatility Index
// Mathematics Methodology; CME Group, contract specifications of E-mini S&P 500, Nasdaq-100 and Russell 2000 futures.
var indices = []Underlying{
	{Symbol: "SPX", hours: largeIndex, roots: []optionRoot{{"SPX", AM}, {"SPXW", PM}}, flow: largeFlow, future: &future{"ES", 0.25}, volatilityIndex: true},
	{Symbol: "XSP", hours: largeIndex, roots: []optionRoot{{"XSP", PM}}, flow: usualFlow},
	{Symbol: "NDX", roots: []optionRoot{{"NDX", AM}, {"NDXP", PM}}, flow: usualFlow, future: &future{"NQ", 0.25}},
	{Symbol: "RUT", hours: smallIndex, roots: []optionRoot{{"RUT", AM}, {"RUTW", PM}}, flow: usualFlow, future: &future{"RTY", 0.1}},
	{Symbol: "DJX", roots: []optionRoot{{"DJX", AM}}, flow: usualFlow},
	{Symbol: "OEX", roots: []optionRoot{{"OEX", PM}}, flow: usualFlow, american: true},
	{Symbol: "XEO", roots: []optionRoot{{"XEO", PM}}, flow: usualFlow},
	{Symbol: "MRUT", hours: smallIndex, roots: []optionRoot{{"MRUT", PM}}, flow: usualFlow},
	{Symbol: "XND", roots: []optionRoot{{"XND", PM}}, flow: usualFlow},
	{Symbol: "VIX", roots: []optionRoot{{"VIX", AM}, {"VIXW", AM}}, flow: usualFlow, Unusable: "each of its expirations is on another future"},
}

// otherIndices are symbols of further indices that have options on an exchange in the United States. Their roots, settlements or hours
// are not in the table, so no exposure can be computed.
//
// Source: Cboe, Cboe Listed Index Products; Nasdaq PHLX and ISE, index options; MIAX, SPIKES; Cboe, volatility indices.
var otherIndices = strings.Fields(`SPESG SPEQX RLG RLV RUI MXEA MXEF MXACW MXUSA MXWLD UKXM SIXB SIXC SIXE SIXI SIXM SIXR SIXRE SIXT SIXU SIXV
	SIXY CBTX MBTX MGTN NQX VOLQ XAU OSX SOX HGX UTY BKX XDA XDB XDC XDE XDN XDS XDZ SPIKE VVIX SKEW VXN VXO VXD RVX OVX GVZ GSPC DJI`)

// UnderlyingOf returns the row of a symbol without an underscore. A symbol that is neither an index nor a listed fund is a stock.
// A root of an index that is not its symbol, such as SPXW, has no chain of its own: its row knows no root.
func UnderlyingOf(symbol string) Underlying {
	for _, u := range indices {
		if u.Symbol == symbol {
			return u
		}
		if _, known := u.settlement(symbol); known {
			return Underlying{Symbol: symbol, flow: usualFlow, Unusable: "it is part of the chain of " + u.Symbol}
		}
	}
	if slices.Contains(otherIndices, symbol) {
		return Underlying{Symbol: symbol, flow: usualFlow, Unusable: "it is an index whose settlement and hours are not known here"}
	}
	u := Underlying{Symbol: symbol, Kind: KindStock, roots: []optionRoot{{RootOf(symbol), PM}}, flow: usualFlow}
	if slices.Contains(tailFunds, symbol) {
		u.Kind = KindFund
	}
	return u
}

// RootOf returns a symbol as the roots of its options spell it: BRKB of BRK.B.
func RootOf(symbol string) string { return strings.ReplaceAll(symbol, ".", "") }

// PathOf returns a symbol as paths spell it: brkb of BRK.B.
func PathOf(symbol string) string { return strings.ToLower(RootOf(symbol)) }

// American says whether the options can be exercised before they expire.
func (u Underlying) American() bool { return u.Kind != KindIndex || u.american }

// settlement returns how the options of a root settle. A root that is not in the row is not known: that of an adjusted series
// ends in a digit, and its contracts deliver something else.
func (u Underlying) settlement(root string) (s Settlement, known bool) {
	for _, r := range u.roots {
		if r.name == root {
			return r.settlement, true
		}
	}
	return 0, false
}

// class names the underlyings whose options have the same hours.
type class string

const (
	largeIndex class = "SPX, XSP"
	smallIndex class = "RUT, MRUT"
	otherIndex class = "other indices"
	tailFund   class = "funds to 16:15"
	stock      class = "stocks and other funds"
)

// dayKind is the kind of the days on which a row of [hours] applies.
type dayKind uint8

const (
	beforeSession dayKind = iota // the night or morning before a session, and of its day
	inSession                    // a session. On an early close, the hours end three hours earlier
	afterSession                 // the minutes after a session, on an early close three hours earlier
	onHoliday                    // an exchange holiday but New Year's Day, Good Friday and Christmas
	onOneDay                     // the date from alone, which has no session
)

// clock is a time of day in New York, minutes after midnight; negative: on the day before.
type clock int

const (
	eve2015, at0300, at0730, at0915, at0925 clock = 20*60 + 15 - 24*60, 3 * 60, 7*60 + 30, 9*60 + 15, 9*60 + 25
	at0930, at1130, at1600, at1615          clock = 9*60 + 30, 11*60 + 30, 16 * 60, 16*60 + 15
)

// on returns the instant of the time of day of a date.
func (c clock) on(d Date) time.Time {
	if c < 0 {
		d, c = d-1, c+24*60
	}
	return d.At(int(c)/60, int(c)%60, 0, NewYork)
}

// hoursRow says when the quotes of a class move in the delayed documents, on days of a kind from a date on.
type hoursRow struct {
	class
	days          dayKind
	from          Date // 0: always
	opens, closes clock
	seen          bool // only where a contract of the document has traded in these hours, see tradedIn: not every class has them
	source        string
}

// verifiedHours is a year after the last holiday file of the exchange that was read. TestVerifiedHours fails from 90 days before.
var verifiedHours = NewDate(2027, time.December, 31)

// hours is the table of the hours in which the quotes of the delayed documents move. These are not always the hours in which one can
// trade: from 16:15 to 17:00, in the curb session of SPX, all quotes of the documents stand still. The rows of a class are in the order of
// a day's hours. Of those of a kind of days, the last whose date has come counts.
var hours = []hoursRow{
	{largeIndex, beforeSession, NewDate(2015, time.March, 9), at0300, at0915, false, "Cboe, Extended Trading Hours, 2015-02-27; RG15-014"},
	{largeIndex, beforeSession, NewDate(2021, time.November, 22), eve2015, at0915, false, "SEC releases 34-93677 and 34-94253"},
	{largeIndex, beforeSession, NewDate(2024, time.August, 26), eve2015, at0925, false, "SR-CBOE-2024-031, SEC release 34-100524; OPRA notice of GTH hours, effective 2024-08-26"},
	{largeIndex, inSession, 0, at0930, at1615, false, "Cboe, U.S. Options Hours & Holidays; no quote of 40,255 moved from 16:15 to 20:15 on 2023-04-14 and 2026-08-11"},
	{largeIndex, onHoliday, NewDate(2022, time.May, 30), eve2015, at1130, false, "SEC release 34-94253; Cboe, holiday calendar of 2026"},
	{largeIndex, onOneDay, NewDate(2025, time.January, 9), eve2015, at0925, false, "Cboe, press release of 2024-12-30"},
	{smallIndex, beforeSession, NewDate(2026, time.February, 9), eve2015, at0925, false, "SR-CBOE-2025-070, SEC release 34-104228 (both products); Cboe, RUT options in Global Trading Hours, from 2026-02-09"},
	{smallIndex, inSession, 0, at0930, at1615, false, "Cboe, U.S. Options Hours & Holidays"},
	{smallIndex, onHoliday, NewDate(2026, time.February, 9), eve2015, at1130, false, "SR-CBOE-2025-070; Cboe, holiday calendar of 2026"},
	{otherIndex, inSession, 0, at0930, at1615, false, "Cboe, U.S. Options Hours & Holidays; Nasdaq, Options Market Hours"},
	{tailFund, inSession, 0, at0930, at1615, false, "Nasdaq, Options Market Hours, 2026-09; Nasdaq alert 2025-52 of IBIT"},
	{stock, beforeSession, NewDate(2026, time.July, 13), at0730, at0925, true, "SR-CBOE-2025-079, SEC release 34-105569; Cboe, Equity Options Extended Trading Hours FAQ"},
	{stock, inSession, 0, at0930, at1600, false, "Cboe, U.S. Options Hours & Holidays"},
	{stock, afterSession, NewDate(2026, time.July, 13), at1600, at1615, true, "SR-CBOE-2025-079, SEC release 34-105569; Cboe, Equity Options Extended Trading Hours FAQ"},
}

// tailFunds are the exchange-traded funds and notes whose options trade until 16:15.
//
// Source: Nasdaq, Options Market Hours, 2026-09, and Options Regulatory Alert 2025-52.
var tailFunds = strings.Fields(`DBA DBB DBC DBO DIA DRAM EEM EFA EWY EWZ FXI GLD HYG IBIT IEF IVV IWM IWN IWO IYR KBE KRE KWEB LQD MDY
	MOO OEF QQQ RSP SLV SMH SOXL SOXX SPY SVIX SVXY TIP TLT UNG UUP UVIX UVXY VIXM VIXY VOO VXX VXZ XHB XLB XLC XLE XLF XLI XLK XLP XLRE
	XLU XLV XLY XME XOP XRT`)

// tailSince has the dates from which funds of the list trade until 16:15, where they are known to have traded until 16:00 before.
var tailSince = map[string]Date{"IBIT": NewDate(2025, time.November, 10)}

func (u Underlying) classOn(d Date) class {
	switch {
	case u.Kind == KindIndex:
		return cmp.Or(u.hours, otherIndex)
	case u.Kind == KindFund && d >= tailSince[u.Symbol]:
		return tailFund
	}
	return stock
}

// span is an interval of time in which quotes move.
type span struct {
	*hoursRow
	opens, closes time.Time
}

// spans returns the intervals of a date in which quotes of the underlying move, earliest first.
func (u Underlying) spans(d Date, cal *Calendar) (all []span) {
	class, session := u.classOn(d), cal.IsSession(d)
	for i := range hours {
		r, applies := &hours[i], session
		switch r.days {
		case onHoliday:
			applies = tradesOnHoliday(d)
		case onOneDay:
			applies = !session && d == r.from
		}
		if !applies || r.class != class || r.from != 0 && d < r.from {
			continue
		}
		s := span{r, r.opens.on(d), r.closes.on(d)}
		if cal.IsEarlyClose(d) {
			switch r.days {
			case afterSession:
				s.opens = s.opens.Add(-3 * time.Hour)
				fallthrough
			case inSession:
				s.closes = s.closes.Add(-3 * time.Hour)
			}
		}
		if n := len(all); n > 0 && all[n-1].days == r.days {
			all = all[:n-1]
		}
		all = append(all, s)
	}
	return all
}

// Night returns the hours, outside the session of its stocks, of a date in which the quotes of an index move. They may begin on the day
// before. ok is false if there are none.
func (u Underlying) Night(d Date, cal *Calendar) (opens, closes time.Time, ok bool) {
	for _, s := range u.spans(d, cal) {
		if s.days != inSession && !s.seen {
			return s.opens, s.closes, true
		}
	}
	return opens, closes, false
}

// quoteDelay is how much older than the document the upstream's delayed quotes are.
const quoteDelay = 15 * time.Minute

// QuoteInstant returns the instant q that the quotes of the chain describe: the later of as_of and captured_at - 15 minutes, or the end of
// the last hours in which quotes moved, if that is earlier.
func (c *Chain) QuoteInstant(cal *Calendar) time.Time {
	q, _ := c.quoted(cal)
	return q
}

// quoted returns q and the hours in which it lies.
func (c *Chain) quoted(cal *Calendar) (time.Time, span) {
	q, u := Later(c.AsOf, c.CapturedAt.Add(-quoteDelay)), UnderlyingOf(c.Symbol)
	for d := DateOf(q.In(NewYork)) + 1; ; d-- {
		for _, s := range slices.Backward(u.spans(d, cal)) {
			switch {
			case q.Before(s.opens) || s.seen && !c.tradedIn(s):
			case q.After(s.closes):
				return s.closes, s
			default:
				return q, s
			}
		}
	}
}

// tradedIn says whether a contract has its last trade in the span, but for its first 90 seconds: so late may a trade of before be reported.
func (c *Chain) tradedIn(s span) bool {
	begin := s.opens.Unix() + 90
	return slices.ContainsFunc(c.Contracts, func(o Contract) bool { return o.LastTrade >= begin && o.LastTrade <= s.closes.Unix() })
}

// Night returns when the night began whose quotes the chain has: the hours of q, if these are not a session of the stocks and quotes move in
// them still, or a session follows on the same day. It is the zero time if q lies in no night.
func (c *Chain) Night(cal *Calendar) time.Time {
	if q, s := c.quoted(cal); s.days == beforeSession || s.days != inSession && q.Before(s.closes) {
		return s.opens
	}
	return time.Time{}
}

// HoursNote returns the note for meta.quality.hours when q lies after the day until which the hours of the options are verified, else nil.
func (c *Chain) HoursNote(cal *Calendar) *string {
	if DateOf(c.QuoteInstant(cal).In(NewYork)) > verifiedHours {
		return new(fmt.Sprintf("the quotes are of a day after %s, until which the hours of options are verified; those of then were applied", verifiedHours))
	}
	return nil
}
