package main

import "time"

// usage is the CPU time of a process and its descendants.
type usage struct {
	Ticks int64         // utime + stime
	CPU   time.Duration // finer, where the kernel tells; else from the ticks
}

// ticksPerSecond is USER_HZ, which is 100 on every platform that Go knows.
const ticksPerSecond = 100

func (u usage) since(before usage) usage { return usage{u.Ticks - before.Ticks, u.CPU - before.CPU} }
