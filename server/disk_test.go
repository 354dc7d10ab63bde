package server_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strikecache/bench/need"
	"strikecache/server"
	"strikecache/snapshots"
)

// A disk that refuses files costs clients nothing: the newest answers are served, past ones too, and /readyz stays 200
// and says disk, which is all that it says.
func TestFaultDiskOverHTTP(t *testing.T) {
	dir, date := t.TempDir(), "2026-11-19"
	store, err := snapshots.Open(snapshots.Options{
		Dir: dir, Source: "simulated", Feeds: map[string][]string{"all": {"gex/spx"}}, HistoricalProduct: "gex/spx", HistoryBytes: 1 << 20,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	web := newServer(newShelf(t), func(c *server.Config) {
		c.Finder = store
		c.Readiness = func() (r server.Readiness) {
			r.Impaired("disk", store.DiskError())
			return r
		}
	})
	c := serveInMemory(t, web)
	save := func(date, data string) error {
		e := &snapshots.Edition{Default: seal(t, "gex/spx", data)}
		err := store.Save("gex/spx", date, snapshots.File{Edition: e})
		if publish := store.Publish("all", map[string]*snapshots.Edition{"gex/spx": e}); publish != nil {
			t.Fatal(publish)
		}
		return err
	}
	expect := func(when, data string, degraded ...string) {
		t.Helper()
		for _, target := range []string{"/api/v1/gex/spx", "/api/v1/gex/spx/historical", "/api/v1/gex/spx/historical?date=" + date} {
			if resp, body := do(t, c, "GET", target); resp.StatusCode != 200 || !strings.Contains(string(body), data) {
				t.Errorf("%s: %s: %d %s", when, target, resp.StatusCode, body)
			}
		}
		var ready struct {
			Ready    bool
			Degraded []string
		}
		resp, body := do(t, c, "GET", "/readyz")
		if err := json.Unmarshal(body, &ready); err != nil || resp.StatusCode != 200 || !ready.Ready || !slices.Equal(ready.Degraded, degraded) {
			t.Errorf("%s: readyz %d %s, want %q", when, resp.StatusCode, body, degraded)
		}
		for _, detail := range []string{dir, "gex-spx", "directory", "file"} {
			if strings.Contains(string(body), detail) {
				t.Errorf("%s: readyz tells %q: %s", when, detail, body)
			}
		}
	}
	if err := save("2026-11-17", `{"n":0}`); err != nil {
		t.Fatal(err)
	}
	inTheWay := filepath.Join(dir, "simulated", date)
	if err := os.WriteFile(inTheWay, nil, 0o644); err != nil { // also root cannot make a directory of it
		t.Fatal(err)
	}
	for _, data := range []string{`{"n":1}`, `{"n":2}`} {
		if err := save(date, data); err == nil {
			t.Fatal("nothing failed")
		}
		expect("while the disk refuses", data, "disk")
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	if err := store.SaveState("any", "2026-11-17", nil); err != nil {
		t.Fatal(err)
	}
	expect("when it is back", `{"n":2}`)
	if _, bad, err := snapshots.Verify(dir); err != nil || len(bad) != 0 {
		t.Errorf("bad %v, %v", bad, err)
	}
	need.Figure(t, "%d failed writes seen over HTTP as 200 and a degraded disk", store.Stats().DiskErrors.Create)
}
