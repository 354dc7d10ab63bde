package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

func TestHistogram(t *testing.T) {
	h := newHistogram(3)
	if empty := percentilesOf(h); empty != (percentiles{}) {
		t.Errorf("%+v", empty)
	}
	record(h, 0)
	record(h, 2*time.Hour)
	if got := percentilesOf(h); h.TotalCount() != 2 || math.Abs(got.Max/1.2e9-1) > 0.001 || got.P50 > 0.2 {
		t.Errorf("%+v: latencies outside the range must count as its ends", got)
	}
}

func TestTimeLine(t *testing.T) {
	r := newReport(&loadCommand{target: &target{}, Duration: 10 * time.Minute})
	r.add(outcome{due: 0, latency: time.Millisecond, service: time.Millisecond, status: 200, bytes: 5})
	r.add(outcome{due: 2500 * time.Millisecond, latency: time.Second, err: errUnsent})
	r.add(outcome{due: 2999 * time.Millisecond, latency: time.Second, service: time.Second, status: 500})
	if r.Failed != 2 || r.service.TotalCount() != 2 || r.Requests != 3 {
		t.Errorf("%+v", r)
	}
	r.add(outcome{due: 599 * time.Second, latency: time.Second, status: 200})
	r.finish(600*time.Second, 0, 0)
	if rows := r.TimeLine; len(rows) != maxRows || rows[0].Requests != 3 || rows[0].Failed != 2 || rows[1].Requests != 0 || math.Abs(rows[0].P99/1e6-1) > 0.02 || rows[59].Second != 590 {
		t.Errorf("%d rows, %+v", len(rows), rows)
	}
}

// The whole command with a real server, from its arguments to its report.
func TestLoadReports(t *testing.T) {
	to := serverTarget(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			http.NotFound(w, r)
		}
	})
	file := filepath.Join(t.TempDir(), "report.json")
	var out bytes.Buffer
	args := []string{to.base, "--path", "/", "--path", "/missing", "--duration", "200ms", "--warmup", "0s", "--timeout", "1m", "--json", file, "--pid", strconv.Itoa(os.Getpid())}
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	want := []string{"/missing answers 404", "200 in 0.", "statuses", "since due", "since sent", "\nsecond"}
	if runtime.GOOS == "linux" {
		want = append(want, "µs of CPU a request")
	}
	for _, text := range want {
		if !strings.Contains(out.String(), text) {
			t.Errorf("the report lacks %q:\n%s", text, &out)
		}
	}
	b, err := os.ReadFile(file)
	var r report
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil || r.Requests != 200 || r.Status[200]+r.Status[404] != 200 || r.Failed != r.Status[404] || len(r.TimeLine) != 1 || r.Latency.P99 == 0 {
		t.Errorf("%v %+v", err, &r)
	}
}

func TestFlags(t *testing.T) {
	for _, args := range []string{
		"--rate 0", "--rate 200001", "--rate NaN", "--connections 0", "--connections 1001", "--duration 1ms", "--duration 11m", "--warmup -1s",
		"--timeout 1ms", "--pid -1", "--nonsense", "ftp://a", "http://127.0.0.1:1 http://127.0.0.1:2", "http://example.org",
		"http://10.0.0.1:8080", "--remote --pid 1 http://example.org", "--path x", "--path /#a", "--path / http://127.0.0.1:1/a", "--header x",
		"rivals extra", "rivals --rounds 0", "rivals --duration 0s", "rivals --rounds 51", "rivals --cells 2KB", "rivals --only bare",
		"rivals --cells small --write-readme README.md", "rivals --only nginx --write-readme README.md", "rivals --before no-such-file", "rivals --cells refreshes",
	} {
		err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard)
		if usage := (*kong.ParseError)(nil); !errors.As(err, &usage) {
			t.Errorf("%s: %v", args, err)
		}
	}
	for _, args := range []string{"--help", "rivals --help"} {
		var help bytes.Buffer
		if err := run(t.Context(), strings.Fields(args), &help, io.Discard); err != nil || !strings.Contains(help.String(), "--duration") || !strings.Contains(help.String(), "rivals") {
			t.Errorf("%s: %v\n%s", args, err, &help)
		}
	}
	refused := run(t.Context(), []string{"http://127.0.0.1:1"}, io.Discard, io.Discard)
	if refused == nil || !strings.Contains(refused.Error(), "http://127.0.0.1:1") {
		t.Errorf("nothing listens there: %v", refused)
	}
}
