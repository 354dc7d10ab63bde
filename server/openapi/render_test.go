package openapi_test

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"
)

//go:embed docs.tmpl
var pageTemplate string

// render returns a document as a page.
func render(document object) ([]byte, error) {
	t, err := template.New("docs").Funcs(template.FuncMap{
		"get": object.at, "name": nameOf, "prose": prose, "inline": inline, "type": typeOf, "meaning": meaning, "unit": unitOf, "plain": plainExample,
	}).Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse docs.tmpl: %w", err)
	}
	shown, err := pageOf(document)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, shown)
	return out.Bytes(), err
}

// at follows the keys from object to object and returns the value of the last key; nil if a key is missing.
func (o object) at(keys ...string) any {
	for _, key := range keys[:len(keys)-1] {
		o, _ = o.get(key).(object)
	}
	return o.get(keys[len(keys)-1])
}

// list returns an array that may be absent.
func list(v any) []any {
	items, _ := v.([]any)
	return items
}

// nameOf returns the last part of a reference.
func nameOf(reference object) string {
	ref, _ := reference.get("$ref").(string)
	return ref[strings.LastIndexByte(ref, '/')+1:]
}

// fields returns the members of a schema, or the positions of a row.
func fields(schema object) (fields object) {
	for i, item := range list(schema.get("prefixItems")) {
		fields.put(fmt.Sprintf("[%d]", i), item)
	}
	properties, _ := schema.get("properties").(object)
	return append(fields, properties...)
}

var (
	boldText   = regexp.MustCompile(`\*\*(.+?)\*\*`)
	codeText   = regexp.MustCompile("`(.+?)`")
	paragraphs = strings.NewReplacer("\n\n", "</p><p>")
)

// prose renders the subset of CommonMark that the document uses. The text is escaped first.
func prose(text string) template.HTML {
	text, _, _ = strings.Cut(text, unitMark)
	return template.HTML("<p>" + paragraphs.Replace(string(inline(text))) + "</p>")
}

// meaning renders the description of a schema, with the values that the schema allows. It leaves out values that the text
// names.
func meaning(text string, schema object) template.HTML {
	html := prose(text)
	named := len(list(schema.get("enum"))) > 0
	for _, v := range list(schema.get("enum")) {
		named = named && strings.Contains(text, "`"+fmt.Sprint(v)+"`")
	}
	if allowed := values(schema); allowed != "" && !named {
		html = template.HTML(strings.TrimSuffix(string(html), "</p>")+` <span class="values">`+template.HTMLEscapeString(allowed)) + "</span></p>"
	}
	return html
}

// inline renders a text of one paragraph.
func inline(text string) template.HTML {
	html := template.HTMLEscapeString(text)
	html = boldText.ReplaceAllString(html, "<strong>$1</strong>")
	return template.HTML(codeText.ReplaceAllString(html, "<code>$1</code>"))
}

// unitMark is before the unit at the end of a description.
const unitMark = " Unit: "

// unitOf returns the unit at the end of a description.
func unitOf(text string) string {
	_, unit, _ := strings.Cut(text, unitMark)
	return strings.TrimSuffix(unit, ".")
}

// typeOf says in words which type a schema has.
func typeOf(schema object) string {
	if nameOf(schema) != "" || schema.get("allOf") != nil || schema.get("properties") != nil {
		return "object"
	}
	var alternatives []string
	for _, s := range append(list(schema.get("oneOf")), list(schema.get("anyOf"))...) {
		alternatives = append(alternatives, typeOf(s.(object)))
	}
	names := list(schema.get("type"))
	if name, ok := schema.get("type").(string); ok {
		names = []any{name}
	}
	for _, name := range names {
		items, isArray := schema.get("items").(object)
		format, hasFormat := schema.get("format").(string)
		switch {
		case name == "array" && isArray && schema.get("prefixItems") == nil:
			first, rest, _ := strings.Cut(typeOf(items)+" ", " ")
			name = "array of " + strings.TrimSpace(first+"s "+rest)
		case name == "string" && hasFormat:
			name = format
		}
		alternatives = append(alternatives, name.(string))
	}
	return strings.Join(slices.Compact(alternatives), " or ")
}

// values says which values a schema allows.
func values(schema object) string {
	if fixed := schema.get("const"); fixed != nil {
		return "always " + oneLine(fixed)
	}
	var words []string
	for _, v := range list(schema.get("enum")) {
		words = append(words, oneLine(v))
	}
	least, most := schema.get("minItems"), schema.get("maxItems")
	if least != nil && most != nil && oneLine(least) == oneLine(most) {
		return oneLine(least) + " items"
	}
	for _, bound := range [][2]string{
		{"exclusiveMinimum", "above"}, {"minimum", "at least"}, {"maximum", "at most"}, {"minItems", "items at least"},
		{"maxItems", "items at most"}, {"default", "default"}, {"pattern", "pattern"},
	} {
		switch v := schema.get(bound[0]).(type) {
		case nil:
		case string:
			if schema.get("format") == nil { // otherwise the format says it
				words = append(words, bound[1]+" "+v)
			}
		default:
			words = append(words, bound[1]+" "+oneLine(v))
		}
	}
	return strings.Join(words, ", ")
}

// plainExample returns the first example of a schema as a header field or a query has it.
func plainExample(schema object) string {
	for _, e := range list(schema.get("examples")) {
		return fmt.Sprint(e)
	}
	return ""
}
