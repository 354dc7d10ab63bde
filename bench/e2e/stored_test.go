package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// recompute runs the command on a date.
func recompute(t *testing.T, dir, date string, more ...string) (out, errs string, code int) {
	t.Helper()
	return run(t, command(t, append([]string{"recompute", "--data-dir", dir, "--date", date}, more...)...))
}

// archivedInput returns the path of the input that the current gamma answer names.
func (p *process) archivedInput(dir string) string {
	p.t.Helper()
	e := p.envelope(gammaPath)
	if len(e.Meta.Receipt.Inputs) != 1 {
		p.t.Fatalf("%+v", e.Meta)
	}
	return filepath.Join(dir, e.Meta.Source, "archive", e.Meta.Receipt.Inputs[0]+".zst")
}

// A stored day is recomputed while the server runs and after it ended, and an input that is altered or gone is named.
func TestRecompute(t *testing.T) {
	t.Parallel()
	p := shared(t)
	for _, date := range []string{marketDay, earlierDay} {
		out, _, code := recompute(t, market.dir, date)
		for _, product := range []string{"gex/spx", "sectors/rotation"} {
			if code != 0 || !strings.Contains(out, product+" identical\n") {
				t.Errorf("%s: exit %d, %s", date, code, out)
			}
		}
		if date == marketDay && (!strings.Contains(out, "options/flow/unusual identical\n") || !strings.Contains(out, "spx-max-pain identical, ")) {
			t.Errorf("today: %s", out)
		}
	}
	dir := storedDay(t)
	input := p.archivedInput(dir)
	body, err := os.ReadFile(input)
	if err != nil {
		t.Fatal(err)
	}
	digest := strings.TrimSuffix(filepath.Base(input), ".zst")
	body[len(body)/2] ^= 1
	alter(t, input, body)
	if out, _, code := recompute(t, dir, marketDay); code != 3 || !strings.Contains(out, "gex/spx inputs_gone\n  "+digest) || !strings.Contains(out, "altered") ||
		!strings.Contains(out, "sectors/rotation identical") {
		t.Errorf("altered input: exit %d, %s", code, out)
	}
	if out, _, code := run(t, command(t, "verify", "--data-dir", dir)); code != 1 || !strings.Contains(out, input) || !strings.Contains(out, ", 1 bad") {
		t.Errorf("verify: exit %d, %s", code, out)
	}
	if err := os.Remove(input); err != nil {
		t.Fatal(err)
	}
	out, errs, code := recompute(t, dir, marketDay)
	if code != 3 || !strings.Contains(out, digest) || !strings.Contains(errs, "inputs_gone: gex/spx, spx-max-pain, options/flow/unusual") {
		t.Errorf("missing input: exit %d, %s%s", code, out, errs)
	}
	if out, _, code := recompute(t, dir, marketDay, "--product", "sectors/rotation"); code != 0 || out != "sectors/rotation identical\n" {
		t.Errorf("one product: exit %d, %s", code, out)
	}
	if out, errs, code := recompute(t, dir, "2001-01-01"); code != 1 || !strings.Contains(errs, "nothing of 2001-01-01 is stored") {
		t.Errorf("no such day: exit %d, %s%s", code, out, errs)
	}
}

// Without an archive everything is served, and a stored day says that its inputs are gone.
func TestNothingIsArchivedOnDemand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serve(t, "--data-dir", dir, "--archive-max-bytes", "0", "--sim-speed", "0", "--sim-start", marketStart)
	p.ready()
	input := p.archivedInput(dir)
	p.stopped()
	if _, err := os.Stat(filepath.Dir(input)); !os.IsNotExist(err) {
		t.Errorf("there is an archive: %v", err)
	}
	if out, _, code := recompute(t, dir, marketDay, "--product", "gex/spx"); code != 3 || !strings.Contains(out, "gex/spx inputs_gone") {
		t.Errorf("exit %d, %s", code, out)
	}
}

// Killed at any instant of its refreshes, the server leaves no bad file, and no stored day that says anything else than
// identical or inputs_gone.
func TestFaultKilledWhileArchiving(t *testing.T) {
	t.Parallel()
	dir := storedDay(t)
	random := rand.New(rand.NewPCG(1, 2))
	kills, same := count(20), 0
	for range kills {
		p := serve(t, "--data-dir", dir, "--sim-speed", "25", "--flow-symbols", "XLF")
		p.until("gamma is answered", func() bool { resp, _ := p.get(gammaPath); return resp.StatusCode == http.StatusOK })
		time.Sleep(time.Duration(random.IntN(2_000_000)) * time.Microsecond) // the instant of the kill is what is varied
		p.kill()
		verified(t, dir)
		out, errs, code := recompute(t, dir, marketDay)
		if code != 0 && code != 3 {
			t.Fatalf("exit %d, %s%s", code, out, errs)
		}
		if code == 0 {
			same++
		}
	}
	figure(t, "archive: %d kills of a server that refreshed every second: no bad file, %d days identical and %d with inputs gone", kills, same, kills-same)
}

const levelsHeader = "date,symbol,spot,net_gex_dollars,zero_gamma_flip,call_wall,put_wall,vol_trigger,abs_gamma_strike,gamma_regime,oi_settle_date,contracts_analyzed\r\n"

