package keys

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strikecache/bench/need"
)

// now is a whole second, in the middle of a UTC day.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func keyPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "keys.json")
}

func create(t testing.TB, path string, spec Spec) (string, Key) {
	t.Helper()
	secret, key, err := Create(path, spec, now)
	if err != nil {
		t.Fatal(err)
	}
	return secret, key
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), privateMode); err != nil {
		t.Fatal(err)
	}
}

func content(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// open opens a table that the test itself lets look at the file.
func open(t testing.TB, path string, ledger *Ledger, log *need.Log) *Table {
	t.Helper()
	table, err := Open(path, ledger, log.Logger(slog.LevelInfo))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	return table
}

// wantError fails unless the error has every text.
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
