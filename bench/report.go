package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// report is the result of a load. Many goroutines may call add at once. print is called after them.
type report struct {
	rate        float64 // requests a second that were asked for
	connections int
	width       time.Duration // of a row of the time line, whole seconds
	took        time.Duration
	cpu         time.Duration // of the server, 0 without --pid

	mu               sync.Mutex
	latency, service *hdrhistogram.Histogram // from the instants at which a request was due, and at which it was sent
	requests, failed int64                   // failed: without an answer, or of status 400 and above
	answers, bytes   int64                   // bytes of bodies as sent: compressed bodies are not unpacked
	statuses         map[int]int64
	errors           map[string]int64
	timeLine         []timeLineRow
}

// timeLineRow has the requests that were due in one second, or in a few seconds of a long load.
type timeLineRow struct {
	requests, failed int64
	latency          *hdrhistogram.Histogram
}

// maxRows bounds the time line.
const maxRows = 60

// Histograms hold 100 ns to twenty minutes, in nanoseconds. No wait is longer than the longest load and its timeout.
const (
	leastLatency = 100 * time.Nanosecond
	mostLatency  = 20 * time.Minute
)

// newHistogram returns a histogram of latencies with so many significant digits.
func newHistogram(digits int) *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(leastLatency), int64(mostLatency), digits)
}

// record adds a latency. A latency outside the histogram's range counts as the end of the range.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(int64(min(max(d, leastLatency), mostLatency))) // within the range, so never an error
}

// at returns a percentile, or 0 for an empty histogram.
func at(h *hdrhistogram.Histogram, percentile float64) time.Duration {
	return time.Duration(h.ValueAtPercentile(percentile))
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
	rows := max((c.Duration+maxRows*time.Second-1)/(maxRows*time.Second), 1)
	return &report{rate: c.Rate, connections: c.Connections, width: rows * time.Second, latency: newHistogram(3), service: newHistogram(3),
		statuses: map[int]int64{}, errors: map[string]int64{}}
}

// add counts a request.
func (r *report) add(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	number := int(o.due / r.width)
	for len(r.timeLine) <= number {
		r.timeLine = append(r.timeLine, timeLineRow{latency: newHistogram(2)})
	}
	row := &r.timeLine[number]
	record(r.latency, o.latency)
	record(row.latency, o.latency)
	r.requests++
	row.requests++
	if o.service > 0 {
		record(r.service, o.service)
	}
	if o.err != nil || o.status >= 400 {
		r.failed++
		row.failed++
	}
	if err := o.err; err != nil {
		for inner := err; inner != nil; inner = errors.Unwrap(inner) {
			err = inner // the innermost error does not name the connection, so that equal errors are counted together
		}
		r.errors[err.Error()]++
		return
	}
	r.statuses[o.status]++
	r.answers++
	r.bytes += int64(o.bytes)
}

const (
	// ownLatency is the rate, in requests a second, from which on the generator's own delays show in p99 (2026-11-24).
	ownLatency       = 30_000
	limitOfGenerator = "From 30,000 requests a second on, p99 and above measure the generator, too."
)

// print writes the report as text.
func (r *report) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	seconds := r.took.Seconds()
	perSecond := float64(r.answers) / seconds
	fmt.Fprintf(w, "requests\t%d in %.1f s over %d connections, %d failed\n", r.requests, seconds, r.connections, r.failed)
	fmt.Fprintf(w, "answers\t%.0f a second, %.1f MB of bodies a second\n", perSecond, float64(r.bytes)/1e6/seconds)
	fmt.Fprintf(w, "statuses\t%s\n", counts(r.statuses))
	if len(r.errors) > 0 {
		fmt.Fprintf(w, "errors\t%s\n", counts(r.errors))
	}
	if sent := r.service.TotalCount(); sent > 0 && r.cpu > 0 {
		fmt.Fprintf(w, "server\t%.1f µs of CPU a request\n", float64(r.cpu.Nanoseconds())/1000/float64(sent))
	}
	if perSecond < 0.95*r.rate {
		fmt.Fprintf(w, "slower\tthan the %g requests a second asked for: the server or this generator cannot do more\n", r.rate)
	}
	if r.rate >= ownLatency {
		fmt.Fprintf(w, "limit\t%s\n", limitOfGenerator)
	}
	fmt.Fprintln(w, "\nlatency\tp50\tp90\tp99\tp99.9\tmax")
	printLatency(w, "since due", r.latency)
	printLatency(w, "since sent", r.service)
	fmt.Fprintln(w, "\nsecond\trequests\tfailed\tp99")
	for i, row := range r.timeLine {
		fmt.Fprintf(w, "%.0f\t%d\t%d\t%s\n", float64(i)*r.width.Seconds(), row.requests, row.failed, duration(at(row.latency, 99)))
	}
	return w.Flush()
}

func printLatency(out io.Writer, name string, h *hdrhistogram.Histogram) {
	fmt.Fprintf(out, "%s", name)
	for _, percentile := range []float64{50, 90, 99, 99.9, 100} {
		fmt.Fprintf(out, "\t%s", duration(at(h, percentile)))
	}
	fmt.Fprintln(out)
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

// duration writes a duration with three digits and a fitting unit.
func duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.0f µs", float64(d)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/1e6)
	default:
		return fmt.Sprintf("%.3g s", float64(d)/1e9)
	}
}
