package openapi_test

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pb33f/ordered-map/v2"
	"github.com/yuin/goldmark"
)

//go:embed docs.tmpl
var docsTemplate string

// page is the part of openapi.json that its page shows.
type page struct {
	Info  struct{ Title, Version, Summary, Description string }
	Tags  []*tag
	Paths map[string]struct {
		Parameters []reference
		Get        operation
	}
	Components struct {
		PathItems                            struct{ Preflight struct{ Options operation } }
		SecuritySchemes, Parameters, Headers map[string]described
		Responses                            map[string]*response
		Schemas                              map[string]*schema
	}
	shown map[string]bool // the schemas that have their table
}

type tag struct {
	Name, Description string
	Endpoints         []endpoint
}

type reference struct {
	Ref string `json:"$ref"`
}

// Component returns the name of the component.
func (r reference) Component() string { return path.Base(r.Ref) }

type operation struct {
	Tags                 []string
	Summary, Description string
	Responses            map[string]reference
}

// endpoint is a path as the page shows it.
type endpoint struct {
	operation
	ID, Path   string
	Targets    []string // requests to try: without and with each parameter
	Examples   map[string]example
	Parameters []row
	Bodies     []body
	Tables     []table // of the schemas of the bodies that no endpoint above shows
}

// body is a part of an answer: its name, and the name of its schema.
type body struct{ Name, Of string }

// table shows the fields of a schema.
type table struct {
	Name string
	Text template.HTML
	Rows []row
}

// described is a parameter or a header field.
type described struct {
	Name, In, Description string
	Schema                *schema
}

// response is a response. Its status is that with which the paths name it.
type response struct {
	Name, Status, Codes string
	Description         string
	Headers             map[string]reference
	Content             map[string]struct {
		Schema   *schema
		Examples map[string]example
	}
}

type example struct {
	Summary string
	Value   json.RawMessage
}

type schema struct {
	reference
	Name                                                   string `json:"-"` // of a component
	Title, Format, Description, Pattern                    string
	Type, Const, Default                                   any
	Enum, Examples                                         []any
	Minimum, Maximum, ExclusiveMinimum, MinItems, MaxItems json.Number
	Items                                                  *schema
	OneOf, AllOf, PrefixItems                              []*schema
	Properties                                             *orderedmap.OrderedMap[string, *schema]
}

// row is a row of a table: a field, a parameter or a header field. The ID of a field is its name behind that of its schema, such as
// Flip.price. Of is the schema that has a table of the fields of an object.
type row struct {
	ID, Name, Type, Of, Unit, Example string
	Meaning                           template.HTML
	schema                            *schema
}

// docsPage returns a document as a page.
func docsPage(document []byte) ([]byte, error) {
	p := &page{shown: map[string]bool{}}
	if err := json.Unmarshal(document, p); err != nil {
		return nil, err
	}
	for name, s := range p.Components.Schemas {
		s.Name = name
	}
	var out bytes.Buffer
	t, err := template.New("docs").Funcs(template.FuncMap{"prose": prose, "indented": indented}).Parse(docsTemplate)
	if err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(p.Paths)) {
		e := p.endpoint(path)
		tag := p.Tags[slices.IndexFunc(p.Tags, func(t *tag) bool { return t.Name == e.Tags[0] })]
		tag.Endpoints = append(tag.Endpoints, e)
	}
	err = t.Execute(&out, p)
	return out.Bytes(), err
}

