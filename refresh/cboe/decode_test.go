package cboe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"strikecache/compute"

	"strikecache/bench/testkit"
)

var must = testkit.Must

// The recorded chain has 30,692 rows that count, and no bad number. Package product compares its figures, and those of a chain of many oddities, with those
// that a second program reads.
func TestRecordedChain(t *testing.T) {
	chain, err := DecodeChain(testkit.Document(t, "recorded/replay/options/_SPX.json.gz"))
	if err != nil || chain.BadNumbers != 0 || len(chain.Contracts) != 30692 || chain.Spot != 7728.2002 {
		t.Errorf("%v", err)
	}
}

// Real documents without their rows, of a weekend, a session, a close and evenings, have the right clocks and prices.
func TestRecordedEnvelopes(t *testing.T) {
	for _, c := range []struct {
		fetched, asOf string // UTC
		spot, change  float64
	}{
		{"2026-08-09T22-38-43Z", "2026-08-07 20:14:59", 7757.6401, 0.6184},
		{"2026-08-10T23-57-37Z", "2026-08-10 20:14:59", 7753.1099, -0.0584},
		{"2026-08-11T00-07-40Z", "2026-08-10 20:14:59", 7753.1099, -0.0584},
		{"2026-08-11T16-11-33Z", "2026-08-11 15:56:26", 7741.3999, -0.151},
		{"2026-08-11T20-37-03Z", "2026-08-11 20:14:59", 7728.2002, -0.3213},
		{"2026-08-11T23-57-57Z", "2026-08-11 20:14:59", 7728.2002, -0.3213},
		{"2026-08-13T01-25-33Z", "2026-08-12 20:14:59", 7748.5, 0.2627},
	} {
		body := testkit.Document(t, "recorded/spx-headers/_SPX_"+c.fetched+".json")
		if _, err := DecodeChain(body); err == nil {
			t.Errorf("%s: a chain without options is accepted", c.fetched)
		}
		q, err := DecodeQuote(body)
		if err != nil {
			t.Errorf("%s: %v", c.fetched, err)
			continue
		}
		if q.AsOf.Format(time.DateTime) != c.asOf || q.Spot != c.spot || math.Round(q.PriceChangePercent*1e4)/1e4 != c.change {
			t.Errorf("%s: as_of %v spot %v change %v, want %+v", c.fetched, q.AsOf, q.Spot, q.PriceChangePercent, c)
		}
		at, err := time.Parse("2006-01-02T15-04-05Z", c.fetched)
		// The timestamp is seconds before the fetch, except on the weekend, when it stops on Saturday.
		if lag := at.Sub(q.CapturedAt); err != nil || c.fetched[:10] != "2026-08-09" && (lag < 0 || lag > time.Minute) {
			t.Errorf("%s: captured %v, %v before the fetch: the timestamp is not UTC, %v", c.fetched, q.CapturedAt, lag, err)
		}
	}
}

// texts are JSON or almost JSON.
var texts = []string{
	``, ` `, `null`, `true`, `false`, `nul`, `nulll`, `truefalse`, `0`, `-0`, `01`, `-`, `1.`, `.5`, `1.5`, `1e`, `1e5`,
	`1E+5`, `1e-`, `-1.25e-07`, `+1`, `0x1`, `NaN`, `Infinity`, `""`, `"`, `"a`, `"\n"`, "\"\n\"", "\"\x00\"", `"\u12"`,
	`"\u12G4"`, `"\u00e9\"\\\/\b\f\n\r\t"`, `"\x"`, `"é€"`, "\"\xff\"", `[]`, `[1]`, `[1,]`, `[,1]`, `[1 2]`, `[1`, `{}`,
	`{"a":1}`, `{"a" : 1 , "b":[{}]}`, `{"a":1,}`, `{a:1}`, `{"a"}`, `{"a":}`, `{"a":1 "b":2}`, `{"a":1}}`, `[[[[[]]]]]`,
	" \t\r\n[ 1 , 2 ]\n", "\v1", `[1]x`, `"a" "b"`, `123456789012345678901234567890`, `1e400`, `-1e400`, `0.1e-400`,
	`{"a":{"a":{"a":null}}}`, "\ufeff{}", "1.7976931348623157e308", "9007199254740992.5", "1E", "1e+", "1.e5", "-01", "00",
}

