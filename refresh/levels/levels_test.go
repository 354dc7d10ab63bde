package levels

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/snapshots"
)

const header = "date,symbol,spot,net_gex_dollars,zero_gamma_flip,call_wall,put_wall,vol_trigger,abs_gamma_strike,gamma_regime,oi_settle_date,contracts_analyzed\r\n"

// sample is a file as export writes it, with every null that there can be.
const sample = header +
	"2024-11-27,SPX,5998.74,-6454130017,6001.5,6050,5950,5995,6000,negative,2024-11-26,22513\r\n" +
	"2024-11-29,SPX,6032.38,,,,,,,,,0\r\n"

const sampleJSON = `[
{"date":"2024-11-27","symbol":"SPX","spot":5998.74,"net_gex_dollars":-6454130017,"zero_gamma_flip":6001.5,"call_wall":6050,"put_wall":5950,"vol_trigger":5995,"abs_gamma_strike":6000,"gamma_regime":"negative","oi_settle_date":"2024-11-26","contracts_analyzed":22513},
{"date":"2024-11-29","symbol":"SPX","spot":6032.38,"net_gex_dollars":null,"zero_gamma_flip":null,"call_wall":null,"put_wall":null,"vol_trigger":null,"abs_gamma_strike":null,"gamma_regime":null,"oi_settle_date":null,"contracts_analyzed":0}
]
`

var (
	calendar = compute.NewCalendar(nil, nil)
	now      = time.Date(2024, 12, 2, 12, 0, 0, 0, time.UTC)
)

// importText imports a text into a directory and returns what is printed.
func importText(t *testing.T, dir, text string, change ...func(*ImportCommand)) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "levels.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := ImportCommand{File: path, DataDir: dir, Source: "cboe"}
	for _, f := range change {
		f(&c)
	}
	var out, errs bytes.Buffer
	err := c.run(context.Background(), Streams{Out: &out, Err: &errs}, now)
	return out.String() + errs.String(), err
}

func mustImport(t *testing.T, dir, text string) string {
	t.Helper()
	out, err := importText(t, dir, text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// exported returns what export writes to standard output and to standard error, and its error.
func exported(dir string, change ...func(*ExportCommand)) (out, said string, err error) {
	c := ExportCommand{Format: "csv", DataDir: dir, Source: "cboe"}
	for _, f := range change {
		f(&c)
	}
	var o, e bytes.Buffer
	if err = c.Validate(); err == nil {
		err = c.Run(Streams{Out: &o, Err: &e})
	}
	return o.String(), e.String(), err
}

func asJSON(c *ExportCommand) { c.Format = "json" }

// A file that is exported, imported and exported again is the same byte for byte, in both formats. Numbers of any spelling
// are exported in the decimals that answers have.
func TestRoundTrip(t *testing.T) {
	spelling := strings.NewReplacer("5998.74", "5998.7401", "-6454130017", "-6454130016.541162", "6001.5,", "6001.495,", "6050", "6.05e3", "22513", "22513.0")
	for name, text := range map[string]string{
		"csv": sample, "json": sampleJSON, "with a mark": "\ufeff" + sample, "with bare line ends": strings.ReplaceAll(sample, "\r", ""),
		"other spellings": spelling.Replace(sample), "other spellings, json": spelling.Replace(sampleJSON),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if out := mustImport(t, dir, text); !strings.HasPrefix(out, "imported 2 dates of levels.csv (sha256 ") || strings.Contains(out, "skipped") {
				t.Errorf("said %q", out)
			}
			out, said, err := exported(dir)
			if out != sample || said != "exported 2 sessions, 2 imported\n" || err != nil {
				t.Errorf("exported %q, %q, %v", out, said, err)
			}
			if out, _, err := exported(dir, asJSON); out != sampleJSON || err != nil {
				t.Errorf("exported %s, %v", out, err)
			}
			if files, bad, err := snapshots.Verify(dir); files != 2 || len(bad) != 0 || err != nil {
				t.Errorf("verify: %d files, %v, %v", files, bad, err)
			}
		})
	}
}

