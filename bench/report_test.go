package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

func TestHistogram(t *testing.T) {
	h := newHistogram(3)
	if empty := at(h, 100); empty != 0 {
		t.Error(empty)
	}
	record(h, 0)
	record(h, 2*time.Hour)
	if most := at(h, 100); h.TotalCount() != 2 || (most-mostLatency).Abs() > mostLatency/1000 || at(h, 50) > 200*time.Nanosecond {
		t.Errorf("%s to %s: latencies outside the range must count as its ends", at(h, 50), most)
	}
}

func TestTimeLine(t *testing.T) {
	r := newReport(&loadCommand{target: &target{}, Duration: 10 * time.Minute})
	r.add(outcome{due: 0, latency: time.Millisecond, service: time.Millisecond, status: 200, bytes: 5})
	r.add(outcome{due: 2500 * time.Millisecond, latency: time.Second, err: errUnsent})
	r.add(outcome{due: 2999 * time.Millisecond, latency: time.Second, service: time.Second, status: 500})
	if r.failed != 2 || r.service.TotalCount() != 2 || r.requests != 3 {
		t.Errorf("%d of %d failed", r.failed, r.requests)
	}
	r.add(outcome{due: 599 * time.Second, latency: time.Second, status: 200})
	r.took = 600 * time.Second
	var out bytes.Buffer
	if err := r.print(&out); err != nil || len(r.timeLine) != maxRows {
		t.Fatalf("%d rows, %v", len(r.timeLine), err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	if !strings.Contains(text, "second requests failed p99 0 3 2 1 s 10 0 0 0 µs") || !strings.HasSuffix(text, " 590 1 0 1 s") {
		t.Error(&out)
	}
}

// The whole command with a real server, from its arguments to its report.
func TestLoadReports(t *testing.T) {
	to := serverTarget(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			http.NotFound(w, r)
		}
	})
	var out bytes.Buffer
	args := []string{to.base + "/missing", "--duration", "200ms", "--warmup", "0s", "--timeout", "1m", "--pid", strconv.Itoa(os.Getpid())}
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	want := []string{"GET /missing, which answers 404", "200 in 0.", "statuses  404: 200", "since due", "since sent", "\nsecond"}
	if runtime.GOOS == "linux" {
		want = append(want, "µs of CPU a request")
	}
	for _, text := range want {
		if !strings.Contains(out.String(), text) {
			t.Errorf("the report lacks %q:\n%s", text, &out)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, args := range []string{
		"--rate 0", "--rate 200001", "--rate NaN", "--connections 0", "--connections 1001", "--duration 1ms", "--duration 11m", "--warmup -1s",
		"--timeout 1ms", "--pid -1", "--nonsense", "ftp://a", "http://127.0.0.1:1 http://127.0.0.1:2", "http://example.org",
		"http://10.0.0.1:8080", "--remote --pid 1 http://example.org", "--path x", "--path /#a", "--path / http://127.0.0.1:1/a", "--header x",
		"rivals extra", "rivals --rounds 0", "rivals --duration 0s", "rivals --rounds 51", "rivals --cells 2KB", "rivals --only bare",
		"rivals --cells 1KB --write-readme README.md", "rivals --only nginx --write-readme README.md", "rivals --before no-such-file", "rivals --cells refreshes",
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
