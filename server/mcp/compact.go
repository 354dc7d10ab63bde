package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// warnings stand first in the answers of a source without real or present numbers.
var warnings = map[string]string{
	"simulated": "SIMULATED MARKET: no number here is real",
	"replay":    "RECORDED MARKET: the numbers are those of as_of, not of today",
}

// compact returns the answer in body as JSON for a model: without receipt and usage, and with the members in the server's order.
// A list of objects becomes a table. A table has at most the given number of rows, and the member cut names those that had more.
func compact(body []byte, rows int) ([]byte, error) {
	var known struct {
		Data struct{ Spot float64 }
		Meta struct{ Source string }
	}
	if json.Unmarshal(body, &known) != nil || known.Meta.Source == "" {
		return nil, errors.New("the server does not answer as strikecache does: check --url")
	}
	s := shortener{rows: rows, spot: known.Data.Spot, cut: []string{}}
	short := s.object("", decode(json.NewDecoder(bytes.NewReader(body))).(object))
	short = slices.Insert(short, 0, member{"cut", s.cut})
	if warning := warnings[known.Meta.Source]; warning != "" {
		short = slices.Insert(short, 0, member{"warning", warning})
	}
	return json.Marshal(short)
}

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any // nil, bool, float64, string, []any or object; in an answer for a model also a table
}

// decode returns the next value of d, which has valid JSON.
func decode(d *json.Decoder) any {
	t, _ := d.Token()
	switch t {
	case json.Delim('{'):
		o := object{}
		for d.More() {
			name, _ := d.Token()
			o = append(o, member{name.(string), decode(d)})
		}
		_, _ = d.Token()
		return o
	case json.Delim('['):
		list := []any{}
		for d.More() {
			list = append(list, decode(d))
		}
		_, _ = d.Token()
		return list
	}
	return t
}

// MarshalJSON implements [json.Marshaler].
func (o object) MarshalJSON() ([]byte, error) {
	members := make([][]byte, len(o))
	for i, m := range o {
		text, _ := json.Marshal(map[string]any{m.name: m.value}) // what was decoded can be encoded
		members[i] = text[1 : len(text)-1]
	}
	return slices.Concat([]byte("{"), bytes.Join(members, []byte(",")), []byte("}")), nil
}

// table is the short form of a list of objects. Each row is a []any with a cell for each column.
type table struct {
	Columns []any `json:"columns"`
	Rows    []any `json:"rows"`
}

// shortener shortens the lists of an answer.
type shortener struct {
	rows int      // the most of a table
	spot float64  // 0 when unknown
	cut  []string // a sentence for each table that was cut
}

// object shortens the lists in o, whose place in the answer is path. A list of lists has the rows of the columns that stand
// before it, or is a grid with a row for each row of the table before it.
func (s *shortener) object(path string, o object) object {
	o = slices.DeleteFunc(o, func(m member) bool { return slices.Contains([]string{"success", "receipt", "usage"}, m.name) })
	var before table
	for i, m := range o {
		at := strings.TrimPrefix(path+"."+m.name, ".")
		switch v := m.value.(type) {
		case object:
			o[i].value = s.object(at, v)
		case []any:
			switch {
			case m.name == "columns":
				before = table{Columns: v}
			case areAll[object](v):
				before = s.table(at, v)
				o[i].value = table{before.Columns, s.choose(at, before, before.Rows)}
			case areAll[[]any](v) && len(before.Columns) > 0 && before.Rows == nil:
				o[i].value = s.choose(at, table{before.Columns, v}, v)
			case areAll[[]any](v) && len(before.Rows) == len(v):
				for j, row := range v {
					v[j] = row.([]any)[:min(s.rows, len(row.([]any)))]
				}
				o[i].value = s.choose(at, before, v)
			}
		}
	}
	return o
}

// areAll says whether a list has items that are not empty, all of the type T.
func areAll[T object | []any](list []any) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(v any) bool { t, _ := v.(T); return len(t) == 0 })
}

// table returns the table of a list of objects. An object in a row becomes columns of its own, such as returns_pct.day. A row
// that lacks a column has null.
func (s *shortener) table(path string, list []any) (t table) {
	rows := make([]object, len(list))
	for i, o := range list {
		rows[i] = flatten("", s.object(path, o.(object)))
		for _, m := range rows[i] {
			if !slices.Contains(t.Columns, any(m.name)) {
				t.Columns = append(t.Columns, m.name)
			}
		}
	}
	for _, row := range rows {
		cells := make([]any, len(t.Columns))
		for _, m := range row {
			cells[slices.Index(t.Columns, any(m.name))] = m.value
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

func flatten(prefix string, o object) (flat object) {
	for _, m := range o {
		if inner, ok := m.value.(object); ok && len(inner) > 0 {
			flat = append(flat, flatten(prefix+m.name+".", inner)...)
		} else {
			flat = append(flat, member{prefix + m.name, m.value})
		}
	}
	return flat
}

// choose returns the rows that matter most. The first column of t, which has as many rows, decides: of a ladder of prices those
// nearest the spot matter, of dates the newest, of instants some evenly spaced up to the newest, and otherwise the first.
func (s *shortener) choose(path string, t table, rows []any) []any {
	n, k := len(rows), min(len(rows), s.rows)
	if n == k || len(t.Columns) == 0 {
		return rows
	}
	from, which := 0, "the first"
	distance := func(i int) float64 {
		price, _ := t.Rows[i].([]any)[0].(float64)
		return math.Abs(price - s.spot)
	}
	switch t.Columns[0] {
	case "date":
		from, which = n-k, "the newest"
	case "as_of":
		which = "evenly spaced up to the newest"
	case "strike", "spot", "settlement_price": // rising
		for s.spot > 0 && from+k < n && distance(from+k) < distance(from) {
			from, which = from+1, "nearest the spot"
		}
	}
	kept := make([]any, k)
	for i := range kept {
		kept[i] = rows[from+i]
		if t.Columns[0] == "as_of" {
			kept[i] = rows[n-1-(k-1-i)*(n-1)/max(k-1, 1)]
		}
	}
	s.cut = append(s.cut, fmt.Sprintf("%s: %d of %d rows, %s; a larger rows gives more", path, k, n, which))
	return kept
}
