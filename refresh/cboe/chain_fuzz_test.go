package cboe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"strikecache/compute"
)

// member is a member of a JSON object. The tests compare the decoders of this package with slow ones, which read a document
// with encoding/json into members, in the order and with the repetitions of the text.
type member struct {
	key   string
	value any // []member, []any, string, json.Number, bool or nil
}

// plain reads a document that is one JSON value; nil if it is not.
func plain(body []byte) any {
	if !json.Valid(body) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	return plainValue(d)
}

func plainValue(d *json.Decoder) any {
	token, err := d.Token()
	if err != nil {
		panic(err) // it was valid
	}
	switch token {
	case json.Delim('{'):
		members := []member{}
		for d.More() {
			key, _ := d.Token()
			members = append(members, member{strings.ToLower(key.(string)), plainValue(d)})
		}
		_, _ = d.Token()
		return members
	case json.Delim('['):
		elements := []any{}
		for d.More() {
			elements = append(elements, plainValue(d))
		}
		_, _ = d.Token()
		return elements
	}
	return token
}

// outOfScope says whether the decoders need not agree on a document. They recognise names, symbols and clocks only as the
// upstream spells them: without escapes and in ASCII. Rows of a second array change those of the first.
func outOfScope(body []byte, rows string) bool {
	return bytes.ContainsFunc(body, func(r rune) bool { return r == '\\' || r >= utf8.RuneSelf }) ||
		bytes.Count(bytes.ToLower(body), []byte(`"`+rows+`"`)) > 1
}

// text replaces a text by a value that is a string.
func text(before, value any) any {
	if _, ok := value.(string); ok {
		return value
	}
	return before
}

func plainFloat(v any) float64 {
	n, ok := v.(json.Number)
	if !ok {
		return math.NaN()
	}
	x, _ := strconv.ParseFloat(n.String(), 64) // an infinity if it overflows
	return x
}

