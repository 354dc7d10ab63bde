package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"strikecache/bench/need"
)

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
	dir := t.TempDir()
	p := serve(t, "--data-dir", dir)
	p.ready()
	dates := p.backfilled()
	csv, said, code := run(t, command(t, "export", "--data-dir", dir, "--to", dates[29]))
	if lines := strings.SplitAfter(csv, "\r\n"); code != 0 || len(lines) != 32 || lines[0] != levelsHeader || !strings.HasPrefix(lines[30], dates[29]+",SPX,") {
		t.Fatalf("export: exit %d, %s, %s", code, csv, said)
	}
	if !strings.Contains(said, "30 simulated") || !strings.Contains(said, "THE MARKET IS SIMULATED") {
		t.Errorf("export said %q", said)
	}
	file, text := levelsFile(t, 3)
	if _, stderr, code := run(t, command(t, "import", file, "--data-dir", dir)); code == 0 || !strings.Contains(stderr, "another process") {
		t.Errorf("import beside a server: exit %d, %s", code, stderr)
	}
	if stdout, stderr, code := run(t, command(t, "import", file, "--data-dir", dir, "--dry-run")); code != 0 || !strings.Contains(stdout, "would import 3 dates") {
		t.Errorf("dry run beside a server: exit %d, %s", code, stderr)
	}
	_, before := p.get("/api/v1/gex/spx/historical?date=" + dates[3])
	p.stop(syscall.SIGTERM)

	cmd := command(t, "import", "-", "--data-dir", dir)
	cmd.Stdin = strings.NewReader(text + strings.Split(csv, "\r\n")[4] + "\r\n")
	if stdout, stderr, code := run(t, cmd); code != 0 || !strings.Contains(stdout, "imported 3 dates") || !strings.Contains(stdout, "stored: "+dates[3]+"\n") {
		t.Fatalf("import: exit %d, %s%s", code, stdout, stderr)
	}
	p = serve(t, "--data-dir", dir, "--sim-speed", "0")
	p.ready()
	if _, after := p.get("/api/v1/gex/spx/historical?date=" + dates[3]); string(after) != string(before) {
		t.Errorf("the stored date changed from %.300s to %.300s", before, after)
	}
	resp, body := p.get("/api/v1/gex/spx/historical?date=2015-01-05")
	for _, want := range []string{`"source":"imported","imported_from":"standard input"`, `"as_of":"2015-01-05T21:00:00Z"`, `"spot":2003.25`, `"by_strike":null`, `"method":"import/1"`} {
		if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), want) || !strings.Contains(resp.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("an imported date: %d, %v, %s, want %s", resp.StatusCode, resp.Header, body, want)
		}
	}
	if e := p.envelope("/api/v1/gex/spx"); e.Meta.Source != "simulated" {
		t.Errorf("current: %+v", e.Meta)
	}
	var series struct{ Rows [][]any }
	if err := json.Unmarshal(p.envelope("/api/v1/gex/spx/series").Data, &series); err != nil || len(series.Rows) != 34 || series.Rows[0][0] != "2015-01-05" || series.Rows[0][12] != "imported" {
		t.Errorf("series: %v, %v", series.Rows, err)
	}
	p.stop(syscall.SIGTERM)
	if out, _, code := run(t, command(t, "verify", "--data-dir", dir)); code != 0 || !strings.Contains(out, " 0 bad") {
		t.Errorf("verify: exit %d, %s", code, out)
	}
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
	dir := t.TempDir()
	file, _ := levelsFile(t, 2)
	if _, stderr, code := run(t, command(t, "import", file, "--data-dir", dir, "--source", "cboe")); code != 0 {
		t.Fatalf("import: exit %d, %s", code, stderr)
	}
	p := serve(t, "--data-dir", dir, "--source", "cboe", "--cboe-base-url", "http://127.0.0.1:1", "--cboe-settlement-url", "http://127.0.0.1:1/s")
	for path, want := range map[string]int{"/readyz": 503, "/api/v1/gex/spx": 503, "/api/v1/gex/spx/series": 503, "/api/v1/gex/spx/historical": 200, "/api/v1/gex/spx/historical?date=2015-01-06": 200} {
		resp, body := p.get(path)
		if resp.StatusCode != want || want == 200 && !strings.Contains(string(body), `"imported_from":"levels.csv"`) {
			t.Errorf("%s: %d %.300s, want %d", path, resp.StatusCode, body, want)
		}
	}
	if _, body := p.get("/readyz"); !strings.Contains(string(body), `"gex/spx"`) {
		t.Errorf("readyz: %s", body)
	}
}

func TestBadExportsAndImports(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.csv")
	if err := os.WriteFile(bad, []byte(levelsHeader+"2015-01-05,SPX,x,,,,,,,,,1\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, wants := range map[string][]string{
		"export --format=xml":                 {"--format", "csv", "json"},
		"export --from=2026-02-30":            {"--from", "YYYY-MM-DD"},
		"export --data-dir=/nonexistent":      {"/nonexistent"},
		"export --source=yahoo":               {"simulated", "cboe", "replay"},
		"import":                              {"<file>"},
		"import /nonexistent":                 {"/nonexistent"},
		"import " + bad:                       {"bad.csv", "line 2, column spot"},
		"import " + bad + " --closed-dates=x": {"closed-dates"},
	} {
		stdout, stderr, code := run(t, command(t, strings.Fields(args)...))
		for _, want := range wants {
			if code != 1 || !strings.Contains(stderr, want) || stdout != "" {
				t.Errorf("%s: exit %d, %q, %q; want it to name %q", args, code, stdout, stderr, want)
			}
		}
	}
}

// Killed at any instant, an import leaves whole dates, and the same file completes them.
func TestFaultImportKilled(t *testing.T) {
	kills := need.Count(40)
	file, text := levelsFile(t, 5*kills+10)
	dir := t.TempDir()
	stored := func() int {
		found, err := filepath.Glob(filepath.Join(dir, "cboe", "????-??-??", "gex-spx"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	for kill := range kills {
		before := stored()
		cmd := command(t, "import", file, "--data-dir", dir, "--source", "cboe")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for deadline := time.Now().Add(time.Minute); stored() < before+1+kill%3 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		}
		cmd.Process.Kill()
		<-ended
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || stored() <= before {
			t.Fatalf("kill %d did not hit: %v, %d dates before, %d after", kill, cmd.ProcessState, before, stored())
		}
		if out, _, code := run(t, command(t, "verify", "--data-dir", dir)); code != 0 || !strings.Contains(out, " 0 bad") {
			t.Fatalf("after kill %d: %s", kill, out)
		}
	}
	partial, _, code := run(t, command(t, "export", "--data-dir", dir, "--source", "cboe"))
	if code != 0 || !strings.HasPrefix(text, partial) || len(partial) >= len(text) {
		t.Errorf("after the kills: exit %d, %s", code, partial)
	}
	if stdout, stderr, code := run(t, command(t, "import", file, "--data-dir", dir, "--source", "cboe")); code != 0 {
		t.Fatalf("import: exit %d, %s%s", code, stdout, stderr)
	}
	if whole, _, code := run(t, command(t, "export", "--data-dir", dir, "--source", "cboe")); code != 0 || whole != text {
		t.Errorf("at last: exit %d, %s", code, whole)
	}
	need.Figure(t, "%d imports killed, each between its first and its last date; %d dates whole in the end", kills, stored())
}
