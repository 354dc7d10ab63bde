package openapi_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	"github.com/oasdiff/yaml3"

	"strikecache/refresh"
	"strikecache/snapshots"
)

var update = flag.Bool("update", false, "write the files anew that files.go names")

// made has the content of the files by name, and faults names what is missing or wrong in their sources.
var made, faults = makeFiles()

// TestMain writes the files before the tests read them.
func TestMain(m *testing.M) {
	flag.Parse()
	if *update && len(faults) == 0 {
		for name, content := range made {
			if err := os.WriteFile(name, content, 0o644); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}

func makeFiles() (files map[string][]byte, faults []string) {
	document, faults := makeDocument()
	docs, err := docsPage(document)
	if err != nil {
		faults = append(faults, err.Error())
	}
	text, err := os.ReadFile(methodsFile)
	if err != nil {
		faults = append(faults, err.Error())
	}
	methods, err := methodsPage(text)
	if err != nil {
		faults = append(faults, err.Error())
	}
	tools, err := toolsFile(document)
	if err != nil {
		faults = append(faults, err.Error())
	}
	widgets, err := widgetsFile(document)
	if err != nil {
		faults = append(faults, err.Error())
	}
	return map[string][]byte{"widgets.json": widgets, "openapi.json": document, "docs.html": docs, "methods.html": methods, "methods.markdown": text, "tools.json": tools}, faults
}

type object = map[string]any

var (
	//go:embed openapi.yaml
	outline []byte
	// answers are answers of the simulated market with shortened lists, by the name of their response. Each field of a Go type
	// needs its value here, or an example in its tag.
	//
	//go:embed testdata/answers.json
	answers []byte
)

// makeDocument makes openapi.json from openapi.yaml, the Go types and the answers.
func makeDocument() (document []byte, faults []string) {
	var doc object
	if err := yaml.Unmarshal(outline, &doc); err != nil {
		return nil, []string{err.Error()}
	}
	var known map[string]json.RawMessage
	if err := json.Unmarshal(answers, &known); err != nil {
		return nil, []string{err.Error()}
	}
	components := doc["components"].(object)
	schemas, responses := components["schemas"].(object), components["responses"].(object)
	for _, r := range responses {
		completeResponse(r.(object))
	}
	g := newReflector()
	g.schema(snapshots.Meta{})
	shapes, paths := refresh.Shapes(), doc["paths"].(object)
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		item := paths[p].(object)
		name := item["get"].(object)["responses"].(object)["200"].(string)
		completePath(item)
		_, endpoint, _ := strings.Cut(strings.TrimPrefix(p, "/api/"), "/") // without v1 or public
		shape, found := shapes[strings.TrimSuffix(endpoint, "/historical")]
		if !found {
			continue
		}
		data, quality := g.schema(shape.Data), g.schema(shape.Quality)
		schemas[name+"Answer"] = object{"description": "Answer of " + endpoint + ".", "allOf": []any{
			refer("schemas", "Answer"), object{"properties": object{"data": data, "meta": narrowed("Meta", "quality", quality)}},
		}}
		media := content(refer("schemas", name+"Answer"), object{
			"simulated": object{"summary": "An answer of the simulated market. Long lists are shortened.", "value": known[name]},
		})
		responses[name].(object)["content"] = media
		g.addForms(media, item, components["parameters"].(object), shape.Forms, known[name])
		var answer struct{ Data, Meta object }
		d := json.NewDecoder(bytes.NewReader(known[name]))
		d.UseNumber()
		if err := d.Decode(&answer); err != nil {
			g.fault("%s has no answer in testdata/answers.json: %v", name, err)
			continue
		}
		g.example(data, answer.Data)
		g.example(&jsonschema.Schema{Ref: "Meta"}, answer.Meta)
		g.example(quality, answer.Meta["quality"])
	}
	for name, s := range g.schemas {
		schemas[name] = s
		for field, value := range s.Properties.FromOldest() {
			for value.Items != nil {
				value = value.Items
			}
			if value.Ref == "" && value.OneOf == nil && value.Examples == nil && value.Type != "object" {
				g.fault("%s.%s has no value in testdata/answers.json, and no example in its tag", name, field)
			}
		}
	}
	preflight := components["pathItems"].(object)["Preflight"].(object)["options"].(object)
	preflight["responses"] = references("responses", preflight["responses"])
	delete(doc, "x-shared")
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(doc); err != nil {
		g.fault("%v", err)
	}
	return bytes.ReplaceAll(out.Bytes(), []byte("#/$defs/"), []byte("#/components/schemas/")), g.faults
}

// addForms adds the forms of a resource besides JSON to the content of its response. The parameter format of its path must have the
// same values.
func (g *reflector) addForms(media, item, parameters object, forms []refresh.Form, answer []byte) {
	var known struct{ Data json.RawMessage }
	if err := json.Unmarshal(answer, &known); err != nil {
		g.fault("%v", err)
		return
	}
	offered, described := []any{"json"}, []any{"json"}
	for _, f := range forms {
		body, err := f.Render(known.Data)
		if err != nil {
			g.fault("%s of %s: %v", f.Name, known.Data, err)
		}
		offered = append(offered, f.Name)
		kind, _, _ := strings.Cut(f.ContentType, ";")
		media[kind] = object{"schema": object{"type": "string"}, "examples": object{f.Name: object{"summary": "The same answer with format=" + f.Name + ".", "value": string(body)}}}
	}
	names, _ := item["parameters"].([]any)
	for _, ref := range names {
		if p := parameters[path.Base(ref.(object)["$ref"].(string))].(object); p["name"] == "format" {
			described = p["schema"].(object)["enum"].([]any)
		}
	}
	if !slices.Equal(offered, described) {
		g.fault("%v: the parameter format has %v, the forms are %v", item, described, offered)
	}
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
func narrowed(name, field string, schema any) object {
	return object{"allOf": []any{refer("schemas", name), object{"properties": object{field: schema}}}}
}

// content is the content of a response with a JSON body.
func content(schema, examples object) object {
	return object{"application/json": object{"schema": schema, "examples": examples}}
}

// completeResponse completes a response of openapi.yaml.
func completeResponse(r object) {
	r["headers"] = references("headers", r["headers"])
	errors, failed := r["errors"].(object)
	if !failed {
		return
	}
	delete(r, "errors")
	codes, examples := map[string]bool{}, object{}
	for name, v := range errors {
		e := v.(object)
		answer := object{"success": false, "error": e, "meta": object{"endpoint": "", "source": "simulated"}, "usage": object{"tier": "anonymous"}}
		examples[name] = object{"summary": e["summary"], "value": answer}
		for _, key := range []string{"endpoint", "source"} {
			if e[key] != nil {
				answer["meta"].(object)[key] = e[key]
			}
		}
		if e["usage"] != nil {
			answer["usage"] = e["usage"]
		}
		codes[e["code"].(string)] = true
		maps.DeleteFunc(e, func(key string, _ any) bool { return strings.Contains("summary endpoint source usage", key) })
	}
	code := object{"enum": slices.Sorted(maps.Keys(codes))}
	r["content"] = content(narrowed("ErrorAnswer", "error", narrowed("Error", "code", code)), examples)
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
