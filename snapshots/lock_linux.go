package snapshots

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// lockPlace takes the place where a source's directory stands, also after the directory itself was removed: an abstract
// Unix socket whose name is the inode above the data directory and the path from there. It returns nil where the system
// forbids such sockets.
func lockPlace(dataDir, source string) (io.Closer, error) {
	path, err := filepath.Abs(dataDir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, fmt.Errorf("resolve data directory: %w", err)
	}
	above, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("look at data directory: %w", err)
	}
	inode, ok := above.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, nil
	}
	below := digest([]byte(filepath.Join(filepath.Base(path), source)))[:32]
	name := fmt.Sprintf("@strikecache-%d-%d-%s", inode.Dev, inode.Ino, below)
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%w: its lock file was removed while that process runs", ErrLocked)
	case err != nil:
		return nil, nil // the lock file alone protects the directory
	}
	return socket, nil
}
