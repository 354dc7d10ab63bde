package openapi_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/invopop/jsonschema"

	"strikecache/compute"
)

// reflector makes schemas from Go types. The comment of a field is its description. Its tag jsonschema has its bounds, pattern and
// values, its tag unit the unit, which every number needs. A pointer may be null, and its description says when.
type reflector struct {
	jsonschema.Reflector
	structs map[string]reflect.Type       // by the name of the schema
	schemas map[string]*jsonschema.Schema // of all named types
	faults  []string
}

func (g *reflector) fault(format string, args ...any) {
	g.faults = append(g.faults, fmt.Sprintf(format, args...))
}

func newReflector() *reflector {
	g := &reflector{structs: map[string]reflect.Type{}, schemas: map[string]*jsonschema.Schema{}}
	comments := map[string]string{}
	for _, folder := range []string{"../../compute", "../../refresh", "../../snapshots", "."} {
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil || len(files) == 0 {
			g.fault("%s: %d files, %v", folder, len(files), err)
		}
		for _, file := range files {
			if err := readComments(file, comments); err != nil {
				g.fault("%v", err)
			}
		}
	}
	g.Reflector = jsonschema.Reflector{
		Anonymous: true, AllowAdditionalProperties: true, Namer: g.name, Mapper: scalar,
		LookupComment: func(t reflect.Type, field string) string {
			text := comments[path.Base(t.PkgPath())+"."+t.Name()+"."+field]
			for _, verb := range []string{"is", "are"} { // Flip is a sign change: A sign change
				if rest, found := strings.CutPrefix(text, t.Name()+" "+verb+" "); found {
					return strings.ToUpper(rest[:1]) + rest[1:]
				}
			}
			return text
		},
	}
	return g
}

// readComments reads the comments of the types of a file and of their fields, by names such as compute.Gamma.Spot. That of a type
// ends with a point. The library reads the comments of exported types only.
func readComments(file string, comments map[string]string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	typ := ""
	put := func(field string, groups ...*ast.CommentGroup) {
		for _, group := range groups {
			if text := strings.Join(strings.Fields(group.Text()), " "); text != "" {
				comments[typ+"."+field] = text
				return
			}
		}
	}
	var about *ast.CommentGroup
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			about = n.Doc
		case *ast.TypeSpec:
			typ = parsed.Name.Name + "." + n.Name.Name
			put("", n.Doc, about)
		case *ast.Field:
			for _, name := range n.Names {
				put(name.Name, n.Doc, n.Comment)
			}
		}
		return true
	})
	return nil
}

// name is the name of a type's schema: the name of the type, exported.
func (g *reflector) name(t reflect.Type) string {
	if t.Name() == "" {
		return ""
	}
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	if t.Kind() == reflect.Struct {
		g.structs[name] = t
	}
	return name
}

// scalar makes the schema of a type whose JSON its kind does not tell.
func scalar(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[compute.Dollars](), reflect.TypeFor[compute.Count]():
		return &jsonschema.Schema{Type: "integer", Format: "int64"}
	case reflect.TypeFor[compute.Date]():
		return &jsonschema.Schema{Type: "string", Format: "date"}
	case reflect.TypeFor[compute.Right]():
		return &jsonschema.Schema{Type: "string", Enum: []any{"call", "put"}}
	case reflect.TypeFor[compute.Settlement]():
		return &jsonschema.Schema{Type: "string", Enum: []any{"am", "pm"}}
	}
	return nil
}

// schema makes the schema of a value's type and returns a reference to it.
func (g *reflector) schema(v any) *jsonschema.Schema {
	root := g.Reflect(v)
	for name, s := range root.Definitions {
		if g.schemas[name] != nil {
			continue // made before, and perhaps finished
		}
		g.schemas[name] = s
		t := g.structs[name]
		if t == nil {
			continue
		}
		for _, f := range reflect.VisibleFields(t) {
			field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if p, found := s.Properties.Get(field); found {
				g.finish(name+"."+field, f, p)
			}
		}
	}
	return &jsonschema.Schema{Ref: root.Ref}
}

// nullText finds the words that say when a value is null.
var nullText = regexp.MustCompile("(^|[.;:] )`null` ")

// finish checks the schema of a field and adds what the library does not: null, the unit, references.
func (g *reflector) finish(at string, f reflect.StructField, s *jsonschema.Schema) {
	text, unit := s.Description, f.Tag.Get("unit")
	if unit != "" {
		s.Description += " Unit: " + unit + "."
	}
	var nulls []*jsonschema.Schema
	value, t := s, f.Type // of the field, or of its items
	for {
		if t.Kind() == reflect.Pointer {
			t, nulls = t.Elem(), append(nulls, value)
		}
		if len(value.OneOf) == 1 { // a tag can name a schema only as a choice of one
			*value = jsonschema.Schema{Ref: value.OneOf[0].Ref, Description: value.Description}
		}
		if value.Items == nil {
			break
		}
		value, t = value.Items, t.Elem()
	}
	if number := value.Type == "integer" || value.Type == "number"; number != (unit != "") {
		g.fault("%s: a number needs a unit, and nothing else has one: %q", at, unit)
	}
	if null := len(nulls) > 0; null != nullText.MatchString(text) {
		g.fault("%s: it may be null: %v; its comment says when: %v", at, null, !null)
	}
	if s.Ref == "" && text == "" || text != "" && !strings.HasSuffix(text, ".") {
		g.fault("%s has no comment, or one without a full stop: %q", at, text)
	}
	if value.Format == "date-time" {
		value.Pattern = "Z$"
	}
	for _, s := range nulls {
		switch {
		case s.Ref != "":
			*s = jsonschema.Schema{OneOf: []*jsonschema.Schema{{Ref: s.Ref}, {Type: "null"}}, Description: s.Description}
		default:
			s.Extras = map[string]any{"type": []string{s.Type, "null"}}
			if s.Type = ""; s.Enum != nil {
				s.Enum = append(s.Enum, nil)
			}
		}
	}
}

// example gives each field that has no example its value in an answer.
func (g *reflector) example(s *jsonschema.Schema, v any) {
	if len(s.OneOf) > 0 {
		s = s.OneOf[0]
	}
	if s.Ref != "" {
		if s = g.schemas[path.Base(s.Ref)]; s == nil {
			return // of openapi.yaml
		}
	}
	switch v := v.(type) {
	case nil:
	case object:
		for name, p := range s.Properties.FromOldest() {
			g.example(p, v[name])
		}
	case []any:
		for _, x := range v {
			g.example(s.Items, x)
		}
	default:
		if s.Examples == nil {
			s.Examples = []any{v}
		}
	}
}
