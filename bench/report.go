package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// report is the result of a load, as it is printed and as --json writes it. Latencies are in microseconds. Many goroutines
// may call add at once. The other methods are called after them.
type report struct {
	tally
	URL         string           `json:"url"`
	About       string           `json:"about"` // what was requested
	Date        time.Time        `json:"date"`
	Go          string           `json:"go"`
	CPU         string           `json:"cpu"`
	Kernel      string           `json:"kernel"`
	Rate        float64          `json:"rate"` // requests a second that were asked for
	Connections int              `json:"connections"`
	Took        float64          `json:"seconds"`
	PerSecond   float64          `json:"answers_per_second"`
	BodyMB      float64          `json:"body_mb_per_second"` // as sent: compressed bodies are not unpacked
	Status      map[int]int64    `json:"status"`
	Errors      map[string]int64 `json:"errors"`
	Latency     percentiles      `json:"latency_us"`                          // from the instant at which a request was due
	Service     percentiles      `json:"service_us"`                          // from the instant at which it was sent
	ServerCPU   float64          `json:"server_cpu_ns_per_request,omitempty"` // per request that was sent, with --pid
	TimeLine    []timeLineRow    `json:"time_line"`

	mu             sync.Mutex
	width          int // of a row of the time line, in seconds
	service        *hdrhistogram.Histogram
	answers, bytes int64
}

// tally counts requests, and measures their latency from the instant at which each was due.
type tally struct {
	Requests int64 `json:"requests"`
	Failed   int64 `json:"failed"` // without an answer, or of status 400 and above

	latency *hdrhistogram.Histogram
}

func (t *tally) add(o outcome) {
	t.Requests++
	if o.err != nil || o.status >= 400 {
		t.Failed++
	}
	record(t.latency, o.latency)
}

// timeLineRow has the requests that were due in one second, or in a few seconds of a long load.
type timeLineRow struct {
	tally
	Second int     `json:"second"` // the first one
	P99    float64 `json:"p99_us"`
}

// maxRows bounds the time line.
const maxRows = 60

// percentiles are latencies in microseconds.
type percentiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

// Histograms hold 100 ns to twenty minutes, in nanoseconds. No wait is longer than the longest load and its timeout.
const (
	leastLatency = int64(100)
	mostLatency  = int64(20 * time.Minute)
)

// newHistogram returns a histogram of latencies with so many significant digits.
func newHistogram(digits int) *hdrhistogram.Histogram {
	return hdrhistogram.New(leastLatency, mostLatency, digits)
}

// record adds a latency. A latency outside the histogram's range counts as the end of the range.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d), leastLatency), mostLatency)) // within the range, so never an error
}

// at returns a percentile in microseconds, or 0 for an empty histogram.
func at(h *hdrhistogram.Histogram, percentile float64) float64 {
	return math.Round(float64(h.ValueAtPercentile(percentile))/10) / 100
}

func percentilesOf(h *hdrhistogram.Histogram) percentiles {
	return percentiles{at(h, 50), at(h, 90), at(h, 99), at(h, 99.9), at(h, 100)}
}

// outcome is what became of one request.
type outcome struct {
	due     time.Duration // since the start
	latency time.Duration // since due
	service time.Duration // since the request was sent; 0 if it was not sent
	status  int
	bytes   int   // of the body
	err     error // instead of a status
}

func newReport(c *loadCommand) *report {
	cpu, kernel := machine()
	return &report{URL: c.target.base, Date: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(), CPU: cpu, Kernel: kernel, Rate: c.Rate,
		Connections: c.Connections, Status: map[int]int64{}, Errors: map[string]int64{}, tally: tally{latency: newHistogram(3)}, service: newHistogram(3),
		width: max(int((c.Duration+maxRows*time.Second-1)/(maxRows*time.Second)), 1)}
}

