package cboe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"strikecache/compute"
)

// The fuzz targets compare the decoders of this package with slow ones, which read a document with encoding/json and check numbers, clocks
// and symbols in another way.

type plainRow struct {
	Option                             string
	Bid, Ask, IV, Volume, Delta, Gamma json.RawMessage
	OpenInterest                       json.RawMessage `json:"open_interest"`
	Last                               json.RawMessage `json:"last_trade_price"`
	LastTrade                          string          `json:"last_trade_time"`
}

// plainJSON reads an object into a value.
func plainJSON(body []byte, into any) error {
	body = bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\ufeff")), " \t\r\n")
	switch {
	case bytes.HasPrefix(body, []byte("<")):
		return ErrHTML
	case !json.Valid(body) || body[0] != '{':
		return ErrMalformed
	}
	_ = json.Unmarshal(body, into) // a member of another type is absent
	return nil
}

// outOfScope says whether the decoders need not agree on a document. They recognise names, symbols and clocks only as the
// upstream spells them: without escapes and in ASCII. Rows of a second array change those of the first.
func outOfScope(body []byte, rows string) bool {
	return bytes.ContainsFunc(body, func(r rune) bool { return r == '\\' || r >= utf8.RuneSelf }) ||
		bytes.Count(bytes.ToLower(body), []byte(`"`+rows+`"`)) > 1
}

// plainFloat returns a JSON number, an infinity if it overflows, and NaN for anything else.
func plainFloat(raw json.RawMessage) float64 {
	if len(raw) == 0 || !strings.ContainsAny(string(raw[:1]), "-0123456789") {
		return math.NaN()
	}
	x, _ := strconv.ParseFloat(string(raw), 64)
	return x
}