func (p *page) endpoint(path string) endpoint {
	item := p.Paths[path]
	id := strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(path, "/api"), "/v1"), "/public")[1:], "/", "-")
	target := strings.Replace(path, "{u}", "spx", 1)
	e := endpoint{operation: item.Get, ID: cmp.Or(strings.Trim(strings.ReplaceAll(id, "{u}", "u"), "-"), "dashboard"), Path: path, Targets: []string{target}}
	for _, ref := range item.Parameters {
		d := p.Components.Parameters[ref.Component()]
		if d.In == "query" {
			e.Targets = append(e.Targets, fmt.Sprint(target, "?", d.Name, "=", d.Schema.Examples[0]))
		}
		if d.In != "header" {
			e.Parameters = append(e.Parameters, p.row(e.ID+"-"+d.Name, d.Name, d.Description, d.Schema))
		}
	}
	for _, responses := range []map[string]reference{item.Get.Responses, p.Components.PathItems.Preflight.Options.Responses} {
		for status, ref := range responses {
			p.Components.Responses[ref.Component()].Status = status
		}
	}
	all := p.Components.Responses[item.Get.Responses["200"].Component()].Content
	content := all["application/json"]
	e.Examples = maps.Clone(content.Examples)
	for _, other := range all {
		maps.Copy(e.Examples, other.Examples)
	}
	schemas := []*schema{content.Schema}
	switch {
	case content.Schema == nil:
		return e
	case strings.HasPrefix(path, "/api/"):
		answer := p.resolve(content.Schema).AllOf[1].Properties
		schemas = []*schema{answer.Value("data"), answer.Value("meta").AllOf[1].Properties.Value("quality")}
	case !p.items(content.Schema).hasTable():
		return e
	}
	for i, s := range schemas {
		e.Bodies = append(e.Bodies, body{[]string{"data", "meta.quality"}[i], s.Component()})
		e.Tables = append(e.Tables, p.tables(s)...)
	}
	return e
}

// Envelope returns the tables of every answer and of every error.
func (p *page) Envelope() []table {
	return append(p.tables(p.Components.Schemas["Answer"]), p.tables(p.Components.Schemas["ErrorAnswer"])...)
}

