package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The resources, and all of them with their parameters.
const (
	gammaPath   = "/api/v1/gex/spx"
	datePath    = "/api/v1/gex/spx/historical?date="
	seriesPath  = "/api/v1/gex/spx/series"
	painPath    = "/api/public/spx-max-pain"
	flowPath    = "/api/v1/options/flow/unusual"
	sectorsPath = "/api/v1/sectors/rotation"
	vixPath     = "/api/public/vix-term-structure"
)

var targets = []string{
	gammaPath, "/api/v1/gex/spx/historical", seriesPath, sectorsPath, painPath, flowPath, flowPath + "?limit=1", flowPath + "?limit=100", vixPath,
}

// The day of the simulated market at which the shared server's clock stands still, and a session before it.
const (
	marketStart  = "2026-11-20T16:00:00Z"
	marketDay    = "2026-11-20"
	earlierDay   = "2026-10-14"
	storedBefore = 30 // sessions before the day
)

// market is the server that tests share which only read: its clock stands still, its history is complete, and the inputs
// of all its dates are archived.
var market sharedServer

type sharedServer struct {
	once, told sync.Once
	p          *process
	dir        string
	err        error
}

// shared returns the shared server. Only keys may be changed in its directory.
func shared(t *testing.T) *process {
	t.Helper()
	market.once.Do(func() {
		market.err = errors.New("the shared server did not start")
		market.start()
	})
	if market.err != nil {
		market.told.Do(func() { t.Fatal(market.err) })
		t.Fatal("the shared server did not start: another test says why")
	}
	p := *market.p
	p.t = t
	return &p
}

func (s *sharedServer) start() {
	s.dir = filepath.Join(scratch, "market")
	cmd := commandOf(binary, "serve", "--data-dir", s.dir, "--admin-listen", "127.0.0.1:0", "--sim-start", marketStart, "--sim-speed", "0")
	if s.p, s.err = start(cmd, func(string) {}); s.err != nil {
		return
	}
	for deadline := time.Now().Add(2 * patience); ; time.Sleep(100 * time.Millisecond) {
		if s.err = s.complete(); s.err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.err = fmt.Errorf("the shared server's history is not complete: %w\n%s", s.err, s.p.logged())
			return
		}
	}
}

// complete says what is not yet there.
func (s *sharedServer) complete() error {
	var series struct{ Data struct{ Rows [][]any } }
	if resp, body, err := fetch(s.p.url + seriesPath); err != nil || resp.StatusCode == http.StatusOK && json.Unmarshal(body, &series) != nil {
		return fmt.Errorf("series: %w", err)
	}
	if len(series.Data.Rows) != storedBefore+1 {
		return fmt.Errorf("%d sessions are stored", len(series.Data.Rows))
	}
	if resp, body, err := fetch(s.p.url + "/readyz"); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("readyz: %w %s", err, body)
	}
	for date, products := range map[string]int{earlierDay: 2, marketDay: 4} {
		out, err := commandOf(binary, "recompute", "--data-dir", s.dir, "--date", date).CombinedOutput()
		if err != nil || strings.Count(string(out), " identical") < products {
			return fmt.Errorf("recompute %s: %w %s", date, err, out)
		}
	}
	return nil
}

func (s *sharedServer) stop() {
	if s.p != nil {
		s.p.kill()
	}
}

// storedDay returns a directory with what the shared server has stored. Its files are linked, not copied: who alters one
// uses [alter].
func storedDay(t *testing.T) string {
	t.Helper()
	shared(t)
	to := filepath.Join(t.TempDir(), "data")
	err := filepath.WalkDir(market.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, market.dir))
		switch name := d.Name(); {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case strings.HasPrefix(name, ".") || strings.HasPrefix(name, "usage") || name == "keys.json":
			return nil
		}
		return os.Link(path, target)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// alter gives a file new content, and leaves other links to the old content alone.
func alter(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := errors.Join(os.Remove(path), os.WriteFile(path, content, 0o600)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

// serveStored starts a server on a stored day. Nothing has to be computed for it to be ready, and its clock stands still.
func serveStored(t *testing.T, args ...string) *process {
	t.Helper()
	return serve(t, append([]string{"--data-dir", storedDay(t), "--sim-speed", "0"}, args...)...)
}

// noUpstream are the arguments of a server whose upstream is not there.
var noUpstream = []string{"--source", "cboe", "--cboe-base-url", "http://127.0.0.1:1", "--cboe-settlement-url", "http://127.0.0.1:1"}

type envelope struct {
	Success bool
	Data    json.RawMessage
	Meta    struct {
		Endpoint, Source string
		AsOf             string    `json:"as_of"`
		ComputedAt       time.Time `json:"computed_at"`
		Freshness        freshness
		Receipt          struct {
			Method string
			Inputs []string `json:"input_sha256"`
			Data   string   `json:"data_sha256"`
		}
	}
	Usage usage
}

// freshness is what an answer says of its own.
type freshness struct {
	State  string
	Reason *string
}

// usage is the usage member of an answer.
type usage struct {
	Tier          string
	Key           string
	RequestsToday int  `json:"requests_today"`
	Remaining     *int `json:"remaining_today"`
}

// envelope fetches an answer, which must be a good one.
func (p *process) envelope(path string, headers ...string) (e envelope) {
	p.t.Helper()
	resp, body := p.get(path, headers...)
	if resp.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %d, %.300s", path, resp.StatusCode, body)
	}
	return envelopeOf(p.t, body)
}

func envelopeOf(t testing.TB, body []byte) (e envelope) {
	t.Helper()
	if err := json.Unmarshal(body, &e); err != nil || !e.Success {
		t.Fatalf("%v, %.300s", err, body)
	}
	return e
}

// dataOf fetches an answer's data.
func dataOf[T any](p *process, path string) (v T) {
	p.t.Helper()
	if err := json.Unmarshal(p.envelope(path).Data, &v); err != nil {
		p.t.Fatal(err)
	}
	return v
}

// sessions returns the dates of the series, rising, without imported ones.
func (p *process) sessions() (dates []string) {
	p.t.Helper()
	for _, row := range dataOf[struct{ Rows [][]any }](p, seriesPath).Rows {
		if row[12] != "imported" {
			dates = append(dates, row[0].(string))
		}
	}
	return dates
}

// backfilled waits until the series has the sessions before and the current one, and returns their dates.
func (p *process) backfilled() (dates []string) {
	p.t.Helper()
	p.until("back-filled", func() bool { dates = p.sessions(); return len(dates) == storedBefore+1 })
	return dates
}

// degraded returns what /readyz says is impaired. It must be 200 all the while, and name codes alone.
func (p *process) degraded() []string {
	p.t.Helper()
	var doc struct {
		Ready    bool
		Degraded []string
	}
	resp, body := p.get("/readyz")
	if err := json.Unmarshal(body, &doc); err != nil || resp.StatusCode != http.StatusOK || !doc.Ready {
		p.t.Errorf("readyz: %d %s, %v", resp.StatusCode, body, err)
	}
	for _, code := range doc.Degraded {
		if strings.ContainsAny(code, "/. ") {
			p.t.Errorf("readyz names %q", code)
		}
	}
	return doc.Degraded
}

// freshness returns what an answer says of its own.
func (p *process) freshness(path string) freshness {
	p.t.Helper()
	return p.envelope(path).Meta.Freshness
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
