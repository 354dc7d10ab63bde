//go:build linux || darwin

package server

import (
	"math"
	"syscall"
)

// maxDescriptors returns how many files and connections the process may have open. At the start, Go raises this soft limit
// to the hard limit.
func maxDescriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	return int(min(limit.Cur, math.MaxInt32))
}
