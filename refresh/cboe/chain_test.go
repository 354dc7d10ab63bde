package cboe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

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

// whole is a chain of a call and a put.
var whole = string(document("2026-08-11 20:36:41", `"options":[`+rowC+`,`+rowP+`],`+head))

// Every member of a document is read, whatever the order of the members, the space between them and the members that nobody reads.
func TestDecodeChain(t *testing.T) {
	call := compute.Contract{Root: "SPXW", Expiration: compute.NewDate(2026, time.August, 21), Strike: 7400, Settlement: compute.PM,
		Quote: compute.Quote{Bid: 330.1, Ask: 331.9, Last: 330.5, OpenInterest: 2960, Volume: 4, IV: 0.1235, Gamma: 0.0011, Delta: 0.9,
			LastTrade: time.Date(2026, time.August, 11, 14, 31, 50, 0, time.UTC).Unix()}}
	put := compute.Contract{Root: "SPXW", Expiration: call.Expiration, Strike: 7400, Right: compute.Put, Settlement: compute.PM, Quote: compute.Quote{Ask: 0.05}}
	var spaced bytes.Buffer
	must(t, json.Indent(&spaced, []byte(whole), "", "\t"))
	for _, body := range []string{whole, "\ufeff" + whole + " \r\n", spaced.String(), strings.ReplaceAll(whole, ",", " ,\r\n"),
		`{"symbol":"_SPX","data":{` + head + `,"options":[` + rowP + `,` + rowC + `]},"timestamp":"2026-08-11 20:36:41"}`,
		strings.Replace(whole, `"tick":"up"`, `"tick":"u}p","x":{"y":[{}],"z":"]"}`, 1),
		strings.Replace(whole, `"data":{`, `"data":{"options":{},"x":[[[]]],`, 1),
		strings.Replace(whole, `"option":`, `"option":null,"option":`, 2),
	} {
		chain, err := DecodeChain([]byte(body))
		if err != nil {
			t.Errorf("%v: %s", err, body)
			continue
		}
		q := chain.UnderlyingQuote
		if q.Symbol != "SPX" || !q.IsIndex || q.Spot != 7728.2002 || q.Close != 7728.1 || q.PriceChangePercent != -0.3213 || chain.BadNumbers != 0 ||
			!q.CapturedAt.Equal(time.Date(2026, time.August, 11, 20, 36, 41, 0, time.UTC)) || !q.AsOf.Equal(time.Date(2026, time.August, 11, 20, 14, 59, 0, time.UTC)) {
			t.Errorf("%+v, %d bad numbers: %s", q, chain.BadNumbers, body)
		}
		if !slices.Equal(chain.Contracts, []compute.Contract{call, put}) {
			t.Errorf("%+v: %s", chain.Contracts, body)
		}
		quote, err := DecodeQuote([]byte(body))
		if err != nil || quote.UnderlyingQuote != q || quote.BadNumbers != 0 {
			t.Errorf("as a quote: %+v, %v", quote, err)
		}
	}
}

