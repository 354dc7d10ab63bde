//go:build !linux

package server

import (
	"math"
	"net"
)

// socket reads from and writes to a connection.
type socket struct {
	net.Conn
	buffers      net.Buffers
	bufferMemory [3][]byte
}

func newSocket(c net.Conn) *socket { return &socket{Conn: c} }

// Send writes up to three parts, one after another. After an error, some bytes may have been written. It does not keep the
// parts.
func (s *socket) Send(parts ...[]byte) error {
	s.buffers = append(s.bufferMemory[:0], parts...)
	_, err := s.buffers.WriteTo(s.Conn)
	return err
}

// unsent returns false, because the number of unsent bytes is not known here.
func (s *socket) unsent() bool { return false }

// maxDescriptors returns no limit, because the limit is not known here.
func maxDescriptors() int { return math.MaxInt }
