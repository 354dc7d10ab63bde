package openapi_test

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed fields.txt
var fieldsText string

// table is fields.txt: the descriptions of all schemas, fields, header fields and parameters.
type table struct {
	sections map[string]*section
}

// section describes one schema. A field that it does not describe has the line of the section like.
type section struct {
	name, text string
	like       *section
	lines      []*line
}

// line describes one field. schema_test.go turns its facts into a schema.
type line struct {
	name, example, text string
	facts               []string
	used                bool
}

// parseTable reads fields.txt. The comment at the top of fields.txt explains its form.
func parseTable(text string) (*table, error) {
	t := &table{map[string]*section{}}
	var current *section
	for i, row := range strings.Split(text, "\n") {
		switch cells := strings.Split(row, " |"); {
		case row == "" || row[0] == '#':
		case row[0] == '[':
			head, about, found := strings.Cut(row[1:], "]")
			name, like, _ := strings.Cut(head, " like ")
			current = &section{name: name, text: strings.TrimSpace(about), like: t.sections[like]}
			if !found || t.sections[name] != nil || like != "" && current.like == nil {
				return nil, fmt.Errorf("line %d: section %q has no ], is defined twice, or is like a section that is not above it", i+1, head)
			}
			t.sections[name] = current
		case len(cells) < 2 || len(cells) > 4 || current == nil:
			return nil, fmt.Errorf("line %d: %d cells, want 2 to 4: name | facts | example | meaning", i+1, len(cells))
		default:
			cells = append(cells, "", "")
			l := &line{name: strings.TrimSpace(cells[0]), example: strings.TrimSpace(cells[2]), text: strings.TrimSpace(cells[3])}
			for fact := range strings.SplitSeq(cells[1], "; ") {
				if fact = strings.TrimSpace(fact); fact != "" {
					l.facts = append(l.facts, fact)
				}
			}
			if current.own(l.name) != nil {
				return nil, fmt.Errorf("line %d: %s.%s is described twice", i+1, current.name, l.name)
			}
			current.lines = append(current.lines, l)
		}
	}
	return t, nil
}

// own returns the section's own line of a field, nil without one.
func (s *section) own(field string) *line {
	for _, l := range s.lines {
		if l.name == field {
			return l
		}
	}
	return nil
}

// line returns the line of a field in the section or in the section that it is like; nil if there is none.
func (s *section) line(field string) *line {
	for ; s != nil; s = s.like {
		if l := s.own(field); l != nil {
			l.used = true
			return l
		}
	}
	return nil
}

// fact returns what follows a prefix in the one fact that begins with it.
func (l *line) fact(prefix string) (value string, found bool) {
	for _, fact := range l.facts {
		if value, found = strings.CutPrefix(fact, prefix); found {
			return value, true
		}
	}
	return "", false
}
