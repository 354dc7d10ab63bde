package snapshots

import (
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// limitFiles lets this process write no file beyond so many bytes, like a disk that fills up in the middle of a
// write, and returns how to end that.
func limitFiles(t testing.TB, bytes uint64) (lift func()) {
	t.Helper()
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	lift = func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(lift)
	return lift
}

func TestWriteFileOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := writeFile(dir, "gex", []byte("old")); err != nil {
		t.Fatal(err)
	}
	limitFiles(t, 4096)
	if err := writeFile(dir, "gex", []byte(strings.Repeat("new", 5000))); err == nil || !strings.Contains(err.Error(), "write temporary file") {
		t.Errorf("written with %v", err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "gex"))
	if err != nil || string(b) != "old" {
		t.Errorf("the old file holds %.20q, %v", b, err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"gex"}) {
		t.Errorf("directory holds %q", got)
	}
}

func TestFullDisk(t *testing.T) {
	s := open(t, t.TempDir())
	save(t, s, gamma, friday, single(t, `"old"`))
	f := single(t, string(document(100_000)))
	lift := limitFiles(t, 4096)
	if err := s.Save(gamma, friday, f); err == nil || s.DiskError() == nil {
		t.Errorf("saved with %v, disk error %v", err, s.DiskError())
	}
	got, err := s.Historical(friday)
	if err != nil {
		t.Fatal(err)
	}
	sameSnapshot(t, "from memory", got, f.Edition.Default)
	onDisk, err := readFile(filepath.Join(s.dir, friday, "gex-spx"))
	if err != nil {
		t.Fatal(err)
	}
	if old, err := decodeFile(onDisk, gamma, friday); err != nil || string(old.Edition.Default.Data()) != `"old"` {
		t.Errorf("on the disk stands %.40q, %v", onDisk, err)
	}
	lift()
	save(t, s, vix, monday, single(t, `1`))
	s = reopen(t, s)
	if got, err = s.Historical(friday); err != nil {
		t.Fatal(err)
	}
	sameSnapshot(t, "after a restart", got, f.Edition.Default)
}
