package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// widgetForm lists the members of a widget that its format knows: those of "widgets.json Reference" in OpenBB's documentation for
// developers (the repository openbb-docs, as of July 2026). Of a member with few values it has these.
var widgetForm = map[string][]string{
	"": {"name", "description", "endpoint", "category", "subCategory", "type", "gridData", "data", "params", "source", "refetchInterval"}, "type": {"table"},
	"gridData": {"w", "h"}, "data": {"dataKey", "table"}, "table": {"enableCharts", "showAll", "chartView", "columnsDefs"},
	"chartView": {"enabled", "chartType", "cellRangeCols"}, "chartType": {"column", "line"}, "cellRangeCols": {"column", "line"},
	"columnsDefs":   {"field", "headerName", "headerTooltip", "chartDataType", "cellDataType", "formatterFn"},
	"chartDataType": {"category", "series", "time", "excluded"}, "cellDataType": {"text", "number", "boolean", "date", "dateString", "object"},
	"formatterFn": {"int", "none", "percent", "normalized", "normalizedPercent", "dateToYear"},
	"params":      {"type", "paramName", "value", "label", "show", "description"}, "paramType": {"date", "number"},
}

// inForm reports the members and values that the format does not know.
func inForm(t *testing.T, id, name string, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if !slices.Contains(widgetForm[name], key) {
				t.Errorf("%s: %s.%s is unknown", id, name, key)
			}
			if name == "params" && key == "type" {
				key = "paramType"
			}
			inForm(t, id, key, value)
		}
	case []any:
		for _, x := range v {
			inForm(t, id, name, x)
		}
	case string:
		if known := widgetForm[name]; known != nil && !slices.Contains(known, v) {
			t.Errorf("%s: %s is %q", id, name, v)
		}
	}
}

// Every widget is in OpenBB's form. A page of Workspace may ask for it, also with a key. The answer has what it names: a list of
// objects at its dataKey, with a plain value in each of its columns.
func TestWidgets(t *testing.T) {
	t.Parallel()
	p := shared(t)
	origin := []string{"Origin", "https://pro.openbb.co"}
	preflight := append([]string{"Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "x-api-key, if-none-match"}, origin...)
	mayAsk := func(path string) []byte {
		t.Helper()
		allowed, _, err := fetch(http.MethodOptions, p.url+path, preflight...)
		if err != nil || allowed.StatusCode != http.StatusNoContent || !strings.HasPrefix(allowed.Header.Get("Access-Control-Allow-Headers"), "X-API-Key, If-None-Match") {
			t.Errorf("preflight of %s: %v, %v", path, allowed, err)
		}
		resp, body, err := fetch(http.MethodGet, p.url+path, origin...)
		if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %v, %v", path, resp, err)
		}
		for _, field := range []string{"ETag", "RateLimit", "X-RateLimit-Remaining"} { // which a script may read
			if !slices.Contains(strings.Split(resp.Header.Get("Access-Control-Expose-Headers"), ", "), field) && strings.HasPrefix(path, "/api/") {
				t.Errorf("%s: no script may read %s: %v", path, field, resp.Header)
			}
		}
		return body
	}
	var all map[string]any
	if err := json.Unmarshal(mayAsk("/widgets.json"), &all); err != nil {
		t.Fatal(err)
	}
	symbols, columns, empty := map[any]int{}, 0, []string{}
	for id, form := range all {
		inForm(t, id, "", form)
		var w struct {
			Name, Description, Endpoint string
			SubCategory                 any
			Source                      []string
			Params                      []struct {
				ParamName string
				Value     any
			}
			Data struct {
				DataKey string
				Table   struct {
					ColumnsDefs []struct{ Field string }
					ChartView   struct{ CellRangeCols map[string][]string }
				}
			}
		}
		text, _ := json.Marshal(form)
		if err := json.Unmarshal(text, &w); err != nil || w.Name == "" || w.Description == "" || strings.ContainsAny(w.Name+w.Endpoint+id, "{}") {
			t.Fatalf("%s: %v %s", id, err, text)
		}
		symbols[w.SubCategory]++
		if !strings.Contains(strings.Join(w.Source, ""), "no number is real") {
			t.Errorf("%s does not say that the market is simulated: %q", id, w.Source)
		}
		query := url.Values{}
		for _, param := range w.Params {
			if param.Value != nil { // Workspace sends no parameter without a value
				query.Set(param.ParamName, fmt.Sprint(param.Value))
			}
		}
		path := "/" + w.Endpoint
		if len(query) > 0 {
			path += "?" + query.Encode()
		}
		var answer any
		if err := json.Unmarshal(mayAsk(path), &answer); err != nil {
			t.Fatal(err)
		}
		for key := range strings.SplitSeq(w.Data.DataKey, ".") {
			answer = answer.(map[string]any)[key]
		}
		rows, _ := answer.([]any)
		if len(rows) == 0 {
			empty = append(empty, id[strings.LastIndex(id, "_open_interest")+1:])
		}
		fields := []string{}
		for _, c := range w.Data.Table.ColumnsDefs {
			columns++
			fields = append(fields, c.Field)
			for _, row := range rows {
				value, found := row.(map[string]any)[c.Field]
				if _, isObject := value.(map[string]any); !found || isObject {
					t.Fatalf("%s: no plain %s in %v", id, c.Field, row)
				}
			}
		}
		for _, cells := range w.Data.Table.ChartView.CellRangeCols {
			for _, cell := range cells {
				if !slices.Contains(fields, cell) {
					t.Errorf("%s: the chart is of %s", id, cell)
				}
			}
		}
	}
	empty = slices.DeleteFunc(empty, func(id string) bool { // the changes are null on the first day, and no contract of XLF is unusual
		return id == "open_interest_changes" || id == "open_interest_contracts" || id == "options_flow_xlf_items"
	})
	if len(empty) > 0 || len(symbols) < 3 {
		t.Errorf("without a row: %v; by underlying: %v", empty, symbols)
	}
	figure(t, "%d widgets with %d columns, of %d underlyings: %v", len(all), columns, len(symbols)-1, slices.Collect(maps.Keys(symbols)))
}