// A number of a row may be written as a text. It counts as absent when it is no number, and as bad when it is outside the range of its kind. The other numbers are still read.
func TestNumbersOfARow(t *testing.T) {
	for field, c := range map[string]struct {
		good, bad string
		of        func(compute.Quote) float64
	}{
		"bid":              {"0 1e-6 1e6", "-1 1e-9 1000000.1 1e999", func(q compute.Quote) float64 { return q.Bid }},
		"ask":              {"0 1e6", "-1 1000000.1", func(q compute.Quote) float64 { return q.Ask }},
		"last_trade_price": {"0 1e6", "-1 1000000.1", func(q compute.Quote) float64 { return q.Last }},
		"open_interest":    {"0 1e8", "-1 1e9", func(q compute.Quote) float64 { return q.OpenInterest }},
		"volume":           {"0 1e8", "-1 100000001", func(q compute.Quote) float64 { return q.Volume }},
		"iv":               {"0 100", "-0.1 1e9 -1e999", func(q compute.Quote) float64 { return q.IV }},
		"delta":            {"-1 1", "-1.0001 5e8", func(q compute.Quote) float64 { return q.Delta }},
		"gamma":            {"-100 100", "-101 101 1e-9", func(q compute.Quote) float64 { return q.Gamma }},
	} {
		read := func(text string) (compute.Quote, *compute.Chain) {
			chain, err := DecodeChain([]byte(strings.Replace(whole, "}", `,"`+field+`":`+text+"}", 1)))
			if err != nil {
				t.Fatal(field, text, err)
			}
			if field == "open_interest" && len(chain.Contracts) == 1 { // without it there is no row
				return compute.Quote{OpenInterest: math.NaN(), LastTrade: 1}, chain
			}
			return chain.Contracts[0].Quote, chain
		}
		for _, text := range strings.Fields(c.good) {
			var want float64
			if _, err := fmt.Sscan(text, &want); err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{text, `"` + text + `"`} {
				if q, chain := read(text); c.of(q) != want || chain.BadNumbers != 0 {
					t.Errorf("%s %s: %v, %d bad", field, text, c.of(q), chain.BadNumbers)
				}
			}
		}
		for i, text := range append(strings.Fields(c.bad), "null", `"x"`, `""`, `"1,5"`, "true", `{"a":1}`, "[1,2]") {
			bad := 0
			if i < len(strings.Fields(c.bad)) {
				bad = 1
			}
			q, chain := read(text)
			if absent := math.IsNaN(c.of(q)) || text == "null" && c.of(q) != 0; !absent || q.LastTrade == 0 || chain.BadNumbers != bad {
				t.Errorf("%s %s: %v, %d bad", field, text, c.of(q), chain.BadNumbers)
			}
		}
	}
}

// Rows are left out by the first reason that applies, and counted; of two rows of a contract the first counts.
func TestRowsThatAreLeftOut(t *testing.T) {
	for rows, want := range map[string]compute.Skipped{
		rowC + `,` + rowP + `,` + rowP + `,` + rowC:                                                                                          {Duplicate: 2},
		`{},[],7,null,{"option":7},{"option":"SPXW260821C0740000x"},{"option":"SPXW260230C07400000"}`:                                        {BadSymbol: 7},
		`{"option":"XLK260821C00157500","open_interest":1},{"option":"SPX1260821C07400000","open_interest":1}`:                               {UnknownRoot: 2},
		`{"option":"SPX260821C07400000"},{"option":"SPX260821P07400000","open_interest":-1},{"option":"SPX260821C07400000"}`:                 {BadNumber: 2, Duplicate: 1},
		`{"option":"SPX1260821C07400000"},{"option":"SPX1260821C07400000","open_interest":1},{"option":"XLK260821C07400000","iv":0}`:         {BadNumber: 2, Duplicate: 1},
		`{"option":"SPX260918C07000000","open_interest":1},{"option":"SPX260821P07400000","open_interest":1},` + rowP + `,` + rowC + `,{}  `: {BadSymbol: 1},
	} {
		chain, err := DecodeChain([]byte(strings.Replace(whole, rowC+`,`+rowP, rows, 1)))
		if err != nil || chain.Skipped != want || chain.Listed != len(chain.Contracts)+want.Total() {
			t.Errorf("%+v, %v: %s", chain, err, rows)
			continue
		}
		if !slices.IsSortedFunc(chain.Contracts, func(a, b compute.Contract) int { return strings.Compare(a.Symbol(), b.Symbol()) }) {
			t.Errorf("not sorted: %+v", chain.Contracts)
		}
	}
}

