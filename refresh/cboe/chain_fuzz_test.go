package cboe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
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

// outOfScope says whether the decoders need not agree on a document. They recognise names, symbols and clocks only as the
// upstream spells them: without escapes and in UTF-8.
func outOfScope(body []byte) bool { return bytes.IndexByte(body, '\\') >= 0 || !utf8.Valid(body) }

func plainFloat(v any) float64 {
	n, ok := v.(json.Number)
	if !ok {
		return math.NaN()
	}
	x, _ := strconv.ParseFloat(n.String(), 64) // an infinity if it overflows
	return x
}

var clockForm = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)([.,]\d+)?$`)

func plainClock(v any, loc *time.Location) (time.Time, bool) {
	text, _ := v.(string)
	parts := clockForm.FindStringSubmatch(text)
	if parts == nil {
		return time.Time{}, false
	}
	t, err := time.ParseInLocation(time.DateTime, parts[1]+" "+parts[2], loc)
	return t.UTC(), err == nil
}

// plainChain returns the chain of a document, or why it is refused. If chain is false, options are ignored.
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
		return &compute.Chain{Underlying: u, BadNumbers: bad}, nil
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

func sameUnderlying(t *testing.T, got, want compute.Underlying) {
	t.Helper()
	if got.Symbol != want.Symbol || got.Spot != want.Spot || fmt.Sprint(got.PriceChangePercent) != fmt.Sprint(want.PriceChangePercent) ||
		!got.AsOf.Equal(want.AsOf) || !got.CapturedAt.Equal(want.CapturedAt) {
		t.Errorf("head\n got %+v\nwant %+v", got, want)
	}
}

// readsAsWell checks that ReadChain has the result of DecodeChain, however the bytes arrive, or refuses the document. It says
// whether it has accepted it.
func readsAsWell(t *testing.T, body []byte, want *compute.Chain, content string, wantErr error) (accepted bool) {
	t.Helper()
	for name, from := range map[string]io.Reader{
		"whole": bytes.NewReader(body), "halves": iotest.HalfReader(bytes.NewReader(body)), "with the end": iotest.DataErrReader(bytes.NewReader(body)),
		"broken at the end": io.MultiReader(bytes.NewReader(body), iotest.ErrReader(io.ErrUnexpectedEOF)),
	} {
		got, read, err := ReadChain(from, len(body))
		if accepted = err == nil; !accepted {
			continue
		}
		if wantErr != nil || name == "broken at the end" {
			t.Errorf("%s: accepted, DecodeChain says %v", name, wantErr)
		} else if read != content || got.Listed != want.Listed || got.Skipped != want.Skipped || got.BadNumbers != want.BadNumbers ||
			!slices.EqualFunc(got.Contracts, want.Contracts, func(a, b compute.Contract) bool { return a == b || fmt.Sprint(a) == fmt.Sprint(b) }) {
			t.Errorf("%s: %d rows, content %s, want %d, %s", name, got.Listed, read, want.Listed, content)
		} else {
			sameUnderlying(t, got.Underlying, want.Underlying)
		}
	}
	_, _, err := ReadChain(bytes.NewReader(body), 0)
	return err == nil
}

// A window of the document may end anywhere.
func TestReadChain(t *testing.T) {
	row := func(i int, more string) string {
		return fmt.Sprintf(`{"option":"SPXW260821C%08d","bid":%d.5,"open_interest":%d.0,"last_trade_time":"2026-08-11T10:31:50"%s}`, 1000*(1000+i), i, i, more)
	}
	for _, c := range []struct {
		name  string
		more  func(i int) string // in row i
		tail  string
		reads bool
	}{
		{"rows of any length", func(i int) string { return `,"x":"` + strings.Repeat("y", i%977) + `"` }, "", true},
		{"other keys in each row", func(i int) string { return fmt.Sprintf(`,"k%d":[%d]`, i, i) }, "", true},
		{"a row longer than a window", func(i int) string {
			if i == 3000 {
				return `,"x":"` + strings.Repeat("y", 2*readWindow) + `"`
			}
			return ""
		}, "", false},
		{"space behind the document", func(int) string { return "" }, strings.Repeat(" ", 2*readWindow), false},
		{"text behind the document", func(int) string { return "" }, "x", false},
	} {
		var rows []string
		for i := range 8000 {
			rows = append(rows, row(i, c.more(i)))
		}
		body := []byte(`{"timestamp":"2026-08-11 20:36:41","data":{"options":[` + strings.Join(rows, ",") + `],` + head + `},"symbol":"_SPX"}` + c.tail)
		want, content, err := DecodeChain(body)
		if reads := readsAsWell(t, body, want, content, err); reads != c.reads || (err == nil) != (c.tail != "x") || err == nil && len(want.Contracts) != 8000 {
			t.Errorf("%s: ReadChain accepts it: %v; DecodeChain: %v", c.name, reads, err)
		}
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
		`"bid":-1`, `"ask":9e8`, `"last_trade_price":1000000.1`, `"open_interest":1e9`, `"open_interest":-1`, `"volume":-1`, `"volume":100000001`,
		`"iv":-0.1`, `"iv":1e9`, `"delta":-1.0001`, `"delta":5e8`, `"gamma":101`, `"gamma":-101`, `"gamma":1e-9`,
	} {
		f.Add([]byte(strings.Replace(whole, "}", ","+bad+"}", 1)))
	}
	for _, s := range []string{
		`{"symbol":"_SPX","data":{` + head + `,"options":[` + rowP + `,` + rowC + `]},"timestamp":"2026-08-11 20:36:41"}`, // another order
		whole, string(document("2026-08-11 20:36:41", head)), `{"data":{"options":[{},null,{"option":"SPX`, "\n<html>", "", "[]", "null", whole + " ", whole + whole,
		strings.Replace(whole, rowP, rowP+","+rowP+","+rowC+`,{},[],{"option":"XLK260821C00157500"},{"option":"SPX260821C07400000","open_interest":-1}`, 1),
		strings.Replace(whole, `"bid":330.1`, `"bid":1e999,"bid":1e-9,"bid":"x"`, 1), strings.Replace(whole, `7728.2002`, `null`, 1), strings.Replace(whole, `"2026-08-11T10:31:50"`, `"2026-11-01 01:30:00.5"`, 1),
		strings.Replace(whole, `"symbol":"^SPX"`, `"symbol":7`, 1), strings.Replace(whole, `"data":{`, `"data":{"options":{},"x":[[[]]],`, 1), strings.Replace(whole, `"^SPX"`, `"XLK"`, 1),
		strings.ReplaceAll(strings.Replace(whole, "SPXW260821C", "XLK1260230C", 1), ",", " ,\n"), `{"data":{},"data":{}}`, strings.Replace(whole, `"data":{`, `"data":{"options":[{}],`, 1), strings.Replace(whole, "7728.2002", "1e7", 1), strings.Replace(whole, `"option":`, `"option":null,"option":`, 2),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, content, err := DecodeChain(body)
		readsAsWell(t, body, got, content, err)
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
			sameUnderlying(t, quote.Underlying, want.Underlying)
			if quote.BadNumbers != want.BadNumbers {
				t.Errorf("as a quote: %d bad numbers, want %d", quote.BadNumbers, want.BadNumbers)
			}
		}
	})
}

