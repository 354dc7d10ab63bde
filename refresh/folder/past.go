package folder

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

// Past is the documents of past sessions in a folder that has one for each date, in which the files are as in any folder:
//
//	2026-11-20/options/_SPX.json.gz  2026-11-20/settlement/2026-11-20.csv
//
// It reads the folder whenever it is asked. It is safe for concurrent use.
type Past struct {
	dir      string
	calendar *compute.Calendar
}

// NewPast returns the past in a folder. It fails if the folder cannot be read, or has no folder whose name is a date.
func NewPast(dir string, cal *compute.Calendar) (*Past, error) {
	p := &Past{dir, cal}
	if sessions, others, err := p.Dates(); err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	} else if len(sessions)+len(others) == 0 {
		return nil, fmt.Errorf("open history %s: no folder in it has a date for a name, such as 2026-11-20/options/_SPX.json", dir)
	}
	return p, nil
}

// Dates returns the dates for which there is a folder, rising: the sessions of the exchange, and the others.
func (p *Past) Dates() (sessions, others []compute.Date, err error) {
	entries, err := os.ReadDir(p.dir) // sorted
	for _, e := range entries {
		d, err := compute.ParseDate(e.Name())
		switch {
		case err != nil, !e.IsDir() && e.Type()&fs.ModeSymlink == 0:
		case p.calendar.IsSession(d):
			sessions = append(sessions, d)
		default:
			others = append(others, d)
		}
	}
	return sessions, others, err
}

// Names returns the documents in the folder of a date, sorted, whether they can be used or not, and how many other files there are.
func (p *Past) Names(d compute.Date) (names []upstream.Name, others int) {
	_ = fs.WalkDir(os.DirFS(filepath.Join(p.dir, d.String())), ".", func(path string, e fs.DirEntry, err error) error { // what cannot be read has none
		name := upstream.Name(strings.TrimSuffix(path, packed))
		switch kind, _ := name.Split(); {
		case err != nil || e.IsDir():
		case kind == upstream.Unknown:
			others++
		case !slices.Contains(names, name):
			names = append(names, name)
		}
		return nil
	})
	return names, others
}

// Sessions returns the sessions for which there is a folder and whose UTC date is over before an instant, rising.
func (p *Past) Sessions(before time.Time) []compute.Date {
	all, _, _ := p.Dates() // a folder that cannot be read now has none
	return slices.DeleteFunc(all, func(d compute.Date) bool { return d >= compute.DateOf(before.UTC()) })
}

// At returns the document in the folder of the New York date of an instant, as if it had arrived then. Its error is that of [Read].
func (p *Past) At(name upstream.Name, at time.Time) (*upstream.Document, error) {
	date := compute.DateOf(at.In(compute.NewYork)).String()
	path, _, _ := find(p.dir, upstream.Name(date)+"/"+name) // the error of Read says why it failed
	doc, _, err := Read(p.dir, path, name)
	if err != nil {
		return nil, err
	}
	doc.Received = at.UTC()
	return doc, nil
}
