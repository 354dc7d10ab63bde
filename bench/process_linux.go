package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// pause sleeps in the kernel. The runtime's own timers are up to a millisecond late when nothing else is going on,
// and that would be read as the server's latency.
func pause(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // interrupted: the caller looks at the time
}

// cpuTime returns what a process and its descendants have used until now.
func cpuTime(pid int) (total time.Duration, err error) {
	pids, err := tree(pid)
	if err != nil {
		return 0, err
	}
	for _, p := range pids {
		// The scheduler's account has nanoseconds, where /proc/PID/stat has hundredths of a second.
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p))
		for _, task := range tasks {
			b, _ := os.ReadFile(task) // the thread may have ended
			first, _, _ := strings.Cut(string(b), " ")
			ns, _ := strconv.ParseInt(first, 10, 64)
			total += time.Duration(ns)
		}
	}
	if total == 0 {
		return 0, fmt.Errorf("the kernel keeps no CPU time in /proc/%d/task/TID/schedstat", pid)
	}
	return total, nil
}

// tree returns a process and its descendants.
func tree(pid int) ([]int, error) {
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	pids := []int{pid}
	for i := 0; i < len(pids); i++ {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pids[i]))
		for _, file := range files {
			b, _ := os.ReadFile(file) // the thread may have ended
			for _, field := range strings.Fields(string(b)) {
				if child, err := strconv.Atoi(field); err == nil {
					pids = append(pids, child)
				}
			}
		}
	}
	return pids, nil
}

// processes returns all process ids, in order.
func processes() (pids []int) {
	entries, _ := os.ReadDir("/proc") // without it there are none
	for _, e := range entries {
		if p, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, p)
		}
	}
	slices.Sort(pids)
	return pids
}

// listener returns the process that listens on a TCP port of this machine. Where several share the socket, as nginx
// and its workers do, it is the one with the lowest process id, which started the others.
func listener(port int) (int, error) {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table) // a kernel without IPv6 has one of them
		for line := range strings.Lines(string(text)) {
			// sl local_address rem_address st … inode; listening is state 0A
			fields := strings.Fields(line)
			if len(fields) < 10 || fields[3] != "0A" {
				continue
			}
			_, text, _ := strings.Cut(fields[1], ":")
			if b, err := hex.DecodeString(text); err == nil && len(b) == 2 && int(b[0])<<8|int(b[1]) == port {
				sockets["socket:["+fields[9]+"]"] = true
			}
		}
	}
	if len(sockets) == 0 {
		return 0, fmt.Errorf("nothing on this machine listens on port %d", port)
	}
	for _, pid := range processes() {
		descriptors, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, d := range descriptors {
			if to, err := os.Readlink(d); err == nil && sockets[to] {
				return pid, nil
			}
		}
	}
	return 0, fmt.Errorf("no process of this user listens on port %d; --pid names one", port)
}

// machine names the processor and the kernel.
func machine() (cpu, kernel string) {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			cpu = strings.TrimSpace(value)
			break
		}
	}
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return cpu, "Linux " + strings.TrimSpace(string(release))
}
