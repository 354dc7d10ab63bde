package lines

import (
	"log"
	"os/signal"
	"syscall"
)

// Outlive lets a process outlive its terminal (SIGHUP) and the reader of its log (SIGPIPE), and write its log in the background of a
// terminal (SIGTTOU). Other signals of daemons, such as SIGUSR1, do nothing in a Go program. Libraries then log to w. It returns w.
func (w *Writer) Outlive() *Writer {
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE, syscall.Signal(22)) // SIGTTOU, which has no name on Windows
	log.SetOutput(w)
	return w
}
