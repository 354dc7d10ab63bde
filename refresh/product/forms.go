package product

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-json"
)

// csvForm is a table as CSV (RFC 4180). table returns its rows, the names of the columns first.
func csvForm(table func(data []byte) ([][]any, error)) Form {
	return Form{"csv", "text/csv; charset=utf-8", func(data []byte) ([]byte, error) {
		rows, err := table(data)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		w := csv.NewWriter(&out)
		w.UseCRLF = true
		var record []string
		for _, row := range rows {
			record = record[:0]
			for _, value := range row {
				record = append(record, text(value))
			}
			if err := w.Write(record); err != nil {
				return nil, err
			}
		}
		w.Flush()
		return out.Bytes(), w.Error()
	}}
}

// text returns the text of a decoded value: empty for null, a list with "; " between its values, which may have spaces, and else as in
// JSON, a string without its quotes.
func text(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	case json.Number:
		return value.String()
	case []any:
		var texts []string
		for _, v := range value {
			texts = append(texts, text(v))
		}
		return strings.Join(texts, "; ")
	}
	return fmt.Sprint(value)
}

// decodeTable decodes data. A number keeps its digits.
func decodeTable(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}

// tableCSV is the CSV of data with the fields columns and rows, which are lists of values.
var tableCSV = csvForm(func(data []byte) ([][]any, error) {
	var table struct {
		Columns []any
		Rows    [][]any
	}
	err := decodeTable(data, &table)
	return append([][]any{table.Columns}, table.Rows...), err
})

// listCSV is the CSV of a list of objects in a field of data. item is a zero value of an object's Go type: its fields are the columns.
// The field b of an object in the field a is the column a_b.
func listCSV(field string, item any) Form {
	paths := pathsOf(nil, reflect.TypeOf(item))
	var names []any
	for _, path := range paths {
		names = append(names, strings.Join(path, "_"))
	}
	return csvForm(func(data []byte) ([][]any, error) {
		var all map[string]any
		if err := decodeTable(data, &all); err != nil {
			return nil, err
		}
		items, isList := all[field].([]any)
		if !isList {
			return nil, fmt.Errorf("%s is not a list", field)
		}
		rows := [][]any{names}
		for _, value := range items {
			var row []any
			for _, path := range paths {
				v := value
				for _, name := range path {
					object, _ := v.(map[string]any)
					v = object[name]
				}
				row = append(row, v)
			}
			rows = append(rows, row)
		}
		return rows, nil
	})
}

// pathsOf returns the paths to the values of a struct and of the structs in it, in the order of the JSON.
func pathsOf(prefix []string, t reflect.Type) (paths [][]string) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		path := append(prefix[:len(prefix):len(prefix)], name)
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && !inner.Implements(reflect.TypeFor[json.Marshaler]()) {
			paths = append(paths, pathsOf(path, inner)...)
		} else {
			paths = append(paths, path)
		}
	}
	return paths
}

// matrixCSV is the CSV of a matrix: one row for each of its cells, strike by strike.
var matrixCSV = csvForm(func(data []byte) ([][]any, error) {
	var m struct {
		Strikes     []struct{ Strike any }
		Expirations []struct{ Expiration, Settlement any }
		Net         [][]any `json:"net_gex_dollars"`
	}
	err := decodeTable(data, &m)
	rows := [][]any{{"strike", "expiration", "settlement", "net_gex_dollars"}}
	for i, cells := range m.Net {
		for j, net := range cells {
			e := m.Expirations[j]
			rows = append(rows, []any{m.Strikes[i].Strike, e.Expiration, e.Settlement, net})
		}
	}
	return rows, err
})

// levelsLine is the levels in one line, as chart scripts take it: $SPX: Call Wall, 6000, Put Wall, 5800.
var levelsLine = Form{"line", "text/plain; charset=utf-8", func(data []byte) ([]byte, error) {
	var k struct {
		Symbol string
		Levels []struct {
			Label string
			Price json.Number
		}
	}
	err := decodeTable(data, &k)
	var pairs []string
	for _, l := range k.Levels {
		pairs = append(pairs, l.Label, l.Price.String())
	}
	return []byte("$" + k.Symbol + ": " + strings.Join(pairs, ", ")), err
}}
