package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// warnings stand first in the answers of a source without real or present numbers.
var warnings = map[string]string{
	"simulated": "SIMULATED MARKET: no number here is real",
	"replay":    "RECORDED MARKET: the numbers are those of as_of, not of today",
}

// compact returns the answer in body as JSON for a model: without receipt and usage, and with the members in the server's order.
// A list of objects becomes a table, unless they have tables themselves. A table has at most the given number of rows, and the
// member cut names those that had more.
func compact(body []byte, rows int) ([]byte, error) {
	var known struct {
		Data struct {
			Spot     float64
			CallWall float64 `json:"call_wall"`
			PutWall  float64 `json:"put_wall"`
		}
		Meta struct{ Source string }
	}
	var answer object
	if json.Unmarshal(body, &known) != nil || json.Unmarshal(body, &answer) != nil || known.Meta.Source == "" {
		return nil, errors.New("the server does not answer as strikecache does: check --url")
	}
	s := shortener{rows: rows, spot: known.Data.Spot, walls: [2]float64{known.Data.CallWall, known.Data.PutWall}, cut: []string{}}
	answer = s.object("", answer)
	answer = slices.Insert(answer, 0, member{"cut", s.cut})
	if warning := warnings[known.Meta.Source]; warning != "" {
		answer = slices.Insert(answer, 0, member{"warning", warning})
	}
	return json.Marshal(answer)
}

// object is a JSON object. Its members keep their order, and its values their digits.
type object []member

type member struct {
	name  string
	value any // a json.RawMessage, until it is shortened
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *object) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return errors.New("not an object")
	}
	for d.More() {
		var value json.RawMessage
		name, err := d.Token()
		if err := errors.Join(err, d.Decode(&value)); err != nil {
			return err
		}
		*o = append(*o, member{name.(string), value})
	}
	return nil
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

// table is the short form of a list of objects.
type table struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
}

// shortener shortens the lists of an answer.
type shortener struct {
	rows  int        // the most rows of a table
	spot  float64    // 0 when unknown
	walls [2]float64 // the strikes of the call wall and the put wall, 0 when unknown
	cut   []string   // a sentence for each table that was cut
}

// unwanted are the members that a model does not need, besides digests: they say how an answer was made and who asked.
var unwanted = []string{"success", "receipt", "usage"}

// object shortens the lists in o, whose place in the answer is path. A list of lists has the rows of the columns that stand
// before it, or is a grid with a row for each row of the table before it.
func (s *shortener) object(path string, o object) object {
	o = slices.DeleteFunc(o, func(m member) bool { return slices.Contains(unwanted, m.name) || strings.HasSuffix(m.name, "sha256") })
	var before table
	for i, m := range o {
		at, text := strings.TrimPrefix(path+"."+m.name, "."), m.value.(json.RawMessage)
		var inner object
		var objects []object
		var lists [][]any
		switch {
		case json.Unmarshal(text, &inner) == nil:
			o[i].value = s.object(at, inner)
		case m.name == "columns":
			before = table{}
			_ = json.Unmarshal(text, &before.Columns)
		case json.Unmarshal(text, &objects) == nil && len(objects) > 0:
			if o[i].value = objects; !s.objects(at, objects) {
				before = tableOf(objects)
				o[i].value = table{before.Columns, s.choose(at, before, before.Rows)}
			}
		case json.Unmarshal(text, &lists) == nil && len(lists) > 0 && before.Rows == nil:
			s.narrow(at, lists)
			o[i].value = s.choose(at, table{before.Columns, lists}, lists)
		case json.Unmarshal(text, &lists) == nil && len(lists) == len(before.Rows):
			for j, row := range lists {
				lists[j] = row[:min(s.rows, len(row))]
			}
			o[i].value = s.choose(at, before, lists)
		}
	}
	return o
}

// narrow keeps the middle of the lists in each row: of strikes, those around the spot. The lists of a row have the same length.
func (s *shortener) narrow(path string, rows [][]any) {
	most := 0
	for _, row := range rows {
		for i, cell := range row {
			list, _ := cell.([]any)
			if from := (len(list) - s.rows) / 2; from > 0 {
				row[i], most = list[from:from+s.rows], max(most, len(list))
			}
		}
	}
	if most > 0 {
		s.cut = append(s.cut, fmt.Sprintf("%s: %d of %d values in a list, those in the middle; a larger rows gives more", path, s.rows, most))
	}
}

