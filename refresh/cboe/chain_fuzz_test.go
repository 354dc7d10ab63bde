package cboe

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"strikecache/compute"
)

const (
	rowC = `{"option":"SPXW260821C07400000","bid":330.1,"bid_size":0.0,"ask":331.9,"ask_size":0.0,"iv":0.1235,"open_interest":2960.0,` +
		`"volume":4.0,"delta":0.9,"gamma":0.0011,"vega":1.0,"theta":-1.5,"rho":0.5,"theo":331.0,"change":1.0,"open":1.0,"high":1.0,` +
		`"low":1.0,"tick":"up","last_trade_price":330.5,"last_trade_time":"2026-08-11T10:31:50","percent_change":0.1,"prev_day_close":329.349985351562}`
	rowP = `{"option":"SPXW260821P07400000","bid":0.0,"ask":0.05,"iv":0.0,"open_interest":0.0,"volume":0.0,"delta":0.0,"gamma":0.0,` +
		`"last_trade_price":0.0,"last_trade_time":null}`
	head = `"symbol":"^SPX","current_price":7728.2002,"close":7728.1,"price_change_percent":-0.3213,"prev_day_close":7753.1,"seqno":16938026517,"last_trade_time":"2026-08-11T16:14:59"`
)

func document(timestamp, data string) []byte {
	return []byte(`{"timestamp":"` + timestamp + `","data":{` + data + `},"symbol":"_SPX"}`)
}

func wantChain() []byte {
	return document("2026-08-11 20:36:41", `"options":[`+rowC+`,`+rowP+`],`+head)
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
		strings.Replace(whole, `"tick":"up"`, `"tick":"u}p","x":{"y":[{}],"z":"]"}`, 1), strings.Replace(whole, `"tick":"up"`, `"bid":1e999,"ask":"x"`, 1),
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
		chain, err := DecodeChain(body)
		if err == nil && chain.Listed != len(chain.Contracts)+chain.Skipped.Total() {
			t.Errorf("listed %d, kept %d, skipped %+v", chain.Listed, len(chain.Contracts), chain.Skipped)
		}
		if outOfScope(body, "options") {
			return
		}
		chainAgrees(t, body)
		quote, err := DecodeQuote(body)
		want, wantErr := plainChain(body, false)
		if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
			t.Fatalf("as a quote: %v, want %v", err, wantErr)
		}
		if err == nil && (fmt.Sprintf("%+v", headOf(quote.UnderlyingQuote)) != fmt.Sprintf("%+v", headOf(want.UnderlyingQuote)) || quote.BadNumbers != want.BadNumbers) {
			t.Errorf("as a quote: %+v, want %+v", quote, want)
		}
	})
}

// headOf returns what the slow decoder reads of an underlying.
func headOf(u compute.UnderlyingQuote) compute.UnderlyingQuote {
	return compute.UnderlyingQuote{Symbol: u.Symbol, Spot: u.Spot, PriceChangePercent: u.PriceChangePercent, AsOf: u.AsOf.UTC(), CapturedAt: u.CapturedAt.UTC()}
}

// chainAgrees compares DecodeChain with the slow decoder. It returns the chain, or nil if both refuse the document for the same reason.
func chainAgrees(t *testing.T, body []byte) *compute.Chain {
	t.Helper()
	got, err := DecodeChain(body)
	want, wantErr := plainChain(body, true)
	if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
		t.Fatalf("%v, want %v", err, wantErr)
	}
	if err != nil {
		return nil
	}
	summary := func(c *compute.Chain) string {
		return fmt.Sprintf("%+v, %d listed, %d kept, skipped %+v, %d bad numbers", headOf(c.UnderlyingQuote), c.Listed, len(c.Contracts), c.Skipped, c.BadNumbers)
	}
	if summary(got) != summary(want) {
		t.Fatalf("\n got %s\nwant %s", summary(got), summary(want))
	}
	for i, c := range got.Contracts {
		if fmt.Sprintf("%+v", c) != fmt.Sprintf("%+v", want.Contracts[i]) {
			t.Fatalf("row %d is %+v", i, c)
		}
	}
	return got
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
