package loop

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
)

// listenUnix opens a Unix socket if the address is unix: and the path of its file. The owner and the group of the file may connect. It
// replaces the file of a process that has ended. Close of the listener removes the file. For another address, it returns nil.
func listenUnix(address string) (Listener, error) {
	path, ok := strings.CutPrefix(address, "unix:")
	if !ok {
		return nil, nil
	}
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
