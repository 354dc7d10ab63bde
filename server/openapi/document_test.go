package openapi_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/server"
)

// each visits every object below a value, with its JSON pointer. It does not look into examples.
func each(at string, v any, visit func(at string, o object)) {
	switch v := v.(type) {
	case object:
		visit(at, v)
		for _, m := range v {
			if m.Key != "examples" && m.Key != "value" || strings.HasSuffix(at, "application~1json") {
				each(at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(m.Key), m.Value, visit)
			}
		}
	case []any:
		for i, x := range v {
			each(fmt.Sprintf("%s/%d", at, i), x, visit)
		}
	}
}

// parsed returns a value in the form that the schema library needs.
func parsed(t *testing.T, v any) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(oneLine(v)))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Every example is valid by its own schema.
func TestExamplesAreValid(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", parsed(t, made)); err != nil {
		t.Fatal(err)
	}
	n := 0
	check := func(at string, example any) {
		schema, err := compiler.Compile("openapi.json#" + at)
		if err != nil {
			t.Fatal(err)
		}
		n++
		if err := schema.Validate(parsed(t, example)); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	each("", made, func(at string, o object) {
		if o.get("type") != nil {
			for _, example := range list(o.get("examples")) {
				check(at, example)
			}
		}
		named, _ := o.get("examples").(object)
		for _, example := range named {
			check(at+"/schema", example.Value.(object).get("value"))
		}
	})
	if n < 250 {
		t.Errorf("only %d examples", n)
	}
}

// A field needs a line in fields.txt, and the line must suit the field's type.
func TestAFieldThatIsNotDescribedIsNamed(t *testing.T) {
	type described struct {
		Level compute.Level  `json:"level"`
		Maybe *compute.Level `json:"maybe"`
	}
	for _, c := range []struct{ lines, fault string }{
		{"level | index points; above 0 | 7.5 | A level.\nmaybe | index points | 7 | A level. `null` without one.", ""},
		{"level | index points | 7.5 | A level.", "fields.txt does not describe Made.maybe"},
		{"level | index points | 7.5 | A level.\nmaybe | index points | 7 | A level.", "Made.maybe: its type may be null: true"},
		{"level | index points | 7.5 | A level. `null` on Sundays.\nmaybe | index points | 7 | A level. `null` without one.", "Made.level: its type may be null: false"},
		{"level | | 7.5 | A level.\nmaybe | index points | 7 | A level. `null` without one.", "Made.level: number has 0 units"},
		{"level | index points | | A level.\nmaybe | index points | 7 | A level. `null` without one.", "Made.level has no example"},
		{"level | index points | high | A level.\nmaybe | index points | 7 | A level. `null` without one.", `Made.level: the example "high" is no number`},
		{"level | index points; see Band | 7 | A level.\nmaybe | index points | 7 | A level. `null` without one.", "Band is the schema of compute.Level, which is neither a struct"},
		{"level | index points | 7.5 | A level\nmaybe | index points | 7 | A level. `null` without one.", "without a full stop"},
		{"level | index points | 7.5 | A level.\nmaybe | index points | 7 | A level. `null` without one.\nold | | x | Gone.", "describes old of [Made], which no type has"},
	} {
		table, err := parseTable("[Made] Made.\n" + c.lines)
		if err != nil {
			t.Fatal(err)
		}
		g := &generator{table: table, schemas: map[string]object{}}
		g.component("Made", reflect.TypeFor[described]())
		g.unused()
		if got := strings.Join(g.faults, "\n"); (got == "") != (c.fault == "") || !strings.Contains(got, c.fault) {
			t.Errorf("%s\nfaults: %q, want %q", c.lines, got, c.fault)
		}
	}
	for _, bad := range []string{"level | a | b | c | d", "[Made]\nlevel", "[Made", "[Made] a\n[Made] b", "[Made like Other] a", "[Made] a\nx | y\nx | y"} {
		if _, err := parseTable(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// The example of an answer has the fields of its schema, in their order, with the values of the real answer.
func TestARealExampleIsLaidOverTheComposedOne(t *testing.T) {
	composed := object{{"old", 1}, {"new", 2}, {"list", []any{object{{"a", 3}, {"new", 4}}}}}
	answer := map[string]any{"list": []any{map[string]any{"a": 5}, map[string]any{"a": 6}}, "old": 7, "gone": 8}
	want := `{"old": 7, "new": 2, "list": [{"a": 5, "new": 4}, {"a": 6, "new": 4}]}`
	if got := oneLine(overlay(composed, answer)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The document names every reason that the code knows.
func TestEveryReasonIsDescribed(t *testing.T) {
	constant := regexp.MustCompile(`(?m)^\t(?:reason\w+|\w+ +Reason) += "([a-z_]+)"`)
	table, err := parseTable(fieldsText)
	if err != nil {
		t.Fatal(err)
	}
	text := table.sections["Freshness"].line("reason").text
	known := map[string]bool{}
	for _, pattern := range []string{"../../refresh/*.go", "../../refresh/upstream/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range constant.FindAllStringSubmatch(string(source), -1) {
				if known[m[1]] = true; !strings.Contains(text, "`"+m[1]+"`") {
					t.Errorf("%s of %s is not described", m[1], file)
				}
			}
		}
	}
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(text, -1) {
		if word := m[1]; !known[word] && word != "null" && word != "closed" && word != "stale" {
			t.Errorf("%s is described, but it is not in the code", word)
		}
	}
	if len(known) < 15 {
		t.Errorf("only %d reasons in the code", len(known))
	}
}

// server/API.md names every path, parameter and error code of the document, and no other.
func TestAPIMDNamesEveryPathAndCode(t *testing.T) {
	text, err := os.ReadFile("../API.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, path := range made.get("paths").(object) {
		known[path.Key] = true
	}
	for _, code := range list(made.at("components", "schemas", "Error", "properties", "code", "enum")) {
		known[code.(string)] = true
	}
	for _, p := range made.at("components", "parameters").(object) {
		if p := p.Value.(object); p.get("in") == "query" {
			known[p.get("name").(string)] = true
		}
	}
	for word := range known {
		if !bytes.Contains(text, []byte("`"+word+"`")) {
			t.Errorf("server/API.md does not name %s", word)
		}
	}
	for _, m := range regexp.MustCompile("`(/[^`]*)`|(?m)^\\| \\d+ \\| `([a-z_]+)`").FindAllSubmatch(text, -1) {
		if word := string(m[1]) + string(m[2]); !known[word] {
			t.Errorf("server/API.md names %s, which is not in the document", word)
		}
	}
	if len(known) < 30 {
		t.Errorf("only %d words", len(known))
	}
}

// Every product that is computed has a path, so that every product is served.
func TestEveryProductHasAPath(t *testing.T) {
	outline, err := parseOutline(outlineText)
	if err != nil {
		t.Fatal(err)
	}
	for name := range refresh.Shapes() {
		if !slices.ContainsFunc(outline.Resources, func(r resource) bool { return r.Endpoint == name }) || !slices.Contains(server.Resources(), name) {
			t.Errorf("%s is in the table of products, and has no path or no description", name)
		}
	}
}