var clockForm = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)([.,]\d+)?(Z|[+-]([01]\d|2[0-4])(:?[0-5]\d|:?60)?)?$`)

func plainClock(v any, loc *time.Location) (time.Time, bool) {
	text, _ := v.(string)
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
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	if text := bytes.TrimLeft(body, " \t\r\n"); len(text) > 0 && text[0] == '<' {
		return nil, ErrHTML
	}
	top, ok := plain(body).([]member)
	if !ok {
		return nil, ErrMalformed
	}
	head := map[string]any{}
	var rows []any
	for _, m := range top {
		head[m.key] = text(head[m.key], m.value)
		data, _ := m.value.([]member)
		for _, d := range data {
			if m.key != "data" {
				break
			}
			if options, ok := d.value.([]any); ok && d.key == "options" {
				rows = options
			}
			key := "data." + d.key
			if head[key] = text(head[key], d.value); d.key == "current_price" || d.key == "close" || d.key == "price_change" || d.key == "price_change_percent" {
				head[key] = d.value
			}
		}
	}
	u := compute.UnderlyingQuote{Spot: plainFloat(head["data.current_price"]), PriceChangePercent: plainFloat(head["data.price_change_percent"])}
	bad := 0
	if !(u.PriceChangePercent >= -100 && u.PriceChangePercent <= 1000) {
		if !math.IsNaN(u.PriceChangePercent) {
			bad++
		}
		u.PriceChangePercent = math.NaN()
	}
	symbol, _ := head["data.symbol"].(string)
	if other, _ := head["symbol"].(string); symbol == "" {
		symbol = other
	}
	u.Symbol = strings.TrimLeft(symbol, "^_")
	least, most := 1e-6, 1e6
	if strings.HasPrefix(u.Symbol, "VIX") {
		least, most = 1, 1000
	}
	if change, ok := head["data.price_change"]; ok && u.Spot >= least && u.Spot <= most {
		if c := plainFloat(change); !math.IsNaN(c) {
			before := u.Spot - c
			if r := c / before * 100; before >= least && before <= most && r >= -100 && r <= 1000 {
				u.PriceChangePercent = r
			} else {
				bad++
			}
		}
	}
	for _, price := range []float64{u.Spot, plainFloat(head["data.close"])} {
		if price < least && price != 0 || price > most {
			bad++
		}
	}
	if !(u.Spot >= least && u.Spot <= most) {
		u.Spot = plainFloat(head["data.close"])
	}
	if !(u.Spot >= least && u.Spot <= most) {
		return nil, compute.ErrNoSpot
	}
	var okCaptured, okAsOf bool
	u.CapturedAt, okCaptured = plainClock(head["timestamp"], time.UTC)
	u.AsOf, okAsOf = plainClock(head["data.last_trade_time"], compute.NewYork)
	switch {
	case !okCaptured || !okAsOf:
		return nil, ErrNoClock
	case !chain:
		return &compute.Chain{UnderlyingQuote: u, BadNumbers: bad}, nil
	case len(rows) == 0:
		return nil, compute.ErrEmptyChain
	}
	out := plainRows(u, rows)
	out.BadNumbers += bad
	return out, nil
}

var (
	symbolForm = regexp.MustCompile(`^([A-Z]+[0-9]*)(\d{6})([CP])(\d{8})$`)
	rootsOf    = map[string]string{"SPX": "SPX", "SPXW": "SPX", "NDX": "NDX", "NDXP": "NDX", "RUT": "RUT", "RUTW": "RUT", "VIX": "VIX", "VIXW": "VIX"}
	morning    = map[string]bool{"SPX": true, "NDX": true, "RUT": true, "VIX": true, "VIXW": true}
)

func plainRows(u compute.UnderlyingQuote, rows []any) *compute.Chain {
	chain := &compute.Chain{UnderlyingQuote: u, Listed: len(rows)}
	seen := map[string]bool{}
	for _, row := range rows {
		fields := map[string]any{}
		members, _ := row.([]member)
		for _, m := range members {
			if fields[m.key] = text(fields[m.key], m.value); m.key != "option" && m.key != "last_trade_time" {
				fields[m.key] = m.value
			}
		}
		symbol, _ := fields["option"].(string)
		c, ok := plainSymbol(symbol)
		if !ok {
			chain.Skipped.BadSymbol++
			continue
		}
		for name, field := range map[string]struct {
			to          *float64
			least, most float64
		}{
			"bid": {&c.Bid, 0, 1e6}, "ask": {&c.Ask, 0, 1e6}, "last_trade_price": {&c.Last, 0, 1e6}, "open_interest": {&c.OpenInterest, 0, 1e8},
			"volume": {&c.Volume, 0, 1e8}, "iv": {&c.IV, 0, 100}, "gamma": {&c.Gamma, -100, 100}, "delta": {&c.Delta, -1, 1},
		} {
			x := plainFloat(fields[name])
			if *field.to = x; x < field.least || x > field.most || x != 0 && math.Abs(x) < 1e-6 {
				*field.to = math.NaN()
				chain.BadNumbers++
			}
		}
		if at, ok := plainClock(fields["last_trade_time"], compute.NewYork); ok {
			c.LastTrade = at.Unix()
		}
		underlying, index := rootsOf[c.Root]
		switch {
		case seen[symbol]:
			chain.Skipped.Duplicate++
		case !(c.OpenInterest >= 0):
			chain.Skipped.BadNumber++
		case index && underlying != u.Symbol, !index && c.Root != u.Symbol:
			chain.Skipped.UnknownRoot++
		default:
			chain.Contracts = append(chain.Contracts, c)
		}
		seen[symbol] = true
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

func sameUnderlying(t *testing.T, got, want compute.UnderlyingQuote) {
	t.Helper()
	if got.Symbol != want.Symbol || got.Spot != want.Spot || fmt.Sprint(got.PriceChangePercent) != fmt.Sprint(want.PriceChangePercent) ||
		!got.AsOf.Equal(want.AsOf) || !got.CapturedAt.Equal(want.CapturedAt) {
		t.Errorf("head\n got %+v\nwant %+v", got, want)
	}
}

// FuzzDecodeChain: DecodeChain and encoding/json read the same rows, or refuse the document for the same reason.
func FuzzDecodeChain(f *testing.F) {
	whole := string(wantChain())
	for n := range whole { // no part of a document is accepted as a document
		f.Add([]byte(whole[:n]))
	}
	for _, bad := range []string{`"x"`, `null`, `true`, `{"a":1}`, `[1,2]`, `1e999`, `"1.5"`, `0`} { // the other numbers are still read
		for _, good := range []string{`330.1`, `0.1235`, `2960.0`, `7728.2002`, rowP} {
			f.Add([]byte(strings.Replace(whole, good, bad, 1)))
		}
	}
	for _, bad := range []string{ // outside the range of its kind
		`"bid":-1`, `"bid":1000000.1`, `"ask":-1`, `"ask":1000000.1`, `"last_trade_price":1000000.1`, `"bid":1e6,"ask":1e6,"open_interest":1e8,"volume":1e8,"iv":100,"delta":-1,"gamma":-100`, `"open_interest":1e9`, `"open_interest":-1`, `"volume":-1`, `"volume":100000001`,
		`"iv":-0.1`, `"iv":1e9`, `"delta":-1.0001`, `"delta":5e8`, `"gamma":101`, `"gamma":-101`, `"gamma":1e-9`,
	} {
		f.Add([]byte(strings.Replace(whole, "}", ","+bad+"}", 1)))
	}
	for _, s := range []string{
		`{"symbol":"_SPX","data":{` + head + `,"options":[` + rowP + `,` + rowC + `]},"timestamp":"2026-08-11 20:36:41"}`, // another order
		whole, string(document("2026-08-11 20:36:41", head)), `{"data":{"options":[{},null,{"option":"SPX`, "\n<html>", "\ufeff<html>", "\ufeff" + whole, whole + "\ufeff", "", "[]", "null", whole + " ", whole + whole,
		strings.Replace(whole, rowP, rowP+","+rowP+","+rowC+`,{},[],{"option":"XLK260821C00157500"},{"option":"SPX260821C07400000","open_interest":-1}`, 1),
		strings.Replace(whole, `"bid":330.1`, `"bid":1e999,"bid":1e-9,"bid":"x"`, 1), strings.Replace(whole, `7728.2002`, `null`, 1), strings.Replace(whole, `"2026-08-11T10:31:50"`, `"2026-11-01 01:30:00.5"`, 1),
		strings.Replace(whole, `"symbol":"^SPX"`, `"symbol":7`, 1), strings.Replace(whole, `"data":{`, `"data":{"options":{},"x":[[[]]],`, 1), strings.Replace(whole, `"^SPX"`, `"XLK"`, 1),
		strings.ReplaceAll(strings.Replace(whole, "SPXW260821C", "XLK1260230C", 1), ",", " ,\n"), `{"data":{},"data":{}}`, strings.Replace(whole, `"data":{`, `"data":{"options":[{}],`, 1), strings.Replace(whole, "7728.2002", "1e7", 1), strings.Replace(whole, `"option":`, `"option":null,"option":`, 2),
	} {
		f.Add([]byte(s))
	}
	var rows []string // in another order than that of the chain; of the duplicates the first counts, and of several reasons to skip a row the first
	for i, symbol := range strings.Fields(`SPXW260918P07025000 SPXW260821P10000000 SPX260918C07000000 SPXW260821C10000000 SPXW260821C00500000 SPX1260821C07400000
		SPX1260821P07400000 SPX260821P07400000 SPX260918C07000000 SPX1260821C07400000 SPX260821P07400000 SPX1260821C0740000x`) {
		rows = append(rows, fmt.Sprintf(`{"option":%q,"open_interest":%d}`, symbol, 8*(i%5)-i%3), fmt.Sprintf(`{"option":%q,"open_interest":%d}`, symbol, i-5))
	}
	f.Add([]byte(strings.Replace(whole, rowP, strings.Join(rows, ","), 1)))
	for _, change := range []string{"47.6801", "0.0", "null", "7728.2002", "-1e300", "7700.0"} { // of the session; the last three are from no usable price, and over 1000 %
		f.Add([]byte(strings.Replace(whole, `"current_price"`, `"price_change":`+change+`,"current_price"`, 1)))
	}
	for _, change := range [][]string{ // refused
		{`"options":[` + rowC + `,` + rowP + `]`, `"options":[]`}, {`"options":[` + rowC + `,` + rowP + `]`, `"options":null`},
		{"timestamp", "time"}, {"2026-08-11 20:36:41", "2026-08-11 25:36:41"}, {"20:36:41", "20:36:41Z"},
		{`"last_trade_time":"2026-08-11T16:14:59"`, `"last_trade_time":null`}, {"up", "u\x01p"}, {"330.1", "330."},
		{`"current_price":7728.2002`, `"current_price":null`, `"close":7728.1`, `"close":0`},
		{`"current_price":7728.2002,"close":7728.1`, `"current_price":0`},
	} {
		f.Add([]byte(strings.NewReplacer(change...).Replace(whole)))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := DecodeChain(body)
		if err == nil && got.Listed != len(got.Contracts)+got.Skipped.Total() {
			t.Errorf("listed %d, kept %d, skipped %+v", got.Listed, len(got.Contracts), got.Skipped)
		}
		if outOfScope(body, "options") {
			return
		}
		want, wantErr := plainChain(body, true)
		if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, want %v", err, wantErr)
		}
		if err == nil {
			sameUnderlying(t, got.UnderlyingQuote, want.UnderlyingQuote)
			if got.BadNumbers != want.BadNumbers {
				t.Errorf("%d bad numbers, want %d", got.BadNumbers, want.BadNumbers)
			}
			if got.Listed != want.Listed || got.Skipped != want.Skipped || fmt.Sprintf("%+v", got.Contracts) != fmt.Sprintf("%+v", want.Contracts) {
				t.Errorf("\n got %d %+v %+v\nwant %d %+v %+v", got.Listed, got.Skipped, got.Contracts, want.Listed, want.Skipped, want.Contracts)
			}
		}
		quote, err := DecodeQuote(body)
		want, wantErr = plainChain(body, false)
		if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
			t.Fatalf("as a quote: %v, want %v", err, wantErr)
		}
		if err == nil {
			sameUnderlying(t, quote.UnderlyingQuote, want.UnderlyingQuote)
			if quote.BadNumbers != want.BadNumbers {
				t.Errorf("as a quote: %d bad numbers, want %d", quote.BadNumbers, want.BadNumbers)
			}
		}
	})
}

