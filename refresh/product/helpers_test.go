package product

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
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

var calendar = compute.NewCalendar(nil, nil)

// rate is the risk-free rate of most tests.
const rate = 0.04

func ny(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.ParseInLocation("2006-01-02 15:04:05", text, compute.NewYork)
	must(t, err)
	return at.UTC()
}

// recorded returns a path below the recorded documents. Without them it skips the test.
func recorded(t testing.TB, path string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "recorded")
	if _, err := os.Stat(dir); err != nil {
		if required := os.Getenv("STRIKECACHE_REQUIRE"); required == "all" || slices.Contains(strings.Split(required, ","), "recorded") {
			t.Fatal(err)
		}
		t.Skip("needs the recorded documents (../shared/recorded): real Cboe documents that are not published; their formats are described in refresh/cboe")
	}
	return filepath.Join(dir, filepath.FromSlash(path))
}

// recordedBody returns the bytes of a recorded document; it unpacks a document that ends in .gz.
func recordedBody(t testing.TB, path string) []byte {
	t.Helper()
	body, err := os.ReadFile(recorded(t, path))
	if err == nil && strings.HasSuffix(path, ".gz") {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(z)
		}
	}
	must(t, err)
	return body
}
