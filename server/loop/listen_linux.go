package loop

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"
)

// setOptions sets options of a listener that its connections inherit.
func setOptions(raw syscall.RawConn) error {
	return control(raw, func(fd int) error {
		return errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, SendBuffer))
	})
}

// passed returns a listener on the socket that the service manager has passed, nil if there is none.
func passed() (Listener, error) {
	files := activation.Files(true)
	switch len(files) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, fmt.Errorf("the service manager has passed %d sockets, want 1", len(files))
	}
	ln, err := net.FileListener(files[0]) // it copies the descriptor
	if err == nil {
		err = prepare(ln)
	}
	if err != nil {
		return nil, fmt.Errorf("the service manager has passed %s, which is no listening TCP socket: %w", files[0].Name(), err)
	}
	_ = files[0].Close() // nothing more can be done
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
	if err := control(raw, func(fd int) error {
		listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
		if err == nil && listens == 0 {
			err = errors.New("it does not listen")
		}
		return err
	}); err != nil {
		return err
	}
	return setOptions(raw)
}
