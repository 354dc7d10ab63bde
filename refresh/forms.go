package refresh

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/snapshots"
)

// Form is another form of a product's answers than JSON. It is made from the JSON of `data`, so both have the same values.
type Form struct {
	Name, ContentType string // Name is the value of the parameter format
	Render            func(data []byte) ([]byte, error)
}

// renderForms makes the forms of the answer, by the pointers of its data. Rare variants have none.
func (a *answer) renderForms() error {
	a.forms = map[any][]snapshots.Form{}
	for name, data := range a.variants {
		if len(a.forms[data]) > 0 || a.rare != nil && a.rare(name) {
			continue
		}
		for _, f := range a.product.forms {
			body, err := f.Render(a.encoded[data])
			if err != nil {
				return fmt.Errorf("variant %q as %s: %w", name, f.Name, err)
			}
			a.forms[data] = append(a.forms[data], snapshots.Form{Name: f.Name, ContentType: f.ContentType, Body: body})
		}
	}
	return nil
}

// hasForms says whether a snapshot has these forms.
func hasForms(s *snapshots.Snapshot, forms []snapshots.Form) bool {
	return len(otherForms(s, forms)) == 0
}

// otherForms returns the names of the forms that a snapshot does not have, or has with other bytes.
func otherForms(s *snapshots.Snapshot, forms []snapshots.Form) (names []string) {
	for _, f := range forms {
		if has := s.Form(f.Name); has == nil || has.ContentType != f.ContentType || !bytes.Equal(has.Body(snapshots.Identity), f.Body) {
			names = append(names, f.Name)
		}
	}
	return names
}

// csvForm is a table as CSV (RFC 4180) with a header row. table returns the rows, the header row first.
func csvForm(table func(data []byte) ([][]string, error)) Form {
	return Form{"csv", "text/csv; charset=utf-8", func(data []byte) ([]byte, error) {
		rows, err := table(data)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		w := csv.NewWriter(&out)
		w.UseCRLF = true
		err = w.WriteAll(rows)
		return out.Bytes(), err
	}}
}

// tableCSV is the CSV of data with the fields columns and rows, which are lists of values.
var tableCSV = csvForm(func(data []byte) ([][]string, error) {
	var table struct {
		Columns []string            `json:"columns"`
		Rows    [][]json.RawMessage `json:"rows"`
	}
	if err := json.Unmarshal(data, &table); err != nil {
		return nil, err
	}
	rows := [][]string{table.Columns}
	for _, values := range table.Rows {
		row, err := texts(values)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
})

// listCSV is the CSV of a list of objects in a field of data. item is a zero value of an object's Go type: its fields are the columns.
// The field b of an object in the field a is the column a_b.
func listCSV(field string, item any) Form {
	columns := columnsOf(reflect.TypeOf(item))
	return csvForm(func(data []byte) ([][]string, error) {
		var lists map[string]json.RawMessage
		if err := json.Unmarshal(data, &lists); err != nil {
			return nil, err
		}
		var items []json.RawMessage
		if err := json.Unmarshal(lists[field], &items); err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		rows := [][]string{appendNames(nil, "", columns)}
		for _, item := range items {
			row, err := appendValues(nil, item, columns)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
		return rows, nil
	})
}

// column is a field of an object, with the columns of the object in it, if there is one.
type column struct {
	name string
	of   []column
}

// columnsOf returns the columns of a struct in the order of its fields, which is that of the JSON.
func columnsOf(t reflect.Type) (columns []column) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		c := column{name: name}
		if inner.Kind() == reflect.Struct && !inner.Implements(reflect.TypeFor[json.Marshaler]()) {
			c.of = columnsOf(inner)
		}
		columns = append(columns, c)
	}
	return columns
}

func appendNames(names []string, prefix string, columns []column) []string {
	for _, c := range columns {
		if c.of != nil {
			names = appendNames(names, prefix+c.name+"_", c.of)
			continue
		}
		names = append(names, prefix+c.name)
	}
	return names
}

// appendValues appends the texts of the values of an object. That of an absent field is empty.
func appendValues(row []string, object json.RawMessage, columns []column) (_ []string, err error) {
	var fields map[string]json.RawMessage
	if len(object) > 0 {
		if err := json.Unmarshal(object, &fields); err != nil {
			return nil, err
		}
	}
	for _, c := range columns {
		if c.of != nil {
			row, err = appendValues(row, fields[c.name], c.of)
		} else {
			var value string
			value, err = text(fields[c.name])
			row = append(row, value)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return row, nil
}

// texts returns the texts of JSON values.
func texts(values []json.RawMessage) (row []string, err error) {
	row = make([]string, len(values))
	for i, value := range values {
		if row[i], err = text(value); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// text returns the text of a JSON value: empty for null, a list with spaces between its values, and else as in JSON, a string without
// its quotes.
func text(value json.RawMessage) (s string, err error) {
	switch cmp.Or(string(value[:min(1, len(value))]), "n") {
	case "n":
		return "", nil
	case `"`:
		err = json.Unmarshal(value, &s)
		return s, err
	case "[":
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil {
			return "", err
		}
		row, err := texts(list)
		return strings.Join(row, " "), err
	case "{":
		return "", fmt.Errorf("an object is no value of a table: %.40s", value)
	}
	return string(value), nil
}

// matrixCSV is the CSV of a matrix: one row for each of its cells, strike by strike.
var matrixCSV = csvForm(func(data []byte) ([][]string, error) {
	var m struct {
		Strikes     []struct{ Strike json.RawMessage }
		Expirations []struct{ Expiration, Settlement json.RawMessage }
		Net         [][]json.RawMessage `json:"net_gex_dollars"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	rows := [][]string{{"strike", "expiration", "settlement", "net_gex_dollars"}}
	for i, strike := range m.Strikes {
		for j, e := range m.Expirations {
			row, err := texts([]json.RawMessage{strike.Strike, e.Expiration, e.Settlement, m.Net[i][j]})
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
})

// levelsLine is the levels in one line, as chart scripts take it: $SPX: Call Wall, 6000, Put Wall, 5800.
var levelsLine = Form{"line", "text/plain; charset=utf-8", func(data []byte) ([]byte, error) {
	var levels compute.KeyLevels
	if err := json.Unmarshal(data, &levels); err != nil {
		return nil, err
	}
	var pairs []string
	for _, l := range levels.Levels {
		price, err := json.Marshal(l.Price)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, l.Label, string(price))
	}
	return []byte("$" + levels.Symbol + ": " + strings.Join(pairs, ", ")), nil
}}
