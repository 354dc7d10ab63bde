//go:build !linux

package server

import "net"

// socket reads from and writes to a connection.
type socket struct {
	conn   net.Conn
	vector net.Buffers
	parts  [3][]byte
}

func newSocket(c net.Conn) *socket { return &socket{conn: c} }

// Read is net.Conn's.
func (s *socket) Read(p []byte) (int, error) { return s.conn.Read(p) }

// Send writes the parts, at most three, all of them or as many as go until an error.
func (s *socket) Send(parts ...[]byte) error {
	s.vector = append(s.parts[:0], parts...)
	_, err := s.vector.WriteTo(s.conn)
	return err
}

// unsent is not known here.
func (s *socket) unsent() bool { return false }