// Described returns the rows of header fields: those of the responses, or of the requests.
func (p *page) Described(kind string) (rows []row) {
	all := p.Components.Headers
	if kind == "request" {
		all = p.Components.Parameters
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if d := all[name]; d.In != "query" && d.In != "path" {
			r := p.row(kind+"-"+cmp.Or(d.Name, name), cmp.Or(d.Name, name), d.Description, d.Schema)
			for _, e := range d.Schema.Examples {
				r.Example = fmt.Sprint(e)
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// Responses returns all responses. The examples of answers are shown at their paths.
func (p *page) Responses() (all []*response) {
	for name, r := range p.Components.Responses {
		r.Name = name
		content := r.Content["application/json"]
		if content.Schema != nil && content.Schema.AllOf != nil {
			r.Codes = values(content.Schema.AllOf[1].Properties.Value("error").AllOf[1].Properties.Value("code"), "")
		}
		if p.Components.Schemas[name+"Answer"] != nil {
			r.Content = nil
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *response) int {
		return cmp.Or(strings.Compare(a.Status, b.Status), strings.Compare(a.Name, b.Name))
	})
	return all
}

// resolve returns the schema behind references. Of a schema or null it returns the schema.
func (p *page) resolve(s *schema) *schema {
	if n := len(s.OneOf); n > 0 && s.OneOf[n-1].Type == "null" {
		return p.resolve(s.OneOf[0])
	}
	name, field, _ := strings.Cut(strings.TrimPrefix(s.Ref, "#/components/schemas/"), "/properties/")
	switch {
	case name == "":
		return s
	case field == "":
		return p.Components.Schemas[name]
	}
	return p.Components.Schemas[name].Properties.Value(field)
}

// items returns the schema of the items of a list, and of the items of these, else the schema itself.
func (p *page) items(s *schema) *schema {
	for s = p.resolve(s); s.Items != nil && s.PrefixItems == nil; {
		s = p.resolve(s.Items)
	}
	return s
}

// tables returns the table of a schema and those of the schemas of its fields, each but the first time that the page shows it.
func (p *page) tables(s *schema) (all []table) {
	s = p.items(s)
	if p.shown[s.Name] || !s.hasTable() {
		return nil
	}
	p.shown[s.Name] = true
	t := table{Name: s.Name, Text: prose(s.Description)}
	for i, c := range s.PrefixItems {
		t.Rows = append(t.Rows, p.row(s.Name+"."+c.Title, fmt.Sprintf("[%d] %s", i, c.Title), "", c))
	}
	for name, f := range s.Properties.FromOldest() {
		t.Rows = append(t.Rows, p.row(s.Name+"."+name, name, "", f))
	}
	all = []table{t}
	for _, r := range t.Rows {
		all = append(all, p.tables(r.schema)...)
	}
	for _, alternative := range s.OneOf {
		all = append(all, p.tables(alternative)...)
	}
	return all
}

// hasTable says whether a schema has fields, columns or alternatives.
func (s *schema) hasTable() bool {
	return s.Properties.Len() > 0 || s.PrefixItems != nil || s.OneOf != nil
}

// row makes a row of a schema. Without a text it has the description of the schema. A named schema that is no object is described
// in words of its own, before those of the field.
func (p *page) row(id, name, text string, s *schema) row {
	inner, item := p.resolve(s), p.items(s)
	if s != inner && !item.hasTable() && text == "" {
		text = strings.TrimSpace(inner.Description + " " + s.Description)
	}
	text, unit, _ := strings.Cut(cmp.Or(text, s.Description, inner.Description), " Unit: ")
	r := row{ID: id, Name: name, Type: p.typeOf(s), Unit: strings.TrimSuffix(unit, "."), Meaning: prose(text), schema: s}
	if item.hasTable() {
		r.Of = item.Name
	}
	allowed := values(inner, text)
	if item != inner {
		allowed += values(item, text)
	}
	if allowed != "" {
		text := strings.TrimSuffix(string(r.Meaning), "</p>")
		r.Meaning = template.HTML(text + ` <span class="values">` + template.HTMLEscapeString(allowed) + "</span></p>")
	}
	return r
}

// typeOf says in words which type a schema has.
func (p *page) typeOf(s *schema) string {
	names, _ := s.Type.([]any)
	null := len(names) == 2 || len(s.OneOf) > 0 && s.OneOf[len(s.OneOf)-1].Type == "null"
	inner := p.resolve(s)
	if names, _ = inner.Type.([]any); names == nil {
		names = []any{cmp.Or(inner.Type, any("object"))}
	}
	words := names[0].(string)
	switch {
	case words == "string":
		words = cmp.Or(inner.Format, words)
	case inner.Items != nil && inner.PrefixItems == nil:
		first, rest, more := strings.Cut(p.typeOf(inner.Items), " ")
		if words = "array of " + first + "s"; more {
			words += " " + rest
		}
	}
	if null {
		words += " or null"
	}
	return words
}

// values says which values a schema allows, unless the text does.
func values(s *schema, text string) string {
	var words []string
	if s.Const != nil {
		words = append(words, fmt.Sprint("always ", s.Const))
	}
	untold := func(v any) bool { return v != nil && !strings.Contains(text, fmt.Sprint("`", v, "`")) }
	if slices.ContainsFunc(s.Enum, untold) { // then all, so that none seems to be missing
		for _, v := range s.Enum {
			if v != nil {
				words = append(words, fmt.Sprint(v))
			}
		}
	}
	if s.MinItems != "" && s.MinItems == s.MaxItems {
		s.MinItems, s.MaxItems, words = "", "", append(words, s.MinItems.String()+" items")
	}
	for _, b := range []struct {
		name  string
		bound any
	}{
		{"above", s.ExclusiveMinimum}, {"at least", s.Minimum}, {"at most", s.Maximum}, {"items at least", s.MinItems},
		{"items at most", s.MaxItems}, {"default", s.Default}, {"pattern", s.Pattern},
	} {
		if text := fmt.Sprint(b.bound); text != "" && b.bound != nil && (b.name != "pattern" || s.Format == "") {
			words = append(words, b.name+" "+text)
		}
	}
	return strings.Join(words, ", ")
}

// prose renders a description, which is Markdown. HTML in the text does not become markup.
func prose(text string) template.HTML {
	var out bytes.Buffer
	if err := goldmark.Convert([]byte(text), &out); err != nil {
		panic(err) // a buffer takes everything
	}
	return template.HTML(strings.TrimSpace(out.String()))
}

// indented formats an example. An answer keeps the lines that testdata/answers.json has.
func indented(name string, value json.RawMessage) string {
	var known map[string]json.RawMessage
	var out bytes.Buffer
	var text string
	if json.Unmarshal(value, &text) == nil {
		return strings.ReplaceAll(text, "\r", "")
	}
	if json.Unmarshal(answers, &known) == nil && known[name] != nil {
		return strings.ReplaceAll(string(known[name]), "\n  ", "\n")
	}
	if err := json.Indent(&out, value, "", "  "); err != nil {
		return err.Error()
	}
	return out.String()
}
