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
		Parameters   []reference
		Get, Options operation
	}
	Components struct {
		SecuritySchemes, Parameters, Headers map[string]described
		Responses                            map[string]*response
		Schemas                              map[string]*schema
	}
	rows map[string]bool // the IDs of all rows
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

// endpoint is a path as the page shows it. Its tables show the fields of an answer.
type endpoint struct {
	operation
	ID, Path   string
	Targets    []string // requests to try: without and with each parameter
	Examples   map[string]example
	Parameters []row
	Tables     []table
}

type table struct {
	Title, Text string
	Like        string // the endpoint whose answer has the same fields
	Folded      bool
	Rows        []row
}

// described is a parameter or a header field.
type described struct {
	Name, In, Description string
	Schema                *schema
}

// response is a response. Its statuses are those with which the paths name it.
type response struct {
	Name, Statuses, Codes string
	Description           string
	Headers               map[string]reference
	Content               map[string]struct {
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
	Title, Format, Description, Pattern                    string
	Type, Const, Default                                   any
	Enum, Examples                                         []any
	Minimum, Maximum, ExclusiveMinimum, MinItems, MaxItems json.Number
	Items                                                  *schema
	OneOf, AllOf, PrefixItems                              []*schema
	Properties                                             *orderedmap.OrderedMap[string, *schema]
}

// row is a row of a table: a field, a parameter or a header field. The ID of a field has the names of the objects around it,
// such as gex-spx.flips.price. Like is the ID of a row above whose object has the same fields.
type row struct {
	ID, Name, Like, Type, Unit, Example string
	Depth                               int
	Meaning                             template.HTML
	schema                              *schema
}

// docsPage returns a document as a page.
func docsPage(document []byte) ([]byte, error) {
	p := &page{rows: map[string]bool{}}
	if err := json.Unmarshal(document, p); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	t, err := template.New("docs").Funcs(template.FuncMap{"prose": prose, "indented": indented}).Parse(docsTemplate)
	if err != nil {
		return nil, err
	}
	shown := map[string]string{} // by a reference to data, the endpoint that shows its fields
	for _, path := range slices.Sorted(maps.Keys(p.Paths)) {
		e := p.endpoint(path, shown)
		tag := p.Tags[slices.IndexFunc(p.Tags, func(t *tag) bool { return t.Name == e.Tags[0] })]
		tag.Endpoints = append(tag.Endpoints, e)
	}
	err = t.Execute(&out, p)
	return out.Bytes(), err
}

func (p *page) endpoint(path string, shown map[string]string) endpoint {
	item := p.Paths[path]
	id := strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(path, "/api"), "/v1"), "/public")[1:], "/", "-")
	e := endpoint{operation: item.Get, ID: cmp.Or(id, "dashboard"), Path: path, Targets: []string{path}}
	for _, ref := range item.Parameters {
		if d := p.Components.Parameters[ref.Component()]; d.In == "query" {
			e.Targets = append(e.Targets, fmt.Sprint(path, "?", d.Name, "=", d.Schema.Examples[0]))
			e.Parameters = append(e.Parameters, p.row(e.ID+"-"+d.Name, d.Name, d.Description, d.Schema))
		}
	}
	body := p.Components.Responses[item.Get.Responses["200"].Component()].Content["application/json"]
	e.Examples = body.Examples
	switch {
	case body.Schema == nil:
	case strings.HasPrefix(path, "/api/"):
		answer := p.resolve(body.Schema).AllOf[1].Properties
		data, quality := answer.Value("data"), answer.Value("meta").AllOf[1].Properties.Value("quality")
		if like := shown[data.Ref]; like != "" {
			e.Tables = []table{{Title: "Fields of data", Like: like}}
			break
		}
		shown[data.Ref] = e.ID
		e.Tables = []table{
			{Title: "Fields of data", Text: p.resolve(data).Description, Rows: p.fields(e.ID, data)},
			{Title: "Fields of meta.quality", Text: p.resolve(quality).Description, Folded: true, Rows: p.fields(e.ID+".meta.quality", quality)},
		}
	default:
		e.Tables = []table{{Title: "Fields", Rows: p.fields(e.ID, body.Schema)}}
	}
	return e
}

// Envelope returns the rows of every answer and of every error.
func (p *page) Envelope() []row {
	return append(p.fields("", p.Components.Schemas["Answer"]), p.fields("", p.Components.Schemas["ErrorAnswer"])...)
}

