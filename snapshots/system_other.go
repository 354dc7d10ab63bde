//go:build !unix

package snapshots

import "os"

// syncDir does nothing: this system has no way to make a directory's entries durable.
func syncDir(string) error { return nil }

// unsupported says that no error means that an operation is lacking.
func unsupported(error) bool { return false }

// keepOwner does nothing: on this system a new file inherits its access from its directory.
func keepOwner(*os.File, string) error { return nil }

// lockFile does nothing: on this system the directory is not locked.
func lockFile(*os.File) error { return nil }
