package openapi_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
)

// toolsFile makes tools.json: a tool of the Model Context Protocol for each public resource, so that a new resource becomes a tool. The
// name of a tool is the resource's name without the underlying, with _ for every other character: gex_historical,
// vix_term_structure. The underlying is an argument.
func toolsFile(document []byte) ([]byte, error) {
	var doc struct {
		Components struct {
			Parameters map[string]struct{ Schema object }
		}
	}
	p := &page{}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(document, p); err != nil {
		return nil, err
	}
	var tools []object
	for _, at := range slices.Sorted(maps.Keys(p.Paths)) {
		name, isPublic := strings.CutPrefix(at, "/api/")
		if !isPublic {
			continue
		}
		_, name, _ = strings.Cut(name, "/") // without v1 or public
		item := p.Paths[at]
		arguments := object{"rows": object{"type": "integer", "minimum": 1, "maximum": 500, "default": 12,
			"description": "The largest number of rows of each table. Longer tables are cut to the rows that matter most."}}
		for _, ref := range item.Parameters {
			d, argument := p.Components.Parameters[ref.Component()], maps.Clone(doc.Components.Parameters[ref.Component()].Schema)
			argument["description"] = d.Description
			switch {
			case d.Name == "format": // an answer without meta would lack its time and source
			case d.Name == "limit": // it bounds the rows
				argument["default"] = 12
				delete(arguments, "rows")
				fallthrough
			case d.In == "query":
				arguments[d.Name] = argument
			case d.In == "path":
				argument["default"] = "spx"
				arguments["underlying"] = argument
			}
		}
		tools = append(tools, object{
			"path": at, "name": strings.NewReplacer("/{u}", "", "{u}-", "", "/", "_", "-", "_").Replace(name),
			"title": item.Get.Summary, "description": item.Get.Summary + ". " + item.Get.Description,
			"annotations":  object{"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false},
			"inputSchema":  object{"type": "object", "properties": arguments, "additionalProperties": false},
			"outputSchema": p.compact(path.Base(item.Get.Responses["200"].Ref) + "Answer"),
		})
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(tools)
	return out.Bytes(), err
}

// compact is the schema of an answer in the form that a tool returns. It describes the members of data by their first sentence and
// their unit, and not the columns of tables: a model may read all schemas before its first question.
func (p *page) compact(answer string) object {
	members := object{}
	for name, f := range p.resolve(p.Components.Schemas[answer].AllOf[1].Properties.Value("data")).Properties.FromOldest() {
		inner := p.resolve(f)
		types, isList := inner.Type.([]any)
		if !isList {
			types = []any{inner.Type}
		}
		if inner.Items != nil { // a list of objects becomes a table
			types = append(slices.Clone(types), "object")
		}
		if f != inner && f.OneOf != nil {
			types = append(slices.Clone(types), "null")
		}
		text, unit, _ := strings.Cut(cmp.Or(f.Description, inner.Description), " Unit: ")
		text, _, _ = strings.Cut(text, ". ")
		if text = strings.TrimSuffix(text, ".") + "."; unit != "" {
			text += " Unit: " + unit
		}
		members[name] = object{"type": types, "description": text}
	}
	return object{"type": "object", "required": []string{"cut", "data", "meta"}, "properties": object{
		"warning": object{"type": "string", "description": "Says that the numbers are not real, or not of today."},
		"cut":     object{"type": "array", "items": object{"type": "string"}, "description": "Which tables lack rows."},
		"data":    object{"type": "object", "properties": members, "description": "A list of objects is a table with columns and rows."},
		"meta":    object{"type": "object", "description": "Source, time, freshness and quality of the numbers, and a notice."},
	}}
}