// The price is the close where there is no current one; the change is that of the session where the document has it.
func TestHeadOfADocument(t *testing.T) {
	for _, c := range []struct {
		replace, with string
		spot, change  float64 // NaN for a change that is not known
		bad           int
	}{
		{`7728.2002`, `null`, 7728.1, -0.3213, 0},
		{`7728.2002`, `0.0`, 7728.1, -0.3213, 0},
		{`7728.2002`, `1e7`, 7728.1, -0.3213, 1},
		{`7728.1,`, `-1,`, 7728.2002, -0.3213, 1},
		{`"^SPX","current_price":7728.2002,"close":7728.1`, `"^VIX","current_price":1000.5,"close":17`, 17, -0.3213, 1},
		{`"^SPX","current_price":7728.2002,"close":7728.1`, `"^VIX3M","current_price":1e5,"close":20`, 20, -0.3213, 1},
		{`-0.3213`, `-100.1`, 7728.2002, math.NaN(), 1},
		{`-0.3213`, `"x"`, 7728.2002, math.NaN(), 0},
		{`"current`, `"price_change":77.282002,"current`, 7728.2002, 100.0 / 99, 0},
		{`"current`, `"price_change":0.0,"current`, 7728.2002, 0, 0},
		{`"current`, `"price_change":null,"current`, 7728.2002, -0.3213, 0},
		{`"current`, `"price_change":7728.2002,"current`, 7728.2002, -0.3213, 1}, // from no usable price
		{`"current`, `"price_change":-1e300,"current`, 7728.2002, -0.3213, 1},    // nor this
		{`"current`, `"price_change":7700.0,"current`, 7728.2002, -0.3213, 1},    // over 1000 %
	} {
		q, err := DecodeQuote([]byte(strings.Replace(whole, c.replace, c.with, 1)))
		if err != nil {
			t.Errorf("%s: %v", c.with, err)
		} else if known := !math.IsNaN(q.PriceChangePercent); q.Spot != c.spot || q.BadNumbers != c.bad || known == math.IsNaN(c.change) ||
			known && math.Abs(q.PriceChangePercent-c.change) > 1e-9 {
			t.Errorf("%s: %v %v %d, want %+v", c.with, q.Spot, q.PriceChangePercent, q.BadNumbers, c)
		}
	}
}

func TestRefusedChains(t *testing.T) {
	for _, c := range []struct {
		change []string
		want   error
	}{
		{[]string{rowC + `,` + rowP, ``}, compute.ErrEmptyChain}, {[]string{`[` + rowC + `,` + rowP + `]`, `null`}, compute.ErrEmptyChain},
		{[]string{"timestamp", "time"}, ErrNoClock}, {[]string{"2026-08-11 20:36:41", "2026-08-11 25:36:41"}, ErrNoClock},
		{[]string{`"last_trade_time":"2026-08-11T16:14:59"`, `"last_trade_time":null`}, ErrNoClock},
		{[]string{`"current_price":7728.2002`, `"current_price":null`, `"close":7728.1`, `"close":0`}, compute.ErrNoSpot},
		{[]string{`"current_price":7728.2002,"close":7728.1`, `"current_price":0`}, compute.ErrNoSpot},
	} {
		if _, err := DecodeChain([]byte(strings.NewReplacer(c.change...).Replace(whole))); !errors.Is(err, c.want) {
			t.Errorf("%q: %v, want %v", c.change, err, c.want)
		}
	}
}

// A clock has the form of ISO 8601, with or without a T, a fraction and a zone.
func TestClocks(t *testing.T) {
	for text, want := range map[string]string{ // in UTC
		"2026-03-08T01:59:59": "2026-03-08T06:59:59Z", "2026-03-08T03:00:00": "2026-03-08T07:00:00Z", "2026-11-01T00:30:00": "2026-11-01T04:30:00Z",
		"2026-11-01T02:30:00": "2026-11-01T07:30:00Z", "2026-11-02 09:30:00.250": "2026-11-02T14:30:00Z", "2026-08-11T16:14:59Z": "2026-08-11T16:14:59Z",
		"2026-08-11 16:14:59+00:00": "2026-08-11T16:14:59Z", "2026-08-11T16:14:59.5-04:00": "2026-08-11T20:14:59Z", "2026-08-11T16:14:59+0530": "2026-08-11T10:44:59Z",
		"2026-08-11T16:14:59-04": "2026-08-11T20:14:59Z", "": "", "2026-08-11": "", "2026-08-11T16:14Z": "2026-08-11T16:14:00Z", "2026-08-11 16:14": "2026-08-11T20:14:00Z", "2026-08-11X16:14:59": "", "2026-13-11T16:14:59": "",
		"2026-08-11T16:60:00": "", "2026-08-11T1x:14:59": "", "2026-08-11T9:14:59.25": "", "2026-02-29T00:00:00": "", "2026-08-11T24:00:00": "",
		"2026-08-11T16:14:59 UTC": "2026-08-11T16:14:59Z", "2026-08-11t16:14:59.5z": "2026-08-11T16:14:59Z", " 2026-08-11 16:14:59 -0400\n": "2026-08-11T20:14:59Z", "2026-08-11T16:14:59+4": "", "2026-08-11T16:14:59-04:0": "",
	} {
		got := ""
		if at, ok := parseClock(text, compute.NewYork); ok {
			got = at.Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
