package snapshots

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// asOf is the instant that the tests' snapshots describe.
var asOf = time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)

func meta() Meta {
	captured := asOf.Add(15 * time.Minute)
	return Meta{
		Endpoint: "gex/spx", Source: "simulated", AsOf: asOf, CapturedAt: &captured, ComputedAt: captured.Add(time.Second),
		SessionDate: "2026-11-20", DelayMinutes: 15, RefreshSeconds: 25, Freshness: Freshness{State: "fresh", Since: asOf},
		Receipt: Receipt{Method: "gex/1", InputSHA256: []string{"00ff"}}, Quality: json.RawMessage(`{"used":1}`), Notice: "delayed",
	}
}

func sealed(t testing.TB, data string) *Snapshot {
	t.Helper()
	return sealedWith(t, data, meta())
}

func sealedWith(t testing.TB, data string, m Meta) *Snapshot {
	t.Helper()
	s, err := Seal([]byte(data), m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sealedAt seals an answer that describes another instant.
func sealedAt(t testing.TB, data string, at time.Time) *Snapshot {
	t.Helper()
	m := meta()
	captured := at.Add(15 * time.Minute)
	m.AsOf, m.CapturedAt = at, &captured
	return sealedWith(t, data, m)
}

// single is the stored form of a resource without parameters.
func single(t testing.TB, data string) File {
	t.Helper()
	return File{Edition: &Edition{Default: sealed(t, data)}}
}

// document is JSON of about so many bytes that compresses like a table of numbers.
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
		if !bytes.Equal(got.Body(c), want.Body(c)) {
			t.Errorf("%s: %v body\n got %.200q\nwant %.200q", name, c, got.Body(c), want.Body(c))
		}
		if !bytes.Equal(got.Prefix(c), want.Prefix(c)) || !bytes.Equal(got.AppendTail(nil, c, null), want.AppendTail(nil, c, null)) {
			t.Errorf("%s: %v is continued in another way", name, c)
		}
		if got.ETag(c) != want.ETag(c) {
			t.Errorf("%s: %v tag %s, want %s", name, c, got.ETag(c), want.ETag(c))
		}
	}
	if !bytes.Equal(got.Data(), want.Data()) {
		t.Errorf("%s: data %.200q, want %.200q", name, got.Data(), want.Data())
	}
	if !reflect.DeepEqual(got.Meta, want.Meta) {
		t.Errorf("%s: meta\n got %+v\nwant %+v", name, got.Meta, want.Meta)
	}
}

func sameFile(t testing.TB, got, want File) {
	t.Helper()
	if got.Content != want.Content || !bytes.Equal(got.Summary, want.Summary) {
		t.Errorf("content %q, summary %q, want %q, %q", got.Content, got.Summary, want.Content, want.Summary)
	}
	sameSnapshot(t, "default", got.Edition.Default, want.Edition.Default)
	names, wanted := got.Edition.Names(), want.Edition.Names()
	if !reflect.DeepEqual(names, wanted) {
		t.Fatalf("variants %q, want %q", names, wanted)
	}
	for _, name := range names {
		sameSnapshot(t, name, got.Edition.Variants[name], want.Edition.Variants[name])
	}
}

const (
	gamma = "gex/spx"
	pain  = "spx-max-pain"
	vix   = "vix-term-structure"
	// forever is after every date.
	forever = "9999-12-31"
)

func options(dir string) Options {
	return Options{
		Dir: dir, Source: "simulated", HistoricalProduct: gamma, HistoryBytes: 1 << 20, Log: slog.New(slog.DiscardHandler),
		Feeds: map[string][]string{"options": {gamma, pain}, "vix": {vix}},
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// reopen is a restart.
func reopen(t testing.TB, s *Store) *Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return openWith(t, s.opts)
}

func save(t testing.TB, s *Store, product, date string, f File) {
	t.Helper()
	if err := s.Save(product, date, f); err != nil {
		t.Fatal(err)
	}
}

// put writes a file below a store's directory and returns its path.
func put(t testing.TB, s *Store, name, content string) string {
	t.Helper()
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// damage alters the last byte of a stored file.
func damage(t testing.TB, s *Store, name string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	put(t, s, name, string(b))
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
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// await lets other goroutines run until a condition holds.
func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting until %s", what)
		}
	}
}

// writeFile writes a file as a store does.
func writeFile(dir, name string, b []byte) error {
	w := &writer{disk: system, log: slog.New(slog.DiscardHandler)}
	return w.write(dir, name, b)
}

// patience is how long a test waits for another goroutine before it fails.
const patience = 2 * time.Minute

// testLog is a log that is read while others write it. The zero value is empty and ready.
type testLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *testLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *testLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *testLog) count(text string) int { return strings.Count(l.String(), text) }

func (l *testLog) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}

// program returns the path of a program that is not ours. A machine without it skips the test, unless STRIKECACHE_REQUIRE,
// a comma-separated list of what must be there, or all, names it.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	required := strings.Split(os.Getenv("STRIKECACHE_REQUIRE"), ",")
	if slices.Contains(required, name) || slices.Contains(required, "all") {
		t.Fatalf("program %s is not installed, and STRIKECACHE_REQUIRE asks for it", name)
	}
	t.Skipf("needs the program %s", name)
	return ""
}
