package openapi_test

import (
	"bytes"
	"html/template"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// shownPage is what docs.tmpl shows of a document.
type shownPage struct {
	Document object
	Tags     []shownTag
	Envelope shownTable
	Requests []object        // the header fields that a request may have
	Errors   []shownResponse // of every resource
	Other    []shownResponse // neither an error nor the answer of a resource
}

type shownTag struct {
	Name, Description string
	Endpoints         []shownEndpoint
}

// shownEndpoint is a path with all that is its own. What all paths have in common is shown once.
type shownEndpoint struct {
	ID, Path, Summary, Description string
	Targets                        []string // requests to try: without and with each parameter
	Answers                        []shownExample
	Parameters                     []object
	Cache, CacheExample            string // the header field Cache-Control of the answer: its name in the document, and its example
	Errors                         []shownResponse
	Tables                         []shownTable
}

// shownTable is a table of fields. Like is the ID of the endpoint that has the fields, if another endpoint shows them.
type shownTable struct {
	Title, Text, Label, Like string
	Folded                   bool
	Fields                   []shownField
}

// shownField is a field of a body. Its ID is that of its row, such as gex-spx.flips.price. Depth says how many objects are
// around it. Like is the ID of the field whose object has the same fields. Items describe the items of an array that are no
// objects, and the items of these.
type shownField struct {
	ID, Name, Type, Like string
	Depth                int
	Schema               object
	Items                []object
}

type shownResponse struct {
	Name, Status, Codes string
	Response            object
	Examples            []shownExample
}

type shownExample struct {
	Summary string
	JSON    template.HTML
}

// inText escapes JSON for a place between tags. Unlike the template, it leaves the quotes as they are, because they are many.
var inText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"…"`, "…")

// pages makes what the template shows.
type pages struct {
	document object
	ids      map[string]bool   // every row of fields
	objects  map[string]string // the row that shows the fields of a component, in the table at hand
}

// pageOf returns what is shown of a document. Its paths are those of document.yaml.
func pageOf(document object) (shownPage, error) {
	o, err := parseOutline(outlineText)
	if err != nil {
		return shownPage{}, err
	}
	p := &pages{document: document, ids: map[string]bool{}}
	shared := p.sharedErrors(o)
	page := shownPage{Document: document}
	for _, tag := range o.Tags {
		t := shownTag{Name: tag.Name, Description: tag.Description}
		for _, r := range o.Resources {
			if r.Tag == tag.Name {
				t.Endpoints = append(t.Endpoints, p.resource(r, shared))
			}
		}
		if tag.Name == "Service" {
			for _, s := range o.Pages {
				t.Endpoints = append(t.Endpoints, p.service(s.Path, s.Responses[200], s.Summary, s.Description))
			}
		}
		page.Tags = append(page.Tags, t)
	}
	p.objects = map[string]string{}
	page.Envelope = shownTable{Label: "envelope", Fields: p.envelope()}
	for _, v := range document.at("components", "parameters").(object) {
		if parameter := v.Value.(object); parameter.get("in") == "header" {
			page.Requests = append(page.Requests, parameter)
		}
	}
	for _, f := range o.Failures {
		page.Errors = append(page.Errors, p.response(f.Name))
	}
	slices.SortStableFunc(page.Errors, func(a, b shownResponse) int { return strings.Compare(a.Status, b.Status) })
	for _, r := range o.Plain {
		page.Other = append(page.Other, p.response(r.Name))
	}
	return page, nil
}

// sharedErrors returns the names of the errors that every resource has.
func (p *pages) sharedErrors(o outline) []string {
	shared := []string{"BadRequest"} // a resource with a parameter has BadParameter, which says more
	counts := map[string]int{}
	for _, r := range o.Resources {
		for _, v := range p.document.at("paths", r.Path, "get", "responses").(object) {
			if name := nameOf(v.Value.(object)); !slices.Contains(shared, name) {
				counts[name]++
			}
		}
	}
	for name, n := range counts {
		if n == len(o.Resources) {
			shared = append(shared, name)
		}
	}
	return shared
}

func (p *pages) resource(r resource, shared []string) shownEndpoint {
	e := shownEndpoint{
		ID: strings.ReplaceAll(r.Endpoint, "/", "-"), Path: r.Path, Summary: r.Summary, Description: r.Description, Targets: []string{r.Path},
		Answers: p.response(r.Response).Examples,
	}
	headers := p.document.at("components", "responses", r.Response, "headers").(object)
	e.Cache = nameOf(headers.get("Cache-Control").(object))
	e.CacheExample = plainExample(p.document.at("components", "headers", e.Cache, "schema").(object))
	for _, v := range list(p.document.at("paths", r.Path, "parameters")) {
		parameter := p.document.at("components", "parameters", nameOf(v.(object))).(object)
		if parameter.get("in") == "query" {
			e.Parameters = append(e.Parameters, parameter)
			e.Targets = append(e.Targets, r.Path+"?"+parameter.get("name").(string)+"="+plainExample(parameter.get("schema").(object)))
		}
	}
	for _, v := range p.document.at("paths", r.Path, "get", "responses").(object) {
		if name := nameOf(v.Value.(object)); name != r.Response && !slices.Contains(shared, name) {
			e.Errors = append(e.Errors, p.response(name))
		}
	}
	if r.Response == "Historical" {
		e.Tables = []shownTable{
			{Title: "Fields of `data`", Like: "gex-spx"},
		}
		return e
	}
	e.Tables = []shownTable{
		{Title: "Fields of `data`", Text: p.text(r.Response + "Data"), Label: r.Path + " data", Fields: p.table(e.ID, r.Response+"Data")},
		{Title: "Fields of `meta.quality`", Text: p.text(r.Response + "Quality"), Label: r.Path + " meta.quality", Folded: true, Fields: p.table(e.ID+".meta.quality", r.Response+"Quality")},
	}
	return e
}

// service makes a path without an envelope.
func (p *pages) service(path, response, summary, description string) shownEndpoint {
	e := shownEndpoint{ID: strings.Trim(path, "/"), Path: path, Summary: summary, Description: description, Targets: []string{path}}
	if e.ID == "" {
		e.ID = "dashboard"
	}
	e.Answers = p.response(response).Examples
	if schema, _ := p.document.at("components", "responses", response, "content", "application/json", "schema").(object); schema != nil {
		e.Tables = []shownTable{{Title: "Fields", Label: path, Fields: p.table(e.ID, nameOf(schema))}}
	}
	return e
}

func (p *pages) text(component string) string {
	text, _ := p.document.at("components", "schemas", component, "description").(string)
	return text
}

// response makes a response. Its status is the one with which a path names it.
func (p *pages) response(name string) shownResponse {
	r := shownResponse{Name: name, Response: p.document.at("components", "responses", name).(object)}
	statuses := map[string]bool{}
	for _, path := range p.document.get("paths").(object) {
		for _, method := range path.Value.(object) {
			operation, _ := method.Value.(object)
			responses, _ := operation.get("responses").(object)
			for _, v := range responses {
				if nameOf(v.Value.(object)) == name {
					statuses[v.Key] = true
				}
			}
		}
	}
	r.Status = strings.Join(slices.Sorted(maps.Keys(statuses)), ", ")
	content, _ := r.Response.at("content", "application/json").(object)
	schema, _ := content.get("schema").(object)
	examples, _ := content.get("examples").(object)
	var codes []string
	for _, v := range examples {
		example := v.Value.(object)
		value := example.get("value")
		if body, ok := value.(object); ok && body.at("error", "code") != nil {
			if code := body.at("error", "code").(string); !slices.Contains(codes, code) {
				codes = append(codes, code)
			}
		}
		var out bytes.Buffer
		write(&out, p.shorten(value, schema), "", 100)
		r.Examples = append(r.Examples, shownExample{example.get("summary").(string), template.HTML(inText.Replace(out.String()))})
	}
	r.Codes = strings.Join(codes, ", ")
	return r
}

// shorten puts … after each list of two items that may have more. The long lists of the examples are shortened to two items.
func (p *pages) shorten(v any, schema object) any {
	schema = p.resolved(schema)
	switch v := v.(type) {
	case object:
		out := object{}
		for _, m := range v {
			s, _ := schema.at("properties", m.Key).(object)
			out = append(out, member{m.Key, p.shorten(m.Value, s)})
		}
		return out
	case []any:
		items, _ := schema.get("items").(object)
		out := []any{}
		for _, x := range v {
			out = append(out, p.shorten(x, items))
		}
		if most := schema.get("maxItems"); len(v) == 2 && (most == nil || oneLine(most) != "2") {
			out = append(out, "…")
		}
		return out
	}
	return v
}

// resolved returns the schema behind references. Of alternatives it returns the first. It joins the properties of all parts.
func (p *pages) resolved(schema object) object {
	if name := nameOf(schema); name != "" {
		return p.resolved(p.document.at("components", "schemas", name).(object))
	}
	for _, keyword := range []string{"oneOf", "anyOf"} {
		if some := list(schema.get(keyword)); some != nil {
			return p.resolved(some[0].(object))
		}
	}
	if parts := list(schema.get("allOf")); parts != nil {
		var properties object
		for _, part := range parts {
			for _, m := range fields(p.resolved(part.(object))) {
				properties.put(m.Key, m.Value)
			}
		}
		return object{{"properties", properties}}
	}
	return schema
}

// envelope makes the fields that every answer or error has.
func (p *pages) envelope() (rows []shownField) {
	first := p.document.at("components", "schemas", "GammaAnswer", "properties").(object)
	for _, m := range first {
		rows = append(rows, shownField{ID: m.Key, Name: m.Key, Type: typeOf(m.Value.(object)), Schema: m.Value.(object)})
		switch m.Key {
		case "data":
			rows[len(rows)-1].Schema = object{{"type", "object"}, {"description", "The fields of the resource. An error has `error` in its place."}}
		case "meta":
			rows = append(rows, p.fields("meta", p.document.at("components", "schemas", "Meta").(object), 1)...)
		case "usage":
			for _, component := range []string{"AnonymousUsage", "KeyedUsage"} {
				rows = append(rows, p.fields("usage", p.document.at("components", "schemas", component).(object), 1)...)
			}
		}
	}
	rows = append(rows, shownField{ID: "error", Name: "error", Type: "object", Schema: object{{"type", "object"}, {"description", "Of an error. " + p.text("ErrorAnswer")}}})
	return append(rows, p.fields("error", p.document.at("components", "schemas", "Error").(object), 1)...)
}

// table makes the rows of a component and of the objects in it.
func (p *pages) table(id, component string) []shownField {
	p.objects = map[string]string{}
	return p.fields(id, p.document.at("components", "schemas", component).(object), 0)
}

// columnName finds the name in the description of a column.
var columnName = regexp.MustCompile("^Column `([a-z_0-9]+)`. ")

// fields makes the rows of a schema and, below each field with an object, those of the object.
func (p *pages) fields(id string, schema object, depth int) (rows []shownField) {
	for _, m := range fields(schema) {
		s := m.Value.(object)
		if nameOf(s) == "Unknown" {
			continue
		}
		row := shownField{ID: id + "." + m.Key, Name: m.Key, Type: typeOf(s), Depth: depth, Schema: s}
		text, _ := s.get("description").(string)
		if column := columnName.FindStringSubmatch(text); column != nil {
			row.ID, row.Name = id+"."+column[1], m.Key+" "+column[1]
		}
		inner := s
		for inner.get("items") != nil && inner.get("prefixItems") == nil {
			inner, row.Name = inner.get("items").(object), row.Name+"[]"
			row.Items = append(row.Items, inner)
		}
		name := nameOf(inner)
		if some := list(inner.get("oneOf")); name == "" && len(some) > 0 {
			name = nameOf(some[0].(object))
		}
		if name != "" {
			row.Items = nil // the rows below describe them
		}
		var below []shownField
		if first, shown := p.objects[name]; shown {
			row.Like = first
		} else if name != "" {
			p.objects[name] = row.ID
			if p.resolved(inner).get("prefixItems") != nil {
				row.Type = "array of arrays"
			}
			below = p.fields(row.ID, p.resolved(inner), depth+1)
		}
		if p.ids[row.ID] {
			row.ID = "" // a second alternative has the field, too
		}
		p.ids[row.ID] = true
		rows = append(append(rows, row), below...)
	}
	return rows
}
