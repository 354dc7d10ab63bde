package openapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"strikecache/refresh"
	"strikecache/snapshots"
)

var update = flag.Bool("update", false, "write openapi.json, docs.html and methods.html anew")

// made is the document, and faults names what is missing or wrong in its sources.
var made, faults = generate()

// TestMain writes openapi.json, docs.html and methods.html before the tests read them.
func TestMain(m *testing.M) {
	flag.Parse()
	if *update && len(faults) == 0 {
		for name, content := range formats(made) {
			if err := os.WriteFile(name, content, 0o644); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
	os.Exit(m.Run())
}

// formats returns the content of the files that are made from a document or from the methods, by name.
func formats(document object) map[string][]byte {
	var out bytes.Buffer
	write(&out, document, "", 150)
	html, err := render(document)
	if err != nil {
		html = []byte(err.Error())
	}
	text, err := methods()
	if err != nil {
		text = []byte(err.Error())
	}
	return map[string][]byte{"openapi.json": append(out.Bytes(), '\n'), "docs.html": html, "methods.html": text}
}

// openapi.json, docs.html and methods.html are up to date with the Go types, fields.txt, document.yaml, the templates and
// compute/METHODS.md.
func TestTheDocumentIsUpToDate(t *testing.T) {
	for _, fault := range faults {
		t.Error(fault)
	}
	for name, content := range formats(made) {
		written, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(faults) > 0 || bytes.Equal(content, written) {
			continue
		}
		old, now := strings.Split(string(written), "\n"), strings.Split(string(content), "\n")
		i := 0
		for i < min(len(old), len(now))-1 && old[i] == now[i] {
			i++
		}
		t.Errorf("%s is not up to date: go test ./server/openapi -update\nline %d is    %.200s\nand must be %.200s", name, i+1, old[i], now[i])
	}
}

// generator makes the document from its sources and the Go types. It collects all faults instead of stopping at the first.
type generator struct {
	outline
	table   *table
	schemas map[string]object
	faults  []string
}

func (g *generator) fault(format string, args ...any) {
	g.faults = append(g.faults, fmt.Sprintf(format, args...))
}

func generate() (document object, faults []string) {
	table, err := parseTable(fieldsText)
	if err != nil {
		return nil, []string{"fields.txt: " + err.Error()}
	}
	outline, err := parseOutline(outlineText)
	if err != nil {
		return nil, []string{"document.yaml: " + err.Error()}
	}
	g := &generator{outline: outline, table: table, schemas: map[string]object{}}
	g.allSchemas()
	var tags []any
	for _, tag := range g.Tags {
		tags = append(tags, object{{"name", tag.Name}, {"description", tag.Description}})
	}
	headers, parameters := g.headers(), g.parameters()
	responses := g.responses()
	var schemas object
	for _, name := range slices.Sorted(maps.Keys(g.schemas)) {
		schemas.put(name, g.schemas[name])
	}
	document = object{
		{"openapi", "3.1.0"},
		{"info", object{
			{"title", "strikecache"}, {"version", "1.0.0"},
			{"summary", "Options market structure, computed ahead of time and served as sealed bytes."},
			{"description", strings.Join(g.About, "\n\n")},
			{"license", object{{"name", "MIT"}, {"identifier", "MIT"}}},
		}},
		{"servers", []any{object{{"url", "/"}, {"description", "The server that sent this document."}}}},
		{"security", []any{object{}, object{{"ApiKey", []any{}}}}},
		{"tags", tags},
		{"paths", g.paths()},
		{"components", object{
			{"securitySchemes", object{{"ApiKey", object{
				{"type", "apiKey"}, {"in", "header"}, {"name", "X-API-Key"},
				{"description", "Optional everywhere. A key has limits of its own and fills `usage`; the data is the same."},
			}}}},
			{"parameters", parameters}, {"headers", headers}, {"responses", responses}, {"schemas", schemas},
		}},
	}
	g.unused()
	return document, g.faults
}

// unused names the lines of the table that no schema used, and the texts that are not sentences.
func (g *generator) unused() {
	for name, s := range g.table.sections {
		texts := []string{s.text}
		for _, l := range s.lines {
			if texts = append(texts, l.text); !l.used {
				g.fault("fields.txt describes %s of [%s], which no type has", l.name, name)
			}
		}
		for _, text := range texts {
			if strings.Contains(text, "  ") || text != "" && !strings.HasSuffix(text, ".") {
				g.fault("[%s]: a text with two spaces or without a full stop: %q", name, text)
			}
		}
	}
}

// allSchemas makes every schema that a response refers to.
func (g *generator) allSchemas() {
	shapes := refresh.Shapes()
	g.component("Meta", reflect.TypeFor[snapshots.Meta]())
	g.component("AnonymousUsage", reflect.TypeFor[usage]())
	g.component("KeyedUsage", reflect.TypeFor[keyedUsage]())
	g.alternatives("Usage", "oneOf", "AnonymousUsage", "KeyedUsage")
	for _, r := range g.Resources {
		shape, found := shapes[r.Endpoint]
		if !found {
			continue // gex/spx/historical serves stored answers of gex/spx
		}
		g.component(r.Response+"Data", reflect.TypeOf(shape.Data))
		g.component(r.Response+"Quality", reflect.TypeOf(shape.Quality))
		meta := object{{"allOf", []any{reference("schemas", "Meta"), object{
			{"type", "object"}, {"description", "The resource's own."}, {"required", []any{"quality"}},
			{"properties", object{{"quality", g.described(r.Response + "Quality")}}},
		}}}}
		g.answer(r.Response, meta)
		delete(shapes, r.Endpoint)
	}
	for name := range shapes {
		g.fault("%s is no resource of document.yaml", name)
	}
	g.alternatives("HistoricalAnswer", "allOf", "GammaAnswer")
	g.component("ErrorAnswer", reflect.TypeFor[errorAnswer]())
	g.component("Health", reflect.TypeFor[health]())
	g.component("Readiness", reflect.TypeFor[readiness]())
	g.schemas["Document"] = object{
		{"type", "object"}, {"description", g.section("Document").text}, {"required", []any{"openapi"}},
		{"properties", object{{"openapi", g.property(g.section("Document"), "openapi", reflect.TypeFor[string]())}}}, {"additionalProperties", true},
	}
}

// answer makes the envelope of a resource's answer.
func (g *generator) answer(name string, meta object) {
	envelope := g.section("Answer")
	line := envelope.line("meta")
	if meta.get("$ref") == nil {
		meta.put("description", line.text)
	}
	g.schemas[name+"Answer"] = object{
		{"type", "object"}, {"description", g.section(name + "Answer").text}, {"required", []any{"success", "data", "meta", "usage"}},
		{"properties", object{
			{"success", g.property(envelope, "success", reflect.TypeFor[bool]())},
			{"data", g.described(name + "Data")}, {"meta", meta}, {"usage", g.described("Usage")},
		}},
	}
}

// alternatives makes a schema that allows one of several schemas.
func (g *generator) alternatives(name, keyword string, others ...string) {
	var refs []any
	for _, other := range others {
		refs = append(refs, reference("schemas", other))
	}
	g.schemas[name] = object{{"description", g.section(name).text}, {keyword, refs}}
}

// headers makes the header fields, in the order of the table.
func (g *generator) headers() (all object) {
	for _, l := range g.section("Header fields").lines {
		h := g.texts(l)
		if _, optional := l.fact("optional"); !optional {
			h = slices.Insert(h, 1, member{"required", true})
		}
		all.put(l.name, h)
	}
	return all
}

// parameters makes the parameters.
func (g *generator) parameters() (all object) {
	for _, l := range g.section("Parameters").lines {
		component, in := l.name, "header"
		if strings.ToLower(l.name) == l.name {
			component, in = strings.ToUpper(l.name[:1])+l.name[1:], "query"
		}
		component = strings.ReplaceAll(component, "-", "")
		all.put(component, append(object{{"name", l.name}, {"in", in}}, g.texts(l)...))
	}
	return all
}

// texts makes the description and the schema of a header field or a parameter: an integer if it has a unit, otherwise a
// string.
func (g *generator) texts(l *line) object {
	l.used = true
	typ := reflect.TypeFor[string]()
	for _, fact := range l.facts {
		if slices.Contains([]string{"requests", "seconds", "observations"}, fact) {
			typ = reflect.TypeFor[int]()
		}
	}
	s := g.scalar(l.name, l, typ, false)
	text := s.get("description")
	s = slices.DeleteFunc(s, func(m member) bool { return m.Key == "description" })
	return object{{"description", text}, {"schema", s}}
}

// write formats a value: on one line where it fits into the width.
func write(out *bytes.Buffer, v any, indent string, width int) {
	if line := oneLine(v); len(indent)+len(line) <= width {
		out.WriteString(line)
		return
	}
	switch v := v.(type) {
	case object:
		out.WriteString("{\n")
		for i, m := range v {
			fmt.Fprintf(out, "%s  %s: ", indent, oneLine(m.Key))
			write(out, m.Value, indent+"  ", width)
			out.WriteString(separator(i, len(v)))
		}
		out.WriteString(indent + "}")
	case []any:
		out.WriteString("[\n")
		for i, x := range v {
			out.WriteString(indent + "  ")
			write(out, x, indent+"  ", width)
			out.WriteString(separator(i, len(v)))
		}
		out.WriteString(indent + "]")
	default:
		out.WriteString(oneLine(v))
	}
}

func separator(i, n int) string {
	if i < n-1 {
		return ",\n"
	}
	return "\n"
}

func oneLine(v any) string {
	var parts []string
	switch v := v.(type) {
	case object:
		for _, m := range v {
			parts = append(parts, oneLine(m.Key)+": "+oneLine(m.Value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, x := range v {
			parts = append(parts, oneLine(x))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out.String())
}
