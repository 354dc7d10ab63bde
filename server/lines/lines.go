// Package lines writes the lines of a log without blocking the program: a pipe or a disk may be full, the reader of a pipe may have
// ended, and Ctrl-S stops a terminal. Lines that cannot be written are lost and counted.
package lines

import (
	"errors"
	"io"
	"log"
	"log/slog"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	maxWaiting   = 1000            // lines: hours of a usual log
	closeTimeout = 3 * time.Second // for writing the waiting lines at the end of the process
)

// Writer passes lines on to another writer. Create it with [New]. It is safe for concurrent use.
type Writer struct {
	to             io.Writer
	waiting        chan []byte   // lines; nil ends run
	end            chan struct{} // closed when run has ended
	lost, reported atomic.Int64  // lost lines, and how many of them the log has reported
	reporter       *slog.Logger  // reports lost lines
}

// New returns a writer that writes from a goroutine of its own until [Writer.Close].
func New(to io.Writer) *Writer {
	w := &Writer{to: to, waiting: make(chan []byte, maxWaiting), end: make(chan struct{}), reporter: slog.New(slog.NewTextHandler(to, nil))}
	go w.run()
	return w
}

// Logger returns a logger that writes to w with the handler that form returns. w reports lost lines with such a handler, too. Logger is
// called before the first Write.
func (w *Writer) Logger(form func(io.Writer) slog.Handler) *slog.Logger {
	w.reporter = slog.New(form(w.to))
	return slog.New(form(w))
}

// Outlive lets a process outlive its terminal (SIGHUP) and the reader of its log (SIGPIPE), and write its log in the background of a
// terminal (SIGTTOU). Other signals of daemons, such as SIGUSR1, do nothing in a Go program. Libraries then log to w. It returns w.
func (w *Writer) Outlive() *Writer {
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE, syscall.Signal(22)) // SIGTTOU, which has no name on Windows
	log.SetOutput(w)
	return w
}

// Write implements [io.Writer] for one line. It never blocks and never fails: while 1,000 lines wait, a further line is lost. It
// copies line.
func (w *Writer) Write(line []byte) (int, error) {
	select {
	case w.waiting <- append([]byte{}, line...):
	default:
		w.lost.Add(1)
	}
	return len(line), nil
}

func (w *Writer) run() {
	defer close(w.end)
	partial := false // only a part of the last line is written
	for line := range w.waiting {
		if line == nil {
			return
		}
		if partial {
			line = append([]byte("\n"), line...)
		}
		n, err := w.to.Write(line)
		if n > 0 {
			partial = n < len(line)
		}
		if err != nil {
			w.lost.Add(1)
		} else if lost := w.lost.Load() - w.reported.Load(); lost > 0 && len(w.waiting) == 0 { // the waiting lines are older than the loss
			w.reporter.Warn("log lines lost", "lines", lost)
			w.reported.Add(lost)
		}
	}
}

// Lost returns how many lines were lost.
func (w *Writer) Lost() int64 { return w.lost.Load() }

// Err returns an error while the log has not yet reported all lost lines.
func (w *Writer) Err() error {
	if w.reported.Load() < w.lost.Load() {
		return errors.New("log lines are lost")
	}
	return nil
}

// Close writes the waiting lines, for at most 3 seconds. Then it drops the rest.
func (w *Writer) Close() {
	limit := time.After(closeTimeout)
	select {
	case w.waiting <- nil:
	case <-limit:
		return
	}
	select {
	case <-w.end:
	case <-limit:
	}
}