// add counts a request.
func (r *report) add(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	number := int(o.due/time.Second) / r.width
	for i := len(r.TimeLine); i <= number; i++ {
		r.TimeLine = append(r.TimeLine, timeLineRow{Second: i * r.width, tally: tally{latency: newHistogram(2)}})
	}
	r.tally.add(o)
	r.TimeLine[number].add(o)
	if o.service > 0 {
		record(r.service, o.service)
	}
	if err := o.err; err != nil {
		for inner := err; inner != nil; inner = errors.Unwrap(inner) {
			err = inner // the innermost error does not name the connection, so that equal errors are counted together
		}
		r.Errors[err.Error()]++
		return
	}
	r.Status[o.status]++
	r.answers++
	r.bytes += int64(o.bytes)
}

// finish completes the report after the last request. cpu is the CPU time of the server's process, 0 when it is not known.
func (r *report) finish(took, cpu time.Duration) {
	r.Took = took.Seconds()
	r.PerSecond, r.BodyMB = float64(r.answers)/r.Took, float64(r.bytes)/1e6/r.Took
	r.Latency, r.Service = percentilesOf(r.latency), percentilesOf(r.service)
	r.ServerCPU = float64(cpu.Nanoseconds()) / float64(max(r.service.TotalCount(), 1))
	for i := range r.TimeLine {
		r.TimeLine[i].P99 = at(r.TimeLine[i].latency, 99)
	}
}

const (
	// ownLatency is the rate, in requests a second, from which on the generator's own delays show in p99 (2026-11-24).
	ownLatency       = 30_000
	limitOfGenerator = "From 30,000 requests a second on, p99 and above measure the generator, too."
)

// print writes the report as text.
func (r *report) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s, %s\n\n", r.URL, r.About)
	fmt.Fprintf(w, "requests\t%d in %.1f s over %d connections, %d failed\n", r.Requests, r.Took, r.Connections, r.Failed)
	fmt.Fprintf(w, "answers\t%.0f a second, %.1f MB of bodies a second\n", r.PerSecond, r.BodyMB)
	fmt.Fprintf(w, "statuses\t%s\n", counts(r.Status))
	if len(r.Errors) > 0 {
		fmt.Fprintf(w, "errors\t%s\n", counts(r.Errors))
	}
	if r.ServerCPU > 0 {
		fmt.Fprintf(w, "server\t%.1f µs of CPU a request\n", r.ServerCPU/1000)
	}
	if r.PerSecond < 0.95*r.Rate {
		fmt.Fprintf(w, "slower\tthan the %g requests a second asked for: the server or this generator cannot do more\n", r.Rate)
	}
	if r.Rate >= ownLatency {
		fmt.Fprintf(w, "limit\t%s\n", limitOfGenerator)
	}
	fmt.Fprintln(w, "\nlatency\tp50\tp90\tp99\tp99.9\tmax")
	for _, l := range []struct {
		name string
		of   percentiles
	}{{"since due", r.Latency}, {"since sent", r.Service}} {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", l.name, duration(l.of.P50), duration(l.of.P90), duration(l.of.P99), duration(l.of.P999), duration(l.of.Max))
	}
	fmt.Fprintln(w, "\nsecond\trequests\tfailed\tp99")
	for _, row := range r.TimeLine {
		fmt.Fprintf(w, "%d\t%d\t%d\t%s\n", row.Second, row.Requests, row.Failed, duration(row.P99))
	}
	return w.Flush()
}

// counts lists what was counted, by key.
func counts[K int | string](m map[K]int64) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, fmt.Sprintf("%v: %d", k, m[k]))
	}
	if list == nil {
		return "none"
	}
	return strings.Join(list, ", ")
}

// duration writes microseconds with three digits and a fitting unit.
func duration(us float64) string {
	switch {
	case us < 1000:
		return fmt.Sprintf("%.0f µs", us)
	case us < 1e6:
		return fmt.Sprintf("%.3g ms", us/1000)
	default:
		return fmt.Sprintf("%.3g s", us/1e6)
	}
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
