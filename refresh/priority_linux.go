package refresh

import (
	"os"

	"golang.org/x/sys/unix"
)

// extraNice is added to the niceness of the process: a tenth of the processor is left to a refresh when requests want
// all of it.
const extraNice = 10

// lowerPriority lowers the priority of the calling thread. That it may fail costs nothing but latency.
func lowerPriority() {
	if own, err := unix.Getpriority(unix.PRIO_PROCESS, os.Getpid()); err == nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 20-own+extraNice) // the system call returns 20 - niceness
	}
}
