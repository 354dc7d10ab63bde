package refresh

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// extraNice is added to the niceness of the process: a refresh still gets a tenth of a processor that requests could use whole.
const extraNice = 10

// ownNice is 20 less the niceness of the process, read before any thread, such as the main one, is lowered.
var ownNice, errNice = unix.Getpriority(unix.PRIO_PROCESS, os.Getpid())

// slice is how long a thread of low priority would work at a time. From version 6.12 on, Linux prefers threads that have a
// shorter slice and have not had their share.
const slice = 100 * time.Millisecond

// lowerPriority lowers the priority of the calling thread. A failure costs only latency.
func lowerPriority() {
	if errNice == nil {
		nice := int32(min(20-ownNice+extraNice, 19)) //nolint:gosec // G115: from -10 to 19
		if unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_NORMAL, Nice: nice, Runtime: uint64(slice)}, 0) != nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), int(nice))
		}
	}
}
