package snapshots

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// inChild runs a test again in a process of its own and returns false, and returns true in that process. The limit of a file's
// size is the whole process's: in this one, go test's own log file would meet it.
func inChild(t *testing.T) bool {
	t.Helper()
	const variable = "SNAPSHOTS_TEST_CHILD"
	if os.Getenv(variable) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte("no tests to run")) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

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

func TestFullDisk(t *testing.T) {
	if !inChild(t) {
		return
	}
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
	if old, err := decodeFile(onDisk, keyOf(gamma)); err != nil || string(old.Edition.Default.Data()) != `"old"` {
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

// nobody is a user whom the mode of a directory binds.
const nobody = 65534

// unprivileged calls f as a user whom modes bind: as nobody where the test runs as root, who may write everywhere. It
// must not fail the test for good, for it may run on a goroutine of its own.
func unprivileged(t testing.TB, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0); errno != 0 {
			t.Error(errno)
			return
		}
		f()
	}()
	<-done
}

// A directory that cannot be written is an error when the store opens, not hours later.
func TestFaultReadOnlyDirectory(t *testing.T) {
	refused := 0
	for name, c := range map[string]struct {
		lock func(dir string) string // makes a directory read-only and returns it
		want string
	}{
		"the source's, with data": {func(dir string) string { return filepath.Join(dir, "simulated") }, "open lock file"},
		"the data directory":      {func(dir string) string { return dir }, "mkdir"},
	} {
		dir := t.TempDir()
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // nobody may look at it
			t.Fatal(err)
		}
		if name == "the source's, with data" {
			s := open(t, dir)
			save(t, s, gamma, friday, single(t, `1`))
			s.Close()
		}
		locked := c.lock(dir)
		if err := os.Chmod(locked, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(locked, 0o755) })
		unprivileged(t, func() {
			if err := os.WriteFile(filepath.Join(locked, "probe"), nil, 0o644); !os.IsPermission(err) {
				t.Errorf("%s: it can be written: %v", name, err)
				return
			}
			refused++
			s, err := Open(options(dir))
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "permission denied") || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s: opened with %v", name, err)
			}
		})
	}
	if refused != 2 {
		t.Errorf("%d directories were read-only, want 2", refused)
	}
}

// A directory that becomes read-only costs durability, not the answer.
func TestFailingDiskInReadOnlyDirectory(t *testing.T) {
	s := open(t, t.TempDir())
	noRetries(s) // as root, who may write everywhere
	save(t, s, gamma, friday, single(t, `"old"`))
	next := single(t, `"new"`)
	dir := filepath.Join(s.dir, friday)
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o755) })
	unprivileged(t, func() {
		if err := s.Save(gamma, friday, next); !errors.Is(err, os.ErrPermission) || s.DiskError() == nil {
			t.Errorf("saved with %v", err)
		}
	})
	if got := historical(t, s, friday); got != "new" {
		t.Errorf("answer %s", got)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"gex-spx"}) {
		t.Errorf("directory holds %q", got)
	}
	if got := after(t, s, func(s *Store) string { return historical(t, s, friday) }); got != "old" {
		t.Errorf("answer %s after a crash", got)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if s = reopen(t, s); historical(t, s, friday) != "new" {
		t.Errorf("answer %s after the directory was mended", historical(t, s, friday))
	}
}

// Root may change a private file of another user: that user can still read the new one.
func TestWritePrivateFileKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, who may give files away")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "keys.json")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if err := WritePrivateFile(dir, "keys.json", []byte("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != nobody || stat.Gid != nobody {
		t.Errorf("the new file belongs to %d:%d", stat.Uid, stat.Gid)
	}
}
