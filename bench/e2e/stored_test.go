package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// recompute runs the command on a date.
func recompute(t testing.TB, dir, date string, more ...string) (out, errs string, code int) {
	t.Helper()
	return run(t, command(t, append([]string{"recompute", "--data-dir", dir, "--date", date}, more...)...))
}

// archivedInput returns the path of the chain that the current gamma answer names.
func (p *process) archivedInput(dir string) string {
	p.t.Helper()
	e := p.envelope(gammaPath)
	var names []string
	for _, in := range e.Meta.Receipt.Named {
		names = append(names, in.Name)
	}
	// The reference is stored only during the back-fill, which the first answer does not wait for.
	if got := strings.Join(names, " "); got != "options/_SPX.json state/gex-carry" && got != "options/_SPX.json state/gex-carry state/gex-reference" {
		p.t.Fatalf("the inputs are %s", got)
	}
	return filepath.Join(dir, e.Meta.Source, "archive", e.Meta.Receipt.Named[0].SHA256+".gz")
}

// A stored day is recomputed while the server runs and after it ended, and an input that is altered or gone is named.
func TestRecompute(t *testing.T) {
	t.Parallel()
	p, dir := shared(t), storedDay(t)
	input := p.archivedInput(dir)
	digest := strings.TrimSuffix(filepath.Base(input), ".gz")
	expect := func(date string, code int, args []string, wants ...string) {
		t.Helper()
		out, errs, got := recompute(t, dir, date, args...)
		for _, want := range wants {
			if got != code || !strings.Contains(out+errs, want) {
				t.Errorf("recompute %s: exit %d, %s%s, want %d, %q", date, got, out, errs, code, want)
			}
		}
	}
	for _, want := range []string{"gex/spx identical\n", "sectors/rotation identical\n", "options/flow/unusual identical\n", "spx-max-pain identical, "} {
		early := strings.HasPrefix(want, "gex") || strings.HasPrefix(want, "sectors")
		if !strings.Contains(market.recomputed[marketDay], want) || early && !strings.Contains(market.recomputed[earlierDay], want) {
			t.Errorf("beside the server: no %q in %q", want, market.recomputed)
		}
	}
	body, err := os.ReadFile(input)
	if err != nil {
		t.Fatal(err)
	}
	body[len(body)/2] ^= 1
	alter(t, input, body)
	expect(marketDay, 3, nil, "gex/spx inputs_gone\n  "+digest, "altered", "sectors/rotation identical")
	if out, _, code := run(t, command(t, "verify", "--data-dir", dir)); code != 1 || !strings.Contains(out, input) || !strings.Contains(out, ", 1 bad") {
		t.Errorf("verify: exit %d, %s", code, out)
	}
	if err := os.Remove(input); err != nil {
		t.Fatal(err)
	}
	expect(marketDay, 3, nil, digest, "inputs_gone: gex/spx, gex/spx/intraday, gex/spx/series, gex/spx/matrix, spx-max-pain, options/flow/unusual")
	expect(marketDay, 0, []string{"--product", "sectors/rotation"}, "sectors/rotation identical\n")
	expect("2001-01-01", 1, nil, "nothing of 2001-01-01 is stored")
}

// The archive has a file for every digest of every receipt, and its decoded bytes have this digest.
func TestReceiptsNameArchivedBytes(t *testing.T) {
	t.Parallel()
	p := shared(t)
	inputs := 0
	answers := map[string]string{
		gammaPath: `{"risk_free_rate":0.04}`, trackPath: `{"risk_free_rate":0.04}`, matrixPath: `{"risk_free_rate":0.04}`, seriesPath: `{}`, sectorsPath: `{}`, painPath: `{}`, flowPath: `{}`,
		vixPath: `{"stale_sessions_to":"2026-11-20"}`, datePath + marketDay: `{"risk_free_rate":0.04}`, datePath + earlierDay: `{"risk_free_rate":0.04}`,
	}
	for path, parameters := range answers {
		receipt := p.envelope(path).Meta.Receipt
		if string(receipt.Parameters) != parameters || len(receipt.Named) == 0 || len(receipt.Named) != len(receipt.Inputs) {
			t.Errorf("%s: %+v, want parameters %s", path, receipt, parameters)
		}
		for i, in := range receipt.Named {
			packed, err := os.ReadFile(filepath.Join(market.dir, "simulated", "archive", in.SHA256+".gz"))
			if err != nil {
				t.Errorf("%s: %s: %v", path, in.Name, err)
				continue
			}
			body, err := decode(&http.Response{Header: http.Header{"Content-Encoding": {"gzip"}}}, packed)
			if err != nil || sum(body) != in.SHA256 || receipt.Inputs[i] != in.SHA256 {
				t.Errorf("%s: %s: %v, the archive has %s under %s, input_sha256 %s", path, in.Name, err, sum(body), in.SHA256, receipt.Inputs[i])
			}
			inputs++
		}
	}
	figure(t, "%d inputs of %d answers are archived under the digests of their receipts", inputs, len(answers))
}

