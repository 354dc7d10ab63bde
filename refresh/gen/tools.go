package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
)

// snake makes one name of the parts of a resource's name: gex_historical, vix_term_structure.
var snake = strings.NewReplacer("/{u}", "", "{u}-", "", "/", "_", "-", "_")

// withoutUnderlying makes the path of a widget of a resource's name: gex/historical.
var withoutUnderlying = strings.NewReplacer("/{u}", "", "{u}-", "")

// kilobytes is how large the answers of tools are with the default of rows, by name; those of others have about 3 KB.
var kilobytes = map[string]int{
	"gex": 8, "gex_historical": 8, "gex_strikes": 4, "gex_matrix": 5, "gex_open_interest": 2, "gex_summary": 1, "max_pain": 5, "options_flow": 6,
	"options_flow_unusual": 7, "sectors_rotation": 5, "sectors_rotation_series": 5, "volatility": 4, "volatility_historical": 4, "volatility_series": 2,
}

// tools returns a tool of the Model Context Protocol for each resource, so that a new resource becomes a tool. The name of a tool
// is that of the resource without the underlying, which is an argument. A model reads all of them before its first question: so no
// tool describes its result, whose names say what they are and which the methods define.
func (p *page) tools() (tools []object) {
	for _, e := range p.Endpoints {
		if e.Data == nil {
			continue
		}
		arguments := object{}
		for _, f := range p.resolve(e.Data).Properties.FromOldest() {
			if p.resolve(f).Items != nil && e.Resource != "underlyings" && e.Resource != "gex/{u}/levels" { // which are never cut
				arguments["rows"] = object{"type": "integer", "minimum": 1, "maximum": 500, "default": 12,
					"description": "Most rows of a table. A longer table is cut to the rows that matter most."}
			}
		}
		for _, ref := range e.Parameters {
			d := p.Components.Parameters[ref.Component()]
			argument := object{"type": d.Schema.Type}
			if argument["description"], _, _ = strings.Cut(d.Description, ". "); d.Schema.Format != "" {
				argument["format"] = d.Schema.Format
			}
			switch {
			case d.Name == "format": // an answer without meta would lack its time and source
			case d.Name == "limit": // it bounds the rows
				argument["minimum"], argument["maximum"], argument["default"] = d.Schema.Minimum, d.Schema.Maximum, 12
				delete(arguments, "rows")
				fallthrough
			case d.In == "query":
				arguments[d.Name] = argument
			case d.In == "path":
				argument["default"] = "spx"
				arguments["underlying"] = argument
			}
		}
		name := snake.Replace(e.Resource)
		tools = append(tools, object{
			"path": e.Path, "name": name, "title": e.Get.Summary, "description": fmt.Sprintf("%s About %d KB.", e.Get.Description, cmp.Or(kilobytes[name], 3)),
			"annotations": object{"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false},
			"inputSchema": object{"type": "object", "properties": arguments, "additionalProperties": false},
		})
	}
	return tools
}

// widgets returns a widget of OpenBB Workspace for each list of objects in the data of a resource. The form is that
// of "widgets.json Reference" in OpenBB's documentation for developers, and the directories widget-examples of OpenBB's repository
// backends-for-openbb: an object of widgets by ID, whose table reads a list of flat objects at dataKey. OpenBB's own widgets of SEC
// filings have a dataKey with a point, as those here. By the reference, Workspace puts parameters into the query and not into a path, so a
// widget of a resource of an underlying has a path of its own, below /api/widgets/, with the underlying as a parameter. {underlyings} stands
// for its values, {underlying} for the first of them, {source} for the source of the numbers.
func (p *page) widgets() object {
	widgets := object{}
	for _, e := range p.Endpoints {
		if e.Data == nil || strings.HasSuffix(e.Path, "/historical") { // of which the tables are those of the current answer
			continue
		}
		params, endpoint := []object{}, e.Path[1:]
		if strings.Contains(e.Path, "{u}") {
			endpoint = "api/widgets/" + withoutUnderlying.Replace(e.Resource)
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

// heading makes the heading of a column, such as Net GEX $.
func heading(name string) string { return capital(strings.TrimSpace(headings.Replace("_" + name))) }

var headings = strings.NewReplacer("_gex", " GEX", "_dollars", " $", "_pct", " %", "_oi", " OI", "_iv", " IV", "_dte", " DTE", "_rs", " RS", "_atm", " ATM",
	"_id", " ID", "_1d", " 1 day", "_30d", " 30 days", "_1y", " 1 year", "_", " ")

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
		column := object{"field": name, "headerName": heading(name), "headerTooltip": r.Unit, "cellDataType": "text", "chartDataType": "excluded"}
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

// llms returns a file that tells a language model what the server has, in the form of llmstxt.org: a title, a summary as a quote, notes, and
// under a heading for each tag a list of links. The last heading is the one that the form lets a reader skip.
func (p *page) llms() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s\n\n> %s\n\n", p.Info.Title, p.Info.Summary)
	out.WriteString("Answers are JSON with `data` and `meta`, delayed and derived; nothing is investment advice. `meta.source` says whose market it is: " +
		"`simulated` is no real one. spx in a path stands for any underlying, in small letters: [underlyings](/api/v1/underlyings) has all. " +
		"An unknown value is `null`. [The methods](/methods.markdown) define every number, [the document](/openapi.json) every field.\n")
	for _, tag := range p.Tags {
		heading := tag.Name
		if heading == "Service" {
			heading = "Optional"
		}
		fmt.Fprintf(&out, "\n## %s\n\n", heading)
		for _, e := range p.Endpoints {
			if e.Get.Tags[0] == tag.Name {
				fmt.Fprintf(&out, "- [%s](%s): %s\n", e.Get.Summary, strings.ReplaceAll(e.Path, "{u}", "spx"), e.Get.Description)
			}
		}
	}
	return out.Bytes()
}
