package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mount mounts a file system in memory on a directory. Only root may do this.
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
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, options))
}

// nearlyFull mounts a small file system with a stored day that lacks its five oldest sessions. It has room for one or two
// files more.
func nearlyFull(t *testing.T) (dir string) {
	t.Helper()
	from, dir := storedDay(t), t.TempDir()
	dates, err := filepath.Glob(filepath.Join(from, "simulated", "????-??-??"))
	if err != nil || len(dates) < 5 {
		t.Fatal(dates, err)
	}
	for _, date := range dates[:5] {
		must(t, os.RemoveAll(date))
	}
	mount(t, dir, "size=256m")
	var used unix.Statfs_t
	must(t, errors.Join(os.CopyFS(dir, os.DirFS(from)), unix.Statfs(dir, &used)))
	remount(t, dir, 0, fmt.Sprintf("size=%d", int64(used.Blocks-used.Bfree)*used.Bsize+100<<10))
	return dir
}

// While the disk is full, everything is answered from memory. When there is room again, all files are written. A start serves
// them, also from a disk that has become read-only.
func TestFaultFullDisk(t *testing.T) {
	t.Parallel()
	dir := nearlyFull(t)
	p := serveReady(t, "--data-dir", dir, "--sim-start", marketStart) // its clock runs, as that of the retries does
	p.until("the disk is full", func() bool {
		return p.degraded() == "disk" && strings.Contains(p.logged(), "no space left on device")
	})
	for _, target := range targets {
		p.envelope(target)
	}
	dates := p.backfilled() // from memory
	verified(t, dir)
	full := strings.Count(p.logged(), "no space left on device")
	remount(t, dir, 0, "size=256m")
	p.until("the pending files are written", func() bool { return p.degraded() == "" })
	p.until("the log says that the disk is back", func() bool { return strings.Contains(p.logged(), "disk writable again") })
	p.kill()
	verified(t, dir)
	for _, flags := range []uintptr{0, syscall.MS_RDONLY} {
		remount(t, dir, flags, "")
		p = serve(t, "--data-dir", dir, "--sim-speed", "0", "--sim-start", "2026-11-20T17:00:00Z")
		for _, target := range targets {
			p.envelope(target)
		}
		for _, date := range dates {
			p.envelope(datePath + date)
		}
		p.kill()
	}
	figure(t, "%d writes failed on the full disk, then all %d dates were stored", full, len(dates))
}

// spent returns the CPU time of a process, from the clock that clock_getcpuclockid names.
func (p *process) spent() time.Duration {
	p.t.Helper()
	var t unix.Timespec
	must(p.t, unix.ClockGettime(int32(^p.cmd.Process.Pid<<3|2), &t))
	return time.Duration(t.Nano())
}

// A server without a free file descriptor neither ends nor spins. New connections wait until others end, and are answered.
func TestFaultDescriptors(t *testing.T) {
	t.Parallel()
	const room = 20
	p := serveStored(t)
	p.backfilled() // then it is at rest
	_, want := p.get(vixPath)
	most := uint64(p.opened() + room)
	must(t, unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: most}, nil))
	var waiting []*conn
	for range room + count(400) {
		waiting = append(waiting, p.dial(asking)) // the kernel accepts
	}
	p.until("no descriptor is free", func() bool {
		return strings.Contains(p.logged(), "connections are not accepted for now") && strings.Contains(p.logged(), "too many open files")
	})
	if full() {
		before := p.spent()
		time.Sleep(2 * time.Second) // the CPU time of these seconds is measured
		spent := p.spent() - before
		if figure(t, "%d ms of CPU in 2 s without a descriptor", spent.Milliseconds()); spent > time.Second {
			t.Error("it spins")
		}
	}
	for i, c := range waiting {
		if resp, body, err := c.receive(http.MethodGet); err != nil || resp.StatusCode != 200 || !bytes.Equal(body, want) {
			t.Fatalf("connection %d: %v, %v", i, resp, err)
		}
		c.Close() // then the next connection has a descriptor
	}
	figure(t, "%d connections without a descriptor waited, and were answered", len(waiting)-room)
	p.until("it is as before", func() bool { return p.opened() < int(most)-room/2 })
	if !p.answers("/readyz", http.StatusOK) {
		t.Error("not ready")
	}
}