// Without an archive everything is served, and recompute says that the inputs are gone.
func TestNothingIsArchivedOnDemand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serveReady(t, "--data-dir", dir, "--archive-max-bytes", "0", "--sim-speed", "0", "--sim-start", marketStart)
	input := p.archivedInput(dir)
	p.stop()
	if _, err := os.Stat(filepath.Dir(input)); !os.IsNotExist(err) {
		t.Errorf("there is an archive: %v", err)
	}
	if out, _, code := recompute(t, dir, marketDay, "--product", "gex/spx"); code != 3 || !strings.Contains(out, "gex/spx inputs_gone") {
		t.Errorf("exit %d, %s", code, out)
	}
}

const levelsHeader = "date,symbol,spot,net_gex_dollars,zero_gamma_flip,call_wall,put_wall,vol_trigger,abs_gamma_strike,gamma_regime,oi_settle_date,contracts_analyzed\r\n"

// levelsFile writes a file with the levels of n sessions of 2015, a year before any simulated date.
func levelsFile(t testing.TB, n int) (path, text string) {
	t.Helper()
	text = levelsHeader
	holidays := "2015-01-19 2015-02-16 2015-04-03 2015-05-25 2015-07-03 2015-09-07 2015-11-26"
	for day := time.Date(2015, 1, 5, 0, 0, 0, 0, time.UTC); n > 0; day = day.AddDate(0, 0, 1) {
		date := day.Format(time.DateOnly)
		if day.Weekday() == time.Saturday || day.Weekday() == time.Sunday || strings.Contains(holidays, date) {
			continue
		}
		text += fmt.Sprintf("%s,SPX,%d.25,-6454130017,%d.5,2100,,,2000,negative,,%d\r\n", date, 2000+n, 1990+n, n)
		n--
	}
	return writeFile(t, filepath.Join(t.TempDir(), "levels.csv"), text), text
}

