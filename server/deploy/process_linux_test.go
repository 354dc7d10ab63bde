package deploy_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"strikecache/bench/need"
)

// The system calls that the server makes are those that the unit allows.
func TestUnitAllowsWhatTheServerCalls(t *testing.T) {
	strace, analyze := need.Program(t, "strace"), need.Program(t, "systemd-analyze")
	if out, err := exec.Command(strace, "-f", "-o", filepath.Join(t.TempDir(), "try"), "true").CombinedOutput(); err != nil {
		t.Skipf("needs leave to trace a process: %s", strings.TrimSpace(string(out)))
	}
	privileged := callsOf(t, analyze, "@privileged", map[string]bool{})
	allowed := slices.DeleteFunc(callsOf(t, analyze, "@system-service", map[string]bool{}), func(c string) bool { return slices.Contains(privileged, c) })
	allowed = append(allowed, callsOf(t, analyze, "@default", map[string]bool{})...)
	if len(allowed) < 200 || len(privileged) < 20 {
		t.Fatalf("%d calls are allowed, %d are privileged", len(allowed), len(privileged))
	}
	path, _ := strikecache(t)
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	cmd := exec.Command(strace, "-f", "-qq", "-c", "-o", trace, path, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"))
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	runFor(t, cmd, log, "msg=refreshed feed=vix")
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) < 5 || !strings.Contains(fields[0], ".") || fields[len(fields)-1] == "total" {
			continue
		}
		made++
		if call := fields[len(fields)-1]; !slices.Contains(allowed, call) {
			t.Errorf("the unit forbids %s", call)
		}
	}
	if made < 20 {
		t.Errorf("%d calls traced:\n%s", made, b)
	}
}

// runFor lets a traced process run until its log has a line, then ends it and waits.
func runFor(t *testing.T, cmd *exec.Cmd, log io.Reader, line string) {
	t.Helper()
	late := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() }) // strace takes what it traces with it
	defer late.Stop()
	found := false
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if !found && strings.Contains(lines.Text(), line) {
			found = true
			if err := endChild(cmd.Process.Pid); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil || !found {
		t.Errorf("found %v, %v", found, err)
	}
}

// endChild ends what strace traces; it takes no signal itself.
func endChild(parent int) error {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
	if err != nil {
		return err
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return err
	}
	return syscall.Kill(child, syscall.SIGTERM)
}

// callsOf returns the system calls of a set, and of the sets in it.
func callsOf(t *testing.T, analyze, set string, seen map[string]bool) (calls []string) {
	t.Helper()
	if seen[set] {
		return nil
	}
	seen[set] = true
	out, err := exec.Command(analyze, "syscall-filter", set).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		switch word := strings.TrimSpace(line); {
		case word == set, word == "", strings.HasPrefix(word, "#"):
		case strings.HasPrefix(word, "@"):
			calls = append(calls, callsOf(t, analyze, word, seen)...)
		default:
			calls = append(calls, word)
		}
	}
	return calls
}