// FuzzTradeClock: parseClock accepts only the form of a clock, and agrees with package time.
func FuzzTradeClock(f *testing.F) {
	for _, s := range []string{"2026-08-11T16:14:59", "2026-03-08T02:30:00", "2026-11-01 01:30:00.25", "0000-01-01T00:00:00", "9999-12-31T23:59:59", "1883-11-18T12:03:58", "2026-02-29T00:00:00", "2026-08-11T24:00:00", "2026-08-11T16:14:59Z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, ok := plainClock(text, compute.NewYork)
		got, taken := parseClock([]byte(text), compute.NewYork)
		if taken != ok || ok && !got.Equal(want) {
			t.Errorf("%q: %v %v, want %v %v", text, got, taken, want, ok)
		}
		var days tradeDays
		for range 2 { // the second time, the date is known
			if at, taken := days.instant([]byte(text)); taken != ok || ok && at != want.Unix() {
				t.Errorf("%q: trade at %d %v, want %v %v", text, at, taken, want, ok)
			}
		}
		if other, known := len(text) > 12, len(days) > 0; other && known {
			text = text[:11] + "23" + text[13:]
			want, ok := plainClock(text, compute.NewYork)
			if at, taken := days.instant([]byte(text)); taken != ok || ok && at != want.Unix() {
				t.Errorf("%q after another trade: %d %v, want %v %v", text, at, taken, want, ok)
			}
		}
	})
}
