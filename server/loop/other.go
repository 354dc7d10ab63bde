//go:build !linux

package loop

import (
	"context"
	"errors"
	"syscall"
)

func passed() (Listener, error)        { return nil, nil }
func setOptions(syscall.RawConn) error { return nil }

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
