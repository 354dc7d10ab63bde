package main

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pb33f/ordered-map/v2"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
)

//go:embed docs.tmpl methods.tmpl
var templates embed.FS

// page is what the page, the tools and the widgets need of openapi.json.
type page struct {
	Info       struct{ Title, Version, Summary, Description string }
	Tags       []struct{ Name, Description string }
	Paths      map[string]*endpoint
	Components struct {
		SecuritySchemes, Parameters, Headers map[string]*described
		Responses                            map[string]*response
		Schemas                              map[string]*schema
	}
	Endpoints []*endpoint // sorted by path
	answers   map[string]json.RawMessage
	Responses map[string]*response // by status and name
	document  object
}

// endpoint is a path.
type endpoint struct {
	Parameters []reference
	Get        struct {
		Tags                 []string
		Summary, Description string
		Responses            map[string]reference
	}
	Path, ID string
	Resource string   // such as gex/{u}
	Data     *schema  // of an answer's data, nil if the path has no answers
	Targets  []string // requests to try: without and with each parameter
	Examples examples
	Rows     []row     // of the parameters
	Bodies   []row     // the parts of the answer
	Tables   []*schema // those of the bodies that no endpoint before shows
}

// described is a parameter or a header field.
type described struct {
	Name, In, Description string
	Schema                *schema
}

// response is a response. Its status is that with which the paths name it, its codes are those of an error.
type response struct {
	Name, Status, Codes, Description string
	Headers                          map[string]reference
	Content                          map[string]struct {
		Schema   *schema
		Examples examples
	}
}

// Answer returns the name of the schema of an answer.
func (r *response) Answer() string { return strings.TrimSuffix(r.Name, "Response") + "Answer" }

type examples map[string]struct {
	Summary string
	Value   json.RawMessage
}

type reference struct {
	Ref string `json:"$ref"`
}

// Component returns the name of the component.
func (r reference) Component() string { return path.Base(r.Ref) }

type schema struct {
	reference
	Name                                                   string `json:"-"` // of a component
	Rows                                                   []row  `json:"-"` // of the fields, once the page shows them
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

func newPage(document []byte, answers map[string]json.RawMessage) *page {
	p := &page{answers: answers, Responses: map[string]*response{}}
	check(errors.Join(json.Unmarshal(document, p), json.Unmarshal(document, &p.document)))
	for name, s := range p.Components.Schemas {
		s.Name = name
	}
	for name, r := range p.Components.Responses {
		r.Name = name
		if s := r.Content["application/json"].Schema; s != nil && s.AllOf != nil { // of errors
			r.Codes = values(s.AllOf[1].Properties.Value("error").AllOf[1].Properties.Value("code"), "")
		}
	}
	p.put("204", "Preflight") // on no path
	for _, at := range slices.Sorted(maps.Keys(p.Paths)) {
		e := p.Paths[at]
		e.Path = at
		p.complete(e)
		p.Endpoints = append(p.Endpoints, e)
	}
	return p
}

// render returns the page that a template makes of a value.
func render(name string, v any) []byte {
	var out bytes.Buffer
	check(must(template.New(name).Funcs(template.FuncMap{"prose": prose}).ParseFS(templates, name)).Execute(&out, v))
	return out.Bytes()
}

// put gives a response its status.
func (p *page) put(status, name string) {
	r := p.Components.Responses[name]
	r.Status, p.Responses[status+name] = status, r
}

// complete makes the fields of an endpoint that the document does not have.
func (p *page) complete(e *endpoint) {
	e.Resource = resourceOf(e.Path)
	e.ID = cmp.Or(strings.Trim(strings.NewReplacer("/", "-", "{", "", "}", "").Replace(e.Resource), "-"), "dashboard")
	e.Targets = []string{strings.Replace(e.Path, "{u}", "spx", 1)}
	for _, ref := range e.Parameters {
		d := p.Components.Parameters[ref.Component()]
		if d.In == "query" {
			e.Targets = append(e.Targets, fmt.Sprint(e.Targets[0], "?", d.Name, "=", d.Schema.Examples[0]))
		}
		if d.In != "header" {
			e.Rows = append(e.Rows, p.row(e.ID+"-"+d.Name, d.Name, d.Description, d.Schema))
		}
	}
	for status, ref := range e.Get.Responses {
		p.put(status, ref.Component())
	}
	content := p.Components.Responses[e.Get.Responses["200"].Component()].Content
	e.Examples = examples{}
	for _, media := range content {
		maps.Copy(e.Examples, media.Examples)
	}
	s := content["application/json"].Schema
	switch {
	case s == nil:
	case p.resolve(s).AllOf != nil:
		answer := p.resolve(s).AllOf[1].Properties
		e.Data = answer.Value("data")
		quality := p.resolve(answer.Value("meta")).AllOf[1].Properties.Value("quality")
		e.Bodies = []row{p.row("", "data", "", e.Data), p.row("", "meta.quality", "", quality)}
	case p.items(s).hasTable():
		e.Bodies = []row{p.row("", "body", "", s)}
	}
	for _, b := range e.Bodies {
		e.Tables = append(e.Tables, p.Tables(b.schema)...)
	}
}

// HeaderRows returns the rows of the header fields among parameters or headers. Their IDs begin with kind.
func (p *page) HeaderRows(kind string, all map[string]*described) (rows []row) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		d := all[name]
		if name = cmp.Or(d.Name, name); d.In == "query" || d.In == "path" {
			continue
		}
		r := p.row(kind+"-"+name, name, d.Description, d.Schema)
		for _, e := range d.Schema.Examples {
			r.Example = fmt.Sprint(e)
		}
		rows = append(rows, r)
	}
	return rows
}

