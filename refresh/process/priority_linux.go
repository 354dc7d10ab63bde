package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// niceness leaves a tenth of the processor to a refresh when requests want all of it.
const niceness = 10

// name is what ps calls the process, whose executable is /proc/self/exe.
func name(comm string) { _ = os.WriteFile("/proc/self/comm", []byte(comm), 0) }

// lowerPriority lowers the priority of every thread of the process, and of those to come, which take it over, and lets
// the system end this process first where memory runs out. That it may fail costs nothing but latency.
//
// The idle class would let every request interrupt a refresh at once, where the kernel lets a nice thread run on to its
// next tick (2026-11, median p99.9 of quarter seconds at half of saturation: 1.9 ms without a refresh, 1.8 with one of
// the idle class, 4.6 with a nice one). But on a saturated machine, a process of that class that ends may take minutes,
// in which the one that waits for it spins in the kernel, among the entries of /proc that both hold.
func lowerPriority() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
	eachThread(func(id int) { _ = unix.Setpriority(unix.PRIO_PROCESS, id, niceness) })
}

// eachThread calls f with every thread of the process, also with those that are started meanwhile.
func eachThread(f func(id int)) {
	for done := map[int]bool{}; ; {
		tasks, _ := filepath.Glob("/proc/self/task/*")
		before := len(done)
		for _, task := range tasks {
			if id, err := strconv.Atoi(filepath.Base(task)); err == nil && !done[id] {
				done[id] = true
				f(id)
			}
		}
		if len(done) == before {
			return
		}
	}
}

// used returns what the process uses.
func used() (u Usage) {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) == nil {
		u.CPUSeconds = float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
	}
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := bytes.Fields(b); len(f) > 1 {
			pages, _ := strconv.ParseInt(string(f[1]), 10, 64) // digits, of the kernel
			u.ResidentBytes = pages * int64(os.Getpagesize())
		}
	}
	return u
}
