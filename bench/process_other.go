//go:build !linux

package main

import (
	"errors"
	"runtime"
	"time"
)

var errOther = errors.New("CPU times and ports of processes are read from /proc, on Linux only")

func listener(int) (int, error) { return 0, errOther }

func cpuTime(int) (time.Duration, error) { return 0, errOther }

func machine() (cpu, kernel string) { return runtime.GOARCH, runtime.GOOS }

func pause(d time.Duration) { time.Sleep(d) }
