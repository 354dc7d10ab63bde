package server

import (
	"context"
	"io"
	"net"
	"slices"
)

// IsPage says whether a path is a page's, or that of a file beside it.
func IsPage(path string) bool {
	return path == "/" || slices.ContainsFunc(staticPages(), func(p page) bool { return p.path == path })
}

// AskReadyOver asks over connections of the test's own.
func AskReadyOver(ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error)) error {
	defer func(old func(context.Context, string, string) (net.Conn, error)) { askTransport.DialContext = old }(askTransport.DialContext)
	askTransport.DialContext = dial
	return AskReady(ctx, "http://127.0.0.1:1", io.Discard)
}
