package mcp

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// warnings stand first in the answers of a source without real or present numbers.
var warnings = map[string]string{
	"simulated": "SIMULATED MARKET: no number here is real",
	"replay":    "RECORDED MARKET: the numbers are those of as_of, not of today",
}

// compact returns the answer in body as JSON for a model: the members of meta that say what the numbers rest on, then data.
// A list of objects becomes a table of columns and rows, and a table has at most the given number of rows.
func compact(body []byte, rows int) (string, error) {
	answer, _ := parse(body, 0).(object)
	meta, isMeta := answer.get("meta").(object)
	data, isData := answer.get("data").(object)
	source := text(meta.get("source"))
	if !isMeta || !isData || source == "" {
		return "", errors.New("the server does not answer as strikecache does: check --url")
	}
	c := compacter{rows: rows, spot: number(data.get("spot"))}
	var out object
	if warning := warnings[source]; warning != "" {
		out = append(out, member{"warning", quoted(warning)})
	}
	quality := object{}
	for _, m := range meta {
		switch m.key {
		case "endpoint", "computed_at", "refresh_seconds", "receipt": // not needed to understand the numbers
		case "quality":
			quality = object{{"quality", c.value("quality", m.value)}}
		default:
			out = append(out, m)
		}
	}
	shortened := c.value("", data)
	if len(c.cut) > 0 {
		out = append(out, member{"cut", c.cut})
	}
	out = append(append(out, member{"data", shortened}), quality...)
	return string(appendJSON(nil, out)), nil
}

// compacter makes the parts of an answer compact.
type compacter struct {
	rows int     // the most of a table
	spot float64 // NaN when unknown
	cut  []any   // a sentence for each table that was cut
}

// value returns the compact form of a value. path is its place in the answer.
func (c *compacter) value(path string, v any) any {
	if list, ok := v.([]any); ok {
		if t, ok := tableOf(list); ok {
			return c.shorten(path, t).object()
		}
		return list
	}
	o, ok := v.(object)
	if !ok {
		return v
	}
	o = c.leaveOut(path, foldGrid(o))
	t, hasRows := readTable(o.get("columns"), o.get("rows"))
	out := make(object, len(o))
	for i, m := range o {
		if m.key == "rows" && hasRows {
			out[i] = member{m.key, c.shorten(join(path, m.key), t).cells()}
		} else {
			out[i] = member{m.key, c.value(join(path, m.key), m.value)}
		}
	}
	return out
}

// leaveOut removes the lists whose objects hold lists of objects themselves, because they fit in no table: parts of the matrix.
func (c *compacter) leaveOut(path string, o object) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool {
		list, _ := m.value.([]any)
		nested := slices.ContainsFunc(list, func(v any) bool {
			row, _ := v.(object)
			return slices.ContainsFunc(row, func(inner member) bool { return isTable(inner.value) })
		})
		if nested {
			c.cut = append(c.cut, quoted(join(path, m.key)+": left out here; only the HTTP answer has this"))
		}
		return nested
	})
}

// isTable says whether a value is a list of objects.
func isTable(v any) bool {
	list, _ := v.([]any)
	_, ok := tableOf(list)
	return ok
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// shorten returns the rows of a table that matter most, in their order. The first column of a table says what its rows are.
func (c *compacter) shorten(path string, t table) table {
	n, keep := len(t.rows), min(c.rows, len(t.rows))
	if n == keep {
		return t
	}
	var which string
	switch first := t.columns[0]; {
	case !math.IsNaN(c.spot) && (first == "strike" || first == "settlement_price" || first == "spot"):
		which = "nearest the spot"
		t.rows = nearest(t.rows, c.spot, keep)
	case first == "date":
		which = "the newest"
		t.rows = t.rows[n-keep:]
	case first == "as_of":
		which = "evenly spaced up to the newest"
		all := t.rows
		t.rows = make([][]any, keep)
		for i := range t.rows {
			t.rows[keep-1-i] = all[n-1-i*(n-1)/max(keep-1, 1)]
		}
	default:
		which = "the first"
		t.rows = t.rows[:keep]
	}
	said := fmt.Sprintf("%s: %d of %d rows, %s", path, keep, n, which)
	switch {
	case n <= maxRows:
		said += fmt.Sprintf("; ask with %s=%d for all", rowsParameter, n)
	case c.rows < maxRows:
		said += fmt.Sprintf("; ask with %s up to %d for more", rowsParameter, maxRows)
	}
	c.cut = append(c.cut, quoted(said))
	return t
}

// nearest returns the rows whose first cell is nearest the spot.
func nearest(rows [][]any, spot float64, keep int) [][]any {
	indexes := make([]int, len(rows))
	for i := range indexes {
		indexes[i] = i
	}
	distance := func(i int) float64 { return math.Abs(number(rows[i][0]) - spot) }
	slices.SortStableFunc(indexes, func(a, b int) int { return cmp.Compare(distance(a), distance(b)) })
	indexes = indexes[:keep]
	slices.Sort(indexes)
	kept := make([][]any, keep)
	for i, at := range indexes {
		kept[i] = rows[at]
	}
	return kept
}