// FuzzTradeClock: parseClock accepts only the form of a clock, and agrees with package time.
func FuzzTradeClock(f *testing.F) {
	for _, s := range []string{
		"2026-03-08T01:59:59", "2026-03-08T02:30:00", "2026-03-08T03:00:00", "2026-03-09T09:30:00", "2026-11-01T00:30:00",
		"2026-11-01 01:30:00.25", "2026-11-01T02:30:00", "2026-11-02 09:30:00.250", "1883-11-18T12:03:58", "2026-08-11T16:14:59",
		"0000-01-01T00:00:00", "9999-12-31T23:59:59", "", "2026-08-11", "2026-08-11T16:14", "2026-08-11X16:14:59",
		"2026-13-11T16:14:59", "2026-08-11T16:60:00", "2026-08-11T1x:14:59", "2026-08-11T9:14:59.25", "2026-02-29T00:00:00",
		"2026-08-11T24:00:00", "2026-02-30T16:14:59", "2026-08-11T16:14:59Z", "2026-08-11 16:14:59+00:00", "2026-08-11T16:14:59.5-04:00",
		"2026-08-11T16:14:59+0530", "2026-08-11T16:14:59-04", "2026-08-11T16:14:59 UTC", "2026-08-11T16:14:59+4", "2026-08-11T16:14:59-04:0",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, ok := plainClock(text, compute.NewYork)
		got, taken := parseClock(text, compute.NewYork)
		if taken != ok || ok && !got.Equal(want) {
			t.Errorf("%q: %v %v, want %v %v", text, got, taken, want, ok)
		}
	})
}
