package refresh_test

import (
	"testing"

	"strikecache/bench/testkit"
)

var full, must = testkit.Full, testkit.Must

// long skips a test under the race detector, because one goroutine works on many documents.
func long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("one job at a time, over many documents: not worth its time under the race detector")
	}
}
