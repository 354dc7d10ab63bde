package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"strikecache/bench/need"
)

// recompute runs the command on a date.
func recompute(t *testing.T, dir, date string, more ...string) (out, errs string, code int) {
	t.Helper()
	return run(t, command(t, append([]string{"recompute", "--data-dir", dir, "--date", date}, more...)...))
}

// archivedInput returns the path of an input that the current gamma answer names.
func (p *process) archivedInput(dir string) string {
	p.t.Helper()
	_, body := p.get("/api/v1/gex/spx")
	var e struct {
		Meta struct {
			Source  string
			Receipt struct {
				Inputs []string `json:"input_sha256"`
			}
		}
	}
	if err := json.Unmarshal(body, &e); err != nil || len(e.Meta.Receipt.Inputs) != 1 {
		p.t.Fatalf("%v: %.300s", err, body)
	}
	return filepath.Join(dir, e.Meta.Source, "archive", e.Meta.Receipt.Inputs[0]+".zst")
}

// A stored day is recomputed while the server runs and after it ended; a changed answer is shown field by field, and an
// input that is altered or gone is named.
func TestRecompute(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, "--data-dir", dir, "--sim-start", "2026-11-20T16:00:00Z", "--sim-speed", "0")
	p.ready()
	p.backfilled()
	const today, before = "2026-11-20", "2026-10-14"
	for _, date := range []string{today, before} {
		p.until("inputs of "+date+" are archived", func() bool { _, _, code := recompute(t, dir, date); return code == 0 })
		out, _, _ := recompute(t, dir, date)
		for _, product := range []string{"gex/spx", "sectors/rotation"} {
			if !strings.Contains(out, product+" identical\n") {
				t.Errorf("%s: %s", date, out)
			}
		}
	}
	if out, _, _ := recompute(t, dir, today); !strings.Contains(out, "options/flow/unusual identical\n") || !strings.Contains(out, "spx-max-pain identical, ") {
		t.Errorf("today: %s", out)
	}
	input := p.archivedInput(dir)
	p.stop(syscall.SIGTERM)

	body, err := os.ReadFile(input)
	if err != nil {
		t.Fatal(err)
	}
	digest := strings.TrimSuffix(filepath.Base(input), ".zst")
	body[len(body)/2] ^= 1
	if err := os.WriteFile(input, body, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, code := recompute(t, dir, today); code != 3 || !strings.Contains(out, "gex/spx inputs_gone\n  "+digest) || !strings.Contains(out, "altered") ||
		!strings.Contains(out, "sectors/rotation identical") {
		t.Errorf("altered input: exit %d, %s", code, out)
	}
	if out, _, code := run(t, command(t, "verify", "--data-dir", dir)); code != 1 || !strings.Contains(out, input) || !strings.Contains(out, ", 1 bad") {
		t.Errorf("verify: exit %d, %s", code, out)
	}
	if err := os.Remove(input); err != nil {
		t.Fatal(err)
	}
	out, errs, code := recompute(t, dir, today)
	if code != 3 || !strings.Contains(out, digest) || !strings.Contains(errs, "inputs_gone: gex/spx, spx-max-pain, options/flow/unusual") {
		t.Errorf("missing input: exit %d, %s%s", code, out, errs)
	}
	if out, _, code := recompute(t, dir, today, "--product", "sectors/rotation"); code != 0 || out != "sectors/rotation identical\n" {
		t.Errorf("one product: exit %d, %s", code, out)
	}
	if out, errs, code := recompute(t, dir, "2001-01-01"); code != 1 || !strings.Contains(errs, "nothing of 2001-01-01 is stored") {
		t.Errorf("no such day: exit %d, %s%s", code, out, errs)
	}
}

func TestRecomputeOfRecordedDocuments(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, "--data-dir", dir, "--source", "replay", "--replay-dir", filepath.Join(need.Recorded(t), "replay"))
	p.ready()
	p.stop(syscall.SIGTERM)
	for date, product := range map[string]string{"2026-08-11": "gex/spx identical\n", "2026-10-05": "vix-term-structure identical\n"} {
		if out, errs, code := recompute(t, dir, date, "--source", "replay"); code != 0 || !strings.Contains(out, product) {
			t.Errorf("%s: exit %d, %s%s", date, code, out, errs)
		}
	}
}

// Without an archive everything is served, and a stored day says that its inputs are gone.
func TestNothingIsArchivedOnDemand(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, "--data-dir", dir, "--archive-max-bytes", "0", "--sim-speed", "0", "--sim-start", "2026-11-20T16:00:00Z")
	p.ready()
	input := p.archivedInput(dir)
	p.stop(syscall.SIGTERM)
	if _, err := os.Stat(filepath.Dir(input)); !os.IsNotExist(err) {
		t.Errorf("there is an archive: %v", err)
	}
	if out, _, code := recompute(t, dir, "2026-11-20", "--product", "gex/spx"); code != 3 || !strings.Contains(out, "gex/spx inputs_gone") {
		t.Errorf("exit %d, %s", code, out)
	}
}

// Killed at any instant of its refreshes, the server leaves no bad file, and no stored day that says anything else than
// identical or inputs_gone.
func TestFaultKilledWhileArchiving(t *testing.T) {
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	kills, same := need.Count(20), 0
	const today = "2026-11-20"
	for range kills {
		p := serve(t, "--data-dir", dir, "--sim-speed", "25", "--flow-symbols", "XLF")
		p.until("gamma is answered", func() bool { resp, _ := p.get("/api/v1/gex/spx"); return resp.StatusCode == http.StatusOK })
		time.Sleep(time.Duration(random.IntN(2_000_000)) * time.Microsecond) // the instant of the kill is what is varied
		p.kill()
		if out, _, code := run(t, command(t, "verify", "--data-dir", dir)); code != 0 {
			t.Fatalf("verify: exit %d, %s", code, out)
		}
		out, errs, code := recompute(t, dir, today)
		if code != 0 && code != 3 {
			t.Fatalf("exit %d, %s%s", code, out, errs)
		}
		if code == 0 {
			same++
		}
	}
	need.Figure(t, "archive: %d kills of a server that refreshed every second: no bad file, %d days identical and %d with inputs gone", kills, same, kills-same)
}
