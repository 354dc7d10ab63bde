package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	soakSpeed   = 2400 // simulated seconds a second: a day in 36 seconds
	soakStart   = "2026-11-02T14:00:00Z"
	soakClients = 4
	soakPause   = 5 * time.Millisecond // of a client, between its requests
	soakLook    = 2 * time.Second      // between two looks at the process
)

// look is one measurement of the process.
type look struct {
	resident, files, goroutines float64
	p99                         time.Duration // of the requests since the look before
}

// The server runs through compressed days under load. Memory, files, goroutines and p99 do not grow, the cache never
// refuses or drops a current answer, and the history has exactly the sessions that passed.
func TestSoak(t *testing.T) {
	if !full() {
		t.Skip("runs in make soak alone")
	}
	const length = 20 * time.Minute
	p := serveReady(t, "--admin-listen", "127.0.0.1:0", "--sim-start", soakStart,
		"--sim-speed", strconv.Itoa(soakSpeed), "--gex-every", "1h")
	p.until("back-filled", func() bool { return strings.Contains(p.logged(), "msg=back-filled") })
	before := p.exchangeSessions()

	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	soak := &soaking{p: p, paths: soakPaths(p)}
	var clients sync.WaitGroup
	for i := range soakClients {
		clients.Go(func() { soak.client(ctx, rand.New(rand.NewPCG(1, uint64(i)))) })
	}
	var looks []look
	for tick := time.NewTicker(soakLook); ctx.Err() == nil; {
		select {
		case <-tick.C:
			looks = append(looks, soak.look())
		case <-ctx.Done():
			tick.Stop()
		}
	}
	clients.Wait()
	if len(soak.wrong) > 0 {
		t.Errorf("%d wrong answers, the first: %s", len(soak.wrong), soak.wrong[0])
	}
	if soak.answered == 0 || len(looks) < 6 {
		t.Fatalf("too few: %d requests, %d looks", soak.answered, len(looks))
	}
	judgeLooks(t, looks)
	passed := judgeSessions(t, p, before)
	figure(t, "soak: %d requests over %v, %d sessions passed, all answers right", soak.answered, length, passed)
}

// judgeLooks compares the last third with the first. The server was warm before the first look.
func judgeLooks(t *testing.T, looks []look) {
	third := len(looks) / 3
	first, last := looks[:third], looks[len(looks)-third:]
	for _, what := range []struct {
		name     string
		of       func(look) float64
		rel, abs float64 // how much more the last third may have
	}{
		{"resident bytes", func(l look) float64 { return l.resident }, 0.15, 16 << 20},
		{"open files", func(l look) float64 { return l.files }, 0, 4},
		{"goroutines", func(l look) float64 { return l.goroutines }, 0, 8},
		// On a shared machine, p99 may double because of other programs. Ten times as high is a fault of the server.
		{"p99 in µs", func(l look) float64 { return float64(l.p99.Microseconds()) }, 9, 0},
	} {
		a, b := middle(first, what.of), middle(last, what.of)
		figure(t, "soak: %s, median of the first and of the last third: %.0f and %.0f", what.name, a, b)
		if b > a*(1+what.rel)+what.abs {
			t.Errorf("%s grew from %.0f to %.0f", what.name, a, b)
		}
	}
}

