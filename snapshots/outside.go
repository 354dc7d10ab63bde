package snapshots

import (
	"fmt"
	"path/filepath"
)

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
