package levels

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/snapshots"
)

// ExportCommand is `strikecache export`, in the form that the kong parser reads.
type ExportCommand struct {
	Format  string `help:"Format of the file: ${enum}." enum:"csv,json" default:"csv"`
	From    string `help:"First session, YYYY-MM-DD. Default: the first stored session." placeholder:"DATE"`
	To      string `help:"Last session, YYYY-MM-DD. Default: the last stored session." placeholder:"DATE"`
	Output  string `help:"File to write. After a failure, an existing file is unchanged. Default: standard output." type:"path" placeholder:"FILE"`
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

// Run is called by the parser. It writes the rows of the readable files. If a file is unreadable, it names the file and fails.
func (c *ExportCommand) Run(to Streams) error {
	days, bad, err := c.read()
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if err := c.write(to.Out, days); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	for _, err := range bad {
		fmt.Fprintln(to.Err, err)
	}
	counts := map[string]int{}
	for _, d := range days {
		counts[d.source]++
	}
	said := fmt.Sprintf("exported %d sessions", len(days))
	for _, source := range slices.Sorted(maps.Keys(counts)) {
		said += fmt.Sprintf(", %d %s", counts[source], source)
	}
	fmt.Fprintln(to.Err, said)
	if counts["simulated"] > 0 {
		fmt.Fprintln(to.Err, "THE MARKET IS SIMULATED: its rows are not real, and the file does not say so")
	}
	if len(bad) > 0 {
		return fmt.Errorf("export: %d stored files cannot be read", len(bad))
	}
	return nil
}

// write writes the rows to the output.
func (c *ExportCommand) write(out io.Writer, days []day) (err error) {
	rows := make([][]json.RawMessage, len(days))
	for i, d := range days {
		rows[i] = d.cells
	}
	encoded := encodeJSON(rows)
	if c.Format == "csv" {
		if encoded, err = encodeCSV(rows); err != nil {
			return err
		}
	}
	if c.Output != "" {
		return writeOutput(c.Output, encoded)
	}
	_, err = out.Write(encoded)
	return err
}

// writeOutput writes a file as the store does, and may replace a regular file. It refuses to replace a device or directory.
func writeOutput(path string, b []byte) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); err != nil { // a missing directory is not made
		return err
	}
	return snapshots.WriteFile(dir, filepath.Base(path), b)
}

// day is what is exported of a session.
type day struct {
	session, source string
	cells           []json.RawMessage // one for each column
}

// read returns the requested sessions, oldest first, and the errors of the files that it could not read.
func (c *ExportCommand) read() (days []day, bad []error, err error) {
	dates, err := snapshots.ListDates(c.DataDir, c.Source, refresh.GammaResource)
	if err != nil {
		return nil, nil, err
	}
	for _, date := range dates {
		if date < c.From {
			continue // a session is never after the UTC date under which it is stored
		}
		f, err := snapshots.ReadFile(c.DataDir, c.Source, refresh.GammaResource, date)
		var d day
		if err == nil {
			d, err = dayOf(f.Edition.Default)
		}
		if err != nil {
			bad = append(bad, err)
			continue
		}
		if d.session < c.From || c.To != "" && d.session > c.To {
			continue
		}
		if last := len(days) - 1; last >= 0 && days[last].session == d.session {
			days = days[:last] // quotes of the session's evening are stored under the next UTC date
		}
		days = append(days, d)
	}
	return days, bad, nil
}

// dayOf returns the values of a snapshot, with the digits that are served.
func dayOf(s *snapshots.Snapshot) (day, error) {
	d := day{session: s.Meta.SessionDate, source: s.Meta.Source}
	var data map[string]json.RawMessage
	if err := json.Unmarshal(s.Data(), &data); err != nil {
		return d, fmt.Errorf("snapshot of %s: %w", d.session, err)
	}
	data["date"] = json.RawMessage(`"` + d.session + `"`)
	for _, name := range columnNames {
		value, known := data[name]
		if !known {
			value = json.RawMessage("null")
		}
		d.cells = append(d.cells, value)
	}
	return d, nil
}
