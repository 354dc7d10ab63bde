package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usageOf reads what a process and its descendants have used.
func usageOf(pid int) (usage, error) {
	var u usage
	pids, err := tree(pid)
	if err != nil {
		return u, err
	}
	for _, p := range pids {
		ticks, _, err := stat(p)
		if err != nil {
			continue // it ended meanwhile
		}
		u.Ticks += ticks
		// The scheduler's own account has nanoseconds where ticks have hundredths of a second.
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p))
		for _, task := range tasks {
			b, err := os.ReadFile(task)
			if err != nil {
				continue
			}
			if fields := strings.Fields(string(b)); len(fields) > 0 {
				ns, _ := strconv.ParseInt(fields[0], 10, 64)
				u.CPU += time.Duration(ns)
			}
		}
	}
	if u.CPU == 0 {
		u.CPU = time.Duration(u.Ticks) * time.Second / ticksPerSecond
	}
	return u, nil
}

// tree returns a process and its descendants.
func tree(pid int) ([]int, error) {
	if _, _, err := stat(pid); err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, e := range entries {
		if p, err := strconv.Atoi(e.Name()); err == nil {
			if _, parent, err := stat(p); err == nil {
				children[parent] = append(children[parent], p)
			}
		}
	}
	pids := []int{pid}
	for i := 0; i < len(pids); i++ {
		pids = append(pids, children[pids[i]]...)
	}
	return pids, nil
}

var errStat = errors.New("malformed /proc/PID/stat")

// stat returns utime + stime in ticks, and the parent.
func stat(pid int) (ticks int64, parent int, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The second field, the name in brackets, may hold anything.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 13 {
		return 0, 0, errStat
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	parent, err3 := strconv.Atoi(fields[1])
	return user + system, parent, errors.Join(err1, err2, err3)
}

// residentPeak adds up the most memory that a process and each of its descendants has had resident, in bytes. The pages
// of files count for the process alone: its descendants run the same binary.
func residentPeak(pid int) (sum int64, err error) {
	pids, err := tree(pid)
	if err != nil {
		return 0, err
	}
	for _, p := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p))
		if err != nil {
			return 0, err
		}
		peak, err := statusKiB(b, "VmHWM:")
		if err != nil {
			return 0, err
		}
		sum += peak
		if p == pid {
			continue
		}
		files, err := statusKiB(b, "RssFile:")
		if err != nil {
			return 0, err
		}
		sum -= files
	}
	return sum, nil
}

func statusKiB(status []byte, name string) (int64, error) {
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == name {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc/PID/status", name)
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
