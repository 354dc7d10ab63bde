package openapi_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
)

// responses makes the responses, with an example of each body.
func (g *generator) responses() (all object) {
	for _, r := range g.Resources {
		description, schema := "The current answer.", r.Response+"Answer"
		if r.Response == "Historical" {
			description, schema = "The stored answer, byte for byte as it was sealed.", "GammaAnswer"
		}
		examples := object{{"simulated", g.example("An answer of the simulated market. Long lists are shortened.", schema, r.Response)}}
		head := "Cache-Control=" + r.CacheControl + " validator Vary Content-Encoding limited"
		if r.Deltas {
			head = "Cache-Control=" + r.CacheControl + " validator Vary=VaryDeltas Use-As-Dictionary Content-Encoding limited"
		}
		all.put(r.Response, g.response(description, head, reference("schemas", r.Response+"Answer"), examples))
	}
	for _, p := range g.Plain {
		var schema, examples object
		if p.Schema != "" {
			schema, examples = reference("schemas", p.Schema), object{{"example", g.example(p.Example, p.Schema, p.Name)}}
		}
		r := g.response(p.Description, p.Headers, schema, examples)
		if p.Name == "Page" {
			r.put("content", object{{"text/html", object{{"schema", object{{"type", "string"}, {"description", "HTML."}}}}}})
		}
		all.put(p.Name, r)
	}
	for _, f := range g.Failures {
		var codes []any
		var examples object
		for _, e := range f.Examples {
			if !slices.Contains(codes, any(e.Code)) {
				codes = append(codes, e.Code)
			}
			examples.put(e.Name, object{{"summary", e.Summary}, {"value", g.errorExample(e)}})
		}
		all.put(f.Name, g.response(f.Description, "noStore "+f.Headers, errorSchema(codes), examples))
	}
	return all
}

// response makes a response with a JSON body or, without a schema, with none.
func (g *generator) response(description, headers string, schema, examples object) object {
	r := object{{"description", description}, {"headers", g.headerFields(headers)}}
	if schema != nil {
		r.put("content", object{{"application/json", object{{"schema", schema}, {"examples", examples}}}})
	}
	return r
}

// errorSchema makes the schema of an error with one of the codes.
func errorSchema(codes []any) object {
	code := object{{"type", "string"}, {"description", "Code of the error."}, {"enum", codes}, {"examples", codes[:1]}}
	withCode := object{{"type", "object"}, {"description", "Its code."}, {"properties", object{{"code", code}}}}
	err := object{{"description", "What is wrong."}, {"allOf", []any{reference("schemas", "Error"), withCode}}}
	return object{{"description", "An error with a code of this status."}, {"allOf", []any{reference("schemas", "ErrorAnswer"),
		object{{"type", "object"}, {"description", "The codes of this status."}, {"properties", object{{"error", err}}}}}}}
}

// errorExample makes an error with the members that its code has.
func (g *generator) errorExample(e errorExample) object {
	body, source := object{{"code", e.Code}, {"message", e.Message}}, "simulated"
	if e.Parameter != "" {
		body.put("parameter", e.Parameter)
	}
	usage := reference("schemas", "AnonymousUsage")
	switch e.Code {
	case "snapshot_not_found":
		body.put("nearest", g.compose(reference("schemas", "Nearest")))
	case "expiration_not_found":
		body.put("expirations", []any{"2026-11-20", "2026-11-23", "2026-11-24"})
	case "quota_exceeded":
		usage = reference("schemas", "KeyedUsage")
	}
	if e.Name == "unfed" {
		source = "replay"
	}
	used := g.compose(usage).(object)
	if e.Code == "quota_exceeded" {
		used.put("requests_today", used.get("limit_per_day"))
		used.put("remaining_today", 0)
	}
	return object{{"success", false}, {"error", body}, {"meta", object{{"endpoint", e.Endpoint}, {"source", source}}}, {"usage", used}}
}

// realExamples has real answers with shortened lists, by the name of their response.
//
//go:embed testdata/examples.json
var realExamples []byte

// example makes the example of a response. It is the real example if there is one. A field that the real example lacks has
// the example of its line.
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

// compose makes an example of a schema from the examples of its fields.
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
