package openapi_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// widgetsFile makes widgets.json: a widget of OpenBB Workspace for each list of objects in the data of a resource. The form is that
// of "widgets.json Reference" in OpenBB's documentation for developers, and the directories widget-examples of OpenBB's repository
// backends-for-openbb: an object of widgets by ID, whose table reads a list of flat objects at dataKey. OpenBB's own widgets of SEC
// filings have a dataKey with a point, as those here. Workspace puts no parameter into a path, so the server makes a widget for
// each underlying: {u} and {U} stand for its symbol, {source} for the source of the numbers.
func widgetsFile(document []byte) ([]byte, error) {
	p := &page{}
	if err := json.Unmarshal(document, p); err != nil {
		return nil, err
	}
	widgets := object{}
	for _, at := range slices.Sorted(maps.Keys(p.Paths)) {
		item := p.Paths[at]
		answer := p.Components.Schemas[item.Get.Responses["200"].Component()+"Answer"]
		if answer == nil || strings.HasSuffix(at, "/historical") { // of which the tables are those of the current answer
			continue
		}
		params := []object{}
		for _, ref := range item.Parameters {
			d := p.Components.Parameters[ref.Component()]
			if d.In != "query" || d.Name == "format" {
				continue
			}
			kind := "date"
			if d.Schema.Type == "integer" {
				kind = "number"
			}
			params = append(params, object{"paramName": d.Name, "label": title(d.Name), "type": kind, "value": d.Schema.Default, "show": true, "description": d.Description})
		}
		for name, f := range p.resolve(answer.AllOf[1].Properties.Value("data")).Properties.FromOldest() {
			table := p.widgetTable(f)
			if table == nil {
				continue
			}
			widget := object{
				"name": title(name) + ": " + item.Get.Summary, "description": strings.TrimSpace(f.Description + " " + item.Get.Description), "category": item.Get.Tags[0],
				"endpoint": at[1:], "type": "table", "params": params, "gridData": object{"w": 20, "h": 12}, "refetchInterval": 60_000,
				"source": []string{"{source}"}, "data": object{"dataKey": "data." + name, "table": table},
			}
			if strings.Contains(at, "{u}") {
				widget["name"], widget["subCategory"] = "{U} "+widget["name"].(string), "{U}"
			}
			_, id, _ := strings.Cut(strings.TrimPrefix(at, "/api/"), "/") // without v1 or public
			widgets[strings.NewReplacer("/", "_", "-", "_").Replace(id)+"_"+name] = widget
		}
	}
	return json.MarshalIndent(widgets, "", " ")
}

func title(name string) string {
	return strings.ToUpper(name[:1]) + strings.ReplaceAll(name[1:], "_", " ")
}

// widgetTable returns the table of a list of objects, nil if it would say too little: without a chart, fewer than two columns of
// numbers, or with tables in its rows. A table whose first column has numbers or dates is shown as a chart of the next columns
// that share a unit other than that of price levels.
func (p *page) widgetTable(list *schema) object {
	rows := p.items(list)
	if rows.Properties.Len() == 0 || p.resolve(list).Items == nil {
		return nil
	}
	var columns []object
	var chart []string
	unit, numbers := "", 0
	for name, f := range rows.Properties.FromOldest() {
		r, inner := p.row("", name, "", f), p.resolve(f)
		kind := strings.TrimSuffix(p.typeOf(f), " or null")
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
	if len(chart) > 1 {
		table["enableCharts"] = true
		table["chartView"] = object{"enabled": true, "chartType": "column", "cellRangeCols": object{"column": chart}}
	} else if numbers < 2 {
		return nil
	}
	return table
}
