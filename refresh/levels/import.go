package levels

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/snapshots"
)

// ImportCommand is `strikecache import`, in the form that the kong parser reads.
type ImportCommand struct {
	File        string `arg:"" help:"CSV or JSON file of daily levels, in the format of strikecache export. -: standard input."`
	DryRun      bool   `help:"Check the file and print what would be imported. Store nothing."`
	ClosedDates string `help:"File of further dates on which the exchange is closed, one a line. A date followed by the word early has a 13:00 close." type:"existingfile" placeholder:"FILE"`
	DataDir     string `help:"Directory of the stored files." default:"./data" type:"path"`
	Source      string `help:"Source whose history receives the rows: ${enum}." enum:"simulated,cboe,replay" default:"simulated"`
}

// Run is called by the parser. It stores the rows whose dates are not stored yet. If a cell is bad, it stores no row.
func (c *ImportCommand) Run(ctx context.Context, with Streams) error {
	if err := c.run(ctx, with, time.Now()); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return nil
}

func (c *ImportCommand) run(ctx context.Context, with Streams, now time.Time) error {
	schedule := refresh.ScheduleFlags{ClosedDates: c.ClosedDates}
	calendar, err := schedule.Calendar()
	if err != nil {
		return err
	}
	name, text, err := c.read(with.In)
	if err != nil {
		return err
	}
	rows, err := decode(text, calendar, now)
	if err != nil {
		return fmt.Errorf("nothing was imported from %s:\n%w", name, err)
	}
	from := origin{name, fmt.Sprintf("%x", sha256.Sum256(text)), calendar, now}
	if c.DryRun {
		stored, err := snapshots.ListDates(c.DataDir, c.Source, refresh.GammaResource)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return from.each(rows, stored, with.Out, "would import", func(row) error { return nil })
	}
	store, err := snapshots.Open(snapshots.Options{
		Dir: c.DataDir, Source: c.Source, DatedProducts: refresh.DatedResources(),
		HistoryBytes: 1 << 20, Log: slog.New(slog.NewTextHandler(with.Err, nil)),
	})
	if err != nil {
		return fmt.Errorf("%w; nothing was imported: stop the server first", err)
	}
	stored := store.DatesOf(refresh.GammaResource)
	err = from.each(rows, stored, with.Out, "imported", func(r row) error { return from.store(ctx, store, r) })
	return errors.Join(err, store.Close())
}

// read returns the text of the file, and its name for the snapshots.
func (c *ImportCommand) read(in io.Reader) (name string, text []byte, err error) {
	name = "standard input"
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return "", nil, err
		}
		defer f.Close()
		name, in = strings.ToValidUTF8(filepath.Base(c.File), "\ufffd"), f
	}
	if text, err = io.ReadAll(io.LimitReader(in, maxBytes+1)); err != nil {
		return "", nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > maxBytes {
		return "", nil, fmt.Errorf("%s has over %d bytes", name, maxBytes)
	}
	return name, text, nil
}

// imported is the source of an imported snapshot, and the reason of its freshness.
const imported = snapshots.Imported

// origin is the file that rows come from.
type origin struct {
	name, sha256 string
	calendar     *compute.Calendar
	now          time.Time
}

// each calls do with each row whose date is not stored, in order, until a call fails. At the end it prints the counts.
func (o *origin) each(rows []row, stored []string, out io.Writer, done string, do func(row) error) error {
	did, skipped := 0, []string(nil)
	for _, r := range rows {
		date := r.date.String() // a session closes before its UTC date ends, so its row is stored under its own date
		if _, found := slices.BinarySearch(stored, date); found {
			skipped = append(skipped, date)
			continue
		}
		if err := do(r); err != nil {
			return fmt.Errorf("row of %s: %w; %d dates were imported before this error: remove the cause of this error and import the file again",
				date, err, did)
		}
		did++
	}
	fmt.Fprintf(out, "%s %d dates of %s (sha256 %s)\n", done, did, o.name, o.sha256)
	if len(skipped) > 0 {
		fmt.Fprintf(out, "skipped %d dates that are stored: %s\n", len(skipped), strings.Join(skipped, " "))
	}
	return nil
}

// store saves a row, unless ctx has ended.
func (o *origin) store(ctx context.Context, store *snapshots.Store, r row) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := o.seal(r)
	if err != nil {
		return err
	}
	return store.Save(refresh.GammaResource, r.date.String(), f)
}

// seal makes a snapshot of a row.
func (o *origin) seal(r row) (f snapshots.File, err error) {
	values := maps.Clone(r.values)
	values["session_date"], values["source"] = r.date, imported
	if f.Summary, err = refresh.SeriesRow(values); err != nil {
		return f, err
	}
	data, err := gammaData(values)
	if err != nil {
		return f, err
	}
	quality, err := json.Marshal(struct {
		Unknown  string  `json:"unknown"` // why the other fields are null
		Line     int     `json:"line"`    // of the file
		Calendar *string `json:"calendar"`
	}{"levels_only", r.line, compute.CalendarNote(r.date)})
	if err != nil {
		return f, err
	}
	closed := o.calendar.Close(r.date).UTC()
	s, err := snapshots.Seal(data, snapshots.Meta{
		Endpoint: refresh.GammaResource, Source: imported, ImportedFrom: o.name,
		AsOf: closed, ComputedAt: o.now.UTC().Truncate(time.Second), SessionDate: r.date.String(), DelayMinutes: 15,
		Freshness: snapshots.Freshness{State: "closed", Reason: new(imported), Since: closed},
		Receipt:   snapshots.Receipt{Method: "import/1", Parameters: json.RawMessage("{}"), Inputs: []snapshots.Input{{Name: o.name, SHA256: o.sha256}}},
		Quality:   quality,
		Notice:    "Imported daily levels, as their publisher computed them; as_of is the close of the session; not investment advice",
	})
	f.Edition = &snapshots.Edition{Default: s}
	return f, err
}

// gammaData returns the fields of [compute.Gamma] in their order. A field that is not in values is null.
func gammaData(values map[string]any) ([]byte, error) {
	var names []string
	var cells []json.RawMessage
	fields := reflect.TypeFor[compute.Gamma]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		cell, err := json.Marshal(values[name])
		if err != nil {
			return nil, err
		}
		names, cells = append(names, name), append(cells, cell)
	}
	return appendObject(nil, names, cells), nil
}
