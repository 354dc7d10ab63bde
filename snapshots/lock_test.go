package snapshots

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A second process on a directory is told at once which directory is taken, and by which process.
func TestOpenTakesTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	first := open(t, dir)
	_, err := Open(options(dir))
	for _, want := range []string{"another process", filepath.Join(dir, "simulated"), fmt.Sprint(os.Getpid())} {
		if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), want) {
			t.Errorf("a second store of the directory: %v, want %s", err, want)
		}
	}
	other := options(dir)
	other.Source = "cboe"
	openWith(t, other) // another source of the same directory is free
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
}

// Somebody removes the directory of a running server. The server creates it again at the next write, and the write is there.
func TestRemovedDirectoryIsCreatedAgain(t *testing.T) {
	s := open(t, t.TempDir())
	save(t, s, gamma, monday, single(t, `1`))
	if err := os.RemoveAll(s.opts.Dir); err != nil {
		t.Fatal(err)
	}
	save(t, s, gamma, friday, single(t, `2`))
	if _, bad, err := Verify(s.opts.Dir); len(bad) != 0 || err != nil {
		t.Errorf("bad files %v, %v", bad, err)
	}
	s = reopen(t, s)
	if got := historical(t, s, ""); got != "2" {
		t.Errorf("after a restart: %s", got)
	}
}
