package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/santhosh-tekuri/jsonschema/v6"
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
	r.finish(600*time.Second, 0, 0, 0)
	if rows := r.TimeLine; len(rows) != maxRows || rows[0].Requests != 3 || rows[0].Failed != 2 || rows[1].Requests != 0 || math.Abs(rows[0].Latency.P99/1e6-1) > 0.02 || rows[59].Second != 590 {
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
	failed := run(t.Context(), args, &out, io.Discard)
	want := []string{"/missing answers 404", "statuses", "since due", "since sent", "p99.99", "\nsecond"}
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
	if took := fmt.Sprintf("200 in %.1f s", r.Took); !strings.Contains(out.String(), took) {
		t.Errorf("the report lacks %q:\n%s", took, &out)
	}
	if err != nil || r.Requests != 200 || r.Status[200]+r.Status[404] != 200 || r.Failed != r.Status[404] || len(r.TimeLine) != 1 || r.Latency.P99 == 0 {
		t.Errorf("%v %+v", err, &r)
	}
	if failed == nil || failed.Error() != fmt.Sprintf("%d of 200 requests failed", r.Failed) {
		t.Errorf("%d requests failed, and the command returned %v", r.Failed, failed)
	}
	if len(r.Paths) != 2 || r.Paths[0].Path != "/" || r.Paths[0].Failed != 0 || r.Paths[1].Failed != r.Failed || r.Paths[0].Requests+r.Paths[1].Requests != 200 ||
		!strings.Contains(out.String(), "\n/missing ") {
		t.Errorf("figures per path: %+v %+v\n%s", r.Paths[0], r.Paths[1], &out)
	}
}

// A report has exactly the fields that the schema documents, and each has a description.
func TestSchemaDocumentsTheReport(t *testing.T) {
	var printed bytes.Buffer
	must(t, run(t.Context(), []string{"schema"}, &printed, io.Discard))
	text, err := jsonschema.UnmarshalJSON(&printed)
	must(t, err)
	compiler := jsonschema.NewCompiler()
	must(t, compiler.AddResource("report.json", text))
	schema, err := compiler.Compile("report.json")
	must(t, err)
	described := 0
	for name, of := range text.(map[string]any)["$defs"].(map[string]any) {
		for field, about := range of.(map[string]any)["properties"].(map[string]any) {
			if description, _ := about.(map[string]any)["description"].(string); description == "" {
				t.Errorf("%s.%s has no description", name, field)
			}
			described++
		}
	}
	if described < 40 {
		t.Errorf("%d fields are documented", described)
	}
	to := serverTarget(t, func(http.ResponseWriter, *http.Request) {})
	file := filepath.Join(t.TempDir(), "report.json")
	args := []string{to.base, "--duration", "1s", "--rate", "200:400", "--steps", "2", "--until", "p99>1h", "--warmup", "0s", "--timeout", "1m", "--json", file}
	if err := run(t.Context(), args, io.Discard, io.Discard); err != nil && !strings.Contains(err.Error(), "holds no rate") {
		t.Fatal(err)
	}
	written, err := os.ReadFile(file)
	must(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(written))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, written)
	}
	value.(map[string]any)["more"] = 1
	if schema.Validate(value) == nil {
		t.Error("the schema accepts a field that it does not document")
	}
}

