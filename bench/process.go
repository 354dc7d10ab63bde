package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// The functions of this file read /proc. On other systems than Linux they return an error, and machine the names of Go.

// cpuTime returns what a process and its descendants have used until now.
func cpuTime(pid int) (total time.Duration, err error) {
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	if total, err = processTime(pid); err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		children, _ := os.ReadFile(file) // the thread may have ended
		for _, field := range strings.Fields(string(children)) {
			child, _ := strconv.Atoi(field)
			used, _ := cpuTime(child) // so may the child
			total += used
		}
	}
	return total, nil
}

// listener returns the process that listens on a TCP port of this machine. Where several share the socket, as nginx
// and its workers do, it is the one with the lowest process id, which started the others.
func listener(port string) (pid int, err error) {
	number, _ := strconv.Atoi(port)
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table) // a kernel without IPv6 has one of them
		for line := range strings.Lines(string(text)) {
			// sl local_address rem_address st … inode; listening is state 0A
			fields := strings.Fields(line)
			if len(fields) > 9 && fields[3] == "0A" && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", number)) {
				sockets["socket:["+fields[9]+"]"] = true
			}
		}
	}
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, d := range descriptors {
		if to, err := os.Readlink(d); err == nil && sockets[to] {
			owner, _ := strconv.Atoi(strings.Split(d, "/")[2])
			if pid == 0 || owner < pid {
				pid = owner
			}
		}
	}
	if pid == 0 {
		return 0, fmt.Errorf("no process of this user listens on port %s, as far as /proc says; --pid names one", port)
	}
	return pid, nil
}

// residentPeak returns the most memory that a process has had resident, in bytes.
func residentPeak(pid int) (int64, error) {
	peak, err := fieldOf(fmt.Sprintf("/proc/%d/status", pid), "VmHWM")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(peak, " kB"), 10, 64)
	return n << 10, err
}

// machine names the processor and the kernel.
func machine() (cpu, kernel string) {
	cpu, _ = fieldOf("/proc/cpuinfo", "model name")
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOARCH, runtime.GOOS
	}
	return cpu, "Linux " + strings.TrimSpace(string(release))
}

// fieldOf returns the first value of a name in a file of lines NAME: VALUE.
func fieldOf(path, name string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if n, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(n) == name {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("no %s in %s", name, path)
}
