package refresh

import (
	"os"

	"golang.org/x/sys/unix"
)

// extraNice is added to the niceness of the process. A refresh then still gets a tenth of the processor when requests could
// use all of it.
const extraNice = 10

// ownNice is 20 less the niceness of the process, as the system call returns it. It is read before any thread is lowered:
// the niceness of the process is that of its main thread, which may be lowered later.
var ownNice, errNice = unix.Getpriority(unix.PRIO_PROCESS, os.Getpid())

// lowerPriority lowers the priority of the calling thread. A failure costs only latency.
func lowerPriority() {
	if errNice == nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 20-ownNice+extraNice)
	}
}