// An imported answer has the fields of a computed one. Only those of the row have a value.
func TestWhatAnImportedSnapshotSays(t *testing.T) {
	dir := t.TempDir()
	out := mustImport(t, dir, sample)
	computed, err := json.Marshal(compute.Gamma{})
	if err != nil {
		t.Fatal(err)
	}
	for date, want := range map[string]struct {
		asOf, row string
		nulls     int // of the row
	}{
		"2024-11-27": {"2024-11-27T21:00:00Z", `["2024-11-27","2024-11-27",5998.74,-6454130017,6001.5,6050,5950,5995,6000,"negative","2024-11-26",22513,"imported"]`, 0},
		"2024-11-29": {"2024-11-29T18:00:00Z", `["2024-11-29","2024-11-29",6032.38,null,null,null,null,null,null,null,null,0,"imported"]`, 8}, // an early close
	} {
		f, err := snapshots.ReadFile(dir, "cboe", refresh.GammaResource, date)
		if err != nil {
			t.Fatal(err)
		}
		m := f.Edition.Default.Meta
		if m.Endpoint != "gex/spx" || m.Source != "imported" || m.ImportedFrom != "levels.csv" || m.CapturedAt != nil || m.SessionDate != date ||
			m.AsOf.Format(time.RFC3339) != want.asOf || !m.ComputedAt.Equal(now) || m.Receipt.Method != "import/1" ||
			len(m.Receipt.Inputs) != 1 || m.Receipt.Inputs[0].Name != m.ImportedFrom || string(m.Receipt.Parameters) != "{}" ||
			len(m.Receipt.InputSHA256) != 1 || !strings.Contains(out, m.Receipt.InputSHA256[0]) || *m.Freshness.Reason != "imported" {
			t.Errorf("%s: meta %+v", date, m)
		}
		if !strings.Contains(string(m.Quality), `"levels_only"`) || !strings.Contains(string(m.Quality), `"calendar":null`) {
			t.Errorf("%s: quality %s", date, m.Quality)
		}
		if string(f.Summary) != want.row {
			t.Errorf("%s: row %s", date, f.Summary)
		}
		fields, fieldsOfGamma := map[string]any{}, map[string]any{}
		if err := errors.Join(json.Unmarshal(f.Edition.Default.Data(), &fields), json.Unmarshal(computed, &fieldsOfGamma)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(slices.Sorted(maps.Keys(fields)), slices.Sorted(maps.Keys(fieldsOfGamma))) {
			t.Errorf("%s: fields %v, want those of %v", date, fields, fieldsOfGamma)
		}
		for name, value := range fields {
			if value != nil && name != "session_date" && !slices.Contains(columnNames, name) {
				t.Errorf("%s: %s is %v", date, name, value)
			}
			if value == nil && slices.Contains(columnNames, name) {
				want.nulls--
			}
		}
		if want.nulls != 0 {
			t.Errorf("%s: data %v", date, fields)
		}
	}
}

// good is the row from which the bad rows are made.
const good = "2024-11-27,SPX,5998.74,-6454130017,6001.5,6050,5950,5995,6000,negative,2024-11-26,22513"

// If a cell is bad, nothing is imported, and the error names its line and column.
func TestBadFiles(t *testing.T) {
	in := func(column, value string) string {
		cells := strings.Split(good, ",")
		cells[slices.Index(columnNames, column)] = value
		return header + "2024-11-26,SPX,5900,,,,,,,,,1\r\n" + strings.Join(cells, ",") + "\r\n"
	}
	object := func(old, value string) string { return strings.Replace(sampleJSON, old, value, 1) }
	for _, c := range []struct{ name, text, want string }{
		{"no file at all", "", "line 1: the header must be date,symbol"},
		{"another header", strings.Replace(sample, "spot", "close", 1), "line 1: the header must be date,symbol,spot"},
		{"one column too many", strings.Replace(sample, "date,", "date,source,", 1), "line 1: the header"},
		{"one cell too few", header + strings.TrimSuffix(good, ",22513"), "line 2: wrong number of fields"},
		{"an open quote", header + `"` + good, "line 2"},
		{"no date", in("date", ""), "line 3, column date: value missing"},
		{"no such date", in("date", "2024-11-31"), "line 3, column date: parse date"},
		{"another form of date", in("date", "11/27/2024"), "line 3, column date: parse date"},
		{"a holiday", in("date", "2024-11-28"), "line 3, column date: 2024-11-28, a Thursday, is not a session"},
		{"a weekend", in("date", "2024-11-30"), "line 3, column date: 2024-11-30, a Saturday, is not a session"},
		{"the same date twice", in("date", "2024-11-26"), "line 3, column date: 2024-11-26 is already in line 2"},
		{"a session under way", in("date", "2024-12-02"), "line 3, column date: the session of 2024-12-02 is not over"},
		{"before there were options", in("date", "0024-11-27"), "line 3, column date: 0024-11-27 is before 1983-07-01"},
		{"another symbol", in("symbol", "NDX"), `line 3, column symbol: "NDX" is not SPX`},
		{"no spot", in("spot", ""), "line 3, column spot: value missing"},
		{"spot zero", in("spot", "0"), "line 3, column spot: 0 is not from 0.01 to 1000000"},
		{"spot not a number", in("spot", "NaN"), "line 3, column spot: NaN is not a number"},
		{"spot infinite", in("spot", "+Inf"), "line 3, column spot: +Inf is not a number"},
		{"spot too large for a double", in("spot", "1e999"), "line 3, column spot: 1e999 is not a number"},
		{"spot hexadecimal", in("spot", "0x1p12"), "line 3, column spot"},
		{"spot with a thousands mark", in("spot", `"6,000"`), "line 3, column spot"},
		{"net too large", in("net_gex_dollars", "-1e16"), "line 3, column net_gex_dollars: -1e16 is not from -1e+15 to"},
		{"a wall below zero", in("put_wall", "-5"), "line 3, column put_wall: -5 is not from"},
		{"another regime", in("gamma_regime", "Positive"), `line 3, column gamma_regime: "Positive" is not positive or negative or neutral`},
		{"positions of a holiday", in("oi_settle_date", "2024-11-24"), "line 3, column oi_settle_date: 2024-11-24, a Sunday"},
		{"positions of the future", in("oi_settle_date", "2024-11-29"), "line 3, column oi_settle_date: 2024-11-29 is after the row's date"},
		{"no contracts", in("contracts_analyzed", ""), "line 3, column contracts_analyzed: value missing"},
		{"fewer contracts than none", in("contracts_analyzed", "-1"), "line 3, column contracts_analyzed"},

		{"an object", `{"date":"2024-11-27"}`, "line 1: the file is not an array"},
		{"half an array", sampleJSON[:len(sampleJSON)-3], "line 3"},
		{"two arrays", sampleJSON + sampleJSON, "line 5: invalid character"},
		{"an array in an array", "[\n[1]]", "line 2: the element is not an object"},
		{"an unknown key", object(`"spot"`, `"close":1,"spot"`), `line 2: "close" is not a column`},
		{"a missing key", object(`"spot":6032.38,`, ``), "line 3: the object has no spot"},
		{"a number as text", object(`6032.38`, `"6032.38"`), `line 3, column spot: "6032.38" is not a number`},
		{"text as a number", object(`"2024-11-29"`, `20241129`), "line 3, column date: 20241129 is not a string"},
		{"an empty text", object(`"negative"`, `""`), `line 2, column gamma_regime: "" is not positive`},
		{"an object as a value", object(`6032.38`, `{"x":1}`), `line 3, column spot: {"x":1} is not a number`},
		{"true as a value", object(`6032.38`, `true`), "line 3, column spot: true is not a number"},
		{"a null in a column without nulls", object(`"contracts_analyzed":0`, `"contracts_analyzed":null`), "line 3, column contracts_analyzed: value missing"},
		{"not JSON", object(`6032.38`, `6032.38.1`), "line 3: "},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		out, err := importText(t, dir, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "nothing was imported from levels.csv") || out != "" {
			t.Errorf("%s: %v, %q, want %q", c.name, err, out, c.want)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: the directory was made", c.name)
		}
	}
}

// All bad cells of a file are named, up to a limit.
func TestFaultsAreListed(t *testing.T) {
	_, err := importText(t, t.TempDir(), header+good+"\n"+strings.Replace(good, "SPX,5998.74", "NDX,x", 1))
	if n := strings.Count(err.Error(), "\nline 3, column "); n != 3 { // the repeated date is a fault, too
		t.Errorf("%d faults named: %v", n, err)
	}
	_, err = importText(t, t.TempDir(), header+strings.Repeat(strings.Replace(good, "SPX", "NDX", 1)+"\n", 100))
	if n := strings.Count(err.Error(), "\nline "); n != maxFaults || !strings.Contains(err.Error(), "further errors are not listed") {
		t.Errorf("%d faults named: %v", n, err)
	}
}

func TestBounds(t *testing.T) {
	if _, err := importText(t, t.TempDir(), header+strings.Repeat("\n", maxBytes)); err == nil || !strings.Contains(err.Error(), "has over 16777216 bytes") {
		t.Errorf("a large file: %v", err)
	}
	var text strings.Builder
	text.WriteString(header)
	d := firstSession
	for range maxRows + 1 {
		text.WriteString(d.String() + ",SPX,100,,,,,,,,,1\n")
		d = calendar.Next(d)
	}
	far := calendar.Close(d).Add(time.Hour)
	if _, err := decode([]byte(text.String()), calendar, far); !errors.Is(err, errTooManyRows) {
		t.Errorf("a row too many: %v", err)
	}
	most := text.String()[:strings.LastIndex(strings.TrimSpace(text.String()), "\n")]
	if rows, err := decode([]byte(most), calendar, far); err != nil || len(rows) != maxRows {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// A date in the file of --closed-dates is not a session, as for the server.
func TestClosedDates(t *testing.T) {
	file := filepath.Join(t.TempDir(), "closed")
	if err := os.WriteFile(file, []byte("2024-11-27\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := importText(t, t.TempDir(), sample, func(c *ImportCommand) { c.ClosedDates = file })
	if err == nil || !strings.Contains(err.Error(), "2024-11-27, a Wednesday, is not a session") {
		t.Errorf("imported on a closed date: %v", err)
	}
}

// The file of a stored date does not change by one byte, and import names the date.
func TestAnImportNeverReplaces(t *testing.T) {
	dir := t.TempDir()
	mustImport(t, dir, sample)
	path := filepath.Join(dir, "cboe", "2024-11-27", "gex-spx")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(sample, "5998.74", "1.5") + "2024-11-26,SPX,5900,,,,,,,,,1\r\n"
	for _, c := range []struct {
		dry    bool
		did    string
		stored int
	}{{true, "would import", 2}, {false, "imported", 3}} {
		out, err := importText(t, dir, text, func(i *ImportCommand) { i.DryRun = c.dry })
		if err != nil || !strings.HasPrefix(out, c.did+" 1 dates of ") || !strings.Contains(out, "skipped 2 dates that are stored: 2024-11-27 2024-11-29\n") {
			t.Errorf("%q, %v", out, err)
		}
		if dates, err := snapshots.ListDates(dir, "cboe", refresh.GammaResource); len(dates) != c.stored || err != nil {
			t.Errorf("after %q: %q, %v", out, dates, err)
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the stored file changed: %v", err)
	}
	dir = filepath.Join(t.TempDir(), "none")
	if out, err := importText(t, dir, sample, func(c *ImportCommand) { c.DryRun = true }); err != nil || !strings.HasPrefix(out, "would import 2 dates") {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a dry run made the directory")
	}
}

// A session has one row, that of the latest as_of; --from and --to are sessions, both included.
func TestOneRowPerSession(t *testing.T) {
	dir := t.TempDir()
	store, err := snapshots.Open(snapshots.Options{
		Dir: dir, Source: "cboe", DatedProducts: refresh.DatedResources(), HistoryBytes: 1 << 20,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, own := range []struct {
		asOf          time.Time
		session, spot string
	}{
		{time.Date(2024, 11, 26, 20, 59, 0, 0, time.UTC), "2024-11-26", "1"},
		{time.Date(2024, 11, 27, 0, 5, 0, 0, time.UTC), "2024-11-26", "2.50"}, // the evening before, in New York
		{time.Date(2024, 11, 28, 17, 0, 0, 0, time.UTC), "2024-11-27", "3"},   // a holiday
		{time.Date(2024, 11, 29, 16, 0, 0, 0, time.UTC), "2024-11-29", "4"},
	} {
		data := `{"symbol":"SPX","spot":` + own.spot + `,"net_gex_dollars":12,"flips":[{"price":1}],"contracts_analyzed":3}`
		s, err := snapshots.Seal([]byte(data), snapshots.Meta{
			Endpoint: refresh.GammaResource, Source: "cboe", AsOf: own.asOf, SessionDate: own.session, Quality: json.RawMessage("{}"),
			Receipt: snapshots.Receipt{InputSHA256: []string{}},
		})
		if err != nil {
			t.Fatal(err)
		}
		f := snapshots.File{Edition: &snapshots.Edition{Default: s}}
		if err := store.Save(refresh.GammaResource, own.asOf.Format(time.DateOnly), f); err != nil {
			t.Fatal(err)
		}
	}
	const first, second, third = "2024-11-26,SPX,2.50,12,,,,,,,,3\r\n", "2024-11-27,SPX,3,12,,,,,,,,3\r\n", "2024-11-29,SPX,4,12,,,,,,,,3\r\n"
	for _, c := range []struct{ from, to, want string }{
		{"", "", first + second + third},
		{"2024-11-27", "", second + third},
		{"", "2024-11-27", first + second},
		{"2024-11-27", "2024-11-27", second},
		{"2024-11-28", "2024-11-28", ""},
	} {
		out, said, err := exported(dir, func(e *ExportCommand) { e.From, e.To = c.from, c.to })
		if out != header+c.want || err != nil {
			t.Errorf("from %q to %q: %q, %q, %v, want %q", c.from, c.to, out, said, err, c.want)
		}
	}
	if out, said, err := exported(dir, asJSON, func(e *ExportCommand) { e.From = "2025-01-01" }); out != "[]\n" || said != "exported 0 sessions\n" || err != nil {
		t.Errorf("of nothing: %q, %q, %v", out, said, err)
	}
}

func TestExportFlags(t *testing.T) {
	dir := t.TempDir()
	mustImport(t, dir, sample)
	for _, c := range []struct{ from, to, output, want string }{
		{"2024-11-31", "", "", "--from"},
		{"", "tomorrow", "", "--to"},
		{"2024-11-29", "2024-11-27", "", "--from 2024-11-29 is after --to 2024-11-27"},
		{"", "", dir, "is not a regular file"},
		{"", "", os.DevNull, "is not a regular file"},
		{"", "", filepath.Join(dir, "none", "x.csv"), "none"},
	} {
		out, _, err := exported(dir, func(e *ExportCommand) { e.From, e.To, e.Output = c.from, c.to, c.output })
		if err == nil || !strings.Contains(err.Error(), c.want) || out != "" {
			t.Errorf("%+v: %q, %v", c, out, err)
		}
	}
	if _, _, err := exported(dir, func(e *ExportCommand) { e.Source = "replay" }); err == nil || !strings.Contains(err.Error(), "replay") {
		t.Errorf("of a source that stored nothing: %v", err)
	}
	path := filepath.Join(t.TempDir(), "levels.csv")
	for range 2 { // makes the file, then replaces it
		out, said, err := exported(dir, func(e *ExportCommand) { e.Output = path })
		if b, readErr := os.ReadFile(path); string(b) != sample || out != "" || !strings.HasPrefix(said, "exported 2 sessions") || err != nil || readErr != nil {
			t.Errorf("%q, %q, %q, %v, %v", b, out, said, err, readErr)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("beside the file: %v, %v", entries, err)
	}
}

// Export writes the rows of the files that can be read. Then it names the others and fails.
func TestExportNamesBadFiles(t *testing.T) {
	dir := t.TempDir()
	mustImport(t, dir, sample)
	path := filepath.Join(dir, "cboe", "2024-11-27", "gex-spx")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	out, said, err := exported(dir)
	if want := header + sample[strings.Index(sample, "2024-11-29"):]; out != want || !strings.Contains(said, path) {
		t.Errorf("exported %q, %q", out, said)
	}
	if err == nil || !strings.Contains(err.Error(), "1 stored files cannot be read") {
		t.Errorf("error %v", err)
	}
}

// If a write fails in the middle of an import, the dates before it are whole. Importing the same file again stores the rest.
func TestFaultImportOnARefusingDisk(t *testing.T) {
	dir := t.TempDir()
	obstacle := filepath.Join(dir, "cboe", "2024-11-27")
	if err := os.MkdirAll(filepath.Dir(obstacle), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(obstacle, []byte("a file where a directory must be"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := header + "2024-11-26,SPX,5900,,,,,,,,,1\r\n" + strings.TrimPrefix(sample, header)
	_, err := importText(t, dir, text)
	if err == nil || !strings.Contains(err.Error(), obstacle) || !strings.Contains(err.Error(), "1 dates were imported before this error") {
		t.Fatalf("the disk did not refuse: %v", err)
	}
	if out, _, err := exported(dir); out != header+"2024-11-26,SPX,5900,,,,,,,,,1\r\n" || err != nil {
		t.Errorf("after the fault: %q, %v", out, err)
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	if out := mustImport(t, dir, text); !strings.HasPrefix(out, "imported 2 dates") || !strings.Contains(out, "skipped 1 dates that are stored: 2024-11-26\n") {
		t.Errorf("again: %q", out)
	}
	if out, _, err := exported(dir); out != text || err != nil {
		t.Errorf("at last: %q, %v", out, err)
	}
	t.Log("figure: 1 write of 3 refused in an import, 3 dates stored in the end")
}

// An interrupt ends an import between two dates. If standard output cannot be written, export fails.
func TestInterruptedCommands(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := t.TempDir()
	c := ImportCommand{File: "-", DataDir: dir, Source: "cboe"}
	err := c.run(ctx, Streams{In: strings.NewReader(sample), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, now)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "0 dates were imported") {
		t.Errorf("import: %v", err)
	}
	mustImport(t, dir, sample)
	_, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	export := ExportCommand{Format: "csv", DataDir: dir, Source: "cboe"}
	if err := export.Run(Streams{Out: w, Err: &bytes.Buffer{}}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("export: %v", err)
	}
}

// recorded returns a recorded document.
func recorded(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../../shared/recorded", name))
	if errors.Is(err, os.ErrNotExist) {
		const lack = "needs the recorded documents (../shared/recorded): real Cboe documents that are not published; their formats are described in refresh/cboe"
		if required := strings.Split(os.Getenv("STRIKECACHE_REQUIRE"), ","); slices.Contains(required, "recorded") || slices.Contains(required, "all") {
			t.Fatal(lack)
		}
		t.Skip(lack)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// In the public file of another publisher only one row is refused, because its date is a holiday. The error names it.
func TestPublicFile(t *testing.T) {
	text := recorded(t, "spx-gamma-levels.csv")
	later := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	_, err := decode([]byte(text), calendar, later)
	if err == nil || err.Error() != "line 31, column date: 2026-09-07, a Monday, is not a session of the exchange" {
		t.Errorf("error %v", err)
	}
	lines := strings.SplitAfter(text, "\n")
	rows, err := decode([]byte(strings.Join(slices.Delete(lines, 30, 31), "")), calendar, later)
	if err != nil || len(rows) != 53 || rows[0].values["oi_settle_date"] != nil || rows[52].values["call_wall"] != compute.Level(7800) {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}
