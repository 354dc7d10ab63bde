package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// results has all readings of one run of rivals. The tables can be computed from it again.
type results struct {
	Date    time.Time `json:"date"`
	Version string    `json:"version"` // of strikecache, which ends with its commit
	CPU     string    `json:"cpu"`
	Cores   int       `json:"cores"`
	Kernel  string    `json:"kernel"`
	Go      string    `json:"go"`
	Rounds  int       `json:"rounds"`
	Answers []answer  `json:"answers"`
	Cells   []cell    `json:"cells"`
	Servers []server  `json:"servers"` // the bare loop first
	Absent  []string  `json:"absent"`  // rivals that are not installed
	Raw     []reading `json:"raw"`
}

// answer is one answer that every server gives.
type answer struct {
	Name      string `json:"name"`
	Resource  string `json:"resource"`
	Coding    string `json:"coding"`
	BodyBytes int    `json:"body_bytes"`

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

// medianOf returns the median of at least one value.
func medianOf(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// readings returns the readings of a server in a cell, one value per round: the CPU time in nanoseconds per request, and as
// a ratio to the first server; or, for a cell of idle connections, bytes and no ratios.
func (r *results) readings(server string, c cell) (values, ratios []float64) {
	unit := map[int]float64{} // by round
	for _, x := range r.Raw {
		if x.Cell == c.Name && x.Server == r.servers(c)[0] {
			unit[x.Round] = float64(x.CPUNs)
		}
	}
	for _, x := range r.Raw {
		switch {
		case x.Server != server || x.Cell != c.Name:
		case c.Idle:
			values = append(values, float64(x.Bytes))
		case unit[x.Round] > 0:
			values = append(values, float64(x.CPUNs)/float64(c.Requests))
			ratios = append(ratios, float64(x.CPUNs)/unit[x.Round])
		}
	}
	return values, ratios
}

// servers returns the names of the servers of a cell, in the order of its readings: the bare loop first, or the floor.
func (r *results) servers(c cell) (names []string) {
	for _, x := range r.Raw {
		if x.Cell == c.Name && !slices.Contains(names, x.Server) {
			names = append(names, x.Server)
		}
	}
	return names
}

// busy returns which share of the time the bare loop used the processor: the median of the rounds. A low share means that the
// generator was too slow for it, so that the bare loop slept and woke up, and the ratios of the others are too low.
func (r *results) busy(c cell) float64 {
	var shares []float64
	for _, x := range r.Raw {
		if x.Cell == c.Name && x.Server == r.servers(c)[0] {
			shares = append(shares, float64(x.CPUNs)/float64(x.WallNs))
		}
	}
	return medianOf(shares)
}

// text is the entry of a server in a cell.
func (r *results) text(server string, c cell) string {
	values, ratios := r.readings(server, c)
	switch {
	case len(values) == 0:
		return "–"
	case c.Idle:
		return fmt.Sprintf("%.2f KB", medianOf(values)/1000)
	case server == r.servers(c)[0]:
		if c.Refresh {
			return fmt.Sprintf("1 (%.1f ms)", medianOf(values)/1e6)
		}
		return fmt.Sprintf("1 (%.2f µs)", medianOf(values)/1000)
	default:
		return fmt.Sprintf("%.2f (%.2f to %.2f)", medianOf(ratios), slices.Min(ratios), slices.Max(ratios))
	}
}

// markdown is the text between the markers of the README.
func (r *results) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "strikecache %s, measured on %s: %s, %d cores, %s, %s.\n", r.Version, r.Date.Format(time.DateOnly), r.CPU, r.Cores, r.Kernel, r.Go)
	var plain, others, refreshes []cell
	for _, c := range r.Cells {
		switch {
		case c.Refresh:
			refreshes = append(refreshes, c)
		case c.Name == c.Answer:
			plain = append(plain, c)
		default:
			others = append(others, c)
		}
	}
	r.ratioTable(&b, "server CPU per request, × the bare loop", plain)
	r.ratioTable(&b, "server CPU per request, × the bare loop", others)
	r.ratioTable(&b, "CPU of a refresh, × the floor with SPX", refreshes)
	r.notes(&b)
	return b.String()
}

// title returns the title of the column of a cell.
func (r *results) title(c cell) string {
	if c.Title != "" {
		return c.Title
	}
	return r.Answers[slices.IndexFunc(r.Answers, func(a answer) bool { return a.Name == c.Answer })].title()
}

func (a answer) title() string {
	if a.Name == notModified {
		return a.Name
	}
	return fmt.Sprintf("%.1f KB", float64(a.BodyBytes)/1000)
}

// ratioTable writes a table with a column for each of the cells, if there are any.
func (r *results) ratioTable(b *strings.Builder, title string, cells []cell) {
	if len(cells) == 0 {
		return
	}
	fmt.Fprintf(b, "\n| %s (lowest to highest round) |", title)
	for _, c := range cells {
		fmt.Fprintf(b, " %s |", r.title(c))
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", len(cells)) + "\n")
	for _, name := range r.servers(cells[0]) {
		version := ""
		if i := slices.IndexFunc(r.Servers, func(s server) bool { return s.Name == name }); i >= 0 {
			version = r.Servers[i].Version
		}
		fmt.Fprintf(b, "| %s |", strings.TrimSpace(name+" "+version))
		for _, c := range cells {
			fmt.Fprintf(b, " %s |", r.text(name, c))
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
	if len(r.Answers) > 0 {
		b.WriteString(" The answers:\n\n")
	}
	for _, a := range r.Answers {
		if a.Name == notModified {
			fmt.Fprintf(b, "* %s: `%s`, for a client that has the answer. A 304 has no body\n", a.title(), a.Resource)
		} else {
			fmt.Fprintf(b, "* %s: `%s` in the coding %s, %d bytes of body\n", a.title(), a.Resource, a.Coding, a.BodyBytes)
		}
	}
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
