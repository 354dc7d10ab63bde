//go:build unix

package snapshots

import (
	"errors"
	"os"
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

// unsupported says whether an error means that a file system lacks an operation, as CIFS, NFS without a lock manager and some of FUSE lack
// the sync of a directory or locks. EROFS is another matter: ext4 returns it after a failure.
func unsupported(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EBADF) || errors.Is(err, syscall.ENOLCK)
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