// Described returns the rows of header fields: those of the responses, or of the requests.
func (p *page) Described(kind string) (rows []row) {
	all := p.Components.Headers
	if kind == "request" {
		all = p.Components.Parameters
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if d := all[name]; d.In != "query" {
			r := p.row(kind+"-"+cmp.Or(d.Name, name), cmp.Or(d.Name, name), d.Description, d.Schema)
			for _, e := range d.Schema.Examples {
				r.Example = fmt.Sprint(e)
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// Responses returns the responses that are errors, or all others. The examples of answers are shown at their paths.
func (p *page) Responses(errors bool) (some []*response) {
	for name, r := range p.Components.Responses {
		statuses := map[string]bool{}
		for _, item := range p.Paths {
			for _, responses := range []map[string]reference{item.Get.Responses, item.Options.Responses} {
				for status, ref := range responses {
					statuses[status] = statuses[status] || ref.Component() == name
				}
			}
		}
		maps.DeleteFunc(statuses, func(_ string, has bool) bool { return !has })
		r.Name, r.Statuses = name, strings.Join(slices.Sorted(maps.Keys(statuses)), ", ")
		content := r.Content["application/json"]
		if content.Schema != nil && content.Schema.AllOf != nil {
			r.Codes = values(content.Schema.AllOf[1].Properties.Value("error").AllOf[1].Properties.Value("code"), "")
		}
		if (r.Codes != "") == errors {
			some = append(some, r)
		}
		if p.Components.Schemas[name+"Answer"] != nil {
			r.Content = nil
		}
	}
	slices.SortFunc(some, func(a, b *response) int {
		return cmp.Or(strings.Compare(a.Statuses, b.Statuses), strings.Compare(a.Name, b.Name))
	})
	return some
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

// fields returns the rows of a schema, and below a field with an object those of the object.
func (p *page) fields(id string, s *schema) []row { return p.below(id, s, 0, map[*schema]string{}) }

func (p *page) below(id string, s *schema, depth int, shown map[*schema]string) (rows []row) {
	for _, r := range p.members(s) {
		r.ID, r.Depth = strings.TrimPrefix(id+"."+r.ID, "."), depth
		if p.rows[r.ID] {
			continue // an alternative has the same field
		}
		p.rows[r.ID] = true
		inner := p.resolve(r.schema)
		for inner.Items != nil && inner.PrefixItems == nil {
			inner, r.Name = p.resolve(inner.Items), r.Name+"[]"
		}
		var below []row
		if r.Like = shown[inner]; r.Like == "" && len(p.members(inner)) > 0 {
			shown[inner] = r.ID
			below = p.below(r.ID, inner, depth+1, shown)
		}
		rows = append(append(rows, r), below...)
	}
	return rows
}

// members returns the fields of an object, or the columns of a row.
func (p *page) members(s *schema) (all []row) {
	s = p.resolve(s)
	for _, part := range s.OneOf {
		all = append(all, p.members(part)...)
	}
	for i, c := range s.PrefixItems {
		all = append(all, p.row(c.Title, fmt.Sprintf("[%d] %s", i, c.Title), "", c))
	}
	for name, f := range s.Properties.FromOldest() {
		all = append(all, p.row(name, name, "", f))
	}
	return all
}

// row makes a row of a schema. Without a text it has the description of the schema. A named schema that is no object is described
// in words of its own, before those of the field.
func (p *page) row(id, name, text string, s *schema) row {
	inner := p.resolve(s)
	if s != inner && len(p.members(inner)) == 0 && text == "" {
		text = strings.TrimSpace(inner.Description + " " + s.Description)
	}
	text, unit, _ := strings.Cut(cmp.Or(text, s.Description, inner.Description), " Unit: ")
	r := row{ID: id, Name: name, Type: p.typeOf(s), Unit: strings.TrimSuffix(unit, "."), Meaning: prose(text), schema: s}
	allowed := values(inner, text)
	for inner.Items != nil && inner.PrefixItems == nil {
		inner = p.resolve(inner.Items)
		allowed += values(inner, text)
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
	if json.Unmarshal(answers, &known) == nil && known[name] != nil {
		return strings.ReplaceAll(string(known[name]), "\n  ", "\n")
	}
	if err := json.Indent(&out, value, "", "  "); err != nil {
		return err.Error()
	}
	return out.String()
}
