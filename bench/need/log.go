package need

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// Log is a text that is read while others write it. The zero value is empty and ready.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer // not embedded: io.Copy would use its ReadFrom, which takes no lock
}

// Write adds to the text.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String returns all that was written and not taken.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Take returns what was written since it was last called.
func (l *Log) Take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// Count returns how often a text was written.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }

// Logger returns a logger that writes what is of a level, or above it, here.
func (l *Log) Logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}
