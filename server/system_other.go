//go:build !linux

package server

import (
	"math"
	"net"
)

// unsent returns false, because the number of unsent bytes is not known here.
func unsent(*net.TCPConn) bool { return false }

// maxDescriptors returns no limit, because the limit is not known here.
func maxDescriptors() int { return math.MaxInt }
