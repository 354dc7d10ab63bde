package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// snake makes one name of the parts of a resource's name: gex_historical, vix_term_structure.
var snake = strings.NewReplacer("/{u}", "", "{u}-", "", "/", "_", "-", "_")

// withoutUnderlying makes the path of a widget of a resource's name: gex/historical.
var withoutUnderlying = strings.NewReplacer("/{u}", "", "{u}-", "")

// tools returns a tool of the Model Context Protocol for each resource, so that a new resource becomes a tool. The name of a tool
// is that of the resource without the underlying, which is an argument.
func (p *page) tools() (tools []object) {
	parameters := p.document["components"].(object)["parameters"].(object)
	for _, e := range p.Endpoints {
		if e.Data == nil {
			continue
		}
		arguments := object{"rows": object{"type": "integer", "minimum": 1, "maximum": 500, "default": 12,
			"description": "The largest number of rows of each table. Longer tables are cut to the rows that matter most."}}
		for _, ref := range e.Parameters {
			d := p.Components.Parameters[ref.Component()]
			argument := maps.Clone(parameters[ref.Component()].(object)["schema"].(object))
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
			"path": e.Path, "name": snake.Replace(e.Resource), "title": e.Get.Summary, "description": e.Get.Summary + ". " + e.Get.Description,
			"annotations":  object{"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false},
			"inputSchema":  object{"type": "object", "properties": arguments, "additionalProperties": false},
			"outputSchema": p.compact(e.Data),
		})
	}
	return tools
}

// compact is the schema of an answer in the form that a tool returns. It describes the members of data by their first sentence and
// their unit, and not the columns of tables: a model may read all schemas before its first question.
func (p *page) compact(data *schema) object {
	members := object{}
	for name, f := range p.resolve(data).Properties.FromOldest() {
		inner := p.resolve(f)
		types, isList := inner.Type.([]any)
		if !isList {
			types = []any{inner.Type}
		}
		if inner.Items != nil { // a list of objects becomes a table
			types = append(slices.Clone(types), "object")
		}
		if f.orNull() {
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

// widgets returns a widget of OpenBB Workspace for each list of objects in the data of a resource. The form is that
// of "widgets.json Reference" in OpenBB's documentation for developers, and the directories widget-examples of OpenBB's repository
// backends-for-openbb: an object of widgets by ID, whose table reads a list of flat objects at dataKey. OpenBB's own widgets of SEC
// filings have a dataKey with a point, as those here. By the reference, Workspace puts parameters into the query and not into a path, so a
// widget of a resource of an underlying has a path of its own, below /widgets/, with the underlying as a parameter. {underlyings} stands
// for its values, {underlying} for the first of them, {source} for the source of the numbers.
func (p *page) widgets() object {
	widgets := object{}
	for _, e := range p.Endpoints {
		if e.Data == nil || strings.HasSuffix(e.Path, "/historical") { // of which the tables are those of the current answer
			continue
		}
		params, endpoint := []object{}, e.Path[1:]
		if strings.Contains(e.Path, "{u}") {
			endpoint = "widgets/" + withoutUnderlying.Replace(e.Resource)
			params = append(params, object{
				"paramName": "underlying", "label": "Underlying", "type": "text", "value": "{underlying}", "options": "{underlyings}", "show": true,
				"description": "The underlying whose numbers are shown.",
			})
		}
		for _, ref := range e.Parameters {
			d := p.Components.Parameters[ref.Component()]
			if d.In != "query" || d.Name == "format" {
				continue
			}
			kind := "date"
			if d.Schema.Type == "integer" {
				kind = "number"
			}
			params = append(params, object{
				"paramName": d.Name, "label": title(d.Name), "type": kind, "value": d.Schema.Default, "show": true, "description": d.Description,
			})
		}
		for name, f := range p.resolve(e.Data).Properties.FromOldest() {
			table := p.widgetTable(f)
			if table == nil {
				continue
			}
			widget := object{
				"name": title(name) + ": " + e.Get.Summary, "description": strings.TrimSpace(f.Description + " " + e.Get.Description),
				"category": e.Get.Tags[0], "endpoint": endpoint, "type": "table", "params": params, "gridData": object{"w": 20, "h": 12},
				"refetchInterval": 60_000, "source": []string{"{source}"}, "data": object{"dataKey": "data." + name, "table": table},
			}
			widgets[snake.Replace(e.Resource)+"_"+name] = widget
		}
	}
	return widgets
}

func title(name string) string { return capital(strings.ReplaceAll(name, "_", " ")) }

// widgetTable returns the table of a list of objects, nil if it would say too little: without a chart, fewer than two columns of
// numbers, or with tables in its rows. A table whose first column has numbers or dates is shown as a chart of the next columns
// that share a unit other than that of price levels.
func (p *page) widgetTable(list *schema) object {
	if p.resolve(list).Items == nil {
		return nil
	}
	var columns []object
	var chart []string
	unit, numbers := "", 0
	for name, f := range p.items(list).Properties.FromOldest() {
		r, inner := p.row("", name, "", f), p.resolve(f)
		kind := strings.TrimSuffix(r.Type, " or null")
		switch {
		case strings.HasPrefix(kind, "array of objects"):
			return nil
		case kind == "object" || strings.HasPrefix(kind, "array") || strings.HasSuffix(name, "sha256"):
			continue
		}
		column := object{"field": name, "headerName": title(name), "headerTooltip": r.Unit, "cellDataType": "text", "chartDataType": "excluded"}
		switch {
		case r.Unit != "":
			numbers++
			if column["cellDataType"] = "number"; r.Unit == "percent" {
				column["formatterFn"] = "percent"
			} else if !strings.Contains(name, "dollars") {
				column["formatterFn"] = "none" // 7500, not 7.5 K
			}
			if level := strings.Contains(r.Unit, "index points") || r.Unit == "days"; len(chart) > 0 && (unit == "" && !level || unit == r.Unit) {
				chart, unit, column["chartDataType"] = append(chart, name), r.Unit, "series"
			}
		case inner.Format == "date":
			column["cellDataType"] = "dateString"
		}
		if len(columns) == 0 && column["cellDataType"] != "text" {
			chart, column["chartDataType"] = []string{name}, "category"
		}
		columns = append(columns, column)
	}
	table := object{"columnsDefs": columns, "showAll": false}
	switch {
	case len(chart) > 1:
		table["enableCharts"] = true
		table["chartView"] = object{"enabled": true, "chartType": "column", "cellRangeCols": object{"column": chart}}
	case numbers < 2:
		return nil
	}
	return table
}
