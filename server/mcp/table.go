package mcp

import (
	"bytes"
	"slices"
)

// table is a table with at least one column. Each row has a cell for each column.
type table struct {
	columns []string
	rows    [][]any
}

// tableOf returns the table of a list of objects. An object in a row becomes columns of its own, such as returns_pct.day. A row
// that lacks a column has null.
func tableOf(list []any) (t table, ok bool) {
	column := map[string]int{}
	var put func(row []any, prefix string, o object) []any
	put = func(row []any, prefix string, o object) []any {
		for _, m := range o {
			if m.key == "id" { // of an observation of unusual flow: its session and contract again
				continue
			}
			if inner, ok := m.value.(object); ok && len(inner) > 0 {
				row = put(row, prefix+m.key+".", inner)
				continue
			}
			at, known := column[prefix+m.key]
			if !known {
				at = len(t.columns)
				column[prefix+m.key] = at
				t.columns = append(t.columns, prefix+m.key)
			}
			for len(row) <= at {
				row = append(row, null)
			}
			row[at] = m.value
		}
		return row
	}
	for _, v := range list {
		o, isObject := v.(object)
		if !isObject {
			return table{}, false
		}
		t.rows = append(t.rows, put(nil, "", o))
	}
	for i, row := range t.rows {
		for len(row) < len(t.columns) {
			row = append(row, null)
		}
		t.rows[i] = row
	}
	return t, len(t.columns) > 0
}

// readTable returns the table of a list of columns and a list of rows.
func readTable(columns, rows any) (t table, ok bool) {
	names, _ := columns.([]any)
	list, _ := rows.([]any)
	for _, name := range names {
		t.columns = append(t.columns, text(name))
	}
	for _, row := range list {
		cells, _ := row.([]any)
		if len(cells) != len(names) {
			return table{}, false
		}
		t.rows = append(t.rows, cells)
	}
	return t, len(names) > 0
}

// cells returns the rows as JSON.
func (t table) cells() []any {
	rows := make([]any, len(t.rows))
	for i, row := range t.rows {
		rows[i] = row
	}
	return rows
}

// object returns the table as JSON. A column with the same cell in every row, except the first column, is written once, in same.
func (t table) object() object {
	kept := table{rows: make([][]any, len(t.rows))}
	var same object
	for i, name := range t.columns {
		first := appendJSON(nil, t.rows[0][i])
		differs := func(row []any) bool { return !bytes.Equal(appendJSON(nil, row[i]), first) }
		if i > 0 && len(t.rows) > 1 && !slices.ContainsFunc(t.rows, differs) {
			same = append(same, member{name, t.rows[0][i]})
			continue
		}
		kept.columns = append(kept.columns, name)
		for r, row := range t.rows {
			kept.rows[r] = append(kept.rows[r], row[i])
		}
	}
	columns := make([]any, len(kept.columns))
	for i, name := range kept.columns {
		columns[i] = quoted(name)
	}
	out := object{{"columns", columns}}
	if same != nil {
		out = append(out, member{"same", same})
	}
	return append(out, member{"rows", kept.cells()})
}

// foldGrid returns an object in which each row of a grid is part of the strike to which it belongs. A grid is a list of rows with a
// row for each of strikes and a cell for each of expirations, such as net_gex_dollars of the matrix. A cell becomes a column
// such as "net_gex_dollars.2026-11-20 pm". An object without a grid is returned as it is.
func foldGrid(o object) object {
	strikes, _ := o.get("strikes").([]any)
	expirations, _ := o.get("expirations").([]any)
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool {
		grid, ok := m.value.([]any)
		if !ok || len(grid) == 0 || len(grid) != len(strikes) {
			return false
		}
		for i := range grid {
			cells, isRow := grid[i].([]any)
			if _, isObject := strikes[i].(object); !isRow || !isObject || len(cells) != len(expirations) {
				return false
			}
		}
		for i := range grid {
			row := make(object, len(expirations))
			for j, cell := range grid[i].([]any) {
				e, _ := expirations[j].(object)
				row[j] = member{text(e.get("expiration")) + " " + text(e.get("settlement")), cell}
			}
			strikes[i] = append(strikes[i].(object), member{m.key, row})
		}
		return true
	})
}
