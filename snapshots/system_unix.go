//go:build unix

package snapshots

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// syncDir makes the entries of a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// keepOwner gives a new file the owner and group of the file that it will replace, unless this process owns the old file.
func keepOwner(f *os.File, path string) error {
	old, err := os.Lstat(path)
	if err != nil {
		return nil // there is no old file
	}
	stat, ok := old.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) == os.Geteuid() {
		return nil
	}
	return f.Chown(int(stat.Uid), int(stat.Gid))
}

// lockFile locks a file for this process until the file is closed.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return os.NewSyscallError("lock directory", err)
}

// lockPlace locks the path of a source's directory: the lock also holds after the directory was removed. It is an abstract
// Unix socket, named by the inode above the data directory and the path from there. On a system that lacks or forbids such
// sockets, lockPlace returns nil, and the lock file alone protects the directory.
func lockPlace(dataDir, source string) (io.Closer, error) {
	if runtime.GOOS != "linux" {
		return nil, nil
	}
	path, err := filepath.Abs(dataDir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, err
	}
	above, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	inode, ok := above.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, nil
	}
	below := digest([]byte(filepath.Join(filepath.Base(path), source)))[:32]
	name := fmt.Sprintf("@strikecache-%d-%d-%s", inode.Dev, inode.Ino, below)
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: its lock file was removed while that process runs", ErrLocked)
	}
	if err != nil {
		return nil, nil
	}
	return socket, nil
}
