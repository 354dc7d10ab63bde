package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// reportOf returns the report of a load of one second.
func reportOf(failed int, latencies ...time.Duration) *report {
	r := newReport(&loadCommand{target: &target{}, Rate: 1, Duration: time.Second})
	for i, l := range latencies {
		o := outcome{latency: l, service: l, status: 200}
		if i < failed {
			o.status = 500
		}
		r.add(o)
	}
	r.finish(time.Second, 0, 0, 0)
	return r
}

func TestConditions(t *testing.T) {
	var latencies []time.Duration
	for ms := range 1000 {
		latencies = append(latencies, time.Duration(ms+1)*time.Millisecond)
	}
	r := reportOf(5, latencies...)
	for text, want := range map[string]struct {
		is     bool
		figure string
	}{
		"p50>500.5ms":    {false, "p50 is 500 ms"},
		"p50 > 499ms":    {true, "p50 is 500 ms"},
		"p95>=951.5ms":   {false, "p95 is 950 ms"},
		"p95>=949ms":     {true, "p95 is 950 ms"},
		"p99.9<0.999s":   {false, "p99.9 is 999 ms"},
		"p99.99<=1001ms": {true, "p99.99 is 1 s"},
		"p100>2s":        {false, "p100 is 1 s"},
		"max>999ms":      {true, "max is 1 s"},
		"mean<500ms":     {false, "mean is 501 ms"}, // 500.5 ms
		"mean>500ms":     {true, "mean is 501 ms"},
		"failed>4":       {true, "5 of 1000 requests failed"},
		"failed>5":       {false, "5 of 1000 requests failed"},
		"failed>=5":      {true, "5 of 1000 requests failed"},
		"failed>0.4%":    {true, "5 of 1000 requests failed"},
		"failed>0.5%":    {false, "5 of 1000 requests failed"},
		"rate<1000":      {false, "1000 answers a second"},
		"rate<=1000":     {true, "1000 answers a second"},
	} {
		var c condition
		if err := c.UnmarshalText([]byte(text)); err != nil {
			t.Error(err)
			continue
		}
		if is, figure := c.check(r); is != want.is || figure != want.figure {
			t.Errorf("%s: %v, %q, want %v, %q", text, is, figure, want.is, want.figure)
		}
	}
	var c condition
	if err := c.UnmarshalText([]byte("p99>5")); err == nil || !strings.Contains(err.Error(), "unit, such as 5ms") {
		t.Error(err)
	}
}

// The command fails with what is true of --fail-if, and only with that. A wrong condition is refused before any request.
func TestFailIf(t *testing.T) {
	var all atomic.Int64
	to := serverTarget(t, func(w http.ResponseWriter, _ *http.Request) {
		all.Add(1)
		w.WriteHeader(http.StatusNotFound)
	})
	args := []string{to.base, "--duration", "100ms", "--rate", "100", "--warmup", "0s", "--timeout", "1m"}
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{nil, "10 of 10 requests failed"},
		{[]string{"--fail-if", "max>1h"}, ""},
		{[]string{"--fail-if", "failed>10", "--fail-if=rate<0"}, ""},
		{[]string{"--fail-if", "failed>0", "--fail-if", "max>1h", "--fail-if", "p50<1h"}, "--fail-if failed>0: 10 of 10 requests failed\n--fail-if p50<3.6e+03 s: p50 is "},
	} {
		var out bytes.Buffer
		err := run(t.Context(), slices.Concat(args, c.flags), &out, io.Discard)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) || !strings.Contains(out.String(), "404: 10") {
			t.Errorf("%v: %v, want %q\n%s", c.flags, err, c.want, &out)
		}
	}
	all.Store(0)
	if err := run(t.Context(), slices.Concat(args, []string{"--fail-if", "p99>5"}), io.Discard, io.Discard); err == nil || all.Load() > 0 {
		t.Errorf("%v after %d requests", err, all.Load())
	}
}

func TestRates(t *testing.T) {
	c := loadCommand{Rates: "1000:50000", Steps: 5}
	must(t, c.parseRate())
	var got []float64
	for i := range c.Steps {
		got = append(got, c.rateOf(i))
	}
	if !slices.Equal(got, []float64{1000, 2660, 7070, 18800, 50000}) {
		t.Error(got)
	}
	if u := c.Until; len(u) != 1 || u[0].figure != "p99" || u[0].bound != 5000 {
		t.Errorf("%+v", u)
	}
}

