package levels

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// Run is called by the parser. It stores all rows of the file whose dates are not stored, or none when a cell is bad.
func (c *ImportCommand) Run(ctx context.Context, with Streams) error {
	if err := c.run(ctx, with, time.Now()); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return nil
}

func (c *ImportCommand) run(ctx context.Context, with Streams, now time.Time) error {
	calendar, err := c.calendar()
	if err != nil {
		return err
	}
	name, text, err := c.read(with.In)
	if err != nil {
		return err
	}
	rows, err := decode(text, calendar, now)
	if err != nil {
		return fmt.Errorf("nothing was imported of %s:\n%w", name, err)
	}
	sum := sha256.Sum256(text)
	from := origin{name: name, sha256: hex.EncodeToString(sum[:]), calendar: calendar, now: now}
	if c.DryRun {
		stored, err := snapshots.ListDates(c.DataDir, c.Source, refresh.GammaResource)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing, skipped := split(rows, stored)
		from.report(with.Out, "would import", len(missing), skipped)
		return nil
	}
	store, err := snapshots.Open(snapshots.Options{
		Dir: c.DataDir, Source: c.Source, Feeds: refresh.Feeds(), HistoricalProduct: refresh.GammaResource,
		HistoryBytes: 1 << 20, Log: slog.New(slog.NewTextHandler(with.Err, nil)),
	})
	if err != nil {
		return fmt.Errorf("%w; nothing was imported: stop the server first", err)
	}
	missing, skipped := split(rows, store.DatesOf(refresh.GammaResource))
	imported, err := from.store(ctx, store, missing)
	if err = errors.Join(err, store.Close()); err != nil {
		return fmt.Errorf("%w; %d of %d dates were imported before: remove the cause of this error and import the file again", err, imported, len(missing))
	}
	from.report(with.Out, "imported", imported, skipped)
	return nil
}

func (c *ImportCommand) calendar() (*compute.Calendar, error) {
	if c.ClosedDates == "" {
		return compute.NewCalendar(nil, nil), nil
	}
	text, err := os.ReadFile(c.ClosedDates)
	if err != nil {
		return nil, fmt.Errorf("--closed-dates: %w", err)
	}
	closed, early, err := compute.ParseClosures(text)
	if err != nil {
		return nil, fmt.Errorf("--closed-dates %s: %w", c.ClosedDates, err)
	}
	return compute.NewCalendar(closed, early), nil
}

// read returns the file and the name that the snapshots give it.
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

// split parts the rows whose dates are not stored from the dates that are.
func split(rows []row, stored []string) (missing []row, skipped []string) {
	for _, r := range rows {
		date := r.date.String() // a session closes before its UTC date ends, so its row is stored under its own date
		if _, found := slices.BinarySearch(stored, date); found {
			skipped = append(skipped, date)
		} else {
			missing = append(missing, r)
		}
	}
	return missing, skipped
}

// report says what became of the rows.
func (o *origin) report(out io.Writer, did string, imported int, skipped []string) {
	fmt.Fprintf(out, "%s %d dates of %s (sha256 %s)\n", did, imported, o.name, o.sha256)
	if len(skipped) > 0 {
		fmt.Fprintf(out, "skipped %d dates that are stored: %s\n", len(skipped), strings.Join(skipped, " "))
	}
}

const (
	// imported is the source of an imported snapshot, and the reason of its freshness.
	imported = "imported"
	// delayMinutes is that of all answers.
	delayMinutes = 15
)

// origin is the file that rows come from.
type origin struct {
	name, sha256 string
	calendar     *compute.Calendar
	now          time.Time
}

// quality is `meta.quality` of an imported snapshot.
type quality struct {
	Unknown  string  `json:"unknown"` // why the other fields are null
	Line     int     `json:"line"`    // of the file
	Calendar *string `json:"calendar"`
}

// store saves the rows, in their order, until one fails or ctx ends, and returns how many it saved.
func (o *origin) store(ctx context.Context, store *snapshots.Store, rows []row) (saved int, err error) {
	for saved, r := range rows {
		if err := ctx.Err(); err != nil {
			return saved, err
		}
		f, err := o.seal(r)
		if err != nil {
			return saved, fmt.Errorf("row of %s: %w", r.date, err)
		}
		if err := store.Save(refresh.GammaResource, r.date.String(), f); err != nil {
			return saved, err
		}
	}
	return len(rows), nil
}

// seal makes a snapshot of a row.
func (o *origin) seal(r row) (snapshots.File, error) {
	data, err := gammaData(r)
	if err != nil {
		return snapshots.File{}, err
	}
	known, err := json.Marshal(quality{"levels_only", r.line, compute.CalendarNote(r.date)})
	if err != nil {
		return snapshots.File{}, err
	}
	closed := o.calendar.Close(r.date).UTC()
	s, err := snapshots.Seal(data, snapshots.Meta{
		Endpoint: refresh.GammaResource, Source: imported, ImportedFrom: o.name,
		AsOf: closed, ComputedAt: o.now.UTC().Truncate(time.Second), SessionDate: r.date.String(), DelayMinutes: delayMinutes,
		Freshness: snapshots.Freshness{State: "closed", Reason: new(imported), Since: closed},
		Receipt:   snapshots.Receipt{Method: "import/1", InputSHA256: []string{o.sha256}},
		Quality:   known,
		Notice:    "Imported daily levels, as their publisher computed them; as_of is the close of the session; not investment advice",
	})
	if err != nil {
		return snapshots.File{}, err
	}
	columns := maps.Clone(r.values)
	columns["session_date"], columns["source"] = r.date, imported
	summary, err := refresh.SeriesRow(columns)
	return snapshots.File{Edition: &snapshots.Edition{Default: s}, Summary: summary}, err
}

// gammaData returns the fields of [compute.Gamma], in their order, null where the row does not know them.
func gammaData(r row) ([]byte, error) {
	var names []string
	var values []json.RawMessage
	fields := reflect.TypeFor[compute.Gamma]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		value := r.values[name]
		if name == "session_date" {
			value = r.date
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		names, values = append(names, name), append(values, encoded)
	}
	return appendObject(nil, names, values), nil
}
