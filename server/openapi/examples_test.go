package openapi_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"strings"
)

// responses makes the responses, with an example of each body.
func (g *generator) responses() (all object) {
	for _, r := range resources {
		description, schema := "The current answer.", r.response+"Answer"
		var imported object
		if r.response == "Historical" {
			description, schema = "The stored answer, byte for byte as it was sealed, or the levels of an imported date.", "GammaAnswer"
			imported = object{{"imported", g.example("An imported date.", "ImportedAnswer", "Imported")}}
		}
		examples := append(object{{"simulated", g.example("An answer of the simulated market. Long lists are shortened.", schema, r.response)}}, imported...)
		head := "Cache-Control=" + r.cacheControl + validator + "Vary Content-Encoding " + limited
		all.put(r.response, response(description, head, reference("schemas", r.response+"Answer"), examples))
	}
	for _, p := range plain {
		switch {
		case p.name == "Page":
			all.put(p.name, object{{"description", p.description}, {"headers", headerFields(p.headers)},
				{"content", object{{"text/html", object{{"schema", object{{"type", "string"}, {"description", "HTML."}}}}}}}})
		case p.schema == "":
			all.put(p.name, object{{"description", p.description}, {"headers", headerFields(p.headers)}})
		default:
			all.put(p.name, response(p.description, p.headers, reference("schemas", p.schema), object{{"example", g.example(p.summary, p.schema, p.name)}}))
		}
	}
	for _, f := range failures {
		var codes []any
		var examples object
		for _, e := range f.examples {
			if len(codes) == 0 || codes[len(codes)-1] != e.code {
				codes = append(codes, e.code)
			}
			examples.put(e.name, object{{"summary", e.summary}, {"value", g.errorExample(e)}})
		}
		all.put(f.name, response(f.description, noStore+f.headers, errorSchema(codes), examples))
	}
	return all
}

func response(description, headers string, schema, examples object) object {
	return object{
		{"description", description}, {"headers", headerFields(headers)},
		{"content", object{{"application/json", object{{"schema", schema}, {"examples", examples}}}}},
	}
}

// errorSchema makes the schema of an error with one of the codes.
func errorSchema(codes []any) object {
	code := object{{"type", "string"}, {"description", "Code of the error."}, {"enum", codes}, {"examples", codes[:1]}}
	withCode := object{{"type", "object"}, {"description", "Its code."}, {"properties", object{{"code", code}}}}
	err := object{{"description", "What is wrong."}, {"allOf", []any{reference("schemas", "Error"), withCode}}}
	return object{{"description", "An error with a code of this status."}, {"allOf", []any{reference("schemas", "ErrorAnswer"),
		object{{"type", "object"}, {"description", "The codes of this status."}, {"properties", object{{"error", err}}}}}}}
}

// errorExample makes an error with what its code adds to it.
func (g *generator) errorExample(e errorExample) object {
	body, source := object{{"code", e.code}, {"message", e.message}}, "simulated"
	if e.parameter != "" {
		body.put("parameter", e.parameter)
	}
	usage := reference("schemas", "AnonymousUsage")
	switch e.code {
	case "snapshot_not_found":
		body.put("nearest", g.compose(reference("schemas", "Nearest")))
	case "expiration_not_found":
		body.put("expirations", []any{"2026-11-20", "2026-11-23", "2026-11-24"})
	case "quota_exceeded":
		usage = reference("schemas", "KeyedUsage")
	}
	if e.name == "unfed" {
		source = "replay"
	}
	used := g.compose(usage).(object)
	if e.code == "quota_exceeded" {
		used.put("requests_today", used.get("limit_per_day"))
		used.put("remaining_today", 0)
	}
	return object{{"success", false}, {"error", body}, {"meta", object{{"endpoint", e.endpoint}, {"source", source}}}, {"usage", used}}
}

// realExamples has real answers with shortened lists, by the name of their response.
//
//go:embed testdata/examples.json
var realExamples []byte

// example makes the example of a response. It is the real one where that is known. A field that is younger than the
// real one has the example of its line.
func (g *generator) example(summary, schema, response string) object {
	var known map[string]any
	d := json.NewDecoder(bytes.NewReader(realExamples))
	d.UseNumber()
	if err := d.Decode(&known); err != nil {
		g.fault("testdata/examples.json: %v", err)
	}
	composed := g.compose(reference("schemas", schema))
	if answer, found := known[response]; found {
		composed = overlay(composed, answer)
	}
	return object{{"summary", summary}, {"value", composed}}
}

// overlay returns a composed example with the values of a real one, in the order of the composed one.
func overlay(composed, answer any) any {
	switch values := answer.(type) {
	case map[string]any:
		fields, _ := composed.(object)
		out := object{}
		for _, f := range fields {
			if v, found := values[f.Key]; found {
				f.Value = overlay(f.Value, v)
			}
			out = append(out, f)
		}
		return out
	case []any:
		items, _ := composed.([]any)
		out := []any{}
		for _, v := range values {
			var item any
			if len(items) > 0 {
				item = items[0]
			}
			out = append(out, overlay(item, v))
		}
		return out
	}
	return answer
}

// compose makes an example of a schema of the examples of its fields.
func (g *generator) compose(s object) any {
	if ref, ok := s.get("$ref").(string); ok {
		return g.compose(g.schemas[ref[strings.LastIndexByte(ref, '/')+1:]])
	}
	for _, keyword := range []string{"oneOf", "anyOf"} {
		if some, ok := s.get(keyword).([]any); ok {
			return g.compose(some[0].(object))
		}
	}
	if parts, ok := s.get("allOf").([]any); ok {
		var merged object
		for _, part := range parts {
			for _, m := range g.compose(part.(object)).(object) {
				merged.put(m.Key, m.Value)
			}
		}
		return merged
	}
	if fixed := s.get("const"); fixed != nil {
		return fixed
	}
	if properties, ok := s.get("properties").(object); ok {
		required, _ := s.get("required").([]any)
		o := object{}
		for _, name := range required {
			o.put(name.(string), g.compose(properties.get(name.(string)).(object)))
		}
		return o
	}
	if columns, ok := s.get("prefixItems").([]any); ok {
		row := make([]any, len(columns))
		for c, column := range columns {
			row[c] = g.compose(column.(object))
		}
		return row
	}
	if items, ok := s.get("items").(object); ok {
		n := 1
		if least, ok := s.get("minItems").(json.Number); ok {
			v, _ := least.Int64() // a whole number, as the table has it
			n = int(v)
		} else if least, ok := s.get("minItems").(int); ok {
			n = least
		}
		list := make([]any, n)
		for i := range list {
			list[i] = g.compose(items)
		}
		return list
	}
	if examples, ok := s.get("examples").([]any); ok {
		return examples[0]
	}
	switch s.get("type") {
	case "null":
		return nil
	case "boolean":
		return true
	}
	return object{}
}
