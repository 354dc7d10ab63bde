package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// results are one side-by-side run: everything from which the ratios can be computed again.
type results struct {
	Format      int         `json:"format"`
	Date        time.Time   `json:"date"`
	Commit      string      `json:"commit"` // with "+changes" when the tree differed from it
	CPU         string      `json:"cpu"`
	Cores       int         `json:"cores"`
	Kernel      string      `json:"kernel"`
	Go          string      `json:"go"`
	Connections int         `json:"connections"`
	Rounds      int         `json:"rounds"`
	TickHz      int         `json:"tick_hz"`
	Cells       []cell      `json:"cells"`
	Servers     []contender `json:"servers"` // the bare loop first
	Absent      []string    `json:"absent"`  // rivals that are not installed
	Medians     []median    `json:"medians"`
	Refresh     *refreshRun `json:"refresh,omitempty"`
	Raw         []reading   `json:"raw"`
}

// cell is one answer that every server gives.
type cell struct {
	Name      string `json:"name"`
	Resource  string `json:"resource"`
	Coding    string `json:"coding"`
	BodyBytes int    `json:"body_bytes"`
	SHA256    string `json:"body_sha256"`
	Requests  int    `json:"n"` // of each reading
}

// contender is a server that was measured.
type contender struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	How     string `json:"how"`
}

// reading is one server answering one cell's requests once.
type reading struct {
	Round  int     `json:"round"`
	Server string  `json:"server"`
	Cell   string  `json:"cell"`
	Ticks  int64   `json:"ticks"`   // utime + stime of the process tree
	CPUNs  int64   `json:"cpu_ns"`  // the same from the scheduler
	WallNs int64   `json:"wall_ns"` // CPUNs near WallNs: the server was the bottleneck
	Ratio  float64 `json:"ratio"`   // of CPUNs to the bare loop's in the same round
}

// median is over the rounds.
type median struct {
	Server string  `json:"server"`
	Cell   string  `json:"cell"`
	Ns     float64 `json:"cpu_ns_per_request"`
	Ratio  float64 `json:"ratio"`
	Low    float64 `json:"ratio_low"`
	High   float64 `json:"ratio_high"`
	Busy   float64 `json:"busy"` // share of its core
}

// refreshRun is how much a refresh is felt, at half of saturation.
type refreshRun struct {
	Saturation   float64       `json:"saturation_per_second"`
	Rate         float64       `json:"rate_per_second"`
	Alternations []alternation `json:"alternations"`
	MedianRatio  float64       `json:"median_p99_9_ratio"`
	ResidentPeak int64         `json:"resident_peak_bytes"`
}

// alternation is one refresh of the chain and the quiet stretch before it, p99.9 in microseconds.
type alternation struct {
	WindowMs     float64 `json:"window_ms"`
	During       float64 `json:"during_us"`
	DuringCount  int64   `json:"during_n"`
	Between      float64 `json:"between_us"`
	BetweenCount int64   `json:"between_n"`
	Ratio        float64 `json:"ratio"`
}

const resultsFormat = 1

