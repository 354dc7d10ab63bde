package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"text/tabwriter"
	"time"
)

// report is one invocation: what --json writes, --html draws and --compare reads.
type report struct {
	Format   int       `json:"format"`
	Base     string    `json:"base"`
	Date     time.Time `json:"date"`
	Go       string    `json:"go"`
	CPU      string    `json:"cpu"`
	Kernel   string    `json:"kernel"`
	Outcomes []outcome `json:"outcomes"`
	Skipped  []string  `json:"skipped,omitempty"`
}

const reportFormat = 1

// outcome is one workload in one mode.
type outcome struct {
	Workload    string           `json:"workload"`
	About       string           `json:"about"`
	Mode        string           `json:"mode"`           // open or closed
	Rate        float64          `json:"rate,omitempty"` // asked for, open loop
	Connections int              `json:"connections"`
	Seconds     float64          `json:"seconds"`
	Requests    int64            `json:"requests"`
	PerSecond   float64          `json:"requests_per_second"`
	MBPerSecond float64          `json:"mb_per_second"`
	Status      map[int]int64    `json:"status"`
	Errors      map[string]int64 `json:"errors,omitempty"`
	Latency     latencies        `json:"latency_us"` // open loop: from the instant the request was due
	Service     latencies        `json:"service_us"` // from the instant it was sent
	Curve       []point          `json:"curve"`      // of latency: percentile, microseconds
	ServerTicks int64            `json:"server_ticks,omitempty"`
	ServerNs    float64          `json:"server_cpu_ns_per_request,omitempty"`
	Around      *around          `json:"around_refresh,omitempty"`
}

func newReport(base string) *report {
	cpu, kernel := machine()
	return &report{Format: reportFormat, Base: base, Date: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(), CPU: cpu, Kernel: kernel}
}

func newOutcome(w workload, p plan, t *tally, took time.Duration, used usage) outcome {
	o := outcome{
		Workload: w.name, About: w.about, Mode: "closed", Connections: p.connections, Seconds: took.Seconds(),
		Requests: t.latency.TotalCount(), Status: t.status, Errors: t.errors,
		Latency: summarize(t.latency), Service: summarize(t.service), Curve: curve(t.latency),
	}
	if p.rate > 0 {
		o.Mode, o.Rate = "open", p.rate
	}
	if took > 0 {
		o.PerSecond = float64(o.Requests) / took.Seconds()
		o.MBPerSecond = float64(t.bytes) / 1e6 / took.Seconds()
	}
	if o.Requests > 0 && used.CPU > 0 {
		o.ServerTicks, o.ServerNs = used.Ticks, float64(used.CPU.Nanoseconds())/float64(o.Requests)
	}
	if w.refreshes {
		o.Around = splitAround(t.samples, t.changes)
	}
	return o
}

// Failed counts answers of status 400 and above, and requests without an answer.
func (o *outcome) Failed() (n int64) {
	for _, count := range o.Errors {
		n += count
	}
	for status, count := range o.Status {
		if status >= 400 {
			n += count
		}
	}
	return n
}

func (o *outcome) key() string { return o.Workload + " " + o.Mode }

// table prints the outcomes, latencies in microseconds.
func (r *report) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "workload\tloop\treq/s\tMB/s\tp50 µs\tp90\tp99\tp99.9\tmax\tfailed\tCPU µs/req\t")
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		cpu := "–"
		if o.ServerNs > 0 {
			cpu = fmt.Sprintf("%.2f", o.ServerNs/1000)
		}
		l := o.Latency
		fmt.Fprintf(t, "%s\t%s\t%.0f\t%.1f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%d\t%s\t\n",
			o.Workload, o.Mode, o.PerSecond, o.MBPerSecond, l.P50, l.P90, l.P99, l.P999, l.Max, o.Failed(), cpu)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		if o.Mode == "open" && o.PerSecond < 0.95*o.Rate {
			fmt.Fprintf(w, "%s: asked for %.0f requests a second and got %.0f: the server or this generator is saturated\n", o.Workload, o.Rate, o.PerSecond)
		}
		for e, n := range o.Errors {
			fmt.Fprintf(w, "%s: %d × %s\n", o.Workload, n, e)
		}
		if a := o.Around; a != nil && a.Changes == 0 {
			fmt.Fprintf(w, "%s: no refresh seen; a longer --duration may see one\n", o.Workload)
		} else if a != nil {
			fmt.Fprintf(w, "%s: %d refreshes seen; p99.9 around one %.0f µs, otherwise %.0f µs, ratio %.2f\n",
				o.Workload, a.Changes, a.During.P999, a.Between.P999, a.Ratio)
		}
	}
	for _, s := range r.Skipped {
		fmt.Fprintln(w, s)
	}
	return nil
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

func readReport(path string) (*report, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r report
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if r.Format != reportFormat || len(r.Outcomes) == 0 {
		return nil, fmt.Errorf("%s is no report of this program: format %d, %d outcomes", path, r.Format, len(r.Outcomes))
	}
	return &r, nil
}
