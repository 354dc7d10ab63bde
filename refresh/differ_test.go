package refresh

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestDifferences(t *testing.T) {
	for _, c := range []struct {
		stored, recomputed string
		want               []string
	}{
		{`{"a":1}`, `{"a":1}`, nil},
		{`{"a":1}`, `{"a":2}`, []string{"data.a: stored 1, recomputed 2"}},
		{`{"a":{"b":[1,2,{"c":null}]}}`, `{"a":{"b":[1,3,{"c":0}]}}`, []string{
			"data.a.b[1]: stored 2, recomputed 3", "data.a.b[2].c: stored null, recomputed 0"}},
		{`{"a":1,"b":2}`, `{"a":1,"c":2}`, []string{"data.b: stored 2, recomputed absent", "data.c: stored absent, recomputed 2"}},
		{`{"b":null}`, `{}`, []string{"data.b: stored null, recomputed absent"}},
		{`[1,2]`, `[1]`, []string{"data[1]: stored 2, recomputed absent"}},
		{`[]`, `[{"a":true}]`, []string{`data[0]: stored absent, recomputed {"a":true}`}},
		{`{"a":[1]}`, `{"a":{"0":1}}`, []string{`data.a: stored [1], recomputed {"0":1}`}},
		{`{"a":"x"}`, `{"a":["x"]}`, []string{`data.a: stored "x", recomputed ["x"]`}},
		{`{"a":1.0}`, `{"a":1}`, []string{"data.a: stored 1.0, recomputed 1"}},
		{`{"a":"1"}`, `{"a":1}`, []string{`data.a: stored "1", recomputed 1`}},
		{`{"a":false}`, `{"a":null}`, []string{"data.a: stored false, recomputed null"}},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, []string{"data: stored the same values, recomputed with other spaces or another order"}},
	} {
		got, err := differences("data", []byte(c.stored), []byte(c.recomputed))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s and %s: %q, %v; want %q", c.stored, c.recomputed, got, err, c.want)
		}
	}
	if _, err := differences("data", []byte(`{`), []byte(`{}`)); err == nil {
		t.Error("half a document is compared")
	}
	long, err := differences("data", []byte(`"`+strings.Repeat("é", 500)+`"`), []byte(`1`))
	if err != nil || len(long) != 1 || len(long[0]) > maxValue+80 {
		t.Errorf("a long value: %v, %v", long, err)
	}
}

// The printed report is bounded, and says how much is left out.
func TestPrint(t *testing.T) {
	f := Finding{Product: "gex/spx", Verdict: differs, Summary: " in 57 fields", Note: "stored by a build of go1 arm64"}
	for i := range maxShown + 7 {
		f.Details = append(f.Details, difference(fmt.Sprintf("data.by_strike[%d]", i), "1", "2"))
	}
	var out strings.Builder
	f.print(&out)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != maxShown+3 || lines[0] != "gex/spx differs in 57 fields" ||
		lines[maxShown+1] != "  and 7 more" || !strings.Contains(lines[maxShown+2], "arm64") {
		t.Errorf("printed %d lines: %s … %q", len(lines), lines[0], lines[maxShown:])
	}
}

// The exit code of a difference outranks that of an answer that could not be compared.
func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		products map[string][]string
		want     int
		text     string
	}{
		{map[string][]string{differs: {"gex/spx"}}, 1, "recompute D: differs: gex/spx"},
		{map[string][]string{inputsGone: {"gex/spx"}}, 3, "recompute D: inputs_gone: gex/spx"},
		{map[string][]string{methodChanged: {"gex/spx"}, inputsGone: {"a"}}, 3, "recompute D: method_changed: gex/spx; inputs_gone: a"},
		{map[string][]string{differs: {"gex/spx"}, methodChanged: {"a"}, inputsGone: {"b"}}, 1,
			"recompute D: differs: gex/spx; method_changed: a; inputs_gone: b"},
	} {
		o := Outcome{"D", c.products}
		if got := o.ExitCode(); got != c.want || o.Error() != c.text {
			t.Errorf("%v: exit code %d, want %d, %s", o.Error(), got, c.want, c.text)
		}
	}
}