// FuzzDecode: goccy/go-json reads the objects that encoding/json calls valid, and no others. With space between its members, a document says the same.
func FuzzDecode(f *testing.F) {
	for n := range whole { // no part of a document is accepted as a document
		f.Add([]byte(whole[:n]))
	}
	for _, s := range []string{whole, whole + whole, whole + "\ufeff", strings.Replace(whole, "up", "u\x01p", 1), strings.Replace(whole, "330.1", "330.", 1),
		strings.Replace(whole, `"bid":330.1`, `"bid":1e999,"bid":1e-9,"bid":"x"`, 1), `{"data":{},"data":{}}`, strings.Replace(whole, rowP, rowP+`,{"x":[{}]},[],7`, 1)} {
		f.Add([]byte(s))
	}
	for _, text := range texts {
		for _, key := range []string{"x", "timestamp", "data"} {
			f.Add([]byte(`{"` + key + `":` + text + `}`))
		}
		f.Add([]byte(`{"data":{"options":[` + text + `]}}`))
		f.Add([]byte(`{"data":{"options":[{"bid":` + text + `,"option":"a","last_trade_time":` + text + `}]}}`))
		f.Add([]byte(`{}` + text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, err := decodeDocument(text, func(*chainRow) {})
		if err != nil && strings.Contains(err.Error(), "options twice") {
			return
		}
		text = bytes.TrimPrefix(text, []byte("\ufeff"))
		object := strings.HasPrefix(strings.TrimLeft(string(text), " \t\r\n"), "{")
		if want := object && json.Valid(text); (errors.Is(err, ErrMalformed) || errors.Is(err, ErrHTML)) == want {
			t.Errorf("%q: %v, encoding/json says %v", text, err, want)
		}
		var spaced bytes.Buffer
		if chain, err := DecodeChain(text); err == nil && json.Indent(&spaced, text, "", "\t") == nil {
			if again, err := DecodeChain(spaced.Bytes()); err != nil || fmt.Sprint(again) != fmt.Sprint(chain) || chain.Listed != len(chain.Contracts)+chain.Skipped.Total() {
				t.Errorf("%q: %+v\nwith space %+v, %v", text, chain, again, err)
			}
		}
	})
}

// The error of a document that is no chain says why, with the byte.
func TestDecodeSaysWhatIsWrong(t *testing.T) {
	for text, says := range map[string]string{
		`{"data":{"x":NaN}}`:                   "NaN at byte 13 is not JSON",
		"\ufeff {\"a\":[1,-Infinity]}":         "Infinity at byte 13 is not JSON",
		`{"NaN":"NaN","Infinity":[INF]}`:       "INF at byte 25 is not JSON",
		"":                                     "empty",
		"\ufeff\r\n":                           "empty",
		"\ufeff<!DOCTYPE html>":                "HTML page",
		"\x28\xb5\x2f\xfd\x04\x00\x51\x00\x00": "zstd",
		string(document("2026-08-11 20:36:41", `"options":[],"options":[`+rowC+`],`+head)): "options twice",
	} {
		if _, err := DecodeChain([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// A document of empty rows, nested as rows can be, needs little memory before it is refused.
func TestDecodeBoundsRows(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector adds allocations of its own")
	}
	for _, row := range []string{`{}`, `0`, `[]`} {
		options := strings.Repeat(row+",", 8<<20/(len(row)+1))
		for _, key := range []string{"options", "OPTIONS", `\u006fptions`} {
			body := []byte(`{"data":{"` + key + `":[` + options + row + `]}}`)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := DecodeChain(body)
			runtime.ReadMemStats(&after)
			if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; !errors.Is(err, ErrMalformed) || mb > 64 {
				t.Errorf("rows %s of %s: %v after %d MB", row, key, err, mb)
			}
		}
	}
}

// The rows of a history rise, the last good one of a date counts, and a bad close is counted. The number of rows is bounded.
func TestDecodeHistory(t *testing.T) {
	row := func(close string) string {
		return `{"data":[{"date":"1998-12-22","close":0},{"date":"2026-10-01","close":186.5},{"date":"2026-10-02","close":` + close + `},{"close":-1},{"date":"x","close":-1}]}`
	}
	for _, c := range []struct {
		body, want string // dates and prices
		bad        int
		err        error
	}{
		{`{"data":[{"date":"2026-10-02","close":"187.25"},{"date":"2026-10-01","close":186.5},{"date":"2026-10-05","close":null},{"close":2},7,{"date":"2026-10-02","close":187.5}]}`,
			"2026-10-01 186.5, 2026-10-02 187.5", 0, nil},
		{`{"symbol":"VIX","data":[{"date":"2026-10-01","close":17.5},{"date":"2026-10-01","close":5e6}]}`, "2026-10-01 17.5", 1, nil},
		{`{"data":[{"date":"2026-01-01","close":0},{"date":"2026-01-02","close":"1"},{"date":"2026-01-03","close":"-0"},{"date":"2026-01-04","close":"nan"},{"date":"2026-01-05","close":{}}]}`,
			"2026-01-02 1", 3, nil}, // a 0 counts as bad after the first price
		{`{"data":[{"date":"2026-02-30","close":1},{"date":"2026-1-2","close":1},{"date":"2026-02-28","close":"1e3"}]}`, "2026-02-28 1000", 0, nil},
		{row(`"187.5"`), "2026-10-01 186.5, 2026-10-02 187.5", 0, nil},
		{row(`null`), "2026-10-01 186.5", 0, nil}, {row(`7,"close":null`), "2026-10-01 186.5", 0, nil},
		{row(`-5`), "2026-10-01 186.5", 1, nil}, {row(`"1e999"`), "2026-10-01 186.5", 1, nil}, {row(`1e7`), "2026-10-01 186.5", 1, nil},
		{row(`""`), "2026-10-01 186.5", 1, nil}, {row(`true`), "2026-10-01 186.5", 1, nil}, {row(`[]`), "2026-10-01 186.5", 1, nil}, {row(`"0.0"`), "2026-10-01 186.5", 1, nil},
		{`{"data":[{"date":"2026-10-01","close":0}]}`, "", 0, ErrNoRows}, {`{}`, "", 0, ErrNoRows}, {`{"data":null}`, "", 0, ErrNoRows}, {`[]`, "", 0, ErrMalformed},
		{`{"data":[{"date":"2026-10-01","close":1}]} x`, "", 0, ErrMalformed}, {``, "", 0, ErrMalformed}, {`<html>`, "", 0, ErrHTML},
		{`{"data":[` + strings.Repeat(`{},`, maxHistoryRows) + `{}]}`, "", 0, ErrMalformed},
	} {
		rows, bad, err := DecodeHistory([]byte(c.body), compute.Price)
		var got []string
		for _, r := range rows {
			got = append(got, fmt.Sprint(r.Date, " ", r.Price))
		}
		if strings.Join(got, ", ") != c.want || bad != c.bad || !errors.Is(err, c.err) {
			t.Errorf("%.200s: %v, %d bad, %v, want %+v", c.body, got, bad, err, c.want)
		}
	}
	if rows, bad, err := DecodeHistory([]byte(row(`0.5`)), compute.VolatilityPrice); err != nil || bad != 1 || len(rows) != 1 {
		t.Errorf("history of VIX: %v, %d bad, %v", rows, bad, err)
	}
}

func TestRecordedSettlement(t *testing.T) {
	if rows, bad, err := DecodeSettlement(testkit.Document(t, "recorded/replay/settlement/2026-10-05.csv")); err != nil || bad != 0 || len(rows) != 55 {
		t.Errorf("%d rows, %d bad, %v", len(rows), bad, err)
	}
}

// Rows that cannot be read, or are outside the range of their kind, are bad ones; the others count.
func TestDecodeSettlement(t *testing.T) {
	const header = "Product,Symbol,Expiration Date,Price\r\n"
	for _, c := range []struct {
		body, want string // prices
		bad        int
		err        error
	}{
		{header + "VX,VX/V6,2026-10-21,1\r\nVX,VX/V6,2026-10-21,1000\r\nVX,VX/V6,2026-10-21,0.99\r\nVX,VX/V6,2026-10-21,1000.01\r\n", "[1 1000]", 2, nil},
		{header + "PBT,PBT/Z35,2026-10-21,123456.5\r\nPBT,P,2026-10-21,1000001\r\nPBT,P,2026-10-21,-17\r\nPBT,P,2026-10-21,0\r\n", "[123456.5]", 3, nil},
		{header + "VX,VX/X6,2026-10-41,18\r\nVX,VX/X6,2026-11-18,x\r\nVX,VX/X6\r\nVX,VX/X6,2026-11-18,NaN\r\nVX,VX/F7,2027-01-20,17\r\n", "[17]", 4, nil},
		{"\xef\xbb\xbf" + header + "VX,VX/V6,2026-10-21,17.4555*\n\r\n VX , VX40/V6 ,2026-10-07, 18 ,more\n", "[17.4555 18]", 0, nil},
		{header + "VX,\"VX/V6\",2026-10-21,2\n\"a\nb\",c,2026-10-21,3\n", "[2 3]", 0, nil},
		{header + strings.Repeat("VX,VX/V6,2026-10-21,17\r\n", maxSettlementRows+1), "[]", 0, ErrMalformed},
		{header, "[]", 0, ErrNoRows}, {header + "VX,VX/V6,2026-10-21,17.4", "[]", 0, ErrMalformed}, {header + "VX,X,2026-10-21,1e10\n", "[]", 0, ErrMalformed}, {header + "not published\n", "[]", 1, ErrNoRows},
		{"", "[]", 0, ErrMalformed}, {"<html>\n", "[]", 0, ErrHTML}, {"a,b\n", "[]", 0, ErrMalformed},
	} {
		rows, bad, err := DecodeSettlement([]byte(c.body))
		prices := []float64{}
		for _, r := range rows {
			if prices = append(prices, r.Price); r.Symbol != strings.TrimSpace(r.Symbol) || r.Product != strings.TrimSpace(r.Product) {
				t.Errorf("row %+v", r)
			}
		}
		if fmt.Sprint(prices) != c.want || bad != c.bad || !errors.Is(err, c.err) {
			t.Errorf("%.200s: %v, %d bad, %v, want %+v", c.body, prices, bad, err, c)
		}
	}
}
