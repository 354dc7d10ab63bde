package product

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-json"
)

// form is a form that render makes from data. A number that is decoded into an any keeps its digits.
func form[T any](name, contentType string, render func(data T) ([]byte, error)) Form {
	return Form{name, contentType, func(data []byte) ([]byte, error) {
		var decoded T
		if err := decode(data, &decoded); err != nil {
			return nil, err
		}
		return render(decoded)
	}}
}

func decode(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.DecodeWithOption(v, json.DecodeNoCopyString())
}

// csvForm is a table as CSV (RFC 4180). table writes its rows, the names of the columns first, each perhaps into the memory of the last.
func csvForm[T any](table func(data T, write func(row []string))) Form {
	return form("csv", "text/csv; charset=utf-8", func(data T) ([]byte, error) {
		var out bytes.Buffer
		w := csv.NewWriter(&out)
		w.UseCRLF = true
		table(data, func(row []string) { _ = w.Write(row) })
		w.Flush()
		return out.Bytes(), w.Error()
	})
}

// texts returns the texts of decoded values, in the memory of another row.
func texts(row []string, values []any) []string {
	row = row[:0]
	for _, v := range values {
		row = append(row, text(v))
	}
	return row
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
		return strings.Join(texts(nil, value), "; ")
	}
	return fmt.Sprint(value)
}

// tableCSV is the CSV of data with the fields columns and rows, which are lists of values.
var tableCSV = csvForm(func(table struct {
	Columns []string
	Rows    [][]any
}, write func([]string)) {
	write(table.Columns)
	var row []string
	for _, values := range table.Rows {
		row = texts(row, values)
		write(row)
	}
})

// listCSV is the CSV of a list of objects in a field of data. item is a zero value of an object's Go type: its fields are the columns,
// except maps. The field b of an object in the field a is the column a_b.
func listCSV(field string, item any) Form {
	names, places, object := columnsOf(reflect.TypeOf(item))
	return csvForm(func(data map[string]json.RawMessage, write func([]string)) {
		write(names)
		items := reflect.New(reflect.SliceOf(object))
		_ = decode(data[field], items.Interface()) // it is a list
		var row []string
		for _, item := range items.Elem().Seq2() {
			row = row[:0]
			for _, place := range places {
				row = append(row, text(item.FieldByIndex(place).Interface()))
			}
			write(row)
		}
	})
}

// columnsOf returns the columns of a struct, in the order of the JSON: their names and places in the struct object. It has the fields of t
// with values of any type, which keep their digits, and is decoded with half the allocations of a map.
func columnsOf(t reflect.Type) (names []string, places [][]int, object reflect.Type) {
	var fields []reflect.StructField
	for f := range t.Fields() {
		if !f.IsExported() || f.Type.Kind() == reflect.Map {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner, columns, at := f.Type, []string{""}, [][]int{nil}
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if f.Type = reflect.TypeFor[any](); inner.Kind() == reflect.Struct && !inner.Implements(reflect.TypeFor[json.Marshaler]()) {
			columns, at, f.Type = columnsOf(inner)
		}
		for i, column := range columns {
			names = append(names, strings.TrimSuffix(name+"_"+column, "_"))
			places = append(places, append([]int{len(fields)}, at[i]...))
		}
		fields = append(fields, reflect.StructField{Name: f.Name, Type: f.Type, Tag: f.Tag})
	}
	return names, places, reflect.StructOf(fields)
}

// matrixCSV is the CSV of a matrix: one row for each of its cells, strike by strike.
var matrixCSV = csvForm(func(m struct {
	Strikes     []struct{ Strike json.Number }
	Expirations []struct{ Expiration, Settlement string }
	Net         [][]json.Number `json:"net_gex_dollars"`
}, write func([]string)) {
	row := []string{"strike", "expiration", "settlement", "net_gex_dollars"}
	write(row)
	for i, cells := range m.Net {
		for j, net := range cells {
			e := m.Expirations[j]
			row[0], row[1], row[2], row[3] = m.Strikes[i].Strike.String(), e.Expiration, e.Settlement, net.String()
			write(row)
		}
	}
})

// strikesCSV is the CSV of net gamma by strike through a session: one row for each strike of each row.
var strikesCSV = csvForm(func(table struct{ Rows [][]any }, write func([]string)) {
	row := []string{"as_of", "effective_spot", "strike", "net_gex_dollars", "method"}
	write(row)
	for _, values := range table.Rows {
		strikes, _ := values[2].([]any)
		net, _ := values[3].([]any)
		for i, strike := range strikes {
			row = texts(row, []any{values[0], values[1], strike, net[i], values[4]})
			write(row)
		}
	}
})

// levelsLine is the levels in one line, as chart scripts take it: $SPX: Call Wall, 6000, Put Wall, 5800.
var levelsLine = form("line", "text/plain; charset=utf-8", func(data struct {
	Symbol string
	Levels []struct {
		Label string
		Price json.Number
	}
}) ([]byte, error) {
	var pairs []string
	for _, l := range data.Levels {
		pairs = append(pairs, l.Label, l.Price.String())
	}
	return []byte("$" + data.Symbol + ": " + strings.Join(pairs, ", ")), nil
})
