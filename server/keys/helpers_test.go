package keys

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"strikecache/server/watch"

	"strikecache/bench/testkit"
)

var must, equal = testkit.Must, testkit.Equal

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is when the clock of a synctest bubble begins.
var now = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func keyPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "keys.json")
}

func create(t testing.TB, path string, spec Key) (string, Key) {
	t.Helper()
	secret, key, err := Create(path, spec, now)
	must(t, err)
	return secret, key
}

func write(t testing.TB, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

func content(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func open(t testing.TB, path string, counts *Counts, log *testkit.Text) *Table {
	t.Helper()
	table, err := Open(path, counts, log.Logger(slog.LevelInfo))
	must(t, err)
	t.Cleanup(table.Close)
	return table
}

// look waits until a table that was opened in this synctest bubble has read its file again, and returns its Err.
func look(table *Table) error {
	time.Sleep(watch.Interval)
	synctest.Wait()
	return table.Err()
}

// wantError fails unless the error contains every text.
func wantError(t testing.TB, what string, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %s", what, err, text)
		}
	}
}
