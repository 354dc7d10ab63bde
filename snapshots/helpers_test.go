package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"
	"go.uber.org/goleak"

	"strikecache/bench/testkit"
)

var must, program, equal = testkit.Must, testkit.Program, testkit.Equal

// raceEnabled says whether the race detector is on. It slows every memory access down and adds allocations.
var raceEnabled = func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}()

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	monday    = "2026-11-16"
	tuesday   = "2026-11-17"
	wednesday = "2026-11-18"
	thursday  = "2026-11-19"
	friday    = "2026-11-20"
)

// keyOf is the place of a product's file of friday.
func keyOf(product string) key { return key{friday, FileName(product)} }

// save stores an answer under a date alone, as a back-fill does. It gives the answer an as_of of the date.
func save(s *Store, product, date string, f File) error {
	f, err := datedOn(date, f)
	if err != nil {
		return err
	}
	f.Product, f.Dated = product, true
	return s.Save([]File{f}, nil)
}

// datedOn returns the file with an as_of of a date. A file of another date loses its variants.
func datedOn(date string, f File) (File, error) {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil || f.Edition.Default == nil || f.Date() == date {
		return f, err
	}
	m := f.Edition.Default.Meta
	m.AsOf = day.Add(20 * time.Hour)
	again, err := f.Edition.Default.Reseal(m)
	f.Edition = &Edition{Default: again}
	return f, err
}

func encoded(t testing.TB, product string, f File) []byte {
	t.Helper()
	f.Product = product
	_, b, err := encodeFile(&f)
	must(t, err)
	return b
}

// variants returns an edition of three variants, whose default is neither the first nor the last by name.
func variants(t testing.TB) *Edition {
	t.Helper()
	e := &Edition{Variants: map[string]*Snapshot{}}
	for _, name := range []string{"2026-11-27", "2026-12-18", "2027-01-15"} {
		e.Variants[name] = sealed(t, `{"expiration":"`+name+`"}`)
	}
	e.Default = e.Variants["2026-12-18"]
	return e
}

// asOf is the instant that the tests' snapshots describe.
var asOf = time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)

func meta() Meta {
	captured := asOf.Add(15 * time.Minute)
	return Meta{
		Endpoint: "gex/spx", Source: "simulated", AsOf: asOf, CapturedAt: &captured, ComputedAt: captured.Add(time.Second),
		SessionDate: "2026-11-20", DelayMinutes: new(15), RefreshSeconds: 25, Freshness: Freshness{State: "fresh", Since: asOf},
		Receipt: Receipt{Method: "gex/1", Parameters: json.RawMessage(`{"rate":0.04}`), Inputs: []Input{{"options/_SPX.json", "00ff"}, {"state/x", "11"}}},
		Quality: json.RawMessage(`{"used":1}`), Notice: "delayed",
	}
}

func sealed(t testing.TB, data string) *Snapshot {
	t.Helper()
	return sealedWith(t, data, meta())
}

func sealedWith(t testing.TB, data string, m Meta) *Snapshot {
	t.Helper()
	s, err := Seal([]byte(data), m, Brotli, Zstd)
	must(t, err)
	return s
}

// single is the stored form of a resource without parameters.
func single(t testing.TB, data string) File {
	t.Helper()
	return File{Edition: &Edition{Default: sealed(t, data)}}
}

// document returns JSON of about size bytes that compresses like a table of numbers.
func document(size int) []byte {
	b := []byte(`{"rows":[`)
	for i := 0; len(b) < size; i++ {
		b = fmt.Appendf(b, `{"strike":%d,"net_gex_dollars":%d},`, 3000+5*i, (i*2654435761)%1_000_003)
	}
	return append(b[:len(b)-1], `]}`...)
}

// sameSnapshot compares all that a client or a restart can see.
func sameSnapshot(t testing.TB, name string, got, want *Snapshot) {
	t.Helper()
	for c := range Codings {
		failIf(t, !bytes.Equal(got.Body(c), want.Body(c)), "%s: %v body\n got %.200q\nwant %.200q", name, c, got.Body(c), want.Body(c))
		if !bytes.Equal(got.Prefix(c), want.Prefix(c)) || !bytes.Equal(got.AppendTail(nil, c, null), want.AppendTail(nil, c, null)) {
			t.Errorf("%s: the tail in %v differs", name, c)
		}
		equal(t, got.ETag(c), want.ETag(c), "%s: %v tag", name, c)
	}
	equal(t, string(got.Data()), string(want.Data()), "%s: data", name)
	equal(t, got.Meta, want.Meta, "%s: meta", name)
}

