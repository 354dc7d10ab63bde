package e2e

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// forms are the targets of all forms of the first underlying.
var forms = []string{
	gammaPath + "?format=csv", datePath + marketDay + "&format=csv", trackPath + "?format=csv", trackPath + "?date=" + marketDay + "&format=csv", seriesPath + "?format=csv", matrixPath + "?format=csv",
	levelsPath + "?format=csv", gammaPath + "/open-interest?format=csv", gammaPath + "/strikes?format=csv", "/api/v1/underlyings?format=csv", levelsPath + "?format=line", flowPath + "?format=csv", flowPath + "?format=csv&limit=100", chainFlowPath + "?format=csv",
	volPath + "?format=csv", volPath + "/historical?format=csv", vixPath + "?format=csv", volPath + "/series?format=csv", painPath + "?format=csv", painPath + "?date=" + marketDay + "&format=csv", painPath + "/series?format=csv", curvesPath + "?format=csv", sectorsPath + "?format=csv", sectorsPath + "/series?format=csv",
}

const levelsPath = "/api/v1/gex/spx/levels"

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

// Python's csv module (strictly), pandas and LibreOffice read every CSV, and find the values that Go's library finds. The tests of
// package refresh compare these with the JSON.
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
			args, tables := []string{}, [][][]string{}
			for _, target := range forms {
				if !strings.HasSuffix(target, "line") {
					_, body := p.get(target)
					rows, err := csv.NewReader(bytes.NewReader(body)).ReadAll()
					if err != nil || len(rows) < 2 {
						t.Fatalf("%s: %d rows, %v", target, len(rows), err)
					}
					args, tables = append(args, p.url+target), append(tables, rows)
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
				if !slices.EqualFunc(rows, want, func(row, want []string) bool { return slices.EqualFunc(row, want, sameValue) }) {
					t.Errorf("%s: %q, want %q", args[i], rows, want)
				}
			}
		})
	}
}

// sameValue says whether two texts are the same but for their case (pandas has True), or the same number.
func sameValue(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return strings.EqualFold(a, b) || err == nil && err2 == nil && x == y
}
