//go:build !linux

package server

import "net"

// socket reads from and writes to a connection.
type socket struct {
	net.Conn
	buffers      net.Buffers
	bufferMemory [3][]byte
}

func newSocket(c net.Conn) *socket { return &socket{Conn: c} }

// Send writes the parts, at most three, all of them or as many as go until an error.
func (s *socket) Send(parts ...[]byte) error {
	s.buffers = append(s.bufferMemory[:0], parts...)
	_, err := s.buffers.WriteTo(s.Conn)
	return err
}

// unsent is not known here.
func (s *socket) unsent() bool { return false }
