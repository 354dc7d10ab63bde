package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// body holds a JSON body against a schema, field by field.
func (d *Document) body(schema *openapi3.SchemaRef, body []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return err
	}
	return d.walk([]field{{schema: schema}}, v)
}

// field is one definition of a member of an object. Of a composed schema there may be several.
type field struct {
	name, key string
	schema    *openapi3.SchemaRef
}

// named returns where a schema is: the component that it refers to, else where the walk is.
func named(schema *openapi3.SchemaRef, at string) string {
	if schema.Ref != "" {
		return schema.Ref[strings.LastIndexByte(schema.Ref, '/')+1:]
	}
	return at
}

// fields returns the members that a schema defines, in the alternatives that fit an object; nil fits all.
func fields(schema *openapi3.SchemaRef, at string, object map[string]any) (out []field, open bool) {
	at = named(schema, at)
	s := schema.Value
	for name, property := range s.Properties {
		out = append(out, field{name, at + "." + name, property})
	}
	open = s.AdditionalProperties.Schema != nil || s.AdditionalProperties.Has != nil && *s.AdditionalProperties.Has
	alternatives := slices.Concat(s.OneOf, s.AnyOf)
	for _, part := range slices.Concat(s.AllOf, alternatives) {
		if slices.Contains(alternatives, part) && !fits(part, object) {
			continue
		}
		more, more2 := fields(part, at, object)
		out, open = append(out, more...), open || more2
	}
	return out, open
}

// fits says whether an object is one that an alternative allows.
func fits(schema *openapi3.SchemaRef, object map[string]any) bool {
	return object == nil || schema.Value.VisitJSON(object, openapi3.EnableJSONSchema2020()) == nil
}

// walk notes what a value shows of the schemas that define it, and returns an error that names what none of them
// describes.
func (d *Document) walk(definitions []field, v any) error {
	var failures []error
	switch v := v.(type) {
	case map[string]any:
		members := map[string][]field{}
		open := false
		for _, def := range definitions {
			defined, more := fields(def.schema, def.key, v)
			open = open || more
			for _, f := range defined {
				members[f.name] = append(members[f.name], f)
			}
		}
		for name, x := range v {
			if members[name] == nil && !open {
				failures = append(failures, fmt.Errorf("%s.%s is sent and not documented", named(definitions[0].schema, definitions[0].key), name))
			}
			failures = append(failures, d.note(members[name], x))
		}
	case []any:
		for i, x := range v {
			var items []field
			for _, def := range definitions {
				if item := itemOf(def, i); item.schema != nil {
					items = append(items, item)
				}
			}
			if items == nil {
				failures = append(failures, fmt.Errorf("%s: item %d is not described", named(definitions[0].schema, definitions[0].key), i))
			}
			failures = append(failures, d.note(items, x))
		}
	case string:
		for _, def := range definitions {
			if def.key == "Error.code" {
				d.seen["code "+v] = true
			}
		}
	}
	return errors.Join(failures...)
}

// itemOf returns what defines item i of an array.
func itemOf(array field, i int) field {
	at, s := named(array.schema, array.key), array.schema.Value
	if i < len(s.PrefixItems) {
		return field{key: fmt.Sprintf("%s[%d]", at, i), schema: s.PrefixItems[i]}
	}
	return field{key: at + "[]", schema: s.Items}
}

// note notes a value that fields have, and what it shows in turn.
func (d *Document) note(definitions []field, v any) error {
	for _, f := range definitions {
		d.seen[f.key] = true
		if v == nil {
			d.null[f.key] = true
		} else if nullable(f.schema.Value) {
			d.filled[f.key] = true
		}
	}
	if len(definitions) == 0 {
		return nil
	}
	return d.walk(definitions, v)
}

// nullable says whether a value may be null and may be something else.
func nullable(s *openapi3.Schema) bool {
	if s.Type.Includes("null") {
		return s.Type.IsMultiple()
	}
	return slices.ContainsFunc(s.OneOf, func(part *openapi3.SchemaRef) bool { return part.Value.Type.Includes("null") })
}

// documented returns everything that answers can show.
func (d *Document) documented() (all map[string]bool, nullables []string) {
	all = map[string]bool{}
	for path, item := range d.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			for status, r := range operation.Responses.Map() {
				all[method+" "+path+" "+status] = true
				for name := range r.Value.Headers {
					all[responseName(r)+": "+name] = true
				}
				if media := r.Value.Content.Get("application/json"); media != nil {
					nullables = append(nullables, collect(media.Schema, "", all)...)
				}
			}
		}
	}
	for _, code := range d.doc.Components.Schemas["Error"].Value.Properties["code"].Value.Enum {
		all["code "+code.(string)] = true
	}
	slices.Sort(nullables)
	return all, slices.Compact(nullables)
}

// collect adds the fields below a schema, and returns those that may be null.
func collect(schema *openapi3.SchemaRef, at string, all map[string]bool) (nullables []string) {
	at = named(schema, at)
	add := func(s *openapi3.SchemaRef, key string) {
		if all[key] {
			return
		}
		all[key] = true
		if nullable(s.Value) {
			nullables = append(nullables, key)
		}
		nullables = append(nullables, collect(s, key, all)...)
	}
	defined, _ := fields(schema, at, nil)
	for _, f := range defined {
		add(f.schema, f.key)
	}
	for i, item := range schema.Value.PrefixItems {
		add(item, fmt.Sprintf("%s[%d]", at, i))
	}
	if item := schema.Value.Items; item != nil && len(schema.Value.PrefixItems) == 0 {
		add(item, at+"[]")
	}
	return nullables
}

// Unseen returns what is documented and no answer showed, sorted: statuses of operations, header fields of responses,
// fields of schemas, error codes; and fields that were always null.
func (d *Document) Unseen() []string {
	all, nullables := d.documented()
	maps.DeleteFunc(all, func(key string, _ bool) bool { return d.seen[key] })
	for _, key := range nullables {
		if d.null[key] && !d.filled[key] {
			all[key+" is always null"] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Figures says how much of the document the answers showed.
func (d *Document) Figures() string {
	all, nullables := d.documented()
	seen, null := 0, 0
	for key := range all {
		if d.seen[key] {
			seen++
		}
	}
	for _, key := range nullables {
		if d.null[key] {
			null++
		}
	}
	return fmt.Sprintf("%d of %d documented statuses, header fields, fields and codes shown; %d of %d fields that may be null were null", seen, len(all), null, len(nullables))
}