func sameFile(t testing.TB, got, want File) {
	t.Helper()
	if !bytes.Equal(got.Summary, want.Summary) || !reflect.DeepEqual(got.Inputs, want.Inputs) || got.Build != want.Build {
		t.Errorf("summary %q, inputs %v, build %q, want %q, %v, %q", got.Summary, got.Inputs, got.Build, want.Summary, want.Inputs, want.Build)
	}
	sameSnapshot(t, "default", got.Edition.Default, want.Edition.Default)
	sameForms(t, "default", got.Edition.Default, want.Edition.Default)
	names, wanted := got.Edition.Names(), want.Edition.Names()
	if !reflect.DeepEqual(names, wanted) {
		t.Fatalf("variants %q, want %q", names, wanted)
	}
	for _, name := range names {
		sameSnapshot(t, name, got.Edition.Variants[name], want.Edition.Variants[name])
		sameForms(t, name, got.Edition.Variants[name], want.Edition.Variants[name])
	}
}

const (
	gamma   = "gex/spx"
	pain    = "spx-max-pain"
	vix     = "vix-term-structure"
	forever = "9999-12-31" // after every date
)

func options(dir string) Options {
	return Options{
		Dir: dir, Source: "simulated", DatedProducts: []string{gamma}, HistoryBytes: 1 << 20, Log: slog.New(slog.DiscardHandler),
	}
}

// open opens a store of a data directory until the test ends.
func open(t testing.TB, dir string) *Store {
	t.Helper()
	return openWith(t, options(dir))
}

func openWith(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// reopen is a restart.
func reopen(t testing.TB, s *Store) *Store {
	t.Helper()
	must(t, s.Close())
	return openWith(t, s.opts)
}

// put writes a file below a store's directory and returns its path.
func put(t testing.TB, s *Store, name, content string) string {
	t.Helper()
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

// damage alters the last byte of a stored file.
func damage(t testing.TB, s *Store, name string) {
	t.Helper()
	b := bytesOf(t, s, name)
	b[len(b)-1] ^= 1
	put(t, s, name, string(b))
}

// verified fails the test unless Verify finds just these bad files, and returns how many files it finds.
func verified(t testing.TB, dir string, bad ...string) (files int) {
	t.Helper()
	files, found, err := Verify(dir)
	must(t, err)
	var paths []string
	for _, f := range found {
		paths = append(paths, f.Path)
		failIf(t, !refused(f.Err), "%s: %v", f.Path, f.Err)
	}
	equal(t, paths, bad, "bad files")
	return files
}

func exists(t testing.TB, s *Store, name string) bool {
	t.Helper()
	_, err := os.Lstat(filepath.Join(s.dir, filepath.FromSlash(name)))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return err == nil
}

// names lists a directory, hidden files included.
func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// week returns a store with an answer for each date, after a restart: no answer is in memory.
func week(t testing.TB, o Options, dates ...string) *Store {
	t.Helper()
	s := openWith(t, o)
	for _, date := range dates {
		must(t, save(s, gamma, date, single(t, `"`+date+`"`)))
	}
	return reopen(t, s)
}

// historical returns the data of a date's answer.
func historical(t testing.TB, s *Store, date string) string {
	t.Helper()
	return historicalOf(t, s, gamma, date)
}

func historicalOf(t testing.TB, s *Store, product, date string) string {
	t.Helper()
	snapshot, err := s.Historical(product, date)
	switch {
	case errors.Is(err, ErrNoSnapshot) && snapshot == nil:
		return "none"
	case errors.Is(err, ErrBusy) && snapshot == nil:
		return "busy"
	case err != nil || snapshot == nil:
		t.Fatalf("historical %q: %v, %v", date, snapshot, err)
	}
	return strings.Trim(string(snapshot.Default.Data()), `"`)
}

// passedOver is what a store logs about a file that it cannot use.
const passedOver = "stored file passed over"

// noRetries stops the retries of a store, for a test that counts writes, to which they would add, or that moves the clock by hours.
func noRetries(s *Store) {
	s.stop()
	s.working.Wait()
}

// bytesOf returns the bytes of a stored file.
func bytesOf(t testing.TB, s *Store, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(path)))
	must(t, err)
	return b
}

// failIf fails the test if a condition holds that must not.
func failIf(t testing.TB, wrong bool, what string, args ...any) {
	t.Helper()
	if wrong {
		t.Errorf(what, args...)
	}
}

// fails fails the test unless an error is the wanted one.
func fails(t testing.TB, err, want error, what string, args ...any) {
	t.Helper()
	failIf(t, !errors.Is(err, want), "%s: %v, want %v", fmt.Sprintf(what, args...), err, want)
}

// second returns the error of a call.
func second[T any](_ T, err error) error { return err }

// text returns bytes as a string, or the error.
func text(b []byte, err error) string {
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func sameBytes(t testing.TB, got, want []byte, what string, args ...any) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes, want %d", fmt.Sprintf(what, args...), len(got), len(want))
	}
}