// export works beside a running server. After an import, the next start serves the imported dates.
func TestExportAndImport(t *testing.T) {
	t.Parallel()
	p, dir := shared(t), storedDay(t)
	dates := p.sessions()
	csv, said, code := run(t, command(t, "export", "--data-dir", market.dir, "--to", dates[29]))
	if lines := strings.SplitAfter(csv, "\r\n"); code != 0 || len(lines) != 32 || lines[0] != levelsHeader || !strings.HasPrefix(lines[30], dates[29]+",SPX,") {
		t.Fatalf("export: exit %d, %s, %s", code, csv, said)
	}
	if !strings.Contains(said, "30 simulated") || !strings.Contains(said, "THE MARKET IS SIMULATED") {
		t.Errorf("export said %q", said)
	}
	file, text := levelsFile(t, 3)
	if out := does(t, "import", file, "--data-dir", market.dir, "--dry-run"); !strings.Contains(out, "would import 3 dates") {
		t.Errorf("dry run beside a server: %s", out)
	}
	cmd := command(t, "import", "-", "--data-dir", dir)
	cmd.Stdin = strings.NewReader(text + strings.Split(csv, "\r\n")[4] + "\r\n")
	if stdout, stderr, code := run(t, cmd); code != 0 || !strings.Contains(stdout, "imported 3 dates") || !strings.Contains(stdout, "stored: "+dates[3]+"\n") {
		t.Fatalf("import: exit %d, %s%s", code, stdout, stderr)
	}
	_, before := p.get(datePath + dates[3])
	p = serveReady(t, "--data-dir", dir, "--sim-speed", "0", "--sim-start", marketStart)
	if _, after := p.get(datePath + dates[3]); string(after) != string(before) {
		t.Errorf("the stored date changed from %.300s to %.300s", before, after)
	}
	resp, body := p.get(datePath + "2015-01-05")
	for _, want := range []string{`"source":"imported","imported_from":"standard input"`, `"as_of":"2015-01-05T21:00:00Z"`, `"spot":2003.25`, `"by_strike":null`, `"method":"import/1"`} {
		if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), want) || !strings.Contains(resp.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("an imported date: %d, %v, %s, want %s", resp.StatusCode, resp.Header, body, want)
		}
	}
	if e := p.envelope(gammaPath); e.Meta.Source != "simulated" {
		t.Errorf("current: %+v", e.Meta)
	}
	p.until("the series has the imported dates", func() bool {
		rows := p.rows()
		return len(rows) == 34 && rows[0][0] == "2015-01-05" && rows[0][12] == "imported"
	})
	p.stop()
	verified(t, dir)
	for _, format := range []string{"csv", "json"} { // exported rows, computed or imported, are the same after an import elsewhere
		other, file := t.TempDir(), filepath.Join(t.TempDir(), "out")
		does(t, "export", "--data-dir", dir, "--format", format, "--output", file, "--to", dates[29])
		does(t, "import", file, "--data-dir", other, "--source", "replay")
		first, err := os.ReadFile(file)
		if second := does(t, "export", "--data-dir", other, "--source", "replay", "--format", format); err != nil || second != string(first) || strings.Count(second, "SPX") != 33 {
			t.Errorf("%s: exported %s, %v, then %s", format, first, err, second)
		}
	}
}

// With imports alone, and an upstream that is not there, the server is not ready, yet serves the imported dates.
func TestImportsAloneAreServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, _ := levelsFile(t, 2)
	does(t, "import", file, "--data-dir", dir, "--source", "cboe")
	p := serveNothing(t, "--data-dir", dir)
	for path, want := range map[string]int{"/readyz": 503, gammaPath: 503, seriesPath: 503, "/api/v1/gex/spx/historical": 200, datePath + "2015-01-06": 200} {
		resp, body := p.get(path)
		if resp.StatusCode != want || want == 200 && !strings.Contains(string(body), `"imported_from":"levels.csv"`) {
			t.Errorf("%s: %d %.300s, want %d", path, resp.StatusCode, body, want)
		}
	}
}

// A killed import leaves only whole dates, and a second import of the same file stores the rest.
func TestFaultImportKilled(t *testing.T) {
	t.Parallel()
	const dates = 240
	file, text := levelsFile(t, dates)
	dir, kills := t.TempDir(), 0
	stored := func() int { return len(storedFiles(t, dir, "cboe")) }
	exported := func() string { t.Helper(); return does(t, "export", "--data-dir", dir, "--source", "cboe") }
	for try := 0; kills < count(40) && try < 10*count(40); try++ {
		before := stored()
		if before+40 > dates { // too few dates are left for another kill
			dir, before = t.TempDir(), 0
		}
		p := launch(t, command(t, "import", file, "--data-dir", dir, "--source", "cboe"), nil)
		until(t, "a date is stored", func() bool { return stored() > before+kills%3 })
		p.kill()
		if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && stored() < dates {
			kills++
		}
		verified(t, dir)
	}
	if kills < count(40) {
		t.Fatalf("%d kills came before the import ended", kills)
	}
	if partial := exported(); !strings.HasPrefix(text, partial) || len(partial) >= len(text) {
		t.Errorf("after the kills: %s", partial)
	}
	does(t, "import", file, "--data-dir", dir, "--source", "cboe")
	if whole := exported(); whole != text {
		t.Errorf("at last: %s", whole)
	}
	figure(t, "%d imports killed, each between its first and its last date; in the end all %d dates are whole", kills, stored())
}

// storedFiles returns the stored gamma answers' paths by date, rising.
func storedFiles(t testing.TB, dir, source string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, source, "????-??-??", "gex-spx"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}
