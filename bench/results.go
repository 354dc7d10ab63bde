package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// results has all readings of one run of rivals. The tables can be computed from it again.
type results struct {
	Format    int          `json:"format"`
	Date      time.Time    `json:"date"`
	Commit    string       `json:"commit"` // with "+changes" when the tree differed from it
	CPU       string       `json:"cpu"`
	Cores     int          `json:"cores"`
	Kernel    string       `json:"kernel"`
	Go        string       `json:"go"`
	Rounds    int          `json:"rounds"`
	Answers   []answer     `json:"answers"`
	Cells     []cell       `json:"cells"`
	Servers   []server     `json:"servers"`   // the bare loop first
	Absent    []string     `json:"absent"`    // rivals that are not installed
	Refreshes []refreshRun `json:"refreshes"` // with the server on one core, and on two
	Raw       []reading    `json:"raw"`
}

const resultsFormat = 5

// answer is one answer that every server gives.
type answer struct {
	Name      string `json:"name"` // its size
	Resource  string `json:"resource"`
	Coding    string `json:"coding"`
	BodyBytes int    `json:"body_bytes"`
	SHA256    string `json:"body_sha256"`

	*exchange `json:"-"` // with strikecache, only during the run
}

// exchange is one request and its answer.
type exchange struct {
	status       int
	ETag, coding string // coding is identity when the answer names none
	raw, body    []byte // head and body, and the body alone
}

// server is a server that was measured.
type server struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// reading is one measurement: one server sends answers for a while, or keeps idle connections.
type reading struct {
	Round  int    `json:"round"`
	Server string `json:"server"`
	Cell   string `json:"cell"`
	CPUNs  int64  `json:"cpu_ns,omitempty"`  // of the server's process and its children
	WallNs int64  `json:"wall_ns,omitempty"` // CPUNs near WallNs: the server was the bottleneck
	Bytes  int64  `json:"bytes,omitempty"`   // growth of resident memory per idle connection
}

// refreshRun has the latencies during and between refreshes, at half of saturation, in microseconds.
type refreshRun struct {
	Cores        int       `json:"server_cores"`
	SharedCore   bool      `json:"generator_on_server_core"` // the machine has no core left for the generator alone
	Saturation   float64   `json:"saturation_per_second"`
	Rate         float64   `json:"rate_per_second"`
	Refreshes    []refresh `json:"refreshes"`
	ResidentPeak int64     `json:"resident_peak_bytes"`
}

// refresh is one refresh of the chain and the quiet time before it: p99.9 in microseconds.
type refresh struct {
	WindowMs     float64 `json:"window_ms"`
	During       float64 `json:"during_us"`
	DuringCount  int64   `json:"during_n"`
	Between      float64 `json:"between_us"`
	BetweenCount int64   `json:"between_n"`
	Ratio        float64 `json:"ratio"`
}

func medianOf(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if len(v) == 0 {
		return 0
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// rounded rounds to this many digits after the point.
func rounded(v float64, digits int) float64 {
	unit := math.Pow10(digits)
	return math.Round(v*unit) / unit
}

// spread returns the median of ratios, with the lowest and the highest, as text.
func spread(ratios []float64) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", rounded(medianOf(ratios), 3), slices.Min(ratios), slices.Max(ratios))
}

// readings returns the readings of a server in a cell, one value per round: the CPU time in nanoseconds per request, and as
// a ratio to the bare loop, which is the first server; or, for a cell of idle connections, bytes and no ratios.
func (r *results) readings(server string, c cell) (values, ratios []float64) {
	bare := map[int]float64{} // by round
	for _, x := range r.Raw {
		if x.Server == r.Servers[0].Name && x.Cell == c.Name {
			bare[x.Round] = float64(x.CPUNs)
		}
	}
	for _, x := range r.Raw {
		switch {
		case x.Server != server || x.Cell != c.Name:
		case c.Idle:
			values = append(values, float64(x.Bytes))
		case bare[x.Round] > 0:
			values = append(values, float64(x.CPUNs)/float64(c.Requests))
			ratios = append(ratios, rounded(float64(x.CPUNs)/bare[x.Round], 4))
		}
	}
	return values, ratios
}

// busy returns which share of the time the bare loop used the processor: the median of the rounds. A low share means that the
// generator was too slow for it, so that the bare loop slept and woke up, and the ratios of the others are too low.
func (r *results) busy(c cell) float64 {
	var shares []float64
	for _, x := range r.Raw {
		if x.Server == r.Servers[0].Name && x.Cell == c.Name {
			shares = append(shares, float64(x.CPUNs)/float64(x.WallNs))
		}
	}
	return medianOf(shares)
}

// text is the entry of a server in a cell.
func (r *results) text(server int, c cell) string {
	values, ratios := r.readings(r.Servers[server].Name, c)
	switch {
	case len(values) == 0:
		return "n/a"
	case c.Idle:
		return fmt.Sprintf("%.2f KB (%.2f to %.2f)", medianOf(values)/1000, slices.Min(values)/1000, slices.Max(values)/1000)
	case server == 0:
		return fmt.Sprintf("1 (%.2f µs)", medianOf(values)/1000)
	default:
		return spread(ratios)
	}
}

// markdown is the text between the markers of the README.
func (r *results) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d cores, %s, %s, %s, commit %s.\n", r.CPU, r.Cores, r.Kernel, r.Go, r.Date.Format(time.DateOnly), r.Commit)
	plain := func(c cell) bool { return c.Title == c.Answer }
	r.ratioTable(&b, slices.DeleteFunc(slices.Clone(r.Cells), func(c cell) bool { return !plain(c) }))
	r.ratioTable(&b, slices.DeleteFunc(slices.Clone(r.Cells), plain))
	if len(r.Raw) > 0 {
		r.notes(&b)
	}
	if len(r.Refreshes) > 0 {
		r.refreshTable(&b)
	}
	return b.String()
}