// objects shortens the lists in each object of a list, and says whether one of them is a table.
func (s *shortener) objects(path string, list []object) (tables bool) {
	for i, o := range list {
		list[i] = s.object(fmt.Sprintf("%s[%d]", path, i), o)
		tables = tables || slices.ContainsFunc(list[i], func(m member) bool { _, isTable := m.value.(table); return isTable })
	}
	return tables
}

// tableOf returns the table of a list of objects. An object in a row becomes columns of its own, such as returns_pct.day. A row
// that lacks a column has null.
func tableOf(list []object) (t table) {
	rows := make([]object, len(list))
	for i, o := range list {
		rows[i] = flatten("", o)
		for _, m := range rows[i] {
			if !slices.Contains(t.Columns, m.name) {
				t.Columns = append(t.Columns, m.name)
			}
		}
	}
	for _, row := range rows {
		cells := make([]any, len(t.Columns))
		for _, m := range row {
			cells[slices.Index(t.Columns, m.name)] = m.value
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

// events returns the rows of a track, rising, at which the regime or a wall is another than in the row before, or the spot has crossed the flip.
func (t table) events() (rows []int) {
	state := func(row []any) (text string) {
		var spot, flip float64
		for i, name := range t.Columns[:min(len(t.Columns), len(row))] {
			switch name {
			case "gamma_regime", "call_wall", "put_wall":
				text += fmt.Sprint(row[i], " ")
			case "spot":
				spot, _ = row[i].(float64)
			case "zero_gamma_flip":
				flip, _ = row[i].(float64)
			}
		}
		return fmt.Sprint(text, flip > 0, spot < flip)
	}
	for i := 1; i < len(t.Rows); i++ {
		if state(t.Rows[i]) != state(t.Rows[i-1]) {
			rows = append(rows, i)
		}
	}
	return rows
}

// choose returns the rows that matter most, by the first column of t, which has as many rows. If the column has prices, these are the
// rows of the walls and the rows nearest the spot. If it has dates, they are the newest rows. If it has instants, they are the rows of
// events, the newest first, and for a part of them evenly spaced rows up to the newest. Otherwise they are the first rows.
func (s *shortener) choose(path string, t table, rows [][]any) [][]any {
	n, k := len(rows), min(len(rows), s.rows)
	if n == k || len(t.Columns) == 0 {
		return rows
	}
	distance := func(row int) float64 { // from the spot, before which the walls come
		var text json.RawMessage
		if cells := t.Rows[row]; len(cells) > 0 {
			text, _ = cells[0].(json.RawMessage)
		}
		price, _ := strconv.ParseFloat(string(text), 64)
		if k > len(s.walls) && price > 0 && slices.Contains(s.walls[:], price) {
			return -1
		}
		return math.Abs(price - s.spot)
	}
	order, which := make([]int, n), "the first"
	for i := range order {
		order[i] = i
	}
	switch column := t.Columns[0]; {
	case column == "date":
		order, which = order[n-k:], "the newest"
	case column == "as_of":
		which = "evenly spaced up to the newest"
		events := t.events()
		if events = events[max(len(events)-2*k/3, 0):]; len(events) > 0 {
			which = "the newest at which the regime or a wall changed or the spot crossed the flip, and others " + which
		}
		order = events
		for i, rest := 0, k-len(events); i < rest; i++ {
			order = append(order, n-1-(rest-1-i)*(n-1)/max(rest-1, 1))
		}
		slices.Sort(order)
		order = slices.Compact(order)
		k = len(order)
	case s.spot > 0 && slices.Contains([]string{"strike", "spot", "settlement_price"}, column):
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(distance(i), distance(j)) })
		if which = "nearest the spot"; distance(order[0]) < 0 {
			which = "those of the walls and nearest the spot"
		}
	}
	slices.Sort(order[:k])
	kept := make([][]any, k)
	for i, row := range order[:k] {
		kept[i] = rows[row]
	}
	s.cut = append(s.cut, fmt.Sprintf("%s: %d of %d rows, %s; a larger rows gives more", path, k, n, which))
	return kept
}
