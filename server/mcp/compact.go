package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
)

// warnings stand first in the answers of a source without real or present numbers.
var warnings = map[string]string{
	"simulated": "SIMULATED MARKET: no number here is real",
	"replay":    "RECORDED MARKET: the numbers are those of as_of, not of today",
}

// compactAnswer is the form of an answer for a model.
type compactAnswer struct {
	Warning string         `json:"warning,omitempty"`
	Meta    map[string]any `json:"meta"` // without what is not needed to understand the numbers
	Cut     []string       `json:"cut,omitempty"`
	Data    any            `json:"data"`
}

// compact returns the answer in body as JSON for a model. A list of objects becomes a table of columns and rows, and a table
// has at most the given number of rows.
func compact(body []byte, rows int) (string, error) {
	var answer struct{ Data, Meta map[string]any }
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // numbers keep their digits
	err := d.Decode(&answer)
	source, _ := answer.Meta["source"].(string)
	if err != nil || answer.Data == nil || source == "" {
		return "", errors.New("the server does not answer as strikecache does: check --url")
	}
	for _, key := range []string{"endpoint", "computed_at", "refresh_seconds", "receipt"} {
		delete(answer.Meta, key)
	}
	c := compacter{rows: rows, spot: number(answer.Data["spot"])}
	out := compactAnswer{Warning: warnings[source], Meta: c.object("meta", answer.Meta), Data: c.object("", answer.Data)}
	out.Cut = c.cut
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err = e.Encode(out)
	return string(bytes.TrimSpace(b.Bytes())), err
}

// number returns a JSON number, NaN when the value is none.
func number(v any) float64 {
	n, _ := v.(json.Number)
	if x, err := n.Float64(); err == nil {
		return x
	}
	return math.NaN()
}

// compacter makes the parts of an answer compact.
type compacter struct {
	rows int      // the most of a table
	spot float64  // NaN when unknown
	cut  []string // a sentence for each table that was cut
}

// object returns the compact form of an object. path is its place in the answer. A list of lists that has a row for each of
// strikes, as the grid of the matrix, keeps the rows of the strikes that are kept, and a cell for each kept expiration.
func (c *compacter) object(path string, o map[string]any) map[string]any {
	out := map[string]any{}
	strikes, _ := o["strikes"].([]any)
	keptStrikes, _ := c.choose(strikes)
	columns, _ := o["columns"].([]any)
	for _, key := range slices.Sorted(maps.Keys(o)) {
		at := key
		if path != "" {
			at = path + "." + key
		}
		switch v := o[key].(type) {
		case map[string]any:
			out[key] = c.object(at, v)
		case []any:
			switch kept, which := c.choose(v); {
			case hasTables(v):
				c.cut = append(c.cut, at+": left out here; only the HTTP answer has this")
			case areObjects(v):
				c.say(at, len(v), len(kept), which)
				out[key] = table(pick(v, kept))
			case key == "rows" && len(columns) > 0:
				kept, which = c.chooseRows(columns[0], len(v))
				c.say(at, len(v), len(kept), which)
				out[key] = pick(v, kept)
			case len(strikes) > 0 && len(v) == len(strikes):
				var grid []any
				for _, row := range pick(v, keptStrikes) {
					cells, _ := row.([]any)
					grid = append(grid, cells[:min(c.rows, len(cells))])
				}
				out[key] = grid
			default:
				out[key] = v
			}
		default:
			out[key] = v
		}
	}
	return out
}

func areObjects(list []any) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(v any) bool { _, ok := v.(map[string]any); return !ok })
}

// hasTables says whether the objects of a list have lists of objects themselves, so that they fit in no table: parts of the matrix.
func hasTables(list []any) bool {
	return slices.ContainsFunc(list, func(v any) bool {
		o, _ := v.(map[string]any)
		for _, inner := range o {
			if l, _ := inner.([]any); areObjects(l) {
				return true
			}
		}
		return false
	})
}

func pick(list []any, kept []int) []any {
	out := make([]any, len(kept))
	for i, at := range kept {
		out[i] = list[at]
	}
	return out
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// choose returns the places of the objects that matter most, rising, and how they were chosen: of a ladder of prices those
// nearest the spot, otherwise the first.
func (c *compacter) choose(list []any) (kept []int, which string) {
	kept = upTo(len(list))
	if len(list) <= c.rows {
		return kept, ""
	}
	first, _ := list[0].(map[string]any)
	for _, price := range []string{"settlement_price", "strike", "spot"} {
		if _, is := first[price]; !is || first["contract"] != nil || math.IsNaN(c.spot) {
			continue
		}
		distance := func(i int) float64 {
			row, _ := list[i].(map[string]any)
			return math.Abs(number(row[price]) - c.spot)
		}
		slices.SortStableFunc(kept, func(a, b int) int { return cmp.Compare(distance(a), distance(b)) })
		kept = kept[:c.rows]
		slices.Sort(kept)
		return kept, "nearest the spot"
	}
	return kept[:c.rows], "the first"
}

// chooseRows is choose for n rows whose first column has a name: the newest dates, or instants evenly spaced up to the newest.
func (c *compacter) chooseRows(first any, n int) (kept []int, which string) {
	kept = upTo(min(n, c.rows))
	for i := range kept {
		switch first {
		case "as_of":
			kept[len(kept)-1-i], which = n-1-i*(n-1)/max(len(kept)-1, 1), "evenly spaced up to the newest"
		case "date":
			kept[i], which = n-len(kept)+i, "the newest"
		default:
			which = "the first"
		}
	}
	return kept, which
}

// say notes that a table was cut.
func (c *compacter) say(path string, n, kept int, which string) {
	if n == kept {
		return
	}
	said := fmt.Sprintf("%s: %d of %d rows, %s", path, kept, n, which)
	switch {
	case n <= maxRows:
		said += fmt.Sprintf("; ask with %s=%d for all", rowsParameter, n)
	case c.rows < maxRows:
		said += fmt.Sprintf("; ask with %s up to %d for more", rowsParameter, maxRows)
	}
	c.cut = append(c.cut, said)
}

// table returns the table of a list of objects. An object in a row becomes columns of its own, such as returns_pct.day. A row
// that lacks a column has null. A column with the same cell in every row is written once, in same.
func table(list []any) map[string]any {
	rows, names := make([]map[string]any, len(list)), map[string]bool{}
	var flatten func(row map[string]any, prefix string, o map[string]any)
	flatten = func(row map[string]any, prefix string, o map[string]any) {
		for key, v := range o {
			if inner, ok := v.(map[string]any); ok && len(inner) > 0 {
				flatten(row, prefix+key+".", inner)
			} else if key != "id" { // of an observation of unusual flow: its session and contract again
				row[prefix+key], names[prefix+key] = v, true
			}
		}
	}
	for i, v := range list {
		rows[i] = map[string]any{}
		flatten(rows[i], "", v.(map[string]any))
	}
	columns, same, cells := []string{}, map[string]any{}, make([][]any, len(rows))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if len(rows) > 1 && !slices.ContainsFunc(rows, func(row map[string]any) bool { return !reflect.DeepEqual(row[name], rows[0][name]) }) {
			same[name] = rows[0][name]
			continue
		}
		columns = append(columns, name)
		for i, row := range rows {
			cells[i] = append(cells[i], row[name])
		}
	}
	out := map[string]any{"columns": columns, "rows": cells}
	if len(same) > 0 {
		out["same"] = same
	}
	return out
}
