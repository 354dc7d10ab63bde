//go:build unix

package snapshots

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// syncDir makes the entries of a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open directory: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// lockFile locks a file for this process until the file is closed.
func lockFile(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return ErrLocked
		}
		return fmt.Errorf("lock directory: %w", err)
	}
	return nil
}

// keepOwner gives a new file the owner and group of an old one, unless this process owns the old one.
func keepOwner(f *os.File, old os.FileInfo) error {
	stat, ok := old.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) == os.Geteuid() {
		return nil
	}
	return f.Chown(int(stat.Uid), int(stat.Gid))
}