var clockForm = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)([.,]\d+)?(Z|[+-]([01]\d|2[0-4])(:?[0-5]\d|:?60)?)?$`)

func plainClock(text string, loc *time.Location) (time.Time, bool) {
	parts := clockForm.FindStringSubmatch(text)
	if parts == nil {
		return time.Time{}, false
	}
	t, err := time.ParseInLocation(time.DateTime, parts[1]+" "+parts[2], loc)
	if zone := parts[4]; zone != "" && err == nil { // ISO 8601: the clock there less its distance from UTC is UTC
		hours, minutes := 0, 0
		_, _ = fmt.Sscanf(strings.ReplaceAll(zone[1:], ":", ""), "%2d%2d", &hours, &minutes)
		away := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
		if zone[0] == '-' {
			away = -away
		}
		t, err = time.Parse(time.DateTime, parts[1]+" "+parts[2])
		t = t.Add(-away)
	}
	return t.UTC(), err == nil
}

// plainChain returns the chain of a document, or why it is refused. If chain is false, options are ignored.
func plainChain(body []byte, chain bool) (*compute.Chain, error) {
	var document struct {
		Timestamp, Symbol string
		Data              struct {
			Options   []plainRow
			Symbol    string
			Current   json.RawMessage `json:"current_price"`
			Close     json.RawMessage
			Change    json.RawMessage `json:"price_change"`
			Percent   json.RawMessage `json:"price_change_percent"`
			LastTrade string          `json:"last_trade_time"`
		}
	}
	if err := plainJSON(body, &document); err != nil {
		return nil, err
	}
	head := document.Data
	u := compute.UnderlyingQuote{Spot: plainFloat(head.Current), PriceChangePercent: plainFloat(head.Percent)}
	bad := 0
	if !(u.PriceChangePercent >= -100 && u.PriceChangePercent <= 1000) {
		if !math.IsNaN(u.PriceChangePercent) {
			bad++
		}
		u.PriceChangePercent = math.NaN()
	}
	u.Symbol = strings.TrimLeft(cmp.Or(head.Symbol, document.Symbol), "^_")
	least, most := 1e-6, 1e6
	if strings.HasPrefix(u.Symbol, "VIX") {
		least, most = 1, 1000
	}
	if c := plainFloat(head.Change); !math.IsNaN(c) && u.Spot >= least && u.Spot <= most {
		before := u.Spot - c
		if r := c / before * 100; before >= least && before <= most && r >= -100 && r <= 1000 {
			u.PriceChangePercent = r
		} else {
			bad++
		}
	}
	for _, price := range []float64{u.Spot, plainFloat(head.Close)} {
		if price < least && price != 0 || price > most {
			bad++
		}
	}
	if !(u.Spot >= least && u.Spot <= most) {
		u.Spot = plainFloat(head.Close)
	}
	if !(u.Spot >= least && u.Spot <= most) {
		return nil, compute.ErrNoSpot
	}
	var okCaptured, okAsOf bool
	u.CapturedAt, okCaptured = plainClock(document.Timestamp, time.UTC)
	u.AsOf, okAsOf = plainClock(head.LastTrade, compute.NewYork)
	switch {
	case !okCaptured || !okAsOf:
		return nil, ErrNoClock
	case !chain:
		return &compute.Chain{UnderlyingQuote: u, BadNumbers: bad}, nil
	case len(head.Options) == 0:
		return nil, compute.ErrEmptyChain
	}
	out := plainRows(u, head.Options)
	out.BadNumbers += bad
	return out, nil
}

var (
	symbolForm = regexp.MustCompile(`^([A-Z]+[0-9]*)(\d{6})([CP])(\d{8})$`)
	rootsOf    = map[string]string{"SPX": "SPX", "SPXW": "SPX", "NDX": "NDX", "NDXP": "NDX", "RUT": "RUT", "RUTW": "RUT", "VIX": "VIX", "VIXW": "VIX"}
	morning    = map[string]bool{"SPX": true, "NDX": true, "RUT": true, "VIX": true, "VIXW": true}
)

func plainRows(u compute.UnderlyingQuote, rows []plainRow) *compute.Chain {
	chain := &compute.Chain{UnderlyingQuote: u, Listed: len(rows)}
	seen := map[string]bool{}
	for _, row := range rows {
		c, ok := plainSymbol(row.Option)
		if !ok {
			chain.Skipped.BadSymbol++
			continue
		}
		for _, field := range []struct {
			from        json.RawMessage
			to          *float64
			least, most float64
		}{
			{row.Bid, &c.Bid, 0, 1e6}, {row.Ask, &c.Ask, 0, 1e6}, {row.Last, &c.Last, 0, 1e6}, {row.OpenInterest, &c.OpenInterest, 0, 1e8},
			{row.Volume, &c.Volume, 0, 1e8}, {row.IV, &c.IV, 0, 100}, {row.Gamma, &c.Gamma, -100, 100}, {row.Delta, &c.Delta, -1, 1},
		} {
			x := plainFloat(field.from)
			if *field.to = x; x < field.least || x > field.most || x != 0 && math.Abs(x) < 1e-6 {
				*field.to = math.NaN()
				chain.BadNumbers++
			}
		}
		if at, ok := plainClock(row.LastTrade, compute.NewYork); ok {
			c.LastTrade = at.Unix()
		}
		underlying, index := rootsOf[c.Root]
		switch {
		case seen[row.Option]:
			chain.Skipped.Duplicate++
		case !(c.OpenInterest >= 0):
			chain.Skipped.BadNumber++
		case index && underlying != u.Symbol, !index && c.Root != u.Symbol:
			chain.Skipped.UnknownRoot++
		default:
			chain.Contracts = append(chain.Contracts, c)
		}
		seen[row.Option] = true
	}
	slices.SortFunc(chain.Contracts, func(a, b compute.Contract) int {
		return cmp.Or(cmp.Compare(a.Root, b.Root), cmp.Compare(a.Expiration, b.Expiration), cmp.Compare(a.Strike, b.Strike), cmp.Compare(a.Right, b.Right))
	})
	return chain
}

func plainSymbol(symbol string) (c compute.Contract, ok bool) {
	parts := symbolForm.FindStringSubmatch(symbol)
	if parts == nil || len(parts[1]) > 6 {
		return c, false
	}
	day, err := time.Parse("20060102", "20"+parts[2])
	if err != nil {
		return c, false
	}
	strike, _ := strconv.Atoi(parts[4])
	c = compute.Contract{Root: parts[1], Expiration: compute.DateOf(day), Strike: float64(strike) / 1000, Right: compute.Call, Settlement: compute.PM}
	if parts[3] == "P" {
		c.Right = compute.Put
	}
	if morning[c.Root] {
		c.Settlement = compute.AM
	}
	return c, true
}

func plainHistory(body []byte) (closes []compute.Close, bad int, err error) {
	var document struct {
		Data []struct {
			Date  string
			Close json.RawMessage
		}
	}
	if err := plainJSON(body, &document); err != nil {
		return nil, 0, err
	}
	last := map[string]float64{} // prices by date
	var zeros []string           // dates
	for _, row := range document.Data {
		price := plainFloat(row.Close)
		if text := strings.Trim(string(row.Close), `"`); text != string(row.Close) {
			if x, err := strconv.ParseFloat(text, 64); err == nil {
				price = x
			}
		}
		_, err := time.Parse(time.DateOnly, row.Date)
		switch {
		case err != nil || len(row.Date) != 10 || row.Close == nil || string(row.Close) == "null":
		case price >= 1e-6 && price <= 1e6:
			last[row.Date] = price
		case price == 0:
			zeros = append(zeros, row.Date)
		default:
			bad++
		}
	}
	if len(last) == 0 {
		return nil, 0, ErrNoRows
	}
	for _, date := range slices.Sorted(maps.Keys(last)) {
		d, _ := time.Parse(time.DateOnly, date)
		closes = append(closes, compute.Close{Date: compute.DateOf(d), Price: last[date]})
	}
	for _, date := range zeros {
		if date > closes[0].Date.String() {
			bad++
		}
	}
	return closes, bad, nil
}

func plainSettlement(text string) (rows []compute.FuturesSettlement, bad int, err error) {
	if strings.HasPrefix(strings.TrimSpace(text), "<") {
		return nil, 0, ErrHTML
	}
	text, ok := strings.CutSuffix(text, "\n")
	if !ok {
		return nil, 0, ErrMalformed
	}
	headed := false
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" {
			continue
		}
		fields := strings.Split(line, ",")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if !headed {
			if headed = len(fields) >= 4 && fields[0] == "Product" && fields[3] == "Price"; !headed {
				return nil, 0, ErrMalformed
			}
			continue
		}
		if len(rows)+bad == maxSettlementRows {
			return nil, 0, ErrMalformed
		}
		bad++
		if len(fields) < 4 || len(fields[2]) != 10 {
			continue
		}
		date, err := time.Parse(time.DateOnly, fields[2])
		price, priceErr := strconv.ParseFloat(strings.TrimSuffix(fields[3], "*"), 64)
		least, most := 1e-6, 1e6
		if fields[0] == "VX" {
			least, most = 1, 1000
		}
		if err == nil && priceErr == nil && price >= least && price <= most {
			bad--
			rows = append(rows, compute.FuturesSettlement{Product: fields[0], Symbol: fields[1], Expiration: compute.DateOf(date), Price: price})
		}
	}
	switch {
	case !headed:
		return nil, 0, ErrMalformed
	case len(rows) == 0:
		return nil, bad, ErrNoRows
	}
	return rows, bad, nil
}
