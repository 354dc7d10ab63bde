//go:build unix

package need

import (
	"syscall"
	"testing"
)

// Files skips a test that needs more open files than the system allows a process.
func Files(t testing.TB, n int) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < uint64(n) {
		t.Skipf("needs %d open files: the limit is %d (%v)", n, limit.Cur, err)
	}
}
