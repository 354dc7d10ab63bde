package openapi_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strings"
)

//go:embed docs.tmpl
var pageTemplate string

// render returns a document as a page.
func render(document object) ([]byte, error) {
	component := func(kind string, reference object) object {
		return document.at("components", kind, nameOf(reference)).(object)
	}
	t, err := template.New("docs").Funcs(template.FuncMap{
		"get": object.at, "indent": indent, "name": nameOf, "fields": fields, "component": component,
		"prose": prose, "type": typeOf, "body": bodyOf, "values": values, "unit": unitOf, "example": example, "plain": plainExample,
	}).Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse docs.tmpl: %w", err)
	}
	var out bytes.Buffer
	err = t.Execute(&out, document)
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
	html := template.HTMLEscapeString(text)
	html = boldText.ReplaceAllString(html, "<strong>$1</strong>")
	html = codeText.ReplaceAllString(html, "<code>$1</code>")
	return template.HTML("<p>" + paragraphs.Replace(html) + "</p>")
}

// unitMark is before the unit at the end of a description.
const unitMark = " Unit: "

// unitOf returns the unit at the end of a description.
func unitOf(text string) string {
	_, unit, _ := strings.Cut(text, unitMark)
	return strings.TrimSuffix(unit, ".")
}

// typeOf renders the type of a schema, with links to the schemas that it names. Nothing in it needs to be escaped.
func typeOf(schema object) template.HTML {
	if name := nameOf(schema); name != "" {
		return template.HTML(`<a href="#schema-` + name + `">` + name + `</a>`)
	}
	if parts := list(schema.get("allOf")); parts != nil {
		html := typeOf(parts[0].(object))
		for _, p := range fields(parts[len(parts)-1].(object)) {
			html += " with <code>" + template.HTML(p.Key) + "</code> " + typeOf(p.Value.(object))
		}
		return html
	}
	var alternatives []string
	for _, s := range append(list(schema.get("oneOf")), list(schema.get("anyOf"))...) {
		alternatives = append(alternatives, string(typeOf(s.(object))))
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
			name = "array of " + string(typeOf(items))
		case name == "string" && hasFormat:
			name = format
		}
		alternatives = append(alternatives, name.(string))
	}
	return template.HTML(strings.Join(alternatives, " or "))
}

// bodyOf renders the type of a body and, of an error, the codes that it may have.
func bodyOf(schema object) template.HTML {
	parts := list(schema.get("allOf"))
	if len(parts) < 2 {
		return typeOf(schema)
	}
	err := parts[1].(object).at("properties", "error", "allOf").([]any)
	code := err[1].(object).at("properties", "code").(object)
	return typeOf(parts[0].(object)) + " <code>" + template.HTML(template.HTMLEscapeString(values(code))) + "</code>"
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
	for _, bound := range [][2]string{
		{"exclusiveMinimum", "above"}, {"minimum", "at least"}, {"maximum", "at most"}, {"minItems", "items at least"},
		{"maxItems", "items at most"}, {"default", "default"}, {"pattern", "pattern"},
	} {
		switch v := schema.get(bound[0]).(type) {
		case nil:
		case string:
			words = append(words, bound[1]+" "+v)
		default:
			words = append(words, bound[1]+" "+oneLine(v))
		}
	}
	return strings.Join(words, ", ")
}

// example returns the first example of a schema.
func example(schema object) string {
	for _, e := range list(schema.get("examples")) {
		return oneLine(e)
	}
	return ""
}

// plainExample returns the first example of a schema as a header field or a query has it.
func plainExample(schema object) string {
	for _, e := range list(schema.get("examples")) {
		return fmt.Sprint(e)
	}
	return ""
}

// indent spreads JSON over lines.
func indent(v any) (string, error) {
	var out bytes.Buffer
	err := json.Indent(&out, []byte(oneLine(v)), "", "  ")
	return out.String(), err
}