func middle(looks []look, of func(look) float64) float64 {
	var values []float64
	for _, l := range looks {
		values = append(values, of(l))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// judgeSessions compares the history with the sessions of the exchange, from the oldest stored session on, and returns how
// many sessions have passed since before.
func judgeSessions(t *testing.T, p *process, before []string) int {
	after := p.exchangeSessions()
	first, err := time.Parse(time.DateOnly, before[0])
	if err != nil {
		t.Fatal(err)
	}
	last := before[len(before)-1]
	passed := len(after) - slices.Index(after, last) - 1
	if !slices.Contains(after, last) || passed < 1 {
		t.Fatalf("sessions before: %v, after: %v", before, after)
	}
	holidays := []string{"2026-09-07", "2026-11-26", "2026-12-25", "2027-01-01", "2027-01-18", "2027-02-15", "2027-03-26"}
	var want []string
	for d := first; len(want) < len(after); d = d.AddDate(0, 0, 1) {
		if date := d.Format(time.DateOnly); d.Weekday() != time.Saturday && d.Weekday() != time.Sunday && !slices.Contains(holidays, date) {
			want = append(want, date)
		}
	}
	if !slices.Equal(after, want) {
		t.Errorf("the history has %v, the exchange had %v", after, want)
	}
	// The newest stored session must be the session of the market's clock, or the session before it.
	now := p.envelope(gammaPath).Meta.Computed // at the last refresh
	newest, err := time.Parse(time.DateOnly, after[len(after)-1])
	if err != nil {
		t.Fatal(err)
	}
	if behind := now.Sub(newest); behind < 0 || behind > 5*24*time.Hour {
		t.Errorf("the newest session is %v, and it is %v", newest, now)
	}
	return passed
}

// exchangeSessions returns the stored session dates, rising.
func (p *process) exchangeSessions() (dates []string) {
	p.t.Helper()
	series := dataOf[struct {
		Columns []string
		Rows    [][]any
	}](p, seriesPath)
	column := slices.Index(series.Columns, "session_date")
	for _, row := range series.Rows {
		dates = append(dates, row[column].(string))
	}
	slices.Sort(dates)
	return slices.Compact(dates) // a snapshot of the night may be stored under another date than its session's
}

// soakPaths returns what the clients ask for.
func soakPaths(p *process) []string {
	paths := slices.Clone(targets)
	for _, date := range p.exchangeSessions() {
		paths = append(paths, datePath+date)
	}
	return paths
}

// soaking is the load of a soak.
type soaking struct {
	p     *process
	paths []string

	mu        sync.Mutex
	latencies []time.Duration // since the last look
	answered  int
	wrong     []string
}

// client asks for random paths and codings until ctx ends, with the last tag if it has one.
func (s *soaking) client(ctx context.Context, random *rand.Rand) {
	client := newClient()
	defer client.CloseIdleConnections()
	tags := map[string]string{}
	for pause := time.NewTicker(soakPause); ; {
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		path := s.paths[random.IntN(len(s.paths))]
		coding := codings[random.IntN(len(codings))]
		began := time.Now()
		err := ask(client, s.p.url+path, coding, tags)
		took := time.Since(began)
		s.mu.Lock()
		s.answered++
		s.latencies = append(s.latencies, took)
		if err != nil && len(s.wrong) < 10 {
			s.wrong = append(s.wrong, path+": "+err.Error())
		}
		s.mu.Unlock()
	}
}

// ask fetches a URL, with If-None-Match if it has been fetched before.
func ask(client *http.Client, url, coding string, tags map[string]string) error {
	resp, body, err := send(client, http.MethodGet, url, "Accept-Encoding", coding, "If-None-Match", tags[url])
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusNotModified && tags[url] != "" && len(body) == 0:
		return nil
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d: %.200s", resp.StatusCode, body)
	case coding == "identity" && !json.Valid(body):
		return fmt.Errorf("not JSON: %.200s", body)
	}
	tags[url] = resp.Header.Get("ETag")
	return nil
}

// look reads the metrics and takes the latencies since the last look.
func (s *soaking) look() look {
	scrape := s.p.operator("/metrics")
	value := func(name string) float64 {
		v, _ := strconv.ParseFloat(metric(scrape, name), 64) // 0 without one
		return v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.latencies)
	l := look{resident: value("process_resident_memory_bytes"), files: value("process_open_fds"), goroutines: value("go_goroutines")}
	if n := len(s.latencies); n > 0 {
		l.p99 = s.latencies[n*99/100]
	}
	s.latencies = s.latencies[:0]
	return l
}
