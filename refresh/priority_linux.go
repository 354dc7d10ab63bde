package refresh

import (
	"os"

	"golang.org/x/sys/unix"
)

// extraNice is added to the niceness of the process. When requests could use the whole processor, a refresh then still gets
// a tenth of it.
const extraNice = 10

// ownNice is 20 less the niceness of the process, as the system call returns it. It is read before any thread is lowered: the
// main thread, whose niceness counts as that of the process, may be one of them later.
var ownNice, errNice = unix.Getpriority(unix.PRIO_PROCESS, os.Getpid())

// lowerPriority lowers the priority of the calling thread. That it may fail costs nothing but latency.
func lowerPriority() {
	if errNice == nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 20-ownNice+extraNice)
	}
}