// resolve returns the schema behind references. Of a schema or null it returns the schema.
func (p *page) resolve(s *schema) *schema {
	if s.orNull() {
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

// orNull says whether a schema is a choice of another schema or null.
func (s *schema) orNull() bool { return len(s.OneOf) > 0 && s.OneOf[len(s.OneOf)-1].Type == "null" }

// hasTable says whether a schema has fields, columns or alternatives.
func (s *schema) hasTable() bool {
	return s.Properties.Len() > 0 || s.PrefixItems != nil || s.OneOf != nil
}

// items returns the schema of the items of a list, and of the items of these, else the schema itself.
func (p *page) items(s *schema) *schema {
	for s = p.resolve(s); s.Items != nil && s.PrefixItems == nil; {
		s = p.resolve(s.Items)
	}
	return s
}

// Tables returns a schema with its rows and the schemas of its fields with theirs, each but the first time that the page shows it.
func (p *page) Tables(s *schema) (all []*schema) {
	s = p.items(s)
	if s.Rows != nil || !s.hasTable() {
		return nil
	}
	s.Rows = []row{}
	for i, c := range s.PrefixItems {
		s.Rows = append(s.Rows, p.row(s.Name+"."+c.Title, fmt.Sprintf("[%d] %s", i, c.Title), "", c))
	}
	for name, f := range s.Properties.FromOldest() {
		s.Rows = append(s.Rows, p.row(s.Name+"."+name, name, "", f))
	}
	all = []*schema{s}
	for _, r := range s.Rows {
		all = append(all, p.Tables(r.schema)...)
	}
	for _, alternative := range s.OneOf {
		all = append(all, p.Tables(alternative)...)
	}
	return all
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
		r.Meaning = template.HTML(strings.TrimSuffix(string(r.Meaning), "</p>")) + ` <span class="values">` + template.HTML(template.HTMLEscapeString(allowed)) + "</span></p>"
	}
	return r
}

// typeOf says in words which type a schema has.
func (p *page) typeOf(s *schema) string {
	inner := p.resolve(s)
	names, isList := inner.Type.([]any)
	if !isList {
		names = []any{cmp.Or(inner.Type, any("object"))}
	}
	words := names[0].(string)
	switch {
	case words == "string":
		words = cmp.Or(inner.Format, words)
	case inner.Items != nil && inner.PrefixItems == nil:
		first, rest, _ := strings.Cut(p.typeOf(inner.Items), " ")
		words = strings.TrimSuffix("array of "+first+"s "+rest, " ")
	}
	if len(names) == 2 || s.orNull() {
		words += " or null"
	}
	return words
}

// values says which values a schema allows, unless the text does.
func values(s *schema, text string) string {
	var words []string
	say := func(what string, value any) {
		if said := fmt.Sprint(value); value != nil && said != "" {
			words = append(words, what+said)
		}
	}
	say("always ", s.Const)
	untold := func(v any) bool { return v != nil && !strings.Contains(text, fmt.Sprint("`", v, "`")) }
	if slices.ContainsFunc(s.Enum, untold) { // then all, so that none seems to be missing
		for _, v := range s.Enum {
			say("", v)
		}
	}
	say("above ", s.ExclusiveMinimum)
	say("at least ", s.Minimum)
	say("at most ", s.Maximum)
	if s.MinItems != "" && s.MinItems == s.MaxItems {
		say("", s.MinItems+" items")
	} else {
		say("items at least ", s.MinItems)
		say("items at most ", s.MaxItems)
	}
	say("default ", s.Default)
	if s.Format == "" {
		say("pattern ", s.Pattern)
	}
	return strings.Join(words, ", ")
}

// Indented formats an example. An answer keeps the lines that testdata/answers.json has.
func (p *page) Indented(name string, value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return strings.ReplaceAll(text, "\r", "")
	}
	if known := p.answers[name]; known != nil {
		return strings.ReplaceAll(string(known), "\n  ", "\n")
	}
	var out bytes.Buffer
	check(json.Indent(&out, value, "", "  "))
	return out.String()
}

var (
	markdown    = goldmark.New(goldmark.WithExtensions(extension.Table))
	numbered    = regexp.MustCompile(`(?m)^##(#?) (\d+(?:\.\d+)?)\.? +([^,(\n]*[^,(\s])`) // a heading up to the first comma
	blockStart  = regexp.MustCompile(`<h([23])>((\d+(?:\.\d+)?).*)</h\d>|<table>`)
	sectionMark = regexp.MustCompile(`§+(\d+(?:\.\d+)?)`)
	tableParts  = strings.NewReplacer("</table>", "</table></div>", "<th>", `<th scope="col">`)
)

// prose renders a text in Markdown. HTML in the text does not become markup.
func prose(text string) template.HTML {
	var out bytes.Buffer
	check(markdown.Convert([]byte(text), &out))
	return template.HTML(strings.TrimSpace(out.String()))
}

// methodsPage returns a text in Markdown as a page. Its headings and the numbers of sections in the text are links.
func methodsPage(source string) []byte {
	section := ""
	html := blockStart.ReplaceAllStringFunc(tableParts.Replace(string(prose(source))), func(start string) string {
		if start == "<table>" {
			return `<div class="table" tabindex="0" role="region" aria-label="Table of section ` + section + `">` + start
		}
		section = blockStart.FindStringSubmatch(start)[3]
		return blockStart.ReplaceAllString(start, `<h$1 id="$3"><a href="#$3">$2</a></h$1>`)
	})
	html = sectionMark.ReplaceAllString(html, `<a href="#$1">$0</a>`)
	return render("methods.tmpl", struct {
		Sections [][]string // each with a # if it lies within another, its number, and its name
		HTML     template.HTML
	}{numbered.FindAllStringSubmatch(strings.ReplaceAll(source, "`", ""), -1), template.HTML(html)})
}
