package refresh_test

import (
	"errors"
	"os"
	"testing"
)

// full says whether the long form of the tests was asked for.
func full() bool { return os.Getenv("STRIKECACHE_FULL") != "" }

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// long skips a test under the race detector, because one goroutine works on many documents.
func long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("one job at a time, over many documents: not worth its time under the race detector")
	}
}
