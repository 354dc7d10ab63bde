//go:build !unix

package snapshots

import (
	"fmt"
	"os"
)

// syncDir does nothing: this system has no way to make a directory's entries durable.
func syncDir(string) error { return nil }

// lockDir opens the lock file but does not keep other processes out on this system.
func lockDir(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	return f, nil
}

// keepOwner does nothing: on this system a new file inherits its access from its directory.
func keepOwner(*os.File, os.FileInfo) error { return nil }
