package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mount puts a file system in memory on a directory, which only root may.
func mount(t *testing.T, dir, options string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("needs mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
}

func remount(t *testing.T, dir string, flags uintptr, options string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, options); err != nil {
		t.Fatal(err)
	}
}

// nearlyFull mounts a small file system with a stored day that lacks its archive and its five oldest sessions. It has room
// for one or two files more.
func nearlyFull(t *testing.T) (dir string) {
	t.Helper()
	from, dir := storedDay(t), t.TempDir()
	for _, file := range storedFiles(t, from, "simulated")[:5] {
		if err := os.RemoveAll(filepath.Dir(file)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(from, "simulated", "archive")); err != nil {
		t.Fatal(err)
	}
	used := int64(0)
	err := filepath.WalkDir(from, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		used += info.Size()>>12<<12 + 4<<10
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	mount(t, dir, fmt.Sprintf("size=%d", used+100<<10))
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A disk that is full costs nothing but durability; when there is room again everything is written. One that is
// read-only is an error at a start.
func TestFaultFullDisk(t *testing.T) {
	t.Parallel()
	dir := nearlyFull(t)
	p := serve(t, "--data-dir", dir) // its clock runs, as that of the retries does
	p.ready()
	p.until("the disk is full", func() bool {
		return slices.Equal(p.degraded(), []string{"disk"}) && strings.Contains(p.logged(), "no space left on device")
	})
	for _, target := range targets {
		p.envelope(target)
	}
	dates := p.backfilled() // from memory
	verified(t, dir)
	full := strings.Count(p.logged(), "no space left on device")
	remount(t, dir, 0, "size=256m")
	p.until("the disk takes what waited", func() bool { return len(p.degraded()) == 0 })
	if n := strings.Count(p.logged(), "disk writable again"); n == 0 {
		t.Errorf("the log does not say that the disk is back: %s", p.logged())
	}
	p.kill()
	verified(t, dir)
	p = serve(t, "--data-dir", dir, "--sim-speed", "0")
	for _, target := range targets {
		p.envelope(target)
	}
	for _, date := range dates {
		p.envelope("/api/v1/gex/spx/historical?date=" + date)
	}
	p.kill()
	remount(t, dir, syscall.MS_RDONLY, "")
	refuses(t, command(t, "serve", "--data-dir", dir), dir, "open lock file", "read-only file system")
	figure(t, "%d files met a full disk, then %d dates were all stored", full, len(dates))
}

// refuses runs a server that must not start, and must say why.
func refuses(t *testing.T, cmd *exec.Cmd, wants ...string) {
	t.Helper()
	stdout, stderr, code := run(t, cmd)
	for _, want := range append(wants, "strikecache: open data directory") {
		if code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("exit %d, %q; want it to name %q", code, stderr, want)
		}
	}
	if strings.Contains(stdout+stderr, "msg=serving") {
		t.Error("it started")
	}
}

// Where a data directory cannot be, the error says why; where it can, it is made.
func TestFaultDataDirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "sub")} {
		refuses(t, command(t, "serve", "--data-dir", dir), file, "not a directory")
	}
	if b, err := os.ReadFile(file); string(b) != "something else" {
		t.Errorf("the file holds %q, %v", b, err)
	}

	locked := t.TempDir()
	if err := os.Chmod(locked, 0o555); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "serve", "--data-dir", locked)
	if os.Geteuid() == 0 { // whom no mode binds
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		for _, dir := range []string{filepath.Dir(cmd.Path), filepath.Dir(locked)} {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	refuses(t, cmd, locked, "permission denied")

	missing := filepath.Join(t.TempDir(), "not", "there", "yet")
	p := serve(t, "--data-dir", missing)
	p.ready()
	if len(p.degraded()) != 0 {
		t.Error("a new directory is degraded")
	}
	if files, err := filepath.Glob(filepath.Join(missing, "simulated", "*", "gex-spx")); len(files) == 0 || err != nil {
		t.Errorf("nothing is stored in a directory that was missing: %v", err)
	}
	figure(t, "3 places where no data directory can be, each a clear error; a missing one created")
}

// A start among bad files names each once, serves none, and serves the newest good one at once.
func TestFaultStartAmongBadFiles(t *testing.T) {
	t.Parallel()
	dir := storedDay(t)
	files := storedFiles(t, dir, "simulated")
	dateOf := func(n int) string { return filepath.Base(filepath.Dir(files[n])) }
	last := len(files) - 1
	whole, err := os.ReadFile(files[last])
	if err != nil {
		t.Fatal(err)
	}
	altered := bytes.Clone(whole)
	altered[len(altered)/2] ^= 1
	bad := map[string][]byte{
		files[last]:   altered,
		files[last-1]: whole[:len(whole)/2],
		files[last-2]: whole, // of another date
		files[last-3]: {},
		files[last-4]: bytes.Replace(whole, []byte(`"format":1`), []byte(`"format":2`), 1),
		filepath.Join(filepath.Dir(files[last-5]), "README"): []byte("hello\n"),
	}
	for path, b := range bad {
		alter(t, path, b)
	}
	p := serve(t, "--data-dir", dir, "--sim-speed", "0")
	for n := last; n > last-5; n-- {
		resp, body := p.get("/api/v1/gex/spx/historical?date=" + dateOf(n))
		if resp.StatusCode == http.StatusNotFound {
			continue
		}
		if a, err := checkAnswer(resp, body); err != nil || a.AsOf.Format(time.DateOnly) != dateOf(n) { // back-filled again meanwhile
			t.Errorf("date %s: %v, %v", dateOf(n), a.edition, err)
		}
	}
	p.envelope("/api/v1/gex/spx/historical?date=" + dateOf(last-5))
	p.envelope("/api/v1/gex/spx")
	for path := range bad {
		if n := strings.Count(p.logged(), " file="+path+" "); n != 1 {
			t.Errorf("%s is named %d times in %s", path, n, p.logged())
		}
	}
	figure(t, "%d bad files at a start, each named once, none served", len(bad))
}
