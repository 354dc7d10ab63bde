package refresh

import (
	"os"

	"golang.org/x/sys/unix"
)

// extraNice is added to the niceness of the process. When requests could use the whole processor, a refresh then still gets
// a tenth of it.
const extraNice = 10

// lowerPriority lowers the priority of the calling thread. An error is ignored: requests are then slower during a refresh.
func lowerPriority() {
	if own, err := unix.Getpriority(unix.PRIO_PROCESS, os.Getpid()); err == nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 20-own+extraNice) // the system call returns 20 - niceness
	}
}
