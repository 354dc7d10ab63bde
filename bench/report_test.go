package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func testReport() *report {
	r := newReport("http://127.0.0.1:1/<b>&\"")
	for i, w := range workloads {
		for _, rate := range []float64{0, 1000} {
			t := newTally()
			for j := range 1000 {
				record(t.latency, time.Duration(i+1)*time.Duration(j+20)*time.Microsecond)
			}
			t.service.Merge(t.latency)
			t.status[200] = 1000
			t.samples, t.changes = []sample{{0, time.Millisecond}, {5 * time.Second, time.Second}}, []time.Duration{5 * time.Second}
			r.Outcomes = append(r.Outcomes, newOutcome(w, plan{connections: 4, rate: rate}, t, time.Second, usage{3, 30 * time.Millisecond}))
		}
	}
	r.Outcomes[2].Status[503], r.Outcomes[3].Errors["EOF"] = 2, 1
	r.Skipped = []string{"keyed: no key"}
	return r
}

func TestHistogram(t *testing.T) {
	h := newHistogram()
	for i := 1; i <= 10_000; i++ {
		record(h, time.Duration(i)*time.Microsecond)
	}
	got := summarize(h)
	for _, c := range []struct{ got, want float64 }{{got.P50, 5000}, {got.P90, 9000}, {got.P99, 9900}, {got.P999, 9990}, {got.Max, 10_000}, {got.Mean, 5000.5}} {
		if math.Abs(c.got/c.want-1) > 0.002 {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
	points := curve(h)
	for i, p := range points[1:] {
		if p[0] <= points[i][0] || p[1] < points[i][1] {
			t.Errorf("the curve turns back at %v", p)
		}
	}
	if last := points[len(points)-1]; math.Abs(last[0]-99.99) > 1e-6 {
		t.Errorf("10,000 requests support 99.99 %%, not %v", last[0])
	}
	record(h, 0)
	record(h, time.Hour)
	if h.TotalCount() != 10_002 || h.Max() < mostLatency {
		t.Error("what lies outside the range is not counted")
	}
	if empty := summarize(newHistogram()); empty.P999 != 0 || empty.Mean != 0 || curve(newHistogram()) != nil {
		t.Errorf("%+v", empty)
	}
}

func TestAround(t *testing.T) {
	got := splitAround([]sample{{1 * time.Second, 10 * time.Microsecond}, {4500 * time.Millisecond, 30 * time.Microsecond}, {5200 * time.Millisecond, 20 * time.Microsecond},
		{6 * time.Second, 15 * time.Microsecond}}, []time.Duration{5 * time.Second})
	if math.Abs(got.During.P999-30) > 0.1 || math.Abs(got.Between.P999-15) > 0.1 || got.Ratio != 2 {
		t.Errorf("%+v", got)
	}
	if got := splitAround([]sample{{1, 1}}, nil); got.Ratio != 0 {
		t.Errorf("%+v", got)
	}
}

// The page is well-formed, holds a curve for every outcome, escapes what it is told, and asks nobody for anything.
func TestHTML(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	if err := testReport().writeHTML(path); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	if n := strings.Count(text, "<polyline"); n != 2*len(workloads) {
		t.Errorf("%d curves, want %d", n, 2*len(workloads))
	}
	for _, bad := range []string{"<b>&\"", "ZgotmplZ", "NaN", "Inf", "<script", "@import"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if m := regexp.MustCompile(`(?i)(src|href|url)\s*[=(]`).FindString(text); m != "" {
		t.Errorf("the page refers to something: %q", m)
	}
	d := xml.NewDecoder(strings.NewReader(text[strings.Index(text, "<body"):strings.Index(text, "</html>")]))
	d.Entity = xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
	}
}

func TestTableAndJSON(t *testing.T) {
	r := testReport()
	var out bytes.Buffer
	if err := r.table(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cdn", "closed", "1 × EOF", "keyed: no key", "refreshes seen", "30.00"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &out)
		}
	}
	path := filepath.Join(t.TempDir(), "report.json")
	if err := writeJSON(path, r); err != nil {
		t.Fatal(err)
	}
	again, err := readReport(path)
	if err != nil || len(again.Outcomes) != len(r.Outcomes) || again.Outcomes[3].Latency != r.Outcomes[3].Latency {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(path, []byte(`{"format":9}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readReport(path); err == nil {
		t.Error("a report of another format is read")
	}
}

func TestCompare(t *testing.T) {
	count := func(change func(*outcome)) int {
		old, now := testReport(), testReport()
		change(&now.Outcomes[5])
		n, err := printChanges(io.Discard, compare(old, now, 0.10), 0.10)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []struct {
		name   string
		change func(*outcome)
		want   int
	}{
		{"the same", func(*outcome) {}, 0},
		{"p99 of 60 ms grows by 9 %", func(o *outcome) { o.Latency.P99 *= 1.09 }, 0},
		{"p99 grows by 11 %", func(o *outcome) { o.Latency.P99 *= 1.11 }, 1},
		{"p50 and p99 double", func(o *outcome) { o.Latency.P50 *= 2; o.Latency.P99 *= 2 }, 2},
		{"everything is better", func(o *outcome) { o.Latency.P50 /= 2; o.PerSecond *= 2; o.ServerNs /= 2 }, 0},
		{"throughput falls by 12 %", func(o *outcome) { o.PerSecond *= 0.88 }, 1},
		{"CPU grows by 20 %", func(o *outcome) { o.ServerNs *= 1.2 }, 1},
		{"a failure", func(o *outcome) { o.Errors["EOF"] = 1 }, 1},
		{"another rate is another measurement", func(o *outcome) { o.Rate = 7; o.PerSecond = 1 }, 0},
	} {
		if got := count(c.change); got != c.want {
			t.Errorf("%s: %d regressions, want %d", c.name, got, c.want)
		}
	}
	old, now := testReport(), testReport()
	old.Outcomes[0].Latency.P50, now.Outcomes[0].Latency.P50 = 20, 35
	if n, _ := printChanges(io.Discard, compare(old, now, 0.10), 0.10); n != 0 {
		t.Error("15 µs more are within the machine's unrest")
	}
}

func TestCompareEndsWithItsOwnError(t *testing.T) {
	dir := t.TempDir()
	old, now := filepath.Join(dir, "old.json"), filepath.Join(dir, "new.json")
	r := testReport()
	if err := writeJSON(old, r); err != nil {
		t.Fatal(err)
	}
	r.Outcomes[0].PerSecond /= 2
	if err := writeJSON(now, r); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := command(t.Context(), []string{"--from", now, "--compare", old}, &out, io.Discard); !errors.Is(err, errRegression) || !strings.Contains(out.String(), "REGRESSION") {
		t.Errorf("%v\n%s", err, &out)
	}
	if err := command(t.Context(), []string{"--from", old, "--compare", old}, io.Discard, io.Discard); err != nil {
		t.Error(err)
	}
}

func TestFlags(t *testing.T) {
	for _, args := range []string{
		"--rate 0", "--rate 200001", "--rate NaN", "--connections 0", "--connections 1001", "--duration 1ms", "--duration 11m", "--warmup -1s",
		"--timeout 1ms", "--threshold 0", "--pid -1", "--mode sideways", "--workload cold", "--nonsense", "ftp://a", "http://127.0.0.1:1 http://127.0.0.1:2",
		"http://example.org", "http://10.0.0.1:8080",
	} {
		err := command(t.Context(), strings.Fields(args), io.Discard, io.Discard)
		if !errors.Is(err, errUsage) {
			t.Errorf("%s: %v", args, err)
		}
	}
	for _, args := range []string{"", "--remote http://example.org", "http://localhost:8080", "http://[::1]:8080", "--workload list"} {
		if _, err := parseOptions(strings.Fields(args), io.Discard); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
	var help bytes.Buffer
	if err := command(t.Context(), []string{"--help"}, io.Discard, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "--compare old.json") {
		t.Errorf("%v\n%s", err, &help)
	}
}
