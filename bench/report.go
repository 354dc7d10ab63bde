package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what --json writes. Latencies are in microseconds.
type report struct {
	URL           string           `json:"url"`
	About         string           `json:"about"` // what was requested
	Date          time.Time        `json:"date"`
	Go            string           `json:"go"`
	CPU           string           `json:"cpu"`
	Kernel        string           `json:"kernel"`
	Rate          float64          `json:"rate"` // asked for, requests a second
	Connections   int              `json:"connections"`
	Took          float64          `json:"seconds"`
	Requests      int64            `json:"requests"`
	Failed        int64            `json:"failed"` // without an answer, or of status 400 and above
	PerSecond     float64          `json:"answers_per_second"`
	BodyMB        float64          `json:"body_mb_per_second"` // as sent: compressed bodies are not unpacked
	Status        map[int]int64    `json:"status"`
	Errors        map[string]int64 `json:"errors"`
	Latency       percentiles      `json:"latency_us"` // from the instant at which a request was due
	Service       percentiles      `json:"service_us"` // from the instant at which it was sent
	Server        *serverUse       `json:"server,omitempty"`
	ServerUnknown string           `json:"server_unknown,omitempty"` // why there is no Server
	TimeLine      []timeLineRow    `json:"time_line"`
}

// serverUse is the CPU time of the server's process and its children, per request that was sent.
type serverUse struct {
	PID   int     `json:"pid"`
	CPUNs float64 `json:"cpu_ns_per_request"`
}

// timeLineRow is one second, or a few in a long load: the requests that were due then.
type timeLineRow struct {
	Second   int     `json:"second"` // the first one
	Requests int64   `json:"requests"`
	Failed   int64   `json:"failed"`
	P99      float64 `json:"p99_us"`
}

// maxRows bounds the time line.
const maxRows = 60

func newReport(url, about string, p plan, t *tally) *report {
	cpu, kernel := machine()
	answers := t.requests()
	for _, n := range t.errors {
		answers -= n
	}
	r := &report{
		URL: url, About: about, Date: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(), CPU: cpu, Kernel: kernel,
		Rate: p.rate, Connections: p.connections, Took: t.took.Seconds(), Requests: t.requests(), Failed: t.failed,
		PerSecond: float64(answers) / t.took.Seconds(), BodyMB: float64(t.bytes) / 1e6 / t.took.Seconds(),
		Status: t.status, Errors: t.errors, Latency: percentilesOf(t.latency), Service: percentilesOf(t.service), TimeLine: t.timeLine(),
	}
	if sent := t.service.TotalCount(); t.cpu > 0 && sent > 0 {
		r.Server = &serverUse{PID: p.pid, CPUNs: float64(t.cpu.Nanoseconds()) / float64(sent)}
	}
	return r
}

func (t *tally) timeLine() (rows []timeLineRow) {
	step := (len(t.seconds) + maxRows - 1) / maxRows
	for from := 0; from < len(t.seconds); from += step {
		h, row := newHistogram(2), timeLineRow{Second: from}
		for _, s := range t.seconds[from:min(from+step, len(t.seconds))] {
			h.Merge(s.latency)
			row.Failed += s.failed
		}
		row.Requests, row.P99 = h.TotalCount(), at(h, 99)
		rows = append(rows, row)
	}
	return rows
}

// print writes the report for people.
func (r *report) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s, %s\n\n", r.URL, r.About)
	fmt.Fprintf(w, "requests\t%d in %.1f s over %d connections, %d failed\n", r.Requests, r.Took, r.Connections, r.Failed)
	fmt.Fprintf(w, "answers\t%.0f a second, %.1f MB of bodies a second\n", r.PerSecond, r.BodyMB)
	fmt.Fprintf(w, "statuses\t%s\n", counts(r.Status))
	if len(r.Errors) > 0 {
		fmt.Fprintf(w, "errors\t%s\n", counts(r.Errors))
	}
	switch {
	case r.Server != nil:
		fmt.Fprintf(w, "server\t%.1f µs of CPU a request (process %d and its children)\n", r.Server.CPUNs/1000, r.Server.PID)
	case r.ServerUnknown != "":
		fmt.Fprintf(w, "server\tCPU time is not known: %s\n", r.ServerUnknown)
	}
	if r.PerSecond < 0.95*r.Rate {
		fmt.Fprintf(w, "slower\tthan the %g requests a second asked for: the server or this generator cannot do more\n", r.Rate)
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
