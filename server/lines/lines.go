// Package lines writes the lines of a log without waiting for whoever reads it: a pipe may be full, or its reader may have ended, a
// disk may be full, and Ctrl-S stops a terminal. Lines that cannot be written are lost and counted.
package lines

import (
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	maxWaiting   = 1000            // lines: hours of a usual log
	closeTimeout = 3 * time.Second // for the lines that wait at the end of the process
)

// Writer passes lines on to another writer. Create it with [New]. It is safe for concurrent use.
type Writer struct {
	to         io.Writer
	waiting    chan []byte   // lines; nil after the last one
	end        chan struct{} // closed when the last line is written
	lost, told atomic.Int64  // lines; told: of the lost ones, those that the log names
	teller     *slog.Logger  // names them
}

// New returns a writer that writes from a goroutine of its own until [Writer.Close].
func New(to io.Writer) *Writer {
	w := &Writer{to: to, waiting: make(chan []byte, maxWaiting), end: make(chan struct{}), teller: slog.New(slog.NewTextHandler(to, nil))}
	go w.run()
	return w
}

// Logger returns a logger that writes to w with the handler that form returns. w says in the same form how many lines were lost.
// Logger is called before the first Write.
func (w *Writer) Logger(form func(io.Writer) slog.Handler) *slog.Logger {
	w.teller = slog.New(form(w.to))
	return slog.New(form(w))
}

// Write implements [io.Writer] for one line. It never waits and never fails: a line that finds no room is lost.
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
	torn := false // the last line is cut off
	for line := range w.waiting {
		if line == nil {
			return
		}
		if torn {
			line = append([]byte("\n"), line...)
		}
		n, err := w.to.Write(line)
		if n > 0 {
			torn = n < len(line)
		}
		if err != nil {
			w.lost.Add(1)
		} else if untold := w.lost.Load() - w.told.Load(); untold > 0 && len(w.waiting) == 0 { // else they were lost after those that wait
			w.teller.Warn("log lines lost", "lines", untold)
			w.told.Add(untold)
		}
	}
}

// Lost returns how many lines were lost.
func (w *Writer) Lost() int64 { return w.lost.Load() }

// Err returns an error from the loss of a line until the log says how many are lost.
func (w *Writer) Err() error {
	if w.told.Load() < w.lost.Load() {
		return errors.New("log lines are lost")
	}
	return nil
}

// Close waits until the lines that wait are written, for a short time. Then it gives them up.
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
