package levels

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/snapshots"
)

// Streams are what a command reads and prints to.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// ExportCommand is `strikecache export`, in the form that the kong parser reads.
type ExportCommand struct {
	Format  string `help:"Form of the file: ${enum}." enum:"csv,json" default:"csv"`
	From    string `help:"First session, YYYY-MM-DD; by default the first that is stored." placeholder:"DATE"`
	To      string `help:"Last session, YYYY-MM-DD; by default the last that is stored." placeholder:"DATE"`
	Output  string `help:"File to write, whole or not at all; by default standard output." type:"path" placeholder:"FILE"`
	DataDir string `help:"Directory of the stored files." default:"./data" type:"path"`
	Source  string `help:"Source whose snapshots are exported: ${enum}." enum:"simulated,cboe,replay" default:"simulated"`
}

// Validate is called by the parser.
func (c *ExportCommand) Validate() error {
	for flag, text := range map[string]string{"--from": c.From, "--to": c.To} {
		if _, err := compute.ParseDate(text); text != "" && err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	if c.From != "" && c.To != "" && c.From > c.To {
		return fmt.Errorf("--from %s is after --to %s", c.From, c.To)
	}
	return nil
}

// Run is called by the parser. Files that cannot be read are named, the rows of all others written, and then it fails.
func (c *ExportCommand) Run(to Streams) error {
	days, files, bad, err := read(c)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	rows := make([][]json.RawMessage, len(days))
	sources := map[string]int{}
	for i, d := range days {
		rows[i] = d.cells
		sources[d.source]++
	}
	encoded := encodeJSON(rows)
	if c.Format == "csv" {
		if encoded, err = encodeCSV(rows); err != nil {
			return fmt.Errorf("export: %w", err)
		}
	}
	if c.Output == "" {
		_, err = to.Out.Write(encoded)
	} else {
		err = writeOutput(c.Output, encoded)
	}
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	for _, err := range bad {
		fmt.Fprintln(to.Err, err)
	}
	fmt.Fprintf(to.Err, "exported %d sessions%s\n", len(rows), bySource(sources))
	if sources["simulated"] > 0 {
		fmt.Fprintln(to.Err, "THE MARKET IS SIMULATED: its rows are not real, and the file does not say so")
	}
	if len(bad) > 0 {
		return fmt.Errorf("export: %d of %d stored files cannot be read", len(bad), files)
	}
	return nil
}

func bySource(count map[string]int) string {
	var parts []string
	for _, source := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d %s", count[source], source))
	}
	if parts == nil {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// writeOutput replaces a file as the store does. Anything but a file, such as a device, is not replaced.
func writeOutput(path string, b []byte) error {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	return snapshots.WriteFile(dir, filepath.Base(path), b)
}

// day is what is exported of a session.
type day struct {
	asOf   time.Time
	source string
	cells  []json.RawMessage // of the columns
}

// read returns the sessions asked for, rising, how many files it read, and what is wrong with those that it could not.
func read(c *ExportCommand) (days []day, files int, bad []error, err error) {
	dates, err := snapshots.ListDates(c.DataDir, c.Source, refresh.GammaResource)
	if err != nil {
		return nil, 0, nil, err
	}
	sessions := map[string]day{}
	for _, date := range dates {
		if date < c.From {
			continue // a session never is after the UTC date of its quotes
		}
		f, err := snapshots.ReadFile(c.DataDir, c.Source, refresh.GammaResource, date)
		if errors.Is(err, snapshots.ErrNoSnapshot) {
			continue
		}
		files++
		var d day
		if err == nil {
			d, err = dayOf(f.Edition.Default)
		}
		if err != nil {
			bad = append(bad, err)
			continue
		}
		session := f.Edition.Default.Meta.SessionDate
		if session < c.From || c.To != "" && session > c.To {
			continue
		}
		if other, ok := sessions[session]; !ok || d.asOf.After(other.asOf) {
			sessions[session] = d
		}
	}
	for _, session := range slices.Sorted(maps.Keys(sessions)) {
		days = append(days, sessions[session])
	}
	return days, files, bad, nil
}

// dayOf returns the values of a snapshot, spelt as they are served.
func dayOf(s *snapshots.Snapshot) (day, error) {
	d := day{s.Meta.AsOf, s.Meta.Source, make([]json.RawMessage, len(columns))}
	var data map[string]json.RawMessage
	if err := json.Unmarshal(s.Data(), &data); err != nil {
		return d, fmt.Errorf("snapshot of %s: %w", s.Meta.SessionDate, err)
	}
	for i, column := range columns {
		switch value, ok := data[column.name]; {
		case column.name == "date":
			d.cells[i] = json.RawMessage(`"` + s.Meta.SessionDate + `"`)
		case ok:
			d.cells[i] = value
		default:
			d.cells[i] = json.RawMessage("null")
		}
	}
	return d, nil
}
