package cboe

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"strikecache/compute"
)

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
		err := decode(text, new(chainDocument), 3, compute.MaxRows)
		text = bytes.TrimPrefix(text, []byte("\ufeff"))
		object := strings.HasPrefix(strings.TrimLeft(string(text), " \t\r\n"), "{")
		if want := object && json.Valid(text); (err == nil) != want {
			t.Errorf("%q: %v, encoding/json says %v", text, err, want)
		}
	})
}

// What a document is instead of JSON is said, with the byte.
func TestDecodeSaysWhatIsWrong(t *testing.T) {
	for text, says := range map[string]string{
		`{"data":{"x":NaN}}`:                   "NaN at byte 13 is not JSON",
		"\ufeff {\"a\":[1,-Infinity]}":         "Infinity at byte 13 is not JSON",
		`{"NaN":"NaN","Infinity":[INF]}`:       "INF at byte 25 is not JSON",
		"":                                     "empty",
		"\ufeff\r\n":                           "empty",
		"\ufeff<!DOCTYPE html>":                "HTML page",
		"\x28\xb5\x2f\xfd\x04\x00\x51\x00\x00": "zstd",
	} {
		if err := decode([]byte(text), new(chainDocument), 3, compute.MaxRows); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// A document of empty rows, nested as rows can be, needs little memory before it is refused.
func TestDecodeBoundsRows(t *testing.T) {
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
