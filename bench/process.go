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

// The functions of this file read /proc. On other systems they return an error, but machine returns GOARCH and GOOS.

// cpuTime returns the CPU time that a process and its descendants have used so far, 0 for no process.
func cpuTime(pid int) (time.Duration, error) {
	if pid == 0 { // to the kernel, the process that asks
		return 0, nil
	}
	return ofFamily(pid, processTime)
}

// runDelay returns how long this thread has waited for a processor so far, 0 if the kernel does not say.
func runDelay() time.Duration {
	text, _ := os.ReadFile("/proc/thread-self/schedstat")
	var running, delay int64
	_, _ = fmt.Sscan(string(text), &running, &delay)
	return time.Duration(delay)
}

// residentMemory returns the resident memory of a process and its descendants, in bytes.
func residentMemory(pid int) (int64, error) {
	return ofFamily(pid, func(pid int) (int64, error) {
		text, err := fieldOf(fmt.Sprintf("/proc/%d/status", pid), "VmRSS")
		if err != nil {
			return 0, err
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
		return kilobytes << 10, err
	})
}

// ofFamily returns the sum of a figure of a process and of those that it has started and that still run, with their own.
func ofFamily[T int64 | time.Duration](pid int, figure func(pid int) (T, error)) (T, error) {
	total, err := figure(pid)
	if err != nil {
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		list, _ := os.ReadFile(file) // the thread may have ended
		for _, field := range strings.Fields(string(list)) {
			child, _ := strconv.Atoi(field)
			more, _ := ofFamily(child, figure) // the child may have ended
			total += more
		}
	}
	return total, nil
}

// settledMemory returns the resident memory once it has changed by less than 64 KiB in a second, or after 15 seconds.
func settledMemory(pid int) (int64, error) {
	last, err := residentMemory(pid)
	for range 15 {
		time.Sleep(time.Second)
		before := last
		if last, err = residentMemory(pid); err != nil || max(last-before, before-last) < 64<<10 {
			break
		}
	}
	return last, err
}

// machine returns the names of the processor and the kernel.
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
