// Package watch loads files again when an operator replaces them while the server runs, such as a key file or a TLS certificate. It
// reads the files every second and compares their contents. The modification time would not do: a link may be changed to an older file.
package watch

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Interval is how often files are read. Reading a certificate with its key takes some 50 µs.
const Interval = time.Second

// Config configures [Open].
type Config struct {
	Name  string   // of the content, for log lines, such as "TLS certificate"
	Paths []string // the files, which are read and loaded together
	// Read returns the content of a file, such as [ReadFile] with a bound.
	Read func(path string) ([]byte, error)
	// Load puts the contents, in the order of Paths, in force. If it fails, it must change nothing. Open and Look call it for contents
	// that are not in force: when the files have changed, and again while it fails. Load must not keep the outer slice.
	Load func(contents [][]byte, now time.Time) error
	Log  *slog.Logger
}

// Files reads the files of a [Config] and loads their changes. Create it with [Open].
type Files struct {
	cfg     Config
	inForce [sha256.Size]byte // digest of the contents that were loaded last
	failure Failure           // of the last call of look
	stop    func()
	looking sync.Mutex // held by Look
}

// Open reads and loads the files, and then calls [Files.Look] every second until [Files.Close]. It fails if the files cannot be read or
// loaded.
func Open(cfg Config) (*Files, error) {
	f := &Files{cfg: cfg}
	if _, err := f.look(time.Now()); err != nil {
		return nil, err
	}
	f.stop = Every(Interval, f.Look)
	return f, nil
}

// Close stops the calls of Look, and waits for a call in progress. The contents stay in force.
func (f *Files) Close() { f.stop() }

// Err returns why the current contents of the files are not in force, nil if they are. It is safe for concurrent use.
func (f *Files) Err() error { return f.failure.Err() }

// Look reads the files now, and loads them if they have changed. It logs an error that differs from the error of the call before. It is
// safe for concurrent use.
func (f *Files) Look() {
	f.looking.Lock()
	defer f.looking.Unlock()
	loaded, err := f.look(time.Now())
	switch changed := f.failure.Set(err); {
	case changed && err != nil:
		f.cfg.Log.Error(f.cfg.Name+" not loaded: the old one stays in force", "err", err)
	case changed && !loaded:
		f.cfg.Log.Info(f.cfg.Name + " is usable again")
	}
}

// AtHangup calls Look of all files at every SIGHUP from now on, and logs their errors. SIGHUP no longer ends the process.
func AtHangup(log *slog.Logger, all ...interface {
	Look()
	Err() error
}) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		for range hangups {
			var errs []error
			for _, files := range all {
				files.Look()
				errs = append(errs, files.Err())
			}
			if err := errors.Join(errs...); err != nil {
				log.Error("key file or certificate not usable after SIGHUP: the old one stays in force", "err", err)
			} else {
				log.Info("key file and certificate read after SIGHUP")
			}
		}
	}()
}

// look reads the files, and loads them if their contents are not in force.
func (f *Files) look(now time.Time) (loaded bool, err error) {
	contents := make([][]byte, len(f.cfg.Paths))
	digests := sha256.New()
	for i, path := range f.cfg.Paths {
		if contents[i], err = f.cfg.Read(path); err != nil {
			return false, err
		}
		sum := sha256.Sum256(contents[i])
		digests.Write(sum[:])
	}
	sum := [sha256.Size]byte(digests.Sum(nil))
	if sum == f.inForce {
		return false, nil
	}
	if err := f.cfg.Load(contents, now); err != nil {
		return false, err
	}
	f.inForce = sum
	return true, nil
}

// Failure holds the error of the last try of a job that is repeated. Only one goroutine at a time may call Set. The zero value holds no
// error.
type Failure struct{ err atomic.Pointer[error] }

// Err returns the error of the last try, nil if it succeeded. It is safe for concurrent use.
func (f *Failure) Err() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Set stores the error of a try, nil for a success. It returns whether the error differs from that of the try before.
func (f *Failure) Set(err error) (changed bool) {
	before := f.Err()
	f.err.Store(&err)
	return fmt.Sprint(before) != fmt.Sprint(err)
}

// ReadFile reads a regular file of at most limit bytes.
func ReadFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path) // opening a pipe could wait for ever
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path) //nolint:gosec // G304: the operator names it
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s has over %d bytes", path, limit)
	}
	return b, err
}

// Every calls f at an interval, from one goroutine, until the caller calls stop. stop waits for a call of f in progress. It may be
// called more than once.
func Every(interval time.Duration, f func()) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				f()
			case <-done:
				return
			}
		}
	})
	var once sync.Once
	return func() {
		once.Do(func() { close(done) })
		running.Wait()
	}
}
