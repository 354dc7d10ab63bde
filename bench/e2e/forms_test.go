package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// forms are the targets of all forms of the first underlying.
var forms = []string{
	trackPath + "?format=csv", trackPath + "?date=" + marketDay + "&format=csv", seriesPath + "?format=csv", matrixPath + "?format=csv",
	levelsPath + "?format=csv", levelsPath + "?format=line", flowPath + "?format=csv", flowPath + "?format=csv&limit=100",
	volPath + "/series?format=csv", curvesPath + "?format=csv",
}

const levelsPath = "/api/v1/gex/spx/levels"

// table is the part of an answer that CSV has: rows of values, in whatever form the JSON has them.
type table struct {
	Columns []string
	Rows    [][]any
	Items   []map[string]any
	Levels  []map[string]any
	Net     [][]any `json:"net_gex_dollars"`
}

// size returns how many rows of CSV the table has, and how many of their values are null or an empty list.
func (x table) size() (rows, empty int) {
	count := func(v any) {
		if list, isList := v.([]any); v == nil || isList && len(list) == 0 {
			empty++
		}
	}
	for _, row := range append(x.Rows, x.Net...) {
		for _, v := range row {
			count(v)
		}
	}
	for _, item := range append(x.Items, x.Levels...) {
		for _, v := range item {
			count(v)
		}
	}
	rows = len(x.Rows) + len(x.Items) + len(x.Levels)
	for _, row := range x.Net {
		rows += len(row)
	}
	return rows, empty
}

// Python's csv module reads every CSV, strictly, and finds the values of the JSON.
func TestPythonReadsCSV(t *testing.T) {
	t.Parallel()
	p := shared(t)
	var urls []string
	var tables []table // of the JSON beside them
	for _, target := range forms {
		if strings.HasSuffix(target, "line") {
			continue
		}
		plain := strings.NewReplacer("?format=csv&", "?", "&format=csv", "", "?format=csv", "").Replace(target)
		urls, tables = append(urls, p.url+target), append(tables, dataOf[table](p, plain))
	}
	const program = `
import csv, io, json, sys, urllib.request
for url in sys.argv[1:]:
    with urllib.request.urlopen(url) as response:
        assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
        text = io.TextIOWrapper(response, "utf-8", newline="")
        print(json.dumps(list(csv.reader(text, strict=True))))
`
	cmd := exec.Command(installed(t, "python3"), append([]string{"-c", program}, urls...)...)
	cmd.Env = append(os.Environ(), "no_proxy=127.0.0.1", "NO_PROXY=127.0.0.1")
	stdout, stderr, code := run(t, cmd)
	for i, d := 0, json.NewDecoder(strings.NewReader(stdout)); i < len(urls); i++ {
		var rows [][]string
		if err := d.Decode(&rows); code != 0 || err != nil {
			t.Fatalf("exit %d, %v: %s", code, err, stderr)
		}
		want, nulls := tables[i].size()
		empty := 0
		for _, row := range rows {
			if len(row) != len(rows[0]) {
				t.Errorf("%s: %q", urls[i], row)
			}
			for _, value := range row {
				if value == "" {
					empty++
				}
			}
		}
		if len(rows) != want+1 || want == 0 || empty != nulls {
			t.Errorf("%s: %d rows with %d empty fields, the JSON has %d with %d nulls", urls[i], len(rows)-1, empty, want, nulls)
		}
		for j, values := range tables[i].Rows {
			for k, v := range values {
				if x, number := v.(float64); number {
					v = json.Number(strings.TrimSpace(rows[j+1][k]))
					if y, err := v.(json.Number).Float64(); err != nil || x != y {
						t.Errorf("%s: row %d: %v, want %v", urls[i], j, rows[j+1][k], x)
					}
				} else if v != nil && fmt.Sprint(v) != rows[j+1][k] {
					t.Errorf("%s: row %d: %v, want %v", urls[i], j, rows[j+1][k], v)
				}
			}
		}
	}
}
