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

// The decoders of this package are held against slow ones, which read a document with encoding/json into these, in
// the order and with the repetitions of the text.
type member struct {
	key   string
	value any // []member, []any, string, json.Number, bool or nil
}

// plain reads a document that is one JSON value, and says how deep it nests.
func plain(body []byte) (value any, depth int, ok bool) {
	if !json.Valid(body) {
		return nil, 0, false
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	value, depth = plainValue(d)
	return value, depth, true
}

func plainValue(d *json.Decoder) (value any, depth int) {
	token, err := d.Token()
	if err != nil {
		panic(err) // it was valid
	}
	deepest := 0
	switch token {
	case json.Delim('{'):
		members := []member{}
		for d.More() {
			key, _ := d.Token()
			v, n := plainValue(d)
			members, deepest = append(members, member{key.(string), v}), max(deepest, n)
		}
		_, _ = d.Token()
		return members, deepest + 1
	case json.Delim('['):
		elements := []any{}
		for d.More() {
			v, n := plainValue(d)
			elements, deepest = append(elements, v), max(deepest, n)
		}
		_, _ = d.Token()
		return elements, deepest + 1
	}
	return token, 0
}

// outOfScope says whether a document is one on which the decoders need not agree: known names, symbols and clocks are
// recognised as the upstream spells them, without escapes and in UTF-8.
func outOfScope(body []byte) bool { return bytes.IndexByte(body, '\\') >= 0 || !utf8.Valid(body) }

func plainFloat(v any) float64 {
	n, ok := v.(json.Number)
	if !ok {
		return math.NaN()
	}
	x, err := strconv.ParseFloat(n.String(), 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

var clockForm = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.[.\d]*)?$`)

func plainClock(v any, loc *time.Location) (time.Time, bool) {
	text, _ := v.(string)
	parts := clockForm.FindStringSubmatch(text)
	if parts == nil {
		return time.Time{}, false
	}
	t, err := time.ParseInLocation(time.DateTime, parts[1]+" "+parts[2], loc)
	return t.UTC(), err == nil
}

// plainChain is what a document says, or why it is refused. Without chain, options are ignored.
func plainChain(body []byte, chain bool) (*compute.Chain, error) {
	if text := bytes.TrimLeft(body, " \t\r\n"); len(text) > 0 && text[0] == '<' {
		return nil, ErrHTML
	}
	value, _, _ := plain(body)
	top, ok := value.([]member)
	if !ok {
		return nil, ErrMalformed
	}
	head := map[string]any{}
	var rows []any
	for _, m := range top {
		switch m.key {
		case "timestamp", "symbol":
			head[m.key] = m.value
		case "data":
			data, ok := m.value.([]member)
			if !ok || head["data"] != nil {
				return nil, ErrMalformed
			}
			head["data"] = true
			for _, m := range data {
				if options, ok := m.value.([]any); ok && chain && m.key == "options" {
					if rows != nil {
						return nil, ErrMalformed
					}
					rows = options
				}
				head["data."+m.key] = m.value
			}
		}
	}
	u := compute.Underlying{Spot: plainFloat(head["data.current_price"]), PriceChangePercent: plainFloat(head["data.price_change_percent"])}
	symbol, _ := head["data.symbol"].(string)
	if other, _ := head["symbol"].(string); symbol == "" {
		symbol = other
	}
	u.Symbol = strings.TrimLeft(symbol, "^_")
	if !(u.Spot > 0) {
		u.Spot = plainFloat(head["data.close"])
	}
	if !(u.Spot > 0) {
		return nil, compute.ErrNoSpot
	}
	var okCaptured, okAsOf bool
	u.CapturedAt, okCaptured = plainClock(head["timestamp"], time.UTC)
	u.AsOf, okAsOf = plainClock(head["data.last_trade_time"], compute.NewYork)
	switch {
	case !okCaptured || !okAsOf:
		return nil, ErrNoClock
	case !chain:
		return &compute.Chain{Underlying: u}, nil
	case len(rows) == 0:
		return nil, compute.ErrEmptyChain
	case u.Spot < 1e-6 || u.Spot > 1e6:
		return nil, compute.ErrNoSpot
	}
	return plainRows(u, rows), nil
}

var (
	symbolForm = regexp.MustCompile(`^([A-Z]+[0-9]*)(\d{6})([CP])(\d{8})$`)
	rootsOf    = map[string]string{"SPX": "SPX", "SPXW": "SPX", "NDX": "NDX", "NDXP": "NDX", "RUT": "RUT", "RUTW": "RUT", "VIX": "VIX", "VIXW": "VIX"}
	morning    = map[string]bool{"SPX": true, "NDX": true, "RUT": true, "VIX": true, "VIXW": true}
)

func plainRows(u compute.Underlying, rows []any) *compute.Chain {
	chain := &compute.Chain{Underlying: u, Listed: len(rows)}
	seen := map[string]bool{}
	for _, row := range rows {
		fields := map[string]any{}
		members, _ := row.([]member)
		for _, m := range members {
			fields[m.key] = m.value
		}
		symbol, _ := fields["option"].(string)
		c, ok := plainSymbol(symbol)
		if !ok {
			chain.Skipped.BadSymbol++
			continue
		}
		for name, to := range map[string]*float64{
			"bid": &c.Bid, "ask": &c.Ask, "last_trade_price": &c.Last, "open_interest": &c.OpenInterest, "volume": &c.Volume, "iv": &c.IV, "gamma": &c.Gamma, "delta": &c.Delta,
		} {
			if *to = plainFloat(fields[name]); math.Abs(*to) > 1e9 || *to != 0 && math.Abs(*to) < 1e-6 {
				*to = math.NaN()
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

func sameUnderlying(t *testing.T, got, want compute.Underlying) {
	t.Helper()
	if got.Symbol != want.Symbol || got.Spot != want.Spot || fmt.Sprint(got.PriceChangePercent) != fmt.Sprint(want.PriceChangePercent) ||
		!got.AsOf.Equal(want.AsOf) || !got.CapturedAt.Equal(want.CapturedAt) {
		t.Errorf("head\n got %+v\nwant %+v", got, want)
	}
}

// FuzzDecodeChain: the rows of a document are those that encoding/json reads, or both refuse it, for the same reason.
func FuzzDecodeChain(f *testing.F) {
	whole := string(wantChain())
	for _, s := range []string{
		whole, string(document("2026-08-11 20:36:41", head)), `{"data":{"options":[{},null,{"option":"SPX`, "\n<html>", "", "[]", "null", whole + " ", whole + whole,
		strings.Replace(whole, rowP, rowP+","+rowP+","+rowC+`,{},[],{"option":"XLK260821C00157500"},{"option":"SPX260821C07400000","open_interest":-1}`, 1),
		strings.Replace(whole, `"bid":330.1`, `"bid":1e999,"bid":1e-9,"bid":"x"`, 1), strings.Replace(whole, `7728.2002`, `null`, 1), strings.Replace(whole, `"2026-08-11T10:31:50"`, `"2026-11-01 01:30:00.5"`, 1),
		strings.Replace(whole, `"symbol":"^SPX"`, `"symbol":7`, 1), strings.Replace(whole, `"data":{`, `"data":{"options":{},"x":[[[]]],`, 1), strings.Replace(whole, `"^SPX"`, `"XLK"`, 1),
		strings.ReplaceAll(strings.Replace(whole, "SPXW260821C", "XLK1260230C", 1), ",", " ,\n"), `{"data":{},"data":{}}`, strings.Replace(whole, `"data":{`, `"data":{"options":[{}],`, 1), strings.Replace(whole, "7728.2002", "1e7", 1), strings.Replace(whole, `"option":`, `"option":null,"option":`, 2),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, _, err := DecodeChain(body)
		if err == nil && got.Listed != len(got.Contracts)+got.Skipped.Total() {
			t.Errorf("listed %d, kept %d, skipped %+v", got.Listed, len(got.Contracts), got.Skipped)
		}
		if outOfScope(body) {
			return
		}
		if _, depth, _ := plain(body); depth > maxDepth-4 {
			return
		}
		want, wantErr := plainChain(body, true)
		if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, want %v", err, wantErr)
		}
		if err == nil {
			sameUnderlying(t, got.Underlying, want.Underlying)
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
			sameUnderlying(t, quote.Underlying, want.Underlying)
		}
	})
}

// FuzzTradeClock: a clock that remembers dates says what package time says.
func FuzzTradeClock(f *testing.F) {
	for _, s := range []string{"2026-08-11T16:14:59", "2026-03-08T02:30:00", "2026-11-01 01:30:00.25", "0000-01-01T00:00:00", "9999-12-31T23:59:59", "1883-11-18T12:03:58", "2026-02-29T00:00:00", "2026-08-11T24:00:00", "2026-08-11T16:14:59Z"} {
		f.Add(s, "2026-08-11T09:30:00")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		var clock tradeClock
		for _, text := range []string{first, second, first, second} {
			want := int64(0)
			if at, ok := plainClock(text, compute.NewYork); ok {
				want = at.Unix()
			}
			if got := clock.unix([]byte(text)); got != want {
				t.Errorf("%q: %d, want %d", text, got, want)
			}
		}
	})
}

// FuzzDecodeHistory: the rows are those that encoding/json reads, rising, the last of each date.
func FuzzDecodeHistory(f *testing.F) {
	for _, s := range []string{
		`{"symbol":"XLK","data":[{"date":"2026-10-02","close":"187.25"}]}`, `{"data":[{"date":"2026-10-02","close":1},{"date":"2026-10-01","close":"2"},{"date":"2026-10-02","close":3}],"data":[{"date":"1998-12-22","close":0.0},7,{}]}`,
		`{"data":null,"data":[{"date":"2026-02-30","date":"2026-02-28","date":"x","close":1,"close":"1e3"},{"date":"2026-01-01","close":"Inf"},{"date":"2026-01-01","close":"-1"}]}`, `<html>`, `{"data":[]}`, `[]`, `{"data":[{"date":"2026-10-02"}]} x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := DecodeHistory(body)
		value, depth, _ := plain(body)
		if outOfScope(body) || depth > maxDepth-4 {
			return
		}
		want, wantErr := plainHistory(body, value)
		if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) || !slices.Equal(got, want) {
			t.Errorf("%v %v, want %v %v", got, err, want, wantErr)
		}
	})
}

func plainHistory(body []byte, value any) ([]compute.Close, error) {
	if text := bytes.TrimLeft(body, " \t\r\n"); len(text) > 0 && text[0] == '<' {
		return nil, ErrHTML
	}
	top, ok := value.([]member)
	if !ok {
		return nil, ErrMalformed
	}
	last := map[string]float64{} // prices by date
	for _, m := range top {
		rows, _ := m.value.([]any)
		for _, row := range rows {
			date, price := "", math.NaN()
			members, _ := row.([]member)
			for _, f := range members {
				text, isText := f.value.(string)
				if _, err := time.Parse(time.DateOnly, text); f.key == "date" && err == nil && len(text) == 10 {
					date = text
				}
				if f.key == "close" {
					if price = plainFloat(f.value); isText {
						if x, err := strconv.ParseFloat(text, 64); err == nil {
							price = x
						}
					}
				}
			}
			if m.key == "data" && date != "" && date != "1970-01-01" && price > 0 && price <= math.MaxFloat64 {
				last[date] = price
			}
		}
	}
	var closes []compute.Close
	for date, price := range last {
		d, _ := time.Parse(time.DateOnly, date)
		closes = append(closes, compute.Close{Date: compute.DateOf(d), Price: price})
	}
	if len(closes) == 0 {
		return nil, ErrNoRows
	}
	slices.SortFunc(closes, func(a, b compute.Close) int { return cmp.Compare(a.Date, b.Date) })
	return closes, nil
}

// FuzzDecodeSettlement: without quotes, the rows are those of lines cut at commas; with them, those of encoding/csv.
func FuzzDecodeSettlement(f *testing.F) {
	const header = "Product,Symbol,Expiration Date,Price\r\n"
	for _, s := range []string{
		header + "VX,VX/V6,2026-10-21,17.4555\r\n", "\xef\xbb\xbf" + header + "VX,VX/V6,2026-10-21,17.4555*\n\r\n VX , VX40/V6 ,2026-10-07, 17 ,more\n", header, header + "VX,VX/V6,2026-10-21,17.4", header + "VX,\"VX/V6\",2026-10-21,1\n\"a\nb\",c,2026-10-21,2\n",
		header + "\"\n\n", header + "VX,V\"X,2026-02-30,1\nVX,X,2026-10-21,-1\nVX,X,2026-10-21,1e10\nVX,X,2026-10-21,0x10\n", "<html>\n", "Product,,,Price\n,,2026-01-01,1\n", header + ",\r,2026-01-01,1\r\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		rows, bad, err := DecodeSettlement(body)
		for _, r := range rows {
			if !(r.Price > 0 && r.Price <= 1e9) || r.Symbol != strings.TrimSpace(r.Symbol) {
				t.Errorf("row %+v", r)
			}
		}
		if err == nil && bytes.Count(body, []byte{'\n'}) < len(rows)+bad+1 {
			t.Errorf("%d rows and %d bad ones of %d lines", len(rows), bad, bytes.Count(body, []byte{'\n'}))
		}
		if bytes.IndexByte(body, '"') >= 0 {
			return
		}
		want, wantBad, wantErr := plainSettlement(strings.TrimPrefix(string(body), "\xef\xbb\xbf"))
		if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, want %v", err, wantErr)
		}
		if !slices.Equal(rows, want) || bad != wantBad {
			t.Errorf("%+v %d, want %+v %d", rows, bad, want, wantBad)
		}
	})
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
		if err == nil && priceErr == nil && price > 0 && price <= 1e9 {
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
