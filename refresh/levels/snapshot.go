package levels

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/snapshots"
)

const (
	// source is what an imported snapshot says of itself.
	source = "imported"
	// method names how a row became a snapshot.
	method = "import/1"
	// delayMinutes is that of all answers.
	delayMinutes = 15

	stateClosed    = "closed"
	reasonImported = "imported"
	reasonUnknown  = "levels_only"

	notice = "Imported daily levels, as their publisher computed them; as_of is the close of the session; not investment advice"
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
	for _, r := range rows {
		if err := ctx.Err(); err != nil {
			return saved, err
		}
		f, err := o.file(r)
		if err != nil {
			return saved, fmt.Errorf("row of %s: %w", r.date, err)
		}
		if err := store.Save(refresh.GammaResource, r.date.String(), f); err != nil {
			return saved, err
		}
		saved++
	}
	return saved, nil
}

// file seals a row.
func (o *origin) file(r row) (snapshots.File, error) {
	data, err := gammaData(r)
	if err != nil {
		return snapshots.File{}, err
	}
	known, err := json.Marshal(quality{reasonUnknown, r.line, compute.CalendarNote(o.calendar, r.date)})
	if err != nil {
		return snapshots.File{}, err
	}
	reason, closed := reasonImported, o.calendar.Close(r.date).UTC()
	s, err := snapshots.Seal(data, snapshots.Meta{
		Endpoint: refresh.GammaResource, Source: source, ImportedFrom: o.name,
		AsOf: closed, ComputedAt: o.now.UTC().Truncate(time.Second), SessionDate: r.date.String(), DelayMinutes: delayMinutes,
		Freshness: snapshots.Freshness{State: stateClosed, Reason: &reason, Since: closed},
		Receipt:   snapshots.Receipt{Method: method, InputSHA256: []string{o.sha256}},
		Quality:   known, Notice: notice,
	})
	if err != nil {
		return snapshots.File{}, err
	}
	columns := map[string]any{"date": r.date, "session_date": r.date, "source": source}
	for name, value := range r.values {
		columns[name] = value
	}
	summary, err := refresh.SeriesRow(columns)
	return snapshots.File{Edition: &snapshots.Edition{Default: s}, Summary: summary}, err
}

// gammaData returns the fields of [compute.Gamma], in their order, null where the row does not know them.
func gammaData(r row) ([]byte, error) {
	var out bytes.Buffer
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
		between := ","
		if i == 0 {
			between = "{"
		}
		fmt.Fprintf(&out, "%s%q:%s", between, name, encoded)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
