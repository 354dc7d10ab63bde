package refresh

import "golang.org/x/sys/unix"

// niceness leaves a tenth of the processor to a refresh when requests want all of it.
const niceness = 10

// lowerPriority lowers the priority of the calling thread. That it may fail costs nothing but latency.
func lowerPriority() { _ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), niceness) }
