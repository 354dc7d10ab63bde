package snapshots

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// DatesOf returns the dates on which a product has a stored answer, rising. The slice is shared and must not be changed. For
// a dated product, DatesOf does not allocate.
func (s *Store) DatesOf(product string) []string {
	if i := slices.Index(s.opts.DatedProducts, product); i >= 0 {
		return s.datesOf(s.dated[i])
	}
	return s.datesOf(FileName(product))
}

// StateDates returns the dates on which a state is stored, rising. The slice is shared and must not be changed.
func (s *Store) StateDates(name string) []string { return s.datesOf(FileName(stateProduct + name)) }

// HideAfter takes the files of later dates out of the index, and returns the later dates that have an answer, rising. (After
// a kill, a date may have a state and no answer yet.) The files stay on the disk. A call with a later date, or a new write of
// a file, brings it back.
func (s *Store) HideAfter(date string) (hidden []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for file := range s.index {
		dates := slices.Concat(s.index[file], s.hidden[file])
		slices.Sort(dates)
		dates = slices.Compact(dates)
		i, _ := slices.BinarySearch(dates, date+"~") // sorts directly after the date
		if !strings.HasPrefix(file, FileName(stateProduct)) {
			hidden = append(hidden, dates[i:]...)
		}
		s.index[file], s.hidden[file] = dates[:i:i], dates[i:]
	}
	slices.Sort(hidden)
	return slices.Compact(hidden)
}

func (s *Store) datesOf(file string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index[file]
}

// remember indexes a file.
func (s *Store) remember(k key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dates := s.index[k.file]
	if i, found := slices.BinarySearch(dates, k.date); !found {
		s.index[k.file] = slices.Concat(dates[:i], []string{k.date}, dates[i:])
	}
}

// forget takes a file out of the index.
func (s *Store) forget(k key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dates := s.index[k.file]
	if i, found := slices.BinarySearch(dates, k.date); found {
		s.index[k.file] = slices.Concat(dates[:i], dates[i+1:])
	}
}

func (s *Store) path(k key) string { return filepath.Join(s.dir, k.date, k.file) }

// walkDates calls visit for every entry except folders in the date directories of a source's directory, dates rising. A
// file or link that has the name of a date is visited with date "": it cannot be served and is a bad file.
func walkDates(dir string, visit func(k key, e fs.DirEntry)) error {
	days, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return err
	}
	for _, day := range days {
		if !isDate(day.Name()) {
			continue
		}
		date, files := "", []fs.DirEntry{day}
		if day.IsDir() {
			date = day.Name()
			if files, err = os.ReadDir(filepath.Join(dir, date)); err != nil {
				return err
			}
		}
		for _, f := range files {
			if !f.IsDir() {
				visit(key{date, f.Name()}, f)
			}
		}
	}
	return nil
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil && len(s) == len(time.DateOnly)
}
