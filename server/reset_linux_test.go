package server_test

import (
	"net"
	"syscall"
)

// resets says whether the other end has reset a connection, without a read or a write.
func resets(c net.Conn) (yes bool, err error) {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return false, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		var code int
		code, failed = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR)
		yes = code != 0
	})
	if err == nil {
		err = failed
	}
	return yes, err
}
