//go:build !linux

package server

import (
	"math"
	"net"
	"time"
)

// loops does not exist here: fasthttp serves every connection.
type loops struct{}

func (s *Server) openLoops(net.Listener) (*loops, error) { return nil, nil }

func (*loops) accept() error               { return nil }
func (*loops) SetDeadline(time.Time) error { return nil }
func (*loops) wake()                       {}
func (*loops) finish()                     {}

// unsent returns false, because the number of unsent bytes is not known here.
func unsent(net.Conn) bool { return false }

// maxDescriptors returns no limit, because the limit is not known here.
func maxDescriptors() int { return math.MaxInt }
