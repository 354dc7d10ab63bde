package snapshots

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// nobody is a user to whom file modes apply.
const nobody = 65534

// unprivileged calls f as a user to whom file modes apply: as nobody if the test runs as root, who may write everywhere. f
// must not call FailNow, since it may run on another goroutine.
func unprivileged(t testing.TB, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
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
	for locked, want := range map[string]string{"simulated": "open lock file", "": "mkdir"} {
		dir := t.TempDir()
		must(t, os.Chmod(filepath.Dir(dir), 0o755)) // the user nobody may enter it
		path := filepath.Join(dir, locked)
		must(t, os.MkdirAll(path, 0o755))
		must(t, os.Chmod(path, 0o555))
		t.Cleanup(func() { os.Chmod(path, 0o755) })
		unprivileged(t, func() {
			s, err := Open(options(dir))
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "permission denied") || !strings.Contains(err.Error(), dir) {
				t.Errorf("%q is read-only: opened with %v", path, err)
			}
		})
	}
}

// Root may change a private file of another user: that user can still read the new one.
func TestWritePrivateFileKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, who may give files away")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "keys.json")
	must(t, os.WriteFile(path, []byte("old"), 0o600))
	must(t, os.Chown(path, nobody, nobody))
	must(t, WritePrivateFile(dir, "keys.json", []byte("new")))
	info, err := os.Stat(path)
	must(t, err)
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != nobody || stat.Gid != nobody {
		t.Errorf("the new file belongs to %d:%d", stat.Uid, stat.Gid)
	}
}
