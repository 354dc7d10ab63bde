package cboe

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

// recordedDir returns the folder of recorded documents beside the module.
func recordedDir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "recorded")
	if _, err := os.Stat(dir); err != nil {
		const why = "needs the recorded documents (../shared/recorded): real Cboe documents that are not published; " +
			"their formats are described in refresh/cboe"
		required := strings.Split(os.Getenv("STRIKECACHE_REQUIRE"), ",")
		if slices.Contains(required, "recorded") || slices.Contains(required, "all") {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return dir
}

// recorded returns a recorded document, unpacked.
func recorded(t testing.TB, path string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(recordedDir(t), filepath.FromSlash(path)))
	if err == nil && strings.HasSuffix(path, ".gz") {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(z)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Every row of a chain is the one that the slow decoder of the fuzz target reads.
func TestChainAgreesWithEncodingJSON(t *testing.T) {
	market := simulated.New(simulated.Config{Seed: 1, Calendar: compute.NewCalendar(nil, nil)})
	doc, err := market.At(upstream.Options("TSLA"), time.Date(2026, time.August, 11, 17, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	chains := []*compute.Chain{chainAgrees(t, doc.Body)}
	for _, path := range []string{"spx-chain-2026-08-11-pathological.json", "replay/options/_SPX.json.gz"} {
		chains = append(chains, chainAgrees(t, recorded(t, path)))
	}
	for i, chain := range chains {
		if chain == nil || chain.BadNumbers != 0 || i == 2 && (len(chain.Contracts) != 30692 || chain.Spot != 7728.2002) {
			t.Errorf("chain %d is refused, or has bad numbers or rows", i)
		}
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
		body := recorded(t, "spx-headers/_SPX_"+c.fetched+".json")
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

// FuzzDecode: goccy/go-json reads the objects that encoding/json calls valid, and no others.
func FuzzDecode(f *testing.F) {
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

// A history has the range of its kind. A bad close does not replace a good one of its date. The number of rows is bounded.
func TestHistoryBounds(t *testing.T) {
	body := []byte(`{"data":[{"date":"2026-10-01","close":17.5},{"date":"2026-10-01","close":5000},{"date":"2026-10-02","close":0.5}]}`)
	got, bad, err := DecodeHistory(body, compute.VolatilityPrice)
	if err != nil || bad != 2 || len(got) != 1 || got[0].Price != 17.5 {
		t.Errorf("history of VIX: %v, %d bad, %v", got, bad, err)
	}
	body = []byte(`{"data":[` + strings.Repeat(`{},`, maxHistoryRows) + `{}]}`)
	if _, _, err := DecodeHistory(body, compute.Price); !errors.Is(err, ErrMalformed) {
		t.Errorf("%d rows: %v", maxHistoryRows+1, err)
	}
}

// FuzzDecodeHistory: the rows are those that encoding/json reads, rising, the last of each date, and as many are bad.
func FuzzDecodeHistory(f *testing.F) {
	for _, s := range []string{
		`{"data":[{"date":"2026-10-02","close":"187.25"},{"date":"2026-10-01","close":186.5},{"date":"2026-10-05","close":null},` +
			`{"date":"x","close":1},{"close":2},7,{"date":"2026-10-02","close":187.5}]}`,
		`{"data":[{"date":"2026-10-01","close":0}]}`, `{"data":[{"date":"2026-10-01","close":1}`, `{}`, ``,
		`{"symbol":"XLK","data":[{"date":"2026-10-02","close":"187.25"}]}`, `{"data":[{"date":"2026-10-02","close":1},{"date":"2026-10-01","close":"2"},{"date":"2026-10-02","close":3}],"data":[{"date":"1998-12-22","close":0.0},7,{}]}`,
		`{"data":null,"data":[{"date":"2026-02-30","date":"2026-02-28","date":"x","close":1,"close":"1e3"},{"date":"2026-01-01","close":"Inf"},{"date":"2026-01-01","close":"-1"}]}`, `<html>`, `{"data":[]}`, `[]`, `{"data":[{"date":"2026-01-01","close":0},{"date":"2026-01-02","close":"1"},{"date":"2026-01-03","close":"-0"},{"date":"2026-01-04","close":"nan"},{"date":"2026-01-05","close":{}}]}`, `{"data":[{"date":"2026-10-02"}]} x`,
	} {
		f.Add([]byte(s))
	}
	for _, close := range []string{ // of a row after the listing
		`187.5`, `null`, `-5`, `"-12"`, strings.Repeat("9", 401), `"1e999"`, `1e-9`, `1e7`, `"nan"`, `""`, `true`, `[]`, `0`, `"0.0"`,
		`7,"close":null`, `null,"close":-7`,
	} {
		f.Add([]byte(`{"data":[{"date":"1998-12-22","close":0},{"date":"2026-10-01","close":186.5},{"date":"2026-10-02","close":` +
			close + `},{"close":-1},{"date":"x","close":-1}]}`))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, bad, err := DecodeHistory(body, compute.Price)
		if outOfScope(body, "data") {
			return
		}
		want, wantBad, wantErr := plainHistory(body)
		if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) || !slices.Equal(got, want) || bad != wantBad {
			t.Errorf("%v, %d bad, %v, want %v, %d bad, %v", got, bad, err, want, wantBad, wantErr)
		}
	})
}

func TestRecordedSettlement(t *testing.T) {
	if rows, bad, err := DecodeSettlement(recorded(t, "replay/settlement/2026-10-05.csv")); err != nil || bad != 0 || len(rows) != 55 {
		t.Errorf("%d rows, %d bad, %v", len(rows), bad, err)
	}
}

// FuzzDecodeSettlement: in a file without quotation marks, the rows are those of lines cut at commas.
func FuzzDecodeSettlement(f *testing.F) {
	const header = "Product,Symbol,Expiration Date,Price\r\n"
	for _, price := range []string{"1", "1000", "0.99", "1000.01", "123456.5", "1000000", "1000001", "1042857132428570400", "-17", "0"} {
		f.Add([]byte(header + "VX,VX/V6,2026-10-21," + price + "\r\nPBT,PBT/Z35,2026-10-21," + price + "\r\nVX,VX/X6,2026-11-18,17\r\n"))
	}
	for _, s := range []string{
		header + "VX,VX/X6,2026-10-41,18\r\nVX,VX/X6,2026-11-18,x\r\nVX,VX/X6\r\nVX,VX/X6,2026-11-18,NaN\r\nVX,VX/F7,2027-01-20,17\r\n",
		header + strings.Repeat("VX,VX/V6,2026-10-21,17\r\n", maxSettlementRows+1), "", "<html>", "a,b\n",
		header + "VX,VX/V6,2026-10-21,17.4555\r\n", "\xef\xbb\xbf" + header + "VX,VX/V6,2026-10-21,17.4555*\n\r\n VX , VX40/V6 ,2026-10-07, 17 ,more\n", header, header + "VX,VX/V6,2026-10-21,17.4", header + "VX,\"VX/V6\",2026-10-21,1\n\"a\nb\",c,2026-10-21,2\n",
		header + "\"\n\n", header + "VX,V\"X,2026-02-30,1\nVX,X,2026-10-21,-1\nVX,X,2026-10-21,1e10\nVX,X,2026-10-21,0x10\n", "<html>\n", "Product,,,Price\n,,2026-01-01,1\n", header + ",\r,2026-01-01,1\r\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		rows, bad, err := DecodeSettlement(body)
		for _, r := range rows {
			if !(r.Price >= 1e-6 && r.Price <= 1e6) || r.Product == "VX" && !(r.Price >= 1 && r.Price <= 1000) || r.Symbol != strings.TrimSpace(r.Symbol) {
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
