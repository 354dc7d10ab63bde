package main

import (
	"bytes"
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
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// report is the result of a load, as it is printed and as --json writes it. The command schema describes its fields.
type report struct {
	tally
	URL         string           `json:"url" jsonschema_description:"scheme and host of the server"`
	About       string           `json:"about" jsonschema_description:"what was requested"`
	Date        time.Time        `json:"date" jsonschema_description:"start of the load, in UTC"`
	Go          string           `json:"go" jsonschema_description:"version of Go that built this generator"`
	CPU         string           `json:"cpu" jsonschema_description:"processor of the generator"`
	Kernel      string           `json:"kernel" jsonschema_description:"operating system of the generator"`
	Rate        float64          `json:"rate" jsonschema_description:"requests a second that were asked for; 0: a closed loop, in which a request is due when it is sent"`
	Connections int              `json:"connections" jsonschema_description:"keep-alive connections"`
	Took        float64          `json:"seconds" jsonschema_description:"from the start, after the warm-up, to the last answer"`
	PerSecond   float64          `json:"answers_per_second" jsonschema_description:"answers of any status, divided by seconds"`
	BodyMB      float64          `json:"body_mb_per_second" jsonschema_description:"millions of bytes of bodies as sent: compressed bodies are not unpacked"`
	Status      map[int]int64    `json:"status" jsonschema_description:"answers by status"`
	Errors      map[string]int64 `json:"errors" jsonschema_description:"requests without an answer, by reason"`
	Service     percentiles      `json:"service_us" jsonschema_description:"from the instant at which a request was sent to the end of its answer"`
	Delay       percentiles      `json:"generator_delay_us" jsonschema_description:"how late the generator sent a request although a connection was idle. At a fixed rate it is a part of latency_us"`
	Busy        float64          `json:"generator_busy" jsonschema_description:"CPU time of the generator, divided by seconds; it can use little more than 1. Always 0 but on Linux"`
	Unscheduled float64          `json:"generator_unscheduled" jsonschema_description:"share of the time in which the generator could run but had no processor, 0 to 1. Always 0 but on Linux"`
	Limit       string           `json:"inconclusive,omitempty" jsonschema_description:"why the generator itself was the limit, absent if it was not"`
	ServerCPU   float64          `json:"server_cpu_ns_per_request,omitempty" jsonschema_description:"CPU time of the process of --pid and its children, in nanoseconds per request that was sent"`
	Paths       []*pathRow       `json:"paths" jsonschema_description:"a row for each path"`
	TimeLine    []timeLineRow    `json:"time_line" jsonschema_description:"a row for each second, or for a few seconds of a long load"`
	Ramp        *ramp            `json:"ramp,omitempty" jsonschema_description:"with --rate FROM:TO, all steps. The rest of the report is the highest step that held, or the last step if none held"`

	width          int       // of a row of the time line, in seconds
	terminal       io.Writer // gets the progress; nil: none
	service, delay *hdrhistogram.Histogram
	answers, bytes int64
}

// tally counts requests, and measures their latency from the instant at which each was due.
type tally struct {
	Requests int64       `json:"requests" jsonschema_description:"requests that were due"`
	Failed   int64       `json:"failed" jsonschema_description:"requests without an answer, and answers of status 400 and above"`
	Latency  percentiles `json:"latency_us" jsonschema_description:"from the instant at which a request was due to the end of its answer"`

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
	Second int `json:"second" jsonschema_description:"the first second of the row"`
}

// pathRow has the requests for one path.
type pathRow struct {
	tally
	Path string `json:"path" jsonschema_description:"with its query, but in the mix of a strikecache without"`
}

// maxRows bounds the time line.
const maxRows = 60

// percentiles are latencies in microseconds.
type percentiles struct {
	Mean  float64 `json:"mean" jsonschema_description:"in microseconds, as all of these"`
	P50   float64 `json:"p50" jsonschema_description:"median"`
	P90   float64 `json:"p90" jsonschema_description:"90 % took at most this"`
	P95   float64 `json:"p95" jsonschema_description:"95 %"`
	P99   float64 `json:"p99" jsonschema_description:"99 %"`
	P999  float64 `json:"p99_9" jsonschema_description:"99.9 %"`
	P9999 float64 `json:"p99_99" jsonschema_description:"99.99 %"`
	Max   float64 `json:"max" jsonschema_description:"highest"`
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
	return microseconds(float64(h.ValueAtPercentile(percentile)))
}

// microseconds rounds nanoseconds to hundredths of a microsecond.
func microseconds(ns float64) float64 { return math.Round(ns/10) / 100 }

func percentilesOf(h *hdrhistogram.Histogram) percentiles {
	return percentiles{microseconds(h.Mean()), at(h, 50), at(h, 90), at(h, 95), at(h, 99), at(h, 99.9), at(h, 99.99), at(h, 100)}
}

// outcome is what became of one request.
type outcome struct {
	due     time.Duration // since the start
	latency time.Duration // since due
	service time.Duration // since the request was sent; 0 if it was not sent
	delay   time.Duration // of the generator
	path    *pathRow
	status  int
	bytes   int64 // of the body
	err     error // instead of a status
}

func newReport(c *loadCommand) *report {
	cpu, kernel := machine()
	return &report{URL: c.target.base, Date: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(), CPU: cpu, Kernel: kernel, Rate: c.Rate,
		Connections: c.Connections, Status: map[int]int64{}, Errors: map[string]int64{}, tally: tally{latency: newHistogram(3)}, service: newHistogram(3), delay: newHistogram(3),
		width: max(int((c.Duration+maxRows*time.Second-1)/(maxRows*time.Second)), 1), terminal: c.terminal}
}

// path returns the row of a path.
func (r *report) path(name string) *pathRow {
	i := slices.IndexFunc(r.Paths, func(row *pathRow) bool { return row.Path == name })
	if i < 0 {
		i = len(r.Paths)
		r.Paths = append(r.Paths, &pathRow{Path: name, tally: tally{latency: newHistogram(2)}})
	}
	return r.Paths[i]
}

// add counts a request, also in the row of its path.
func (r *report) add(o outcome) {
	number := int(o.due/time.Second) / r.width
	for i := len(r.TimeLine); i <= number; i++ {
		if i > 0 && r.terminal != nil { // the row before, in place of the line before
			row := &r.TimeLine[i-1]
			fmt.Fprintf(r.terminal, "\r%d s: %d a second, p99 %s, %d failed\x1b[K", i*r.width, row.Requests/int64(r.width), duration(at(row.latency, 99)), row.Failed)
		}
		r.TimeLine = append(r.TimeLine, timeLineRow{Second: i * r.width, tally: tally{latency: newHistogram(2)}})
	}
	r.tally.add(o)
	if o.path != nil {
		o.path.add(o)
	}
	r.TimeLine[number].add(o)
	if o.service > 0 {
		record(r.service, o.service)
		record(r.delay, o.delay)
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
	r.bytes += o.bytes
}

// finish completes the report after the last request. cpu and own are the CPU times of the server and of the generator, and
// unscheduled is how long the generator waited for a processor, 0 when they are not known.
func (r *report) finish(took, cpu, own, unscheduled time.Duration) {
	r.Took = took.Seconds()
	r.PerSecond, r.BodyMB = float64(r.answers)/r.Took, float64(r.bytes)/1e6/r.Took
	r.Latency, r.Service, r.Delay = percentilesOf(r.latency), percentilesOf(r.service), percentilesOf(r.delay)
	r.Busy, r.Unscheduled = math.Round(1000*own.Seconds()/r.Took)/1000, math.Round(1000*unscheduled.Seconds()/r.Took)/1000
	r.ServerCPU = float64(cpu.Nanoseconds()) / float64(max(r.service.TotalCount(), 1))
	for i := range r.TimeLine {
		r.TimeLine[i].Latency = percentilesOf(r.TimeLine[i].latency)
	}
	for _, row := range r.Paths {
		row.Latency = percentilesOf(row.latency)
	}
	r.Limit = r.limit()
}

// limit says why the generator itself was the limit of what it measured, or nothing if it hardly shows.
func (r *report) limit() string {
	switch {
	case r.Busy > 0.9:
		return "the generator used a whole core: the server may be faster than these figures"
	case r.Unscheduled > 0.1:
		return fmt.Sprintf("the generator waited for a processor for %.0f %% of the time, and these latencies include that", 100*r.Unscheduled)
	case r.Rate == 0 && r.Delay.P50 > r.Latency.P50:
		return "the generator took longer to send a request than the server to answer it: the server may be faster than these figures"
	case r.Rate > 0 && (r.Delay.P50 > r.Latency.P50/2 || r.Delay.P99 > r.Latency.P99/2):
		return "more than half of p50 or p99 since due is the generator's own delay: trust \"since sent\""
	}
	return ""
}

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
	fmt.Fprintf(w, "generator\t%.0f %% of a core, late by %s (p50), %s (p99)\n", 100*r.Busy, duration(r.Delay.P50), duration(r.Delay.P99))
	if r.slow() {
		fmt.Fprintf(w, "slower\tthan the %g requests a second asked for: the server or this generator cannot do more\n", r.Rate)
	}
	if r.Limit != "" {
		fmt.Fprintf(w, "inconclusive\t%s\n", r.Limit)
	}
	row := func(first string, us ...float64) {
		for _, v := range us {
			first += "\t" + duration(v)
		}
		fmt.Fprintln(w, first)
	}
	fmt.Fprintln(w, "\nlatency\tmean\tp50\tp90\tp95\tp99\tp99.9\tp99.99\tmax")
	for i, l := range []percentiles{r.Latency, r.Service} {
		if r.Rate == 0 && i == 0 {
			continue // it is the same
		}
		row([]string{"since due", "since sent"}[i], l.Mean, l.P50, l.P90, l.P95, l.P99, l.P999, l.P9999, l.Max)
	}
	if len(r.Paths) > 1 {
		fmt.Fprintln(w, "\npath\trequests\tfailed\tp50\tp99\tmax")
		for _, p := range r.Paths {
			row(fmt.Sprintf("%s\t%d\t%d", p.Path, p.Requests, p.Failed), p.Latency.P50, p.Latency.P99, p.Latency.Max)
		}
	}
	fmt.Fprintln(w, "\nsecond\trequests\tfailed\tp99")
	for _, t := range r.TimeLine {
		row(fmt.Sprintf("%d\t%d\t%d", t.Second, t.Requests, t.Failed), t.Latency.P99)
	}
	if r.Ramp != nil {
		fmt.Fprintln(w, "\nrate\tanswers a second\tfailed\tp50\tp99")
		for _, s := range r.Ramp.Steps {
			row(fmt.Sprintf("%g\t%.0f\t%d", s.Rate, s.PerSecond, s.Failed), s.Latency.P50, s.Latency.P99)
		}
		fmt.Fprintf(w, "\n%s\n", r.Ramp.conclusion())
	}
	return w.Flush()
}

// slow says whether the server or the generator could not do the rate that was asked for.
func (r *report) slow() bool { return r.PerSecond < 0.95*r.Rate }

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

// writeHDR writes the distribution of the latencies since due to a file that the plotters of HdrHistogram read.
func (r *report) writeHDR(path string) error {
	var text bytes.Buffer
	if _, err := r.latency.PercentilesPrint(&text, 5, float64(time.Millisecond)); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
