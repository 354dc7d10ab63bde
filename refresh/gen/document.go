package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
	"github.com/oasdiff/yaml3"

	"strikecache/compute"
	"strikecache/refresh/product"
	"strikecache/snapshots"
)

// makeDocument makes the OpenAPI document from openapi.yaml, the Go types of the results, and answers, which are the examples. The key
// of an answer is the name of its response.
func makeDocument(answers map[string]json.RawMessage) []byte {
	var doc object
	check(yaml.Unmarshal(must(os.ReadFile(folder+"openapi.yaml")), &doc))
	delete(doc, "x-shared")
	components := doc["components"].(object)
	schemas, responses := components["schemas"].(object), components["responses"].(object)
	for _, r := range responses {
		completeResponse(r.(object))
	}
	preflight := components["pathItems"].(object)["Preflight"].(object)["options"].(object)
	preflight["responses"] = references("responses", preflight["responses"])
	g := newTypes()
	meta := g.schema(snapshots.Meta{})
	shapes, paths := product.Shapes(), doc["paths"].(object)
	var current, all []string // patterns of the names of resources, without and with the historical ones
	for _, at := range slices.Sorted(maps.Keys(paths)) {
		item := paths[at].(object)
		response := item["get"].(object)["responses"].(object)["200"].(string)
		name := strings.TrimSuffix(response, "Response")
		completePath(item)
		resource, historical := strings.CutSuffix(resourceOf(at), "/historical")
		shape, found := shapes[resource]
		if !found {
			continue
		}
		all = append(all, strings.Replace(resourceOf(at), "{u}", "[a-z]{1,6}", 1))
		if !historical {
			current = append(current, all[len(all)-1])
		}
		if answers[response] == nil {
			panic(response + " is not in testdata/answers.json")
		}
		var answer struct{ Data, Meta object }
		d := json.NewDecoder(bytes.NewReader(answers[response]))
		d.UseNumber()
		check(d.Decode(&answer))
		data, quality := g.schema(shape.Data), g.schema(shape.Quality)
		g.example(data, answer.Data)
		g.example(meta, answer.Meta)
		g.example(quality, answer.Meta["quality"])
		schemas[name+"Answer"] = object{"description": "Answer of " + resourceOf(at) + ".", "allOf": []any{
			refer("schemas", "Answer"),
			object{"required": []any{"data", "meta"}, "properties": object{"data": data, "meta": refer("schemas", name+"Meta")}},
		}}
		schemas[name+"Meta"] = narrowed("Meta", "quality", quality)
		schemas[name+"Meta"].(object)["description"] = "Meta of an answer of " + resourceOf(at) + "."
		media := content("application/json", refer("schemas", name+"Answer"), object{
			"simulated": object{"summary": "An answer of the simulated market. Long lists are shortened.", "value": answers[response]},
		})
		for _, f := range shape.Forms {
			kind, _, _ := strings.Cut(f.ContentType, ";")
			example := object{"summary": "The same answer with format=" + f.Name + ".", "value": string(must(f.Render(encode(answer.Data))))}
			maps.Copy(media, content(kind, object{"type": "string"}, object{f.Name: example}))
		}
		responses[response].(object)["content"] = media
	}
	schemas["Endpoint"].(object)["pattern"] = "^(" + strings.Join(current, "|") + ")$"
	schemas["ErrorMeta"].(object)["properties"].(object)["endpoint"].(object)["pattern"] = "^(" + strings.Join(all, "|") + ")?$"
	for name, s := range g.schemas {
		schemas[name] = s
	}
	return bytes.ReplaceAll(encode(doc), []byte("#/$defs/"), []byte("#/components/schemas/"))
}

// resourceOf returns the name of the resource at a path, such as gex/{u}.
func resourceOf(at string) string {
	return strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(at, "/api"), "/v1"), "/public")[1:]
}

func refer(kind, name string) object { return object{"$ref": path.Join("#/components", kind, name)} }

// references refers to components by their names.
func references(kind string, names any) object {
	all := object{}
	for key, name := range names.(object) {
		all[key] = refer(kind, name.(string))
	}
	return all
}

// narrowed is a schema with a narrower schema of one of its fields.
func narrowed(name, field string, narrower any) object {
	return object{"allOf": []any{refer("schemas", name), object{"required": []any{field}, "properties": object{field: narrower}}}}
}

// content is the content of a response that has one kind of body.
func content(kind string, schema, examples object) object {
	return object{kind: object{"schema": schema, "examples": examples}}
}

// completeResponse completes a response of openapi.yaml.
func completeResponse(r object) {
	r["headers"] = references("headers", r["headers"])
	errors, failed := r["errors"].(object)
	if !failed {
		return
	}
	delete(r, "errors")
	codes, examples := object{}, object{}
	for name, v := range errors {
		e := v.(object)
		codes[e["code"].(string)] = true
		examples[name] = object{"summary": e["summary"], "value": object{
			"success": false, "error": e, "usage": cmp.Or[any](e["usage"], object{"tier": "anonymous"}),
			"meta": object{"endpoint": cmp.Or[any](e["endpoint"], ""), "source": cmp.Or[any](e["source"], "simulated")},
		}}
		maps.DeleteFunc(e, func(key string, _ any) bool { return strings.Contains("summary endpoint source usage", key) })
	}
	code := object{"enum": slices.Sorted(maps.Keys(codes))}
	r["content"] = content("application/json", narrowed("ErrorAnswer", "error", narrowed("Error", "code", code)), examples)
}

