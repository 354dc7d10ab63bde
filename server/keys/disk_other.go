//go:build !unix

package keys

import (
	"os"
	"sync"
)

// checksModes says that modes tell nothing: on this system the access control list of the folder protects the file.
const checksModes = false

// syncDir does nothing: this system has no way to make a directory's entries durable.
func syncDir(string) error { return nil }

// keepOwner does nothing: a new file inherits what its folder says.
func keepOwner(*os.File, os.FileInfo) error { return nil }

var writers sync.Mutex

// lock keeps out other writers of this process, but not other processes on this system.
func lock(string) (unlock func(), err error) {
	writers.Lock()
	return writers.Unlock, nil
}