func medianOf(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if len(v) == 0 {
		return 0
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// conclude computes ratios and medians from the raw readings.
func (r *results) conclude() {
	unit := map[[2]any]int64{}
	for _, x := range r.Raw {
		if x.Server == r.Servers[0].Name {
			unit[[2]any{x.Round, x.Cell}] = x.CPUNs
		}
	}
	r.Medians = nil
	for _, s := range r.Servers {
		for _, c := range r.Cells {
			var ns, ratios, busy []float64
			for i := range r.Raw {
				x := &r.Raw[i]
				base := unit[[2]any{x.Round, x.Cell}]
				if x.Server != s.Name || x.Cell != c.Name || base == 0 {
					continue
				}
				x.Ratio = rounded(float64(x.CPUNs)/float64(base), 4)
				ns = append(ns, float64(x.CPUNs)/float64(c.Requests))
				ratios = append(ratios, x.Ratio)
				busy = append(busy, float64(x.CPUNs)/float64(x.WallNs))
			}
			if len(ns) > 0 {
				r.Medians = append(r.Medians, median{s.Name, c.Name, rounded(medianOf(ns), 1), rounded(medianOf(ratios), 3),
					slices.Min(ratios), slices.Max(ratios), rounded(medianOf(busy), 2)})
			}
		}
	}
}

func rounded(v float64, digits int) float64 {
	var out float64
	_, _ = fmt.Sscan(fmt.Sprintf("%.*f", digits, v), &out)
	return out
}

func (r *results) median(server, cell string) (median, bool) {
	i := slices.IndexFunc(r.Medians, func(m median) bool { return m.Server == server && m.Cell == cell })
	if i < 0 {
		return median{}, false
	}
	return r.Medians[i], true
}

// markdown is the README's table.
func (r *results) markdown() string {
	var b strings.Builder
	b.WriteString("| server CPU per request, × a bare epoll loop |")
	for _, c := range r.Cells {
		fmt.Fprintf(&b, " %s |", c.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", len(r.Cells)) + "\n")
	for i, s := range r.Servers {
		fmt.Fprintf(&b, "| %s |", s.label())
		for _, c := range r.Cells {
			m, ok := r.median(s.Name, c.Name)
			switch {
			case !ok:
				b.WriteString(" – |")
			case i == 0:
				fmt.Fprintf(&b, " 1 (%.1f µs) |", m.Ns/1000)
			default:
				fmt.Fprintf(&b, " %.2f |", m.Ratio)
			}
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\nMedians of %d interleaved rounds, %d keep-alive connections, the server on one core and the generator on\nanother, bodies byte-equal and checked: %s, %s, %s, %s, commit %s.\n",
		r.Rounds, r.Connections, r.CPU, r.Kernel, r.Go, r.Date.Format(time.DateOnly), r.shortCommit())
	for _, c := range r.Cells {
		fmt.Fprintf(&b, "%s: `%s` %s, %d bytes", c.Name, c.Resource, c.Coding, c.BodyBytes)
		if c.Name == r.Cells[len(r.Cells)-1].Name {
			b.WriteString(".\n")
		} else {
			b.WriteString(";\n")
		}
	}
	if f := r.Refresh; f != nil {
		fmt.Fprintf(&b, "\nWhile the whole option chain is decoded and published, at half of saturation (%.0f requests a second on one core),\np99.9 is %.1f times that between refreshes (median of %d alternations); peak resident memory %d MiB.\n",
			f.Rate, f.MedianRatio, len(f.Alternations), f.ResidentPeak>>20)
	}
	return b.String()
}

func (r *results) shortCommit() string {
	commit, suffix, changed := strings.Cut(r.Commit, "+")
	if len(commit) == 40 {
		commit = commit[:12]
	}
	if changed {
		commit += "+" + suffix
	}
	return commit
}

func (c contender) label() string {
	if c.Version == "" {
		return c.Name
	}
	return c.Name + " " + c.Version
}

const (
	beginMark = "<!-- bench:begin -->"
	endMark   = "<!-- bench:end -->"
)

var errMarks = errors.New("no text between the markers " + beginMark + " and " + endMark)

// between returns what stands before, between and after the markers.
func between(text string) (before, inside, after string, err error) {
	before, rest, ok := strings.Cut(text, beginMark)
	inside, after, ok2 := strings.Cut(rest, endMark)
	if !ok || !ok2 {
		return "", "", "", errMarks
	}
	return before, inside, after, nil
}

// writeReadme puts the table between the markers of a file.
func (r *results) writeReadme(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, _, after, err := between(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(before+beginMark+"\n"+r.markdown()+endMark+after), 0o644)
}

func readResults(path string) (*results, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r results
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if r.Format != resultsFormat || len(r.Servers) == 0 {
		return nil, fmt.Errorf("%s: format %d, %d servers", path, r.Format, len(r.Servers))
	}
	return &r, nil
}
