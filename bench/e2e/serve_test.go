package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"strikecache/bench/need"
)

// targets are all resources, with their parameters.
var targets = []string{
	"/api/v1/gex/spx", "/api/v1/gex/spx/historical", "/api/v1/gex/spx/series", "/api/v1/sectors/rotation",
	"/api/public/spx-max-pain", "/api/v1/options/flow/unusual", "/api/v1/options/flow/unusual?limit=1",
	"/api/v1/options/flow/unusual?limit=100", "/api/public/vix-term-structure",
}

type envelope struct {
	Success bool
	Data    json.RawMessage
	Meta    struct {
		Endpoint, Source string
		Freshness        struct{ State string }
		Receipt          struct {
			Data string `json:"data_sha256"`
		}
	}
	Usage struct{ Tier string }
}

func (p *process) envelope(path string) (e envelope) {
	p.t.Helper()
	resp, body := p.get(path)
	if err := json.Unmarshal(body, &e); err != nil || resp.StatusCode != http.StatusOK || !e.Success {
		p.t.Fatalf("%s: %d, %v, %.300s", path, resp.StatusCode, err, body)
	}
	return e
}

// backfilled waits until the series has the last 30 sessions and the current one, and returns their dates.
func (p *process) backfilled() (dates []string) {
	p.t.Helper()
	p.until("30 sessions are back-filled", func() bool {
		var series struct{ Rows [][]any }
		if err := json.Unmarshal(p.envelope("/api/v1/gex/spx/series").Data, &series); err != nil {
			p.t.Fatal(err)
		}
		dates = nil
		for _, row := range series.Rows {
			if row[12] != "imported" {
				dates = append(dates, row[0].(string))
			}
		}
		return len(dates) == 31
	})
	return dates
}

func TestTheSimulatedMarketAnswersEverything(t *testing.T) {
	start := time.Now()
	p := serve(t, "--data-dir", t.TempDir())
	p.ready()
	t.Logf("all resources answered %v after the start", time.Since(start).Round(10*time.Millisecond))
	if !strings.Contains(p.logged(), "SIMULATED") {
		t.Error("the log does not say that the market is simulated")
	}
	for _, target := range targets {
		if e := p.envelope(target); e.Meta.Source != "simulated" || e.Usage.Tier != "anonymous" {
			t.Errorf("%s: %+v", target, e.Meta)
		}
	}
	var pain struct {
		Expirations []struct{ Expiration string } `json:"expirations"`
	}
	if err := json.Unmarshal(p.envelope("/api/public/spx-max-pain").Data, &pain); err != nil || len(pain.Expirations) < 50 {
		t.Fatalf("%d expirations, %v", len(pain.Expirations), err)
	}
	for _, x := range pain.Expirations {
		p.envelope("/api/public/spx-max-pain?expiration=" + x.Expiration)
	}
	for target, status := range map[string]int{
		"/": 200, "/nowhere": 404, "/api/v1/options/flow/unusual?limit=101": 400, "/api/public/spx-max-pain?expiration=2000-01-01": 404,
		"/api/v1/gex/spx/historical?date=2999-01-01": 400, "/healthz": 200,
	} {
		if resp, body := p.get(target); resp.StatusCode != status {
			t.Errorf("%s: %d %s, want %d", target, resp.StatusCode, body, status)
		}
	}
	for _, date := range p.backfilled() {
		p.envelope("/api/v1/gex/spx/historical?date=" + date)
	}
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Errorf("stopped with %v", err)
	}
}

// Whatever clients saw last, they see at once after a crash.
func TestKillAndStartAgain(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, "--data-dir", dir)
	p.ready()
	p.backfilled()
	seen := map[string][]byte{}
	for range 3 { // a refresh may come between; then look again
		changed := false
		for _, target := range targets {
			_, body := p.get(target)
			changed = changed || !bytes.Equal(seen[target], body)
			seen[target] = body
		}
		if !changed {
			break
		}
	}
	p.kill()
	p = serve(t, "--data-dir", dir, "--sim-speed", "0") // time stands still: nothing is refreshed
	for _, target := range targets {
		if _, body := p.get(target); !bytes.Equal(body, seen[target]) {
			t.Errorf("%s differs after the restart:\n%.300s\n%.300s", target, seen[target], body)
		}
	}
	p.stop(syscall.SIGTERM)
	if out, _, code := run(t, command(t, "verify", "--data-dir", dir)); code != 0 || !strings.Contains(out, " 0 bad") {
		t.Errorf("verify: exit %d, %s", code, out)
	}
}

func TestReplayFromRecordedDocuments(t *testing.T) {
	p := serve(t, "--data-dir", t.TempDir(), "--source", "replay", "--replay-dir", filepath.Join(need.Recorded(t), "replay"))
	p.ready()
	var gamma struct{ Spot float64 }
	if err := json.Unmarshal(p.envelope("/api/v1/gex/spx").Data, &gamma); err != nil || gamma.Spot != 7728.20 {
		t.Errorf("spot %v, %v", gamma.Spot, err)
	}
	type side struct {
		MaxPain float64 `json:"max_pain"`
	}
	var pain struct {
		side
		Sides struct{ AM, PM side } `json:"by_settlement"`
	}
	e := p.envelope("/api/public/spx-max-pain?expiration=2026-08-21")
	if err := json.Unmarshal(e.Data, &pain); err != nil || pain.MaxPain != 7475 || pain.Sides.AM.MaxPain != 7400 || pain.Sides.PM.MaxPain != 7580 || e.Meta.Source != "replay" {
		t.Errorf("max pain %+v, source %s, %v", pain, e.Meta.Source, err)
	}
	if resp, body := p.get("/api/v1/sectors/rotation"); resp.StatusCode != 503 || !bytes.Contains(body, []byte("not_ready")) {
		t.Errorf("sectors without history: %d %s", resp.StatusCode, body)
	}
	if _, body := p.get("/readyz"); !bytes.Contains(body, []byte(`"unfed":["sectors/rotation"]`)) {
		t.Errorf("readyz: %s", body)
	}
	if e := p.envelope("/api/v1/gex/spx/historical?date=2026-08-11"); e.Meta.Source != "replay" {
		t.Errorf("historical: %+v", e.Meta)
	}
}

func TestVerifyNamesBadFiles(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, "--data-dir", dir)
	p.ready()
	p.stop(syscall.SIGTERM)
	files, err := filepath.Glob(filepath.Join(dir, "simulated", "*", "gex-spx"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(files[0], b, 0o644); err != nil {
		t.Fatal(err)
	}
	out, _, code := run(t, command(t, "verify", "--data-dir", dir))
	if code != 1 || !strings.Contains(out, files[0]) || !strings.Contains(out, "1 bad") {
		t.Errorf("exit %d, %s", code, out)
	}
}
