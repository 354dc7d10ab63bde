package refresh

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// extraNice is added to the niceness of the process. A refresh then still gets a tenth of the processor when requests could
// use all of it.
const extraNice = 10

// ownNice is 20 less the niceness of the process, as the system call returns it. It is read before any thread is lowered:
// the niceness of the process is that of its main thread, which may be lowered later.
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

// tick is the time between two wake-ups of a thread of [tickOften], and tickSlice its slice, the shortest that Linux allows.
const (
	tick      = time.Millisecond
	tickSlice = 100 * time.Microsecond
)

// ticked are the processors on which the process may run, for [tickOften]. It is empty if they are more than eight, since among so
// many one is idle, or more than the process may use at the same time.
var ticked = func() (cpus []int) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil || errNice != nil || allowed.Count() > min(8, runtime.GOMAXPROCS(0)) {
		return nil
	}
	for cpu := 0; len(cpus) < allowed.Count(); cpu++ {
		if allowed.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}()

// tickOften lets Linux choose every millisecond which thread a processor runs, until end is called. It has a thread on each
// processor that wakes up and sleeps again. Without it, Linux chooses every 4 ms, and when a thread falls asleep: a thread of low
// priority that has the processor keeps it so long, while requests wait.
// A trace of the scheduler shows this. Measured at half of saturation (2026-11): p99.9 during a refresh was 5.0 and 5.5 ms with one
// and two processors, with ticks 3.6 and 4.0 ms (medians of 9 refreshes). A failure costs only latency.
//
// Each of its threads keeps a scheduler context. In a system call that gives it up, they would keep the monitor of the Go runtime
// awake, which then takes a tenth of a processor.
func tickOften() (end func()) {
	var ended atomic.Bool
	var all sync.WaitGroup
	for _, cpu := range ticked {
		all.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with this goroutine, unless it is the main thread
			var own, before unix.CPUSet
			if unix.SchedGetaffinity(0, &before) == nil {
				defer func() { _ = unix.SchedSetaffinity(0, &before) }()
			}
			own.Set(cpu)
			_ = unix.SchedSetaffinity(0, &own)
			normal := unix.SchedAttr{Policy: unix.SCHED_NORMAL, Nice: int32(20 - ownNice), Runtime: uint64(tickSlice)} //nolint:gosec // G115: from -20 to 19
			_ = unix.SchedSetAttr(0, &normal, 0)
			for !ended.Load() {
				sleep(tick)
			}
		})
	}
	return func() {
		ended.Store(true)
		all.Wait()
	}
}

// sleep keeps the scheduler context of its goroutine, unlike [time.Sleep] and [unix.Nanosleep]. A signal, by which the runtime
// stops goroutines, ends it. It must be a call: there the runtime can stop the goroutine.
//
//go:noinline
func sleep(d time.Duration) {
	rest := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&rest)), 0, 0) //nolint:gosec // G103: the kernel reads it
}

// holdProcessor keeps the calling thread on its processor until it calls end. leave keeps the thread that calls it off this
// processor. A failure costs only time.
func holdProcessor() (leave, end func()) {
	var allowed, own unix.CPUSet
	var cpu uint32
	_, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0) //nolint:gosec // G103: the kernel writes a uint32
	if err := unix.SchedGetaffinity(0, &allowed); err != nil || errno != 0 || allowed.Count() < 2 {
		return func() {}, func() {}
	}
	others := allowed
	own.Set(int(cpu))
	others.Clear(int(cpu))
	_ = unix.SchedSetaffinity(0, &own)
	return func() { _ = unix.SchedSetaffinity(0, &others) }, func() { _ = unix.SchedSetaffinity(0, &allowed) }
}
