package cboe

import (
	"encoding/json"
	"strings"
	"testing"
)

// texts are JSON or almost JSON. The scanner must agree with encoding/json on each.
var texts = []string{
	``, ` `, `null`, `true`, `false`, `nul`, `nulll`, `truefalse`, `0`, `-0`, `01`, `-`, `1.`, `.5`, `1.5`, `1e`, `1e5`,
	`1E+5`, `1e-`, `-1.25e-07`, `+1`, `0x1`, `NaN`, `Infinity`, `""`, `"`, `"a`, `"\n"`, "\"\n\"", "\"\x00\"", `"\u12"`,
	`"\u12G4"`, `"\u00e9\"\\\/\b\f\n\r\t"`, `"\x"`, `"é€"`, "\"\xff\"", `[]`, `[1]`, `[1,]`, `[,1]`, `[1 2]`, `[1`, `{}`,
	`{"a":1}`, `{"a" : 1 , "b":[{}]}`, `{"a":1,}`, `{a:1}`, `{"a"}`, `{"a":}`, `{"a":1 "b":2}`, `{"a":1}}`, `[[[[[]]]]]`,
	" \t\r\n[ 1 , 2 ]\n", "\v1", `[1]x`, `"a" "b"`, `123456789012345678901234567890`, `1e400`, `-1e400`, `0.1e-400`,
	`{"a":{"a":{"a":null}}}`, "\ufeff{}", "1.7976931348623157e308", "9007199254740992.5", "1E", "1e+", "1.e5", "-01", "00",
}

func valid(text []byte) bool {
	s := scanner{buf: text}
	return s.skip(maxDepth) && s.next() == 0 && s.pos == len(s.buf)
}

func TestScannerAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range texts {
		if got, want := valid([]byte(text)), json.Valid([]byte(text)); got != want {
			t.Errorf("%q: valid %v, encoding/json says %v", text, got, want)
		}
	}
}

func TestScannerBoundsNesting(t *testing.T) {
	for _, c := range []struct {
		depth int
		want  bool
	}{{maxDepth, true}, {maxDepth + 1, false}, {1_000_000, false}} {
		text := strings.Repeat("[", c.depth) + strings.Repeat("]", c.depth)
		if got := valid([]byte(text)); got != c.want {
			t.Errorf("nested %d deep: valid %v, want %v", c.depth, got, c.want)
		}
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, want := valid(text), json.Valid(text)
		if got && !want {
			t.Errorf("%q: accepted, encoding/json refuses it", text)
		}
		if want && !got && !strings.Contains(string(text), strings.Repeat("[", 2)) && strings.Count(string(text), "{") <= maxDepth {
			t.Errorf("%q: refused, encoding/json accepts it", text)
		}
	})
}
