package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The paths of the resources.
const (
	gammaPath     = "/api/v1/gex/spx"
	datePath      = "/api/v1/gex/spx/historical?date="
	seriesPath    = "/api/v1/gex/spx/series"
	trackPath     = "/api/v1/gex/spx/intraday"
	matrixPath    = "/api/v1/gex/spx/matrix"
	volPath       = "/api/v1/volatility/spx"
	painPath      = "/api/public/spx-max-pain"
	flowPath      = "/api/v1/options/flow/unusual"
	chainFlowPath = "/api/v1/options/flow/spx"
	sectorsPath   = "/api/v1/sectors/rotation"
	vixPath       = "/api/public/vix-term-structure"
	curvesPath    = "/api/public/vix-term-structure/series"
)

var targets = []string{
	gammaPath, "/api/v1/gex/spx/historical", trackPath, matrixPath, seriesPath, sectorsPath, painPath, flowPath, flowPath + "?limit=1", flowPath + "?limit=100", chainFlowPath + "?limit=7", vixPath, curvesPath,
	volPath, volPath + "/historical", volPath + "/series", painPath + "/series",
}

// The day of the simulated market at which the shared server's clock stands still, and a session before it.
const (
	marketStart  = "2026-11-20T16:00:00Z"
	marketDay    = "2026-11-20"
	earlierDay   = "2026-10-14"
	storedBefore = 65 // sessions before the day
)

// market is the server that read-only tests share: its clock stands still, its history is complete, and the documents of
// all its dates are stored. It has an index with other roots and hours than SPX, two funds and a stock.
var market sharedServer

type sharedServer struct {
	once  sync.Once
	p     *process
	dir   string
	ready bool
}

// shared returns the shared server. Only keys may be changed in its directory.
func shared(t testing.TB) *process {
	t.Helper()
	market.once.Do(func() { market.start(t) })
	if !market.ready {
		t.Fatal("the shared server did not start: another test says why")
	}
	p := *market.p
	if p.t = t; p.hasEnded() {
		t.Fatalf("the shared server ended: %v\n%s", p.err, p.logged())
	}
	return &p
}

func (s *sharedServer) start(t testing.TB) {
	s.dir = filepath.Join(scratch, "market")
	program := binary
	if len(raceFlags) > 0 { // the race detector makes the back-fill last minutes
		var err error
		if program, err = build("strikecache-plain", "."); err != nil {
			t.Fatal(err)
		}
	}
	cmd := command(t, "serve", "--data-dir", s.dir, "--admin-listen", "127.0.0.1:0", "--sim-start", marketStart, "--sim-speed", "0",
		"--underlyings", "SPX,SPY,XLF,NDX,AAPL")
	cmd.Path, cmd.Args[0] = program, program
	s.p = launch(t, cmd)
	s.p.listens().ready()
	s.p.until("everything is back-filled and stored", func() bool {
		return strings.Contains(s.p.logged(), `msg="history filled in"`)
	})
	s.p.backfilled()
	s.ready = true
}

func (s *sharedServer) stop() {
	if s.p != nil {
		s.p.kill()
	}
}

// storedDay returns a directory with the stored files of the shared server, without those of the underlyings that it alone has. The
// files are links: a test that changes one removes it first.
func storedDay(t testing.TB) string {
	t.Helper()
	shared(t)
	to, others := filepath.Join(t.TempDir(), "data"), regexp.MustCompile(`^(\.|usage|keys\.json$)|\b(spy|xlf|ndx|aapl)\b`)
	err := filepath.WalkDir(market.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, market.dir))
		switch name := d.Name(); {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case others.MatchString(name):
			return nil
		}
		return os.Link(path, target)
	})
	must(t, err)
	return to
}

// serveStored starts a server on a stored day, and waits until it is ready, which needs no computation. Its clock stands
// still.
func serveStored(t testing.TB, args ...string) *process {
	t.Helper()
	return serveReady(t, append([]string{"--data-dir", storedDay(t), "--sim-speed", "0", "--sim-start", marketStart}, args...)...)
}

// noUpstream has the arguments of a server whose upstream cannot be reached.
var noUpstream = []string{"--source", "cboe", "--cboe-base-url", "http://127.0.0.1:1"}

// envelope has the fields of an answer that tests read.
type envelope struct {
	text    []byte // the whole answer
	Success bool
	Data    json.RawMessage
	Meta    struct {
		edition
		Endpoint, Source string
		Captured         *time.Time `json:"captured_at"`
		Session          string     `json:"session_date"`
		Receipt          struct {
			Named  []struct{ Name, SHA256 string } `json:"inputs"`
			Inputs []string                        `json:"input_sha256"`
			Data   string                          `json:"data_sha256"`
		}
		Quality struct {
			Chains []struct {
				Symbol string
				AsOf   time.Time `json:"as_of"`
			}
		}
	}
	Usage usage
}

// edition has the times and the freshness that tell one answer of a resource from another.
type edition struct {
	AsOf      time.Time `json:"as_of"`
	Computed  time.Time `json:"computed_at"`
	Freshness struct {
		State  string
		Reason *string
		Since  time.Time
	}
}

// usage is the usage member of an answer.
type usage struct {
	Tier          string
	Key           string
	RequestsToday int  `json:"requests_today"`
	Remaining     *int `json:"remaining_today"`
}

// envelope fetches an answer, which must be a good one.
func (p *process) envelope(path string) envelope {
	p.t.Helper()
	resp, body := p.get(path)
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
	must(p.t, json.Unmarshal(p.envelope(path).Data, &v))
	return v
}

// sessions returns the dates of the series, rising.
func (p *process) sessions() (dates []string) {
	p.t.Helper()
	for _, row := range dataOf[struct{ Rows [][]any }](p, seriesPath).Rows {
		dates = append(dates, row[0].(string))
	}
	return dates
}

// backfilled waits until the series has the back-filled sessions and the current one, and each has an answer. It returns
// their dates.
func (p *process) backfilled() (dates []string) {
	p.t.Helper()
	p.until("back-filled", func() bool {
		dates = p.sessions()
		return len(dates) > storedBefore && // a session may pass meanwhile
			!slices.ContainsFunc(dates, func(date string) bool { return !p.answers(datePath+date, http.StatusOK) })
	})
	return dates
}

// degraded returns the codes of degraded in /readyz. The status must be 200, and the list must have only codes.
func (p *process) degraded() string {
	p.t.Helper()
	var doc struct {
		Ready    bool
		Degraded []string
	}
	resp, body := p.get("/readyz")
	codes := ""
	if err := json.Unmarshal(body, &doc); err == nil {
		codes = fmt.Sprint(doc.Degraded)
	}
	if resp.StatusCode != http.StatusOK || !doc.Ready || strings.ContainsAny(codes, "/.") {
		p.t.Errorf("readyz: %d %s", resp.StatusCode, body)
	}
	return strings.Trim(codes, "[]")
}