// The report says when the generator itself limits what it measures. Then a condition on latencies is inconclusive, and one on failed
// requests is not.
func TestLimitOfTheGenerator(t *testing.T) {
	for _, c := range []struct {
		rate              float64
		busy, unscheduled time.Duration
		delay             time.Duration
		want              string
	}{
		{1, 500 * time.Millisecond, 50 * time.Millisecond, 400 * time.Microsecond, ""},
		{1, 950 * time.Millisecond, 0, 0, "used a whole core"},
		{1, 100 * time.Millisecond, 200 * time.Millisecond, 0, "waited for a processor for 20 % of the time"},
		{1, 100 * time.Millisecond, 0, 600 * time.Microsecond, "generator's own delay"},
		{0, 100 * time.Millisecond, 0, 600 * time.Microsecond, ""},
		{0, 100 * time.Millisecond, 0, 1100 * time.Microsecond, "longer to send a request"},
	} {
		r := newReport(&loadCommand{target: &target{}, Rate: c.rate, Duration: time.Second})
		r.add(outcome{latency: time.Millisecond, service: time.Millisecond, delay: c.delay, status: 200})
		r.finish(time.Second, 0, c.busy, c.unscheduled)
		var out bytes.Buffer
		must(t, r.print(&out))
		if got := r.Limit; (got == "") != (c.want == "") || !strings.Contains(got, c.want) || strings.Contains(out.String(), "\ninconclusive ") != (c.want != "") {
			t.Errorf("%+v: %q\n%s", c, got, &out)
		}
		l := loadCommand{FailIf: []condition{{figure: "p50", percentile: 50, operator: ">", text: "0"}}}
		if err := l.verdict(r); errors.Is(err, errInconclusive) != (c.want != "") || !strings.Contains(err.Error(), "--fail-if p50>0: p50 is 1 ms") {
			t.Errorf("%+v: %v", c, err)
		}
		l.FailIf = append(l.FailIf, condition{figure: "failed", operator: ">=", text: "0"})
		if err := l.verdict(r); errors.Is(err, errInconclusive) {
			t.Errorf("a request without an answer is no matter of the generator: %v", err)
		}
	}
}

// The file of --hdr has the latencies of the report, in milliseconds.
func TestHDRFile(t *testing.T) {
	r := newReport(&loadCommand{target: &target{}, Duration: time.Second})
	for ms := 1; ms <= 1000; ms++ {
		r.add(outcome{latency: time.Duration(ms) * time.Millisecond, status: 200})
	}
	file := filepath.Join(t.TempDir(), "latency.hgrm")
	must(t, r.writeHDR(file))
	b, err := os.ReadFile(file)
	must(t, err)
	rows, value, share, count := 0, 0.0, 0.0, 0
	for line := range strings.Lines(string(b)) {
		if n, _ := fmt.Sscan(line, &value, &share, &count); n == 3 {
			if rows++; math.Abs(value/float64(count)-1) > 0.002 || float64(count) < share*1000-0.01 {
				t.Errorf("%q", line)
			}
		}
	}
	if rows < 20 || count != 1000 || share != 1 || !strings.Contains(string(b), "Total count    =         1000]") {
		t.Errorf("%d rows in\n%s", rows, b)
	}
}

func TestFlags(t *testing.T) {
	for _, args := range []string{
		"--rate 0.01", "--rate 0:5", "--mix none", "--mix all --path /", "--mix all http://127.0.0.1:1/a", "--rate 200001", "--rate NaN", "--connections 0", "--connections 1001", "--duration 1ms", "--duration 11m", "--warmup -1s",
		"--timeout 1ms", "--pid -1", "--nonsense", "ftp://a", "http://127.0.0.1:1 http://127.0.0.1:2", "http://example.org",
		"http://10.0.0.1:8080", "--remote --pid 1 http://example.org", "--path x", "--path /#a", "--path / http://127.0.0.1:1/a", "--header x",
		"--rate 1000:", "--rate 1000:0", "--rate 1000:999", "--rate 1000:200001", "--rate max", "--rate x", "--until p99>5ms", "--rate 1:2 --steps 1", "--rate 1:2 --steps 101",
		"--fail-if p99", "--fail-if p99>5", "--fail-if p99=5ms", "--fail-if p0>5ms", "--fail-if p101>5ms", "--fail-if p99>-5ms", "--fail-if failed>x", "--fail-if rate<10%",
		"--fail-if failed>-1", "--fail-if failed>NaN", "--fail-if latency>1s", "--rate 1:2 --until p99>5",
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
	var help bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &help, io.Discard); err != nil || !strings.Contains(strings.SplitAfter(help.String(), "\n")[0], `without coordinated omission, or in a closed loop. "go run ./bench" runs it, "go install ./bench" installs it as "bench"`) {
		t.Errorf("%v\n%s", err, &help)
	}
	refused := run(t.Context(), []string{"http://127.0.0.1:1"}, io.Discard, io.Discard)
	if refused == nil || !strings.Contains(refused.Error(), "http://127.0.0.1:1") {
		t.Errorf("nothing listens there: %v", refused)
	}
}
