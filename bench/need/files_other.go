//go:build !unix

package need

import "testing"

// Files skips a test that needs more open files than the system allows a process.
func Files(testing.TB, int) {}