// levelsFile writes a file of n weekdays of 2015, a year before any simulated date, which has no holiday among them.
func levelsFile(t *testing.T, n int) (path, text string) {
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
	path = filepath.Join(t.TempDir(), "levels.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, text
}

// Export works beside a running server; import waits for its end, and the next start serves what it brought.
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
	if stdout, stderr, code := run(t, command(t, "import", file, "--data-dir", market.dir, "--dry-run")); code != 0 || !strings.Contains(stdout, "would import 3 dates") {
		t.Errorf("dry run beside a server: exit %d, %s", code, stderr)
	}
	cmd := command(t, "import", "-", "--data-dir", dir)
	cmd.Stdin = strings.NewReader(text + strings.Split(csv, "\r\n")[4] + "\r\n")
	if stdout, stderr, code := run(t, cmd); code != 0 || !strings.Contains(stdout, "imported 3 dates") || !strings.Contains(stdout, "stored: "+dates[3]+"\n") {
		t.Fatalf("import: exit %d, %s%s", code, stdout, stderr)
	}
	_, before := p.get(datePath + dates[3])
	p = serve(t, "--data-dir", dir, "--sim-speed", "0")
	p.ready()
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
	if rows := dataOf[struct{ Rows [][]any }](p, seriesPath).Rows; len(rows) != 34 || rows[0][0] != "2015-01-05" || rows[0][12] != "imported" {
		t.Errorf("series: %v", rows)
	}
	p.stopped()
	verified(t, dir)
	for _, format := range []string{"csv", "json"} {
		sameElsewhere(t, dir, dates[29], format)
	}
}

// sameElsewhere exports all 33 past sessions, imported and computed, to a file, imports that into an empty directory and exports from there.
func sameElsewhere(t *testing.T, dir, to, format string) {
	t.Helper()
	other, file := t.TempDir(), filepath.Join(t.TempDir(), "out")
	for _, args := range [][]string{
		{"export", "--data-dir", dir, "--format", format, "--output", file, "--to", to},
		{"import", file, "--data-dir", other, "--source", "replay"},
		{"export", "--data-dir", other, "--source", "replay", "--format", format, "--output", file + "2"},
	} {
		if stdout, stderr, code := run(t, command(t, args...)); code != 0 {
			t.Fatalf("%v: exit %d, %s%s", args, code, stdout, stderr)
		}
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(file + "2"); err != nil || string(second) != string(first) || strings.Count(string(first), "SPX") != 33 {
		t.Errorf("%s: exported %s, then %s, %v", format, first, second, err)
	}
}

// With imports alone, and an upstream that is not there, the server is not ready, yet serves the imported dates.
func TestImportsAloneAreServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, _ := levelsFile(t, 2)
	imported(t, file, dir)
	p := serve(t, append([]string{"--data-dir", dir}, noUpstream...)...)
	for path, want := range map[string]int{"/readyz": 503, gammaPath: 503, seriesPath: 503, "/api/v1/gex/spx/historical": 200, datePath + "2015-01-06": 200} {
		resp, body := p.get(path)
		if resp.StatusCode != want || want == 200 && !strings.Contains(string(body), `"imported_from":"levels.csv"`) {
			t.Errorf("%s: %d %.300s, want %d", path, resp.StatusCode, body, want)
		}
	}
	if _, body := p.get("/readyz"); !strings.Contains(string(body), `"gex/spx"`) {
		t.Errorf("readyz: %s", body)
	}
}

// imported imports a file as the upstream's.
func imported(t *testing.T, file, dir string) {
	t.Helper()
	if stdout, stderr, code := run(t, command(t, "import", file, "--data-dir", dir, "--source", "cboe")); code != 0 {
		t.Fatalf("import: exit %d, %s%s", code, stdout, stderr)
	}
}

// Killed at any instant, an import leaves whole dates, and the same file completes them.
func TestFaultImportKilled(t *testing.T) {
	t.Parallel()
	const dates = 240
	file, text := levelsFile(t, dates)
	dir, kills := t.TempDir(), 0
	stored := func() int { return len(storedFiles(t, dir, "cboe")) }
	for try := 0; kills < count(40) && try < 10*count(40); try++ {
		before := stored()
		if before+40 > dates { // an import that nothing killed, or the last of many
			dir, before = t.TempDir(), 0
		}
		cmd := command(t, "import", file, "--data-dir", dir, "--source", "cboe")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, "a date is stored", func() bool { return stored() > before+kills%3 })
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && stored() < dates {
			kills++
		}
		verified(t, dir)
	}
	if kills < count(40) {
		t.Fatalf("%d kills came before the import ended", kills)
	}
	partial, _, code := run(t, command(t, "export", "--data-dir", dir, "--source", "cboe"))
	if code != 0 || !strings.HasPrefix(text, partial) || len(partial) >= len(text) {
		t.Errorf("after the kills: exit %d, %s", code, partial)
	}
	imported(t, file, dir)
	if whole, _, code := run(t, command(t, "export", "--data-dir", dir, "--source", "cboe")); code != 0 || whole != text {
		t.Errorf("at last: exit %d, %s", code, whole)
	}
	figure(t, "%d imports killed, each between its first and its last date; %d dates whole in the end", kills, stored())
}
