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

// ExemptNobody makes loopback as little exempt from the limit of one address as other addresses.
func ExemptNobody(s *Server) { s.connections.Exempt = func(netip.Addr) bool { return false } }

// AskReadyOver asks a server with connections that dial makes.
func AskReadyOver(ctx context.Context, flags ReadyFlags, out io.Writer, dial func(ctx context.Context, network, address string) (net.Conn, error)) error {
	defer func(old func(context.Context, string, string) (net.Conn, error)) { askTransport.DialContext = old }(askTransport.DialContext)
	askTransport.DialContext = dial
	flags.Ready = "http://127.0.0.1:1"
	return flags.AskReady(ctx, out)
}