// A server stops to answer well after a number of requests. The ramp ends there, and the report is the step before.
func TestRampEndsWithWhatHolds(t *testing.T) {
	for _, c := range []struct {
		good int64
		want string // prefix of the last line
		err  string
		rate float64
	}{
		{1 << 40, "holds 800 a second at p50 ≤ 3.6e+03 s, and was not asked for more", "", 800},
		{50 + 100, "holds 400 a second at p50 ≤ 3.6e+03 s: at 800 a second, 200 of 200 requests failed", "", 400},
		{0, "holds no rate of the ramp at p50 ≤ 3.6e+03 s: at 200 a second, 50 of 50 requests failed", "holds no rate", 200},
	} {
		var n atomic.Int64
		to := serverTarget(t, func(w http.ResponseWriter, _ *http.Request) {
			if n.Add(1) > c.good {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
		l := loadCommand{target: to, Connections: 2, Rate: 200, most: 800, Steps: 3, Duration: 750 * time.Millisecond, Timeout: time.Minute,
			Until: []condition{{figure: "p50", percentile: 50, operator: ">", bound: 3.6e9, text: "3.6e+03 s"}}}
		r := l.climb(t.Context(), []request{{path: "/", name: "/"}})
		if slices.ContainsFunc(r.Ramp.Steps, func(s step) bool { return strings.HasPrefix(s.Failure, "only") }) {
			t.Skip("this machine is too slow for 800 requests a second")
		}
		var out bytes.Buffer
		must(t, r.print(&out))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		err := l.verdict(r)
		if lines[len(lines)-1] != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || r.Rate != c.rate {
			t.Errorf("%d good answers: %v, the report of %g a second\n%s", c.good, err, r.Rate, &out)
		}
	}
}

// Why a step does not hold.
func TestFailureOfAStep(t *testing.T) {
	until := func(text string) (c loadCommand) {
		c.Until = make([]condition, 1)
		must(t, c.Until[0].UnmarshalText([]byte(text)))
		return c
	}
	slow, lastLate := reportOf(0, 100*time.Millisecond), reportOf(0, time.Millisecond)
	slow.Rate, lastLate.Rate = 2, 2
	for _, c := range []struct {
		name  string
		until string
		of    *report
		want  string
	}{
		{"it holds", "p99>5ms", reportOf(0, time.Millisecond), ""},
		{"latency", "p99>5ms", reportOf(0, 7*time.Millisecond), "p99 is 7 ms"},
		{"failed", "p99>5ms", reportOf(1, time.Millisecond), "1 of 1 requests failed"},
		{"failed, but allowed", "failed>1", reportOf(1, time.Millisecond), ""},
		{"slow", "p99>1s", slow, "only 1 answers a second"},
		{"the last answer was late", "p99>1s", lastLate, ""},
	} {
		l := until(c.until)
		if got := l.failure(c.of); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	r := reportOf(0, time.Millisecond)
	r.Ramp = &ramp{At: "p99 ≤ 1 ms", Steps: []step{{Rate: 5, Failure: "p99 is 7 ms", Limit: "the generator used a whole core"}}}
	const want = "inconclusive: holds no rate of the ramp at p99 ≤ 1 ms: at 5 a second, p99 is 7 ms, which is inconclusive: the generator used a whole core"
	if err := (&loadCommand{}).verdict(r); !errors.Is(err, errInconclusive) || err.Error() != want {
		t.Error(err)
	}
}

// Nothing is drawn into a pipe, a file or another writer. On a terminal, the rate and p99 of each second replace those of the second
// before, and are removed at the end.
func TestProgress(t *testing.T) {
	reader, pipe, err := os.Pipe()
	must(t, err)
	defer reader.Close()
	defer pipe.Close()
	file, err := os.Create(t.TempDir() + "/file")
	must(t, err)
	defer file.Close()
	for _, w := range []io.Writer{pipe, file, &bytes.Buffer{}} {
		if terminal(w) != nil {
			t.Errorf("%T shows progress", w)
		}
	}
	var out bytes.Buffer
	r := newReport(&loadCommand{target: &target{}, Duration: 3 * time.Second, terminal: &out})
	for second := range 3 {
		for i := range 10 * (second + 1) {
			r.add(outcome{due: time.Duration(second) * time.Second, latency: time.Duration(second+1) * time.Millisecond, status: 200 + 300*(i/10)})
		}
	}
	if want := "\r1 s: 10 a second, p99 1 ms, 0 failed\x1b[K" + "\r2 s: 20 a second, p99 2.01 ms, 10 failed\x1b[K"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	l := loadCommand{target: serverTarget(t, func(http.ResponseWriter, *http.Request) {}), Path: []string{"/"}, Rate: 10, Connections: 1,
		Duration: 100 * time.Millisecond, Timeout: time.Minute, terminal: &out}
	if err := l.Run(t.Context(), io.Discard); err != nil || out.String() != "\r\x1b[K" {
		t.Errorf("%q %v", out.String(), err)
	}
}
