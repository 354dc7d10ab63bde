package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strings"
)

// render returns the document as a page.
func render(document []byte) ([]byte, error) {
	var d description
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, fmt.Errorf("parse OpenAPI document: %w", err)
	}
	t, err := template.New("docs").Funcs(template.FuncMap{
		"prose": prose, "type": typeOf, "body": bodyOf, "values": values, "unit": unitOf, "example": example, "plain": plain,
		"indent": indent, "name": nameOf, "tagged": d.tagged, "fields": d.fields, "about": d.about,
		"parameter": func(p *part) *part { return d.Components.Parameters.get(nameOf(p.Ref)) },
		"response":  func(p *part) *part { return d.Components.Responses.get(nameOf(p.Ref)) },
	}).Parse(page)
	if err != nil {
		return nil, fmt.Errorf("parse page: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, &d); err != nil {
		return nil, fmt.Errorf("render page: %w", err)
	}
	return out.Bytes(), nil
}

var (
	boldText   = regexp.MustCompile(`\*\*(.+?)\*\*`)
	codeText   = regexp.MustCompile("`(.+?)`")
	unitText   = regexp.MustCompile(` Unit: (.+)\.$`)
	paragraphs = strings.NewReplacer("\n\n", "</p><p>")
)

// prose renders the little of CommonMark that the document uses. The text is escaped first.
func prose(text string) template.HTML {
	html := template.HTMLEscapeString(unitText.ReplaceAllString(text, ""))
	html = boldText.ReplaceAllString(html, "<strong>$1</strong>")
	html = codeText.ReplaceAllString(html, "<code>$1</code>")
	return template.HTML("<p>" + paragraphs.Replace(html) + "</p>") //nolint:gosec // G203: escaped above
}

// unitOf returns the unit at the end of a description.
func unitOf(text string) string {
	if m := unitText.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// typeOf renders the type of a schema, with links to the schemas that it names.
func typeOf(s *schema) template.HTML {
	switch {
	case s.Ref != "":
		name := template.HTMLEscapeString(nameOf(s.Ref))
		return template.HTML(`<a href="#schema-` + name + `">` + name + `</a>`) //nolint:gosec // G203: escaped above
	case len(s.AllOf) > 0:
		html := typeOf(s.AllOf[0])
		for _, p := range s.AllOf[len(s.AllOf)-1].Properties {
			html += " with <code>" + template.HTML(template.HTMLEscapeString(p.Key)) + "</code> " + typeOf(p.Value) //nolint:gosec // G203: escaped here
		}
		return html
	case len(s.OneOf)+len(s.AnyOf) > 0:
		alternatives := append(s.OneOf, s.AnyOf...)
		html := typeOf(alternatives[0])
		for _, other := range alternatives[1:] {
			html += " or " + typeOf(other)
		}
		return html
	case s.Items != nil && len(s.PrefixItems) == 0:
		items := "array of " + typeOf(s.Items)
		if len(s.Type) > 1 {
			items += " or null"
		}
		return items
	}
	names := strings.Join(s.Type, " or ")
	if s.Format != "" && s.Type[0] == "string" {
		names = strings.Replace(names, "string", s.Format, 1)
	}
	return template.HTML(template.HTMLEscapeString(names)) //nolint:gosec // G203: escaped here
}

// bodyOf renders the type of a body and, of an error, the codes that it may have.
func bodyOf(s *schema) template.HTML {
	if len(s.AllOf) < 2 {
		return typeOf(s)
	}
	code := s.AllOf[1].Properties.get("error").AllOf[1].Properties.get("code")
	return typeOf(s.AllOf[0]) + " <code>" + template.HTML(template.HTMLEscapeString(values(code))) + "</code>" //nolint:gosec // G203: escaped here
}

// values says which values a schema allows.
func values(s *schema) string {
	switch {
	case len(s.Const) > 0:
		return "always " + string(s.Const)
	case len(s.Enum) > 0:
		names := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			names[i] = string(v)
		}
		return strings.Join(names, ", ")
	}
	var bounds []string
	for _, b := range [][2]string{
		{"above", s.ExclusiveMinimum.String()}, {"at least", s.Minimum.String()}, {"at most", s.Maximum.String()},
		{"items at least", s.MinItems.String()}, {"items at most", s.MaxItems.String()}, {"default", string(s.Default)}, {"pattern", s.Pattern},
	} {
		if b[1] != "" {
			bounds = append(bounds, b[0]+" "+b[1])
		}
	}
	return strings.Join(bounds, ", ")
}

// example returns the first example of a schema.
func example(s *schema) string {
	if len(s.Examples) == 0 {
		return ""
	}
	return string(s.Examples[0])
}

// plain returns the first example of a schema as a header field or a query has it.
func plain(s *schema) string {
	var text string
	if e := example(s); json.Unmarshal([]byte(e), &text) != nil {
		return e
	}
	return text
}

// indent spreads JSON over lines.
func indent(b json.RawMessage) (string, error) {
	var out bytes.Buffer
	err := json.Indent(&out, b, "", "  ")
	return out.String(), err
}
