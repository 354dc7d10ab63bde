package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// widgetForm lists the members of a widget that its format knows: those of "widgets.json Reference" in OpenBB's documentation for
// developers (the repository openbb-docs, as of July 2026). Of a member with few values it has these.
var widgetForm = map[string][]string{
	"": {"name", "description", "endpoint", "category", "type", "gridData", "data", "params", "source", "refetchInterval"}, "type": {"table"},
	"gridData": {"w", "h"}, "data": {"dataKey", "table"}, "table": {"enableCharts", "showAll", "chartView", "columnsDefs"},
	"chartView": {"enabled", "chartType", "cellRangeCols"}, "chartType": {"column", "line"}, "cellRangeCols": {"column", "line"},
	"columnsDefs":   {"field", "headerName", "headerTooltip", "chartDataType", "cellDataType", "formatterFn"},
	"chartDataType": {"category", "series", "time", "excluded"}, "cellDataType": {"text", "number", "boolean", "date", "dateString", "object"},
	"formatterFn": {"int", "none", "percent", "normalized", "normalizedPercent", "dateToYear"},
	"params":      {"type", "paramName", "value", "label", "show", "description", "options"}, "paramType": {"date", "number", "text"}, "options": {"label", "value"},
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

// Every widget is in OpenBB's form. A page of Workspace may ask for it, also with a key, of each underlying that it offers. The answer
// has what it names: a list of objects at its dataKey, with a plain value in each of its columns.
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
	must(t, json.Unmarshal(mayAsk("/widgets.json"), &all))
	columns, empty, underlyings := 0, []string{}, []string{}
	for id, form := range all {
		inForm(t, id, "", form)
		var w struct {
			Name, Description, Endpoint string
			Source                      []string
			Params                      []struct {
				ParamName string
				Value     any
				Options   []struct{ Label, Value string }
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
		if !strings.Contains(strings.Join(w.Source, ""), "no number is real") {
			t.Errorf("%s does not say that the market is simulated: %q", id, w.Source)
		}
		query := url.Values{}
		for _, param := range w.Params {
			if param.Value != nil { // Workspace sends no parameter without a value
				query.Set(param.ParamName, fmt.Sprint(param.Value))
			}
			for _, o := range param.Options {
				var asked struct{ Meta struct{ Endpoint string } }
				err := json.Unmarshal(mayAsk("/"+w.Endpoint+"?underlying="+o.Value), &asked)
				if at := asked.Meta.Endpoint; err != nil || strings.NewReplacer("/"+o.Value, "", o.Value+"-", "").Replace(at) != strings.TrimPrefix(w.Endpoint, "api/widgets/") || strings.ToUpper(o.Value) != o.Label {
					t.Errorf("%s of %s: %v, %s", id, o.Label, err, at)
				}
				underlyings = append(underlyings, o.Value)
			}
		}
		path := "/" + w.Endpoint + "?" + query.Encode()
		var answer any
		must(t, json.Unmarshal(mayAsk(path), &answer))
		for key := range strings.SplitSeq(w.Data.DataKey, ".") {
			answer = answer.(map[string]any)[key]
		}
		rows, _ := answer.([]any)
		if len(rows) == 0 {
			empty = append(empty, id)
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
	empty = slices.DeleteFunc(empty, func(id string) bool { // the changes are null on the first day
		return id == "gex_open_interest_changes" || id == "gex_open_interest_contracts"
	})
	slices.Sort(underlyings)
	if underlyings = slices.Compact(underlyings); len(empty) > 0 || len(underlyings) < 3 {
		t.Errorf("without a row: %v; underlyings: %v", empty, underlyings)
	}
	for query, want := range map[string]int{"": 200, "?underlying=SPX": 200, "?underlying=nope": 404, "?underlying=": 200, "?underlying=spx&date=2020-01-02": 400} {
		if resp, body, err := fetch(http.MethodGet, p.url+"/api/widgets/gex"+query); err != nil || resp.StatusCode != want || want == 404 && !strings.Contains(string(body), `"underlyings":["spx"`) {
			t.Errorf("%q: %v %v %s", query, resp, err, body)
		}
	}
	figure(t, "%d widgets with %d columns, of %d underlyings", len(all), columns, len(underlyings))
}
