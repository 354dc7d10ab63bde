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
		"prose": prose, "fields": d.fields, "about": d.about, "body": bodyOf, "type": typeOf, "values": values, "unit": unitOf, "example": example, "plain": plain, "indent": indent, "name": nameOf,
		"parameter": func(p *parameter) *parameter { return follow(p, p.Ref, d.Components.Parameters) },
		"response":  func(r *response) *response { return follow(r, r.Ref, d.Components.Responses) },
		"tagged":    d.tagged,
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

// nameOf returns the last part of a reference.
func nameOf(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// follow returns what a reference points to, or the thing itself without one.
func follow[T any](thing T, ref string, components ordered[T]) T {
	if ref == "" {
		return thing
	}
	return components.get(nameOf(ref))
}

// tagged returns the paths of a tag.
func (d *description) tagged(tag string) (paths ordered[*pathItem]) {
	for _, p := range d.Paths {
		if p.Value.Get.Tags[0] == tag {
			paths = append(paths, p)
		}
	}
	return paths
}

// fields returns the members of a schema, those of the schemas it is composed of among them, or the positions of a
// row.
func (d *description) fields(s *schema) (fields ordered[*schema]) {
	if s.Ref != "" {
		return d.fields(d.Components.Schemas.get(nameOf(s.Ref)))
	}
	for _, part := range s.AllOf {
		fields = append(fields, d.fields(part)...)
	}
	for i, item := range s.PrefixItems {
		fields = append(fields, member[*schema]{fmt.Sprintf("[%d]", i), item})
	}
	return append(fields, s.Properties...)
}

// about describes a schema, in the words of the one that it refers to where it has none of its own.
func (d *description) about(s *schema) string {
	if s.Description == "" && s.Ref != "" {
		return d.Components.Schemas.get(nameOf(s.Ref)).Description
	}
	return s.Description
}

var (
	boldText   = regexp.MustCompile(`\*\*(.+?)\*\*`)
	codeText   = regexp.MustCompile("`(.+?)`")
	unitText   = regexp.MustCompile(` Unit: (.+)\.$`)
	paragraphs = strings.NewReplacer("\n\n", "</p><p>")
)

// prose renders the little of CommonMark that the document uses. What it is given is escaped first.
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
	var parts []string
	add := func(schemas []*schema) {
		for _, s := range schemas {
			if html := typeOf(s); html != "" {
				parts = append(parts, string(html))
			}
		}
	}
	glue := " or "
	switch {
	case s.Ref != "":
		name := template.HTMLEscapeString(nameOf(s.Ref))
		return template.HTML(`<a href="#schema-` + name + `">` + name + `</a>`) //nolint:gosec // G203: escaped above
	case len(s.AllOf) > 0:
		glue = " with "
		add(s.AllOf)
	case len(s.OneOf)+len(s.AnyOf) > 0:
		add(s.OneOf)
		add(s.AnyOf)
	case s.Items != nil && len(s.PrefixItems) == 0:
		parts = append(parts, "array of "+string(typeOf(s.Items)))
		if len(s.Type) > 1 {
			parts = append(parts, "null")
		}
	case len(s.Properties) > 0:
		glue = ", "
		for _, p := range s.Properties {
			parts = append(parts, "<code>"+template.HTMLEscapeString(p.Key)+"</code> "+string(typeOf(p.Value)))
		}
	default:
		for _, name := range s.Type {
			if s.Format != "" && name == "string" {
				name = s.Format
			}
			parts = append(parts, template.HTMLEscapeString(name))
		}
	}
	return template.HTML(strings.Join(parts, glue)) //nolint:gosec // G203: every part is escaped
}

// bodyOf renders the type of a body, and which codes its error may have.
func bodyOf(s *schema) template.HTML {
	html := typeOf(s)
	if len(s.AllOf) == 2 && s.AllOf[0].Ref != "" {
		if e := s.AllOf[1].Properties.get("error"); e != nil && len(e.AllOf) == 2 {
			html = typeOf(s.AllOf[0]) + " <code>" + template.HTML(template.HTMLEscapeString(values(e.AllOf[1].Properties.get("code")))) + "</code>" //nolint:gosec // G203: escaped here
		}
	}
	return html
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
	for _, b := range []struct {
		name  string
		value string
	}{
		{"above", s.ExclusiveMinimum.String()}, {"at least", s.Minimum.String()}, {"at most", s.Maximum.String()},
		{"items at least", s.MinItems.String()}, {"items at most", s.MaxItems.String()}, {"default", string(s.Default)}, {"pattern", s.Pattern},
	} {
		if b.value != "" {
			bounds = append(bounds, b.name+" "+b.value)
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
