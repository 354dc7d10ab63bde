package snapshots

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A second process on a directory is told at once which directory is taken, and by which process.
func TestOpenTakesTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	first := open(t, dir)
	_, err := Open(options(dir))
	for _, want := range []string{"another process", filepath.Join(dir, "simulated"), fmt.Sprint(os.Getpid())} {
		failIf(t, !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), want), "a second store of the directory: %v, want %s", err, want)
	}
	other := options(dir)
	other.Source = "cboe"
	openWith(t, other) // another source of the same directory is free
	must(t, first.Close())
	open(t, dir)
}

const (
	market      = "market of seed 1"
	otherMarket = "market of seed 2"
)

func TestBind(t *testing.T) {
	s := open(t, t.TempDir())
	for range 2 {
		for range 2 {
			must(t, s.Bind(market))
		}
		err := fmt.Sprint(s.Bind(otherMarket))
		failIf(t, !strings.Contains(err, market) || !strings.Contains(err, otherMarket), "another: %s", err)
		s = reopen(t, s)
	}
	equal(t, text(os.ReadFile(filepath.Join(s.dir, identityName))), market+"\n", "text")
	equal(t, verified(t, s.opts.Dir), 0, "dated files beside the identity")
}

// A disk that refuses writes prevents the start on a new directory, but not on one whose identity is stored.
func TestBindOnARefusingDisk(t *testing.T) {
	for _, known := range []bool{true, false} {
		s, f := openFaulty(t, diskFault{err: syscall.EIO, hits: on(stepSync, false)}, options(t.TempDir()))
		if known {
			must(t, s.Bind(market))
		}
		f.on.Store(true)
		equal(t, s.Bind(market) == nil, known, "bound")
	}
}
