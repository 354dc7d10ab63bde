package openapi_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"strikecache/compute"
)

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	Key   string
	Value any
}

func (o object) get(key string) any {
	for _, m := range o {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

// put adds a member, or replaces the one of that name.
func (o *object) put(key string, value any) {
	for i := range *o {
		if (*o)[i].Key == key {
			(*o)[i].Value = value
			return
		}
	}
	*o = append(*o, member{key, value})
}

func reference(kind, name string) object {
	return object{{"$ref", "#/components/" + kind + "/" + name}}
}

// section returns a section of the table.
func (g *generator) section(name string) *section {
	s := g.table.sections[name]
	if s == nil {
		g.fault("fields.txt has no section [%s]", name)
		s = &section{name: name}
		g.table.sections[name] = s
	}
	return s
}

// component makes a named schema from a type. It may be called for a name several times, with types that look the same.
func (g *generator) component(name string, typ reflect.Type) {
	if name == "Usage" {
		return // AnonymousUsage or KeyedUsage
	}
	var s object
	switch {
	case typ.Kind() == reflect.Map:
		s = g.mapping(name, typ)
	case tableRow(name):
		s = g.row(name)
	case typ.Kind() == reflect.Struct:
		s = g.structure(name, typ)
	default:
		g.fault("%s is the schema of %v, which is neither a struct nor a map", name, typ)
	}
	if old, made := g.schemas[name]; made && !reflect.DeepEqual(old, s) {
		g.fault("%s: %v differs from another type of this name", name, typ)
	}
	g.schemas[name] = s
}

// structure makes the schema of a struct.
func (g *generator) structure(name string, typ reflect.Type) object {
	sec := g.section(name)
	var properties object
	var required []any
	for _, f := range fieldsOf(typ) {
		field, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		omitted := strings.HasPrefix(options, "omit")
		if omitted && sec.line(field) == nil {
			continue // another schema of this type has it
		}
		properties.put(field, g.property(sec, field, f.Type))
		if !omitted {
			required = append(required, field)
		}
	}
	return object{{"type", "object"}, {"description", sec.text}, {"required", required}, {"properties", properties}}
}

// described refers to a schema, in the words of its section.
func (g *generator) described(component string) object {
	return append(reference("schemas", component), member{"description", g.section(component).text})
}

// fieldsOf returns the fields of a struct, including those of embedded structs, in the order of their JSON.
func fieldsOf(typ reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(typ), func(f reflect.StructField) bool {
		name := f.Tag.Get("json")
		return !f.IsExported() || name == "-" || f.Anonymous && name == ""
	})
}

// mapping makes the schema of a map, whose members are the lines of its section. When its keys have a type of their
// own, all of them are always there.
func (g *generator) mapping(name string, typ reflect.Type) object {
	sec := g.section(name)
	var properties object
	var required []any
	for _, l := range sec.lines {
		properties.put(l.name, g.property(sec, l.name, typ.Elem()))
		required = append(required, l.name)
	}
	s := object{{"type", "object"}, {"description", sec.text}, {"required", required}, {"properties", properties}}
	if typ.Key() == reflect.TypeFor[string]() {
		s = object{s[0], s[1], s[3], {"additionalProperties", object{{"type", "string"}, {"description", "Why another field is not known."}}}}
	}
	return s
}

// tableRow says whether a schema is a row of a table, whose values are in the order of its section.
func tableRow(name string) bool { return name == "SeriesRow" || name == "IntradayRow" }

// row makes the schema of a row of a table.
func (g *generator) row(name string) object {
	sec := g.section(name)
	types := map[string]reflect.Type{}
	for _, f := range fieldsOf(reflect.TypeFor[compute.Gamma]()) {
		types[f.Tag.Get("json")] = f.Type
	}
	for _, f := range fieldsOf(reflect.TypeFor[compute.ZeroDTE]()) {
		types["zero_dte_"+f.Tag.Get("json")] = f.Type
	}
	for _, f := range fieldsOf(reflect.TypeFor[compute.Band]()) {
		types["flip_"+f.Tag.Get("json")] = f.Type
	}
	types["as_of"] = reflect.TypeFor[time.Time]()
	var items []any
	for _, l := range sec.lines {
		typ := types[l.name]
		if typ == nil {
			typ = reflect.TypeFor[string]()
		}
		item := g.property(sec, l.name, typ)
		item.put("description", "Column `"+l.name+"`. "+item.get("description").(string))
		items = append(items, item)
	}
	return object{
		{"type", "array"}, {"description", sec.text}, {"prefixItems", items},
		{"items", object{{"type", "null"}, {"description", fmt.Sprintf("Nothing follows the %d columns.", len(items))}}},
		{"minItems", len(items)}, {"maxItems", len(items)},
	}
}

// nullText finds the sentence that says when a value is null.
var nullText = regexp.MustCompile("(^|[.;:] )`null` ")

// property makes the schema of a field.
func (g *generator) property(sec *section, field string, typ reflect.Type) object {
	at := sec.name + "." + field
	l := sec.line(field)
	if l == nil {
		g.fault("fields.txt does not describe %s (%v)", at, typ)
		l = &line{name: field}
	}
	null := typ.Kind() == reflect.Pointer
	if null {
		typ = typ.Elem()
	}
	// A slice without a value is null, too, and its type does not say whether it ever is.
	if says := nullText.MatchString(l.text); tableRow(sec.name) || typ.Kind() == reflect.Slice {
		null = says
	} else if null != says {
		g.fault("%s: its type may be null: %v; its description says when: %v", at, null, says)
	}
	if mirror := mirrors[typ]; mirror != nil {
		typ = mirror
	}
	component, isComponent := l.fact("see ")
	raw := typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Uint8
	switch kind := typ.Kind(); {
	case raw && !isComponent:
		return object{{"type", "object"}, {"description", l.text}}
	case kind == reflect.Slice && !raw, kind == reflect.Array:
		return g.list(at, sec, l, typ, null)
	case isComponent:
		g.component(component, typ)
		s := reference("schemas", component)
		if null {
			s = object{{"oneOf", []any{s, object{{"type", "null"}}}}}
		}
		return append(s, member{"description", cmp.Or(l.text, g.section(component).text)})
	case kind == reflect.Struct && typ != reflect.TypeFor[time.Time](), kind == reflect.Map:
		g.fault("fields.txt does not say which schema %s has (%v): see NAME", at, typ)
		return object{}
	}
	return g.scalar(at, l, typ, null)
}

// list makes the schema of an array. Items that are not a component have the line of the field with [].
func (g *generator) list(at string, sec *section, l *line, typ reflect.Type, null bool) object {
	var items object
	if component, found := l.fact("see "); found {
		g.component(component, typ.Elem())
		items = reference("schemas", component)
	} else {
		items = g.property(sec, l.name+"[]", typ.Elem())
	}
	s := object{{"type", either("array", null)}, {"description", l.text}, {"items", items}}
	if typ.Kind() == reflect.Array {
		s.put("minItems", typ.Len())
		s.put("maxItems", typ.Len())
	}
	for _, fact := range l.facts {
		if words := strings.Fields(fact); words[0] != "see" && !bounds(&s, words, "minItems", "maxItems") {
			g.fault("%s: unknown fact %q", at, fact)
		}
	}
	return s
}

// scalar makes the schema of a value that is neither an object nor an array.
func (g *generator) scalar(at string, l *line, typ reflect.Type, null bool) object {
	name := jsonType(typ)
	s := object{{"type", either(name, null)}}
	text := l.text
	if typ == reflect.TypeFor[time.Time]() {
		s.put("format", "date-time")
		s.put("pattern", "Z$")
		text += " RFC 3339, UTC, whole seconds."
	}
	s.put("description", text)
	units := 0
	for _, fact := range l.facts {
		if !g.fact(&s, fact, null) {
			// A fact of no other kind is the unit.
			if s.put("description", text+" Unit: "+fact+"."); name == "integer" && (fact == "contracts" || strings.HasPrefix(fact, "USD")) {
				s = slices.Insert(s, 1, member{"format", "int64"})
			}
			units++
		}
	}
	fixed := s.get("const") != nil
	if number := name == "number" || name == "integer"; units > 1 || number != (units == 1) {
		g.fault("%s: %s has %d units: %q", at, name, units, l.facts)
	}
	example := g.lineExample(at, l.example, name)
	if enum, _ := s.get("enum").([]any); example == nil && enum != nil {
		example = enum[0]
	}
	switch {
	case example != nil:
		s.put("examples", []any{example})
	case !fixed && name != "boolean":
		g.fault("%s has no example", at)
	}
	return s
}

// fact adds a fact to a schema. It returns false if the fact is of no known kind.
func (g *generator) fact(s *object, fact string, null bool) bool {
	prefix, value, _ := strings.Cut(fact, ": ")
	switch prefix {
	case "date":
		*s = slices.Insert(*s, 1, member{"format", "date"})
	case "optional":
	case "matching":
		*s = slices.Insert(*s, 1, member{"pattern", value})
	case "always":
		s.put("const", constant(value))
	case "one of":
		var values []any
		for v := range strings.SplitSeq(value, ", ") {
			values = append(values, strings.Trim(v, `"`))
		}
		if null {
			values = append(values, nil)
		}
		s.put("enum", values)
	case "names of":
		var names []any
		for _, l := range g.section(value).lines {
			names = append(names, l.name)
		}
		s.put("enum", names)
	case "default":
		s.put("default", constant(value))
	default:
		words := strings.Fields(fact)
		if words[0] == "above" {
			s.put("exclusiveMinimum", constant(words[1]))
			return true
		}
		return bounds(s, words, "minimum", "maximum")
	}
	return true
}

// bounds adds the bounds that a fact gives: at least N, at most N, N to M, N items.
func bounds(s *object, words []string, least, most string) bool {
	if items := strings.HasPrefix(words[len(words)-1], "item"); items != (least == "minItems") {
		return false
	} else if items {
		words = words[:len(words)-1]
	}
	switch {
	case len(words) == 3 && words[0] == "at" && words[1] == "least":
		s.put(least, json.Number(words[2]))
	case len(words) == 3 && words[0] == "at" && words[1] == "most":
		s.put(most, json.Number(words[2]))
	case len(words) == 3 && words[1] == "to":
		s.put(least, json.Number(words[0]))
		s.put(most, json.Number(words[2]))
	case len(words) == 1 && least == "minItems":
		s.put(least, json.Number(words[0]))
		s.put(most, json.Number(words[0]))
	default:
		return false
	}
	return true
}

// constant returns a value as the table writes it: a number, true, false, or a text.
func constant(text string) any {
	switch text {
	case "true", "false":
		return text == "true"
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return json.Number(text)
	}
	return text
}

// lineExample returns the example of a line as a value of a type, nil without one.
func (g *generator) lineExample(at, text, typ string) any {
	if text == "" {
		return nil
	}
	v := constant(text)
	if _, number := v.(json.Number); number != (typ == "number" || typ == "integer") {
		if typ == "string" {
			return text
		}
		g.fault("%s: the example %q is no %s", at, text, typ)
	}
	return v
}

// either returns a type keyword.
func either(name string, null bool) any {
	if null {
		return []any{name, "null"}
	}
	return name
}

// jsonType returns the type of the JSON that a Go type becomes.
func jsonType(typ reflect.Type) string {
	v := reflect.New(typ).Elem()
	if v.CanFloat() {
		v.SetFloat(1.25)
	}
	text, err := json.Marshal(v.Interface())
	switch {
	case err != nil:
		return err.Error()
	case text[0] == '"':
		return "string"
	case text[0] == 't' || text[0] == 'f':
		return "boolean"
	case strings.Contains(string(text), "."):
		return "number"
	}
	return "integer"
}
