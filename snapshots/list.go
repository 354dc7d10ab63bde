package snapshots

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ListDates returns the dates on which a product is stored in a data directory, rising, as a process does that does not
// own the directory: it takes no lock and changes nothing.
func ListDates(dir, source, product string) ([]string, error) {
	days, err := os.ReadDir(filepath.Join(dir, source)) // sorted by name
	if err != nil {
		return nil, err
	}
	var dates []string
	for _, day := range days {
		if !day.IsDir() || !isDate(day.Name()) {
			continue
		}
		switch info, err := os.Lstat(filepath.Join(dir, source, day.Name(), fileName(product))); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case info.Mode().IsRegular():
			dates = append(dates, day.Name())
		}
	}
	return dates, nil
}
