package snapshots

import (
	"errors"
	"fmt"
	"log/slog"
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

// removeDir removes a store's data directory and calls then, before the store can create the directory again.
func removeDir(t *testing.T, s *Store, then func()) {
	t.Helper()
	s.disk.Lock()
	defer s.disk.Unlock()
	if err := os.RemoveAll(s.opts.Dir); err != nil {
		t.Fatal(err)
	}
	then()
}

// Somebody removes the directory of a running server. The server creates it again at the next write, takes it, says what it
// holds, and the write is there.
func TestRemovedDirectoryIsCreatedAgain(t *testing.T) {
	o, log := options(t.TempDir()), &testLog{}
	o.Log = log.logger(slog.LevelInfo)
	s := openWith(t, o)
	if err := s.Bind("market of seed 1"); err != nil {
		t.Fatal(err)
	}
	save(t, s, gamma, monday, single(t, `1`))
	removeDir(t, s, func() {})
	save(t, s, gamma, friday, single(t, `2`))
	if _, err := Open(o); !errors.Is(err, ErrLocked) {
		t.Errorf("a second store of the new directory: %v", err)
	}
	if n := log.count("data directory was removed"); n != 1 {
		t.Errorf("logged %d times: %s", n, log)
	}
	if _, bad, err := Verify(o.Dir); len(bad) != 0 || err != nil {
		t.Errorf("bad files %v, %v", bad, err)
	}
	s = reopen(t, s)
	if got := historical(t, s, ""); got != "2" {
		t.Errorf("after a restart: %s", got)
	}
	if err := s.Bind("market of seed 2"); err == nil {
		t.Error("the new directory is bound to nothing")
	}
}

// Where only the lock file protects a directory, another process may take a removed one first. Then the running server
// writes nothing there, keeps its files pending, and saves them if the directory becomes free again.
func TestRemovedDirectoryTakenByAnother(t *testing.T) {
	s := open(t, t.TempDir())
	if s.lock.place != nil {
		s.lock.place.Close() // as where the system has no such locks
		s.lock.place = nil
	}
	var other *Store
	removeDir(t, s, func() { other = open(t, s.opts.Dir) })
	if err := s.Save(gamma, friday, single(t, `1`)); !errors.Is(err, ErrPending) || !errors.Is(err, ErrLocked) {
		t.Errorf("saved with %v", err)
	}
	if exists(t, s, friday) {
		t.Error("two processes write one directory")
	}
	if got := historical(t, s, friday); got != "1" {
		t.Errorf("served %s", got)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	removeDir(t, s, func() {})
	save(t, s, vix, friday, single(t, `2`))
	if err := s.DiskError(); err != nil || !exists(t, s, friday+"/gex-spx") {
		t.Errorf("the pending file is not saved: %v", err)
	}
}
