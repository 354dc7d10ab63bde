package loop

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// Listen opens a Unix socket if the address is unix: and the path of its file, otherwise a TCP listener. All connections of a TCP
// listener have the options that the loops need, also connections that the kernel accepts before Serve begins. If the service manager
// has passed a socket to this process, as sd_listen_fds(3) describes, Listen does not open the address: it returns a [Passed] with this
// socket. It returns an error if the service manager has passed several sockets, or a socket that is not a listening TCP socket. It
// unsets the variables of sd_listen_fds, so that only the first call takes the socket.
func Listen(address string) (Listener, error) {
	if ln, err := passed(); ln != nil || err != nil {
		return ln, err
	}
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return listenUnix(path)
	}
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error { return setOptions(raw) }}
	ln, err := c.Listen(context.Background(), Network(address), address)
	if err != nil {
		return nil, err
	}
	return ln.(*net.TCPListener), nil
}

// Network returns the network of a TCP address: tcp4 for an IPv4 address, because Go opens IPv6, too, for 0.0.0.0 of the network tcp.
func Network(address string) string {
	host, _, _ := net.SplitHostPort(address)
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		return "tcp4"
	}
	return "tcp"
}

// listenUnix opens a Unix socket. The owner and the group of its file may connect. It replaces the file of a process that has ended.
// Close of the listener removes the file.
func listenUnix(path string) (Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		if c, err := net.Dial("unix", path); err == nil {
			_ = c.Close() // nothing more can be done
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path) // if this fails, the socket cannot be opened either
		}
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o660); err != nil { //nolint:gosec // G302: a proxy of another user is in the group
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}
