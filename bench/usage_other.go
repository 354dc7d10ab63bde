//go:build !linux

package main

import (
	"errors"
	"runtime"
)

func usageOf(int) (usage, error) {
	return usage{}, errors.New("the CPU time of a process is read from /proc, on Linux only")
}

func machine() (cpu, kernel string) { return runtime.GOARCH, runtime.GOOS }
