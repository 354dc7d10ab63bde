package server

import (
	"context"
	"io"
	"net"
	"net/netip"
	"slices"
)

// IsPage says whether a path belongs to a page or to a file that a page loads.
func IsPage(path string) bool {
	return path == "/" || slices.ContainsFunc(staticPages(), func(p page) bool { return p.path == path })
}

// AskReadyOver calls AskReady with connections that dial makes.
func AskReadyOver(ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error)) error {
	defer func(old func(context.Context, string, string) (net.Conn, error)) { askTransport.DialContext = old }(askTransport.DialContext)
	askTransport.DialContext = dial
	return AskReady(ctx, "http://127.0.0.1:1", io.Discard)
}

// ServeConn answers the requests of one connection until the connection ends, and closes it. A connection over the limit is
// refused, and the error is nil.
func (s *Server) ServeConn(c net.Conn) error {
	s.active.Add(1)
	defer s.active.Add(-1)
	admitted := s.newConn(c, netip.Addr{})
	if !s.enter() {
		s.refuseConn(admitted)
		return nil
	}
	s.conns.add(admitted)
	return s.http.ServeConn(admitted)
}