// ratioTable writes a table with a column for each of the cells, if there are any.
func (r *results) ratioTable(b *strings.Builder, cells []cell) {
	if len(cells) == 0 {
		return
	}
	b.WriteString("\n| server CPU per request, × the bare loop (lowest to highest round) |")
	for _, c := range cells {
		fmt.Fprintf(b, " %s |", c.Title)
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", len(cells)) + "\n")
	for i, s := range r.Servers {
		fmt.Fprintf(b, "| %s |", strings.TrimSpace(s.Name+" "+s.Version))
		for _, c := range cells {
			fmt.Fprintf(b, " %s |", r.text(i, c))
		}
		b.WriteString("\n")
	}
}

// notes writes what the readers of the tables must know.
func (r *results) notes(b *strings.Builder) {
	fmt.Fprintf(b, "\nMedians of %d interleaved rounds, over %d keep-alive connections where the column names no others.", r.Rounds, rivalConnections)
	if len(r.Absent) > 0 {
		fmt.Fprintf(b, " Not installed: %s.", strings.Join(r.Absent, ", "))
	}
	b.WriteString(" n/a: only strikecache has API keys.")
	b.WriteString(" The answers:\n\n")
	for _, a := range r.Answers {
		fmt.Fprintf(b, "* %s: `%s` %s, %d bytes\n", a.Name, a.Resource, a.Coding, a.BodyBytes)
	}
}

func (r *results) refreshTable(b *strings.Builder) {
	b.WriteString("\n| server on | requests a second, half of saturation | p99.9 between refreshes | p99.9 during a refresh | ratio (lowest to highest) | peak resident memory |\n|---|--:|--:|--:|--:|--:|\n")
	for _, f := range r.Refreshes {
		cores := map[int]string{1: "1 core", 2: "2 cores"}[f.Cores]
		if f.SharedCore {
			cores += ", one shared with the generator"
		}
		var during, between, ratios []float64
		for _, x := range f.Refreshes {
			during, between, ratios = append(during, x.During), append(between, x.Between), append(ratios, x.Ratio)
		}
		median := func(us []float64) time.Duration { return time.Duration(medianOf(us) * float64(time.Microsecond)) }
		fmt.Fprintf(b, "| %s | %.0f | %s | %s | %s | %d MiB |\n", cores, f.Rate, duration(median(between)), duration(median(during)), spread(ratios), f.ResidentPeak>>20)
	}
	fmt.Fprintf(b, "\nMedians of %d refreshes of the whole option chain, each beside the quiet stretch before it.\n", len(r.Refreshes[0].Refreshes))
}

const (
	beginMark = "<!-- bench:begin -->\n"
	endMark   = "<!-- bench:end -->"
)

// marked is the part of a text that writeReadme replaces.
var marked = regexp.MustCompile("(?s)" + beginMark + "(.*)" + endMark)

// writeReadme puts the tables between the markers of a file.
func (r *results) writeReadme(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !marked.Match(text) {
		return fmt.Errorf("%s: no text between the markers %s and %s", path, strings.TrimSpace(beginMark), endMark)
	}
	return os.WriteFile(path, marked.ReplaceAllLiteral(text, []byte(beginMark+r.markdown()+endMark)), 0o644)
}
