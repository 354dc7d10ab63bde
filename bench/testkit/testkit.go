// Package testkit has what the tests of several packages need. Only tests import it.
package testkit

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// T is a test, a fuzz test or a benchmark: this package does not import testing, because a program must not.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Skip(args ...any)
}

// Must fails the test at once if there is an error. Without one it allocates nothing.
func Must(t T, err error, others ...error) {
	t.Helper()
	for _, other := range others {
		err = errors.Join(err, other)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Equal fails the test unless got is what is wanted, of the same type.
func Equal(t T, got, want any, what string, args ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %.300s, want %.300s", fmt.Sprintf(what, args...), fmt.Sprint(got), fmt.Sprint(want))
	}
}

// Patience is how long [Until] waits for what must happen.
const Patience = 5 * time.Minute

// Until polls until a condition holds.
func Until(t T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", Patience, what)
		}
	}
}

// Full says whether the tests run in full, as with make faults and make soak, or in the short form of make test.
func Full() bool { return os.Getenv("STRIKECACHE_FULL") != "" }

// Needs skips a test that lacks something. It fails the test instead if STRIKECACHE_REQUIRE, a comma-separated list or "all", names
// the missing thing.
func Needs(t T, name, sentence string) {
	t.Helper()
	required := strings.Split(os.Getenv("STRIKECACHE_REQUIRE"), ",")
	if slices.Contains(required, name) || slices.Contains(required, "all") {
		t.Fatalf("%s; STRIKECACHE_REQUIRE asks for %s", sentence, name)
	}
	t.Skip(sentence)
}

// Program returns the path of an installed program.
func Program(t T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name) // where Debian keeps servers, out of most users' search path
	}
	if err != nil {
		Needs(t, name, "needs the program "+name)
	}
	return path
}

// Shared returns a path below the folder shared, which is beside the project. Without the first folder of the path, the test lacks it.
func Shared(t T, path string) string {
	t.Helper()
	root := ".."
	for _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil; _, err = os.Stat(filepath.Join(root, "go.mod")) {
		root = filepath.Join("..", root)
	}
	first, _, _ := strings.Cut(path, "/")
	if _, err := os.Stat(filepath.Join(root, "..", "shared", first)); err != nil {
		Needs(t, first, "needs the recorded documents (../shared/recorded): real Cboe documents that are not published; their formats are described in refresh/cboe")
	}
	return filepath.Join(root, "..", "shared", filepath.FromSlash(path))
}

// Document returns the bytes of a file in [Shared]. It unpacks a file that ends in .gz.
func Document(t T, path string) []byte {
	t.Helper()
	body, err := os.ReadFile(Shared(t, path))
	if err == nil && strings.HasSuffix(path, ".gz") {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(z)
		}
	}
	Must(t, err)
	return body
}

// Text is a text that is read while others write it, such as a log. The zero value is empty and ready.
type Text struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (x *Text) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.text.Write(b)
}

// String returns the text.
func (x *Text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.text.String()
}

// Take returns the text, and empties it.
func (x *Text) Take() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.text.Reset()
	return x.text.String()
}

// Count returns how often a text is in the text.
func (x *Text) Count(text string) int { return strings.Count(x.String(), text) }

// Logger returns a logger that writes the text, from a level on.
func (x *Text) Logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(x, &slog.HandlerOptions{Level: level}))
}
