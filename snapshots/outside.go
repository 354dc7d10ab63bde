package snapshots

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
)

// WriteFile replaces dir/name as the store does: a crash at any instant leaves the old file or the new one, whole.
// It creates dir. What a crash leaves behind has a name for which [Temporary] says true.
func WriteFile(dir, name string, b []byte) error {
	w := writer{disk: system, log: slog.New(slog.DiscardHandler)}
	return w.write(dir, name, b)
}

// Temporary says whether a file is one that a writer had not finished.
func Temporary(name string) bool {
	return strings.HasPrefix(name, tempPrefix)
}

// ReadFile reads and verifies a product's file of a date in a data directory, as a process does that does not own the
// directory: it takes no lock and changes nothing. It returns ErrNoSnapshot when there is none.
func ReadFile(dir, source, product, date string) (File, error) {
	s := &Store{dir: filepath.Join(dir, source)}
	f, err := s.load(product, date, fileName(product))
	if err != nil {
		return f, fmt.Errorf("read %s: %w", s.path(date, fileName(product)), err)
	}
	return f, nil
}
