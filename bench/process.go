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

// cpuTime returns the CPU time that a process and its descendants have used so far.
func cpuTime(pid int) (time.Duration, error) {
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	total, err := processTime(pid)
	if err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	for _, child := range children(pid) {
		used, _ := cpuTime(child) // the child may have ended
		total += used
	}
	return total, nil
}

// children returns the processes that a process has started and that still run.
func children(pid int) (found []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		list, _ := os.ReadFile(file) // the thread may have ended
		for _, field := range strings.Fields(string(list)) {
			child, _ := strconv.Atoi(field)
			found = append(found, child)
		}
	}
	return found
}

// residentMemory returns the resident memory of a process and its descendants, in bytes.
func residentMemory(pid int) (int64, error) {
	text, err := fieldOf(fmt.Sprintf("/proc/%d/status", pid), "VmRSS")
	if err != nil {
		return 0, err
	}
	total, err := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
	total <<= 10
	for _, child := range children(pid) {
		used, _ := residentMemory(child) // the child may have ended
		total += used
	}
	return total, err
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
