//go:build !linux

package server

import (
	"math"
	"syscall"
)

// unacknowledged returns false, because the number of unsent bytes is not known here.
func unacknowledged(syscall.Conn) bool { return false }

// maxDescriptors returns no limit, because the limit is not known here.
func maxDescriptors() int { return math.MaxInt }
