package server

import (
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// unacknowledged says whether the kernel holds bytes that the client has not acknowledged.
func unacknowledged(c syscall.Conn) bool {
	n := 0
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { // a closed connection has nothing unsent
			n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
		})
	}
	return n > 0
}

// maxDescriptors returns how many files and connections the process may have open. At the start, Go raises this soft limit
// to the hard limit.
func maxDescriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	return int(min(limit.Cur, math.MaxInt32))
}