// completePath completes a path of openapi.yaml.
func completePath(item object) {
	get := item["get"].(object)
	responses := references("responses", get["responses"])
	get["responses"] = responses
	names, _ := item["parameters"].([]any)
	if responses["304"] != nil {
		names = append(names, "IfNoneMatch", "AcceptEncoding")
	}
	for i, name := range names {
		names[i] = refer("parameters", name.(string))
		item["parameters"] = names
	}
}

// types makes schemas from Go types. The comment of a field is its description. Its tag jsonschema has its bounds, pattern and
// values, its tag unit the unit. A pointer may be null.
type types struct {
	jsonschema.Reflector
	structs map[string]reflect.Type       // by the name of the schema
	schemas map[string]*jsonschema.Schema // of all named types
}

func newTypes() *types {
	comments := readComments()
	g := &types{structs: map[string]reflect.Type{}, schemas: map[string]*jsonschema.Schema{}}
	g.Reflector = jsonschema.Reflector{
		Anonymous: true, AllowAdditionalProperties: true,
		Namer: func(t reflect.Type) string {
			name := capital(t.Name())
			if t.Kind() == reflect.Struct {
				g.structs[name] = t
			}
			return name
		},
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			if s, found := scalars[t]; found {
				return &s
			}
			return nil
		},
		LookupComment: func(t reflect.Type, field string) string { return comments[t.String()+"."+field] },
	}
	return g
}

func capital(text string) string {
	first := min(1, len(text))
	return strings.ToUpper(text[:first]) + text[first:]
}

// scalars are the schemas of types whose kind does not tell their JSON.
var scalars = map[reflect.Type]jsonschema.Schema{
	reflect.TypeFor[compute.Dollars]():    {Type: "integer", Format: "int64"},
	reflect.TypeFor[compute.Count]():      {Type: "integer", Format: "int64"},
	reflect.TypeFor[compute.Date]():       {Type: "string", Format: "date"},
	reflect.TypeFor[compute.Right]():      {Type: "string", Enum: []any{"call", "put"}},
	reflect.TypeFor[compute.Settlement](): {Type: "string", Enum: []any{"am", "pm"}},
}

// isA is how the comment of a type begins: "Flip is a sign change." becomes "A sign change."
var isA = regexp.MustCompile(`^\w+ (is|are) `)

// readComments reads the comments of all types and their fields. Their keys are such as compute.Gamma. and compute.Gamma.Spot.
func readComments() map[string]string {
	comments, typ, about := map[string]string{}, "", ""
	put := func(key, text string) {
		if text != "" {
			comments[key] = strings.Join(strings.Fields(text), " ")
		}
	}
	files := slices.Concat(must(filepath.Glob("compute/*.go")), must(filepath.Glob("refresh/product/*.go")), must(filepath.Glob("snapshots/*.go")))
	for _, file := range files {
		parsed := must(parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments))
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GenDecl:
				about = n.Doc.Text()
			case *ast.TypeSpec:
				typ = parsed.Name.Name + "." + n.Name.Name + "."
				put(typ, capital(isA.ReplaceAllString(cmp.Or(n.Doc.Text(), about), "")))
			case *ast.Field:
				for _, name := range n.Names {
					put(typ+name.Name, cmp.Or(n.Doc.Text(), n.Comment.Text()))
				}
			}
			return true
		})
	}
	return comments
}

// schema makes the schema of a value's type and returns a reference to it.
func (g *types) schema(v any) *jsonschema.Schema {
	root := g.Reflect(v)
	for name, s := range root.Definitions {
		if g.schemas[name] != nil {
			continue // made before
		}
		g.schemas[name] = s
		if g.structs[name] == nil {
			continue // a list
		}
		for _, f := range reflect.VisibleFields(g.structs[name]) {
			field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if p, found := s.Properties.Get(field); found {
				finish(p, f)
			}
		}
	}
	return &jsonschema.Schema{Ref: root.Ref}
}

// finish adds to the schema of a field what the library does not: the unit, references, null.
func finish(s *jsonschema.Schema, f reflect.StructField) {
	if unit := f.Tag.Get("unit"); unit != "" {
		s.Description += " Unit: " + unit + "."
	}
	for t := f.Type; s != nil; s = s.Items {
		isPointer := t.Kind() == reflect.Pointer
		if isPointer {
			t = t.Elem()
		}
		if len(s.OneOf) == 1 { // a tag can name a schema only as a choice of one
			*s = jsonschema.Schema{Ref: s.OneOf[0].Ref, Description: s.Description}
		}
		if s.Format == "date-time" {
			s.Pattern = "Z$"
		}
		switch {
		case s.Items != nil:
			t = t.Elem()
		case isPointer && s.Ref != "":
			*s = jsonschema.Schema{OneOf: []*jsonschema.Schema{{Ref: s.Ref}, {Type: "null"}}, Description: s.Description}
		}
		if isPointer && s.OneOf == nil {
			s.Extras = map[string]any{"type": []string{s.Type, "null"}}
			if s.Type = ""; s.Enum != nil {
				s.Enum = append(s.Enum, nil)
			}
		}
	}
}

// example gives each field that has no example its value in an answer.
func (g *types) example(s *jsonschema.Schema, v any) {
	if len(s.OneOf) > 0 {
		s = s.OneOf[0]
	}
	if s.Ref != "" {
		s = g.schemas[path.Base(s.Ref)]
	}
	if s == nil { // of openapi.yaml
		return
	}
	switch v := v.(type) {
	case nil:
	case object:
		for name, p := range s.Properties.FromOldest() {
			g.example(p, v[name])
		}
	case []any:
		for _, x := range v {
			g.example(s.Items, x)
		}
	default:
		if s.Examples == nil {
			s.Examples = []any{v}
		}
	}
}
