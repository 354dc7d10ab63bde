package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"
)

// Listen opens a Unix socket, see listenUnix, or a TCP listener. All connections of a TCP listener have the options that the loops need, also connections that the kernel accepts
// before Serve begins. If the service manager has passed a socket to this process, as sd_listen_fds(3) describes, Listen does not
// open the address: it returns a [Passed] with this socket. It returns an error if the service manager has passed several sockets,
// or a socket that is not a listening TCP socket. It unsets the variables of sd_listen_fds, so that only the first call takes the socket.
func Listen(address string) (Listener, error) {
	if passed := activation.Files(true); len(passed) > 0 {
		return take(passed)
	}
	if ln, err := listenUnix(address); ln != nil || err != nil {
		return ln, err
	}
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error { return control(raw, setOptions) }}
	ln, err := c.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	return ln.(*net.TCPListener), nil
}

// setOptions sets options of a listener that its connections inherit.
func setOptions(fd int) error {
	return errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, SendBuffer))
}

// take returns a listener on the socket that the service manager has passed.
func take(passed []*os.File) (Listener, error) {
	if len(passed) > 1 {
		return nil, fmt.Errorf("the service manager has passed %d sockets, want 1", len(passed))
	}
	ln, err := net.FileListener(passed[0]) // it copies the descriptor
	if err == nil {
		err = prepare(ln)
	}
	if err != nil {
		return nil, fmt.Errorf("the service manager has passed %s, which is no listening TCP socket: %w", passed[0].Name(), err)
	}
	_ = passed[0].Close() // nothing more can be done
	return Passed{ln.(*net.TCPListener)}, nil
}

// prepare sets the options of a passed socket. It returns an error if the socket is not a listening TCP socket.
func prepare(ln net.Listener) error {
	tcp, ok := ln.(*net.TCPListener) // also for a TCP socket that does not listen
	if !ok {
		return fmt.Errorf("its network is %s", ln.Addr().Network())
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	return control(raw, func(fd int) error {
		if listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || listens == 0 {
			return cmp.Or(err, errors.New("it does not listen"))
		}
		return setOptions(fd)
	})
}
