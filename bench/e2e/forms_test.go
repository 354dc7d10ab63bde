package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
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

// csvReader is a Python program that prints the table at each URL as rows of text. Its first argument names what reads it.
const csvReader = `
import csv, io, json, subprocess, sys, tempfile, urllib.request
from xml.etree import ElementTree

def with_csv(url):
    with urllib.request.urlopen(url) as response:
        assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
        return list(csv.reader(io.TextIOWrapper(response, "utf-8", newline=""), strict=True))

def with_pandas(url):
    table = pandas.read_csv(url, float_precision="round_trip")
    return [list(table.columns)] + [["" if pandas.isna(v) else str(v) for v in row] for row in table.values.tolist()]

def with_soffice(url):
    office, table = "urn:oasis:names:tc:opendocument:xmlns:office:1.0", "urn:oasis:names:tc:opendocument:xmlns:table:1.0"
    def value(cell):
        kind = cell.get(f"{{{office}}}value-type")
        return cell.get(f"{{{office}}}{kind}-value") or cell.get(f"{{{office}}}value") or "".join(cell.itertext()).strip()
    with tempfile.TemporaryDirectory() as folder:
        urllib.request.urlretrieve(url, folder + "/table.csv")
        subprocess.run(["soffice", "-env:UserInstallation=file://" + folder, "--headless", "--convert-to", "fods", "--outdir", folder,
            folder + "/table.csv"], check=True, stdout=sys.stderr)
        rows = []
        for row in ElementTree.parse(folder + "/table.fods").iter(f"{{{table}}}table-row"):
            cells = [value(c) for c in row.findall(f"{{{table}}}table-cell") for _ in range(int(c.get(f"{{{table}}}number-columns-repeated", 1)))]
            if any(cells):
                rows += [cells + [""] * (len(rows[0]) - len(cells) if rows else 0)] * int(row.get(f"{{{table}}}number-rows-repeated", 1))
        return rows

if sys.argv[1] == "pandas":
    import pandas
for url in sys.argv[2:]:
    print(json.dumps(globals()["with_" + sys.argv[1]](url)))
`

// Python's csv module (strictly), pandas and LibreOffice read every CSV, and find the values of the JSON.
func TestReadersOfCSV(t *testing.T) {
	t.Parallel()
	p := shared(t)
	python := installed(t, "python3")
	for _, reader := range []string{"csv", "pandas", "soffice"} {
		t.Run(reader, func(t *testing.T) {
			if reader == "soffice" {
				installed(t, reader)
			}
			if _, _, code := run(t, exec.Command(python, "-c", "import "+strings.Replace(reader, "soffice", "csv", 1))); code != 0 {
				needs(t, reader, "needs the Python module "+reader)
			}
			var args []string
			var tables []table // of the JSON beside each CSV
			for _, target := range forms {
				if !strings.HasSuffix(target, "line") {
					plain := strings.NewReplacer("?format=csv&", "?", "&format=csv", "", "?format=csv", "").Replace(target)
					args, tables = append(args, p.url+target), append(tables, dataOf[table](p, plain))
				}
			}
			cmd := exec.Command(python, append([]string{"-c", csvReader, reader}, args...)...)
			cmd.Env = append(os.Environ(), "no_proxy=127.0.0.1", "NO_PROXY=127.0.0.1")
			stdout, stderr, code := run(t, cmd)
			d := json.NewDecoder(strings.NewReader(stdout))
			for i, want := range tables {
				var rows [][]string
				if err := d.Decode(&rows); code != 0 || err != nil {
					t.Fatalf("exit %d, %v: %s", code, err, stderr)
				}
				want.compare(t, args[i], rows)
			}
		})
	}
}

// compare compares the rows that a reader found, the names of the columns first, with the table.
func (x table) compare(t *testing.T, url string, rows [][]string) {
	t.Helper()
	want, nulls := x.size()
	empty := 0
	for _, row := range rows {
		if len(row) != len(rows[0]) {
			t.Errorf("%s: %q", url, row)
		}
		for _, value := range row {
			if value == "" {
				empty++
			}
		}
	}
	if len(rows) != want+1 || want == 0 || empty != nulls {
		t.Fatalf("%s: %d rows with %d empty fields, the JSON has %d with %d nulls", url, len(rows)-1, empty, want, nulls)
	}
	for j, values := range x.Rows {
		for k, v := range values {
			if number, isNumber := v.(float64); isNumber {
				if y, err := strconv.ParseFloat(rows[j+1][k], 64); err != nil || number != y {
					t.Errorf("%s: row %d: %v, want %v", url, j, rows[j+1][k], number)
				}
			} else if v != nil && fmt.Sprint(v) != rows[j+1][k] {
				t.Errorf("%s: row %d: %v, want %v", url, j, rows[j+1][k], v)
			}
		}
	}
}
