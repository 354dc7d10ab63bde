package ready

import (
	"context"
	"io"
	"net"
)

// AskOver asks over connections of the test's own.
func AskOver(ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error)) error {
	defer func(old func(context.Context, string, string) (net.Conn, error)) { transport.DialContext = old }(transport.DialContext)
	transport.DialContext = dial
	return Ask(ctx, "http://127.0.0.1:1", io.Discard)
}
