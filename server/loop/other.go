//go:build !linux

package loop

import (
	"context"
	"errors"
	"net"
)

// Listen opens a Unix socket, see listenUnix, or a TCP listener.
func Listen(address string) (Listener, error) {
	if ln, err := listenUnix(address); ln != nil || err != nil {
		return ln, err
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return ln.(*net.TCPListener), nil
}

// Server serves nothing on this system, see [Available].
type Server struct{}

// Available says whether this system has loops.
const Available = false

// New returns a server whose Serve fails.
func New(Config) *Server { return &Server{} }

// Serve returns an error.
func (*Server) Serve(Listener) error { return errors.ErrUnsupported }

// Shutdown does nothing.
func (*Server) Shutdown(context.Context) error { return nil }
