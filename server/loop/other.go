//go:build !linux

package loop

import (
	"context"
	"errors"
	"net"
)

// Listen opens a TCP listener.
func Listen(address string) (net.Listener, error) { return net.Listen("tcp", address) }

// Server does not exist here, see [Available].
type Server struct{}

// Available says whether this system has loops.
const Available = false

// New returns a server that serves nothing.
func New(Config) *Server { return &Server{} }

// Serve returns an error.
func (*Server) Serve(net.Listener) error { return errors.ErrUnsupported }

// Shutdown does nothing.
func (*Server) Shutdown(context.Context) error { return nil }
