package folder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
)

// Recorded is a source of the documents that a folder had at the start. It is safe for concurrent use.
type Recorded struct {
	dir         string
	captured    map[upstream.Name]time.Time // when each document was captured; zero if the document does not say
	settlements []string                    // dates, rising
	now         time.Time
}

// NewRecorded indexes a folder. It fails when the folder holds no document. A document that cannot be read is an error of Fetch.
func NewRecorded(dir string) (*Recorded, error) {
	r := &Recorded{dir: dir, captured: map[upstream.Name]time.Time{}}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == ".":
			return err
		case err != nil: // of a folder that cannot be read
			return fs.SkipDir
		}
		r.index(upstream.Name(strings.TrimSuffix(path, packed)))
		return nil
	})
	if err == nil && len(r.captured) == 0 {
		err = errors.New("holds no document: want options/SYMBOL.json, quotes/SYMBOL.json, charts/historical/SYMBOL.json or " +
			"settlement/YYYY-MM-DD.csv, each also as .gz")
	}
	if err != nil {
		return nil, fmt.Errorf("open replay folder %s: %w", dir, err)
	}
	slices.Sort(r.settlements)
	if r.now.IsZero() && len(r.settlements) > 0 {
		newest, _ := compute.ParseDate(r.settlements[len(r.settlements)-1]) // index has parsed it
		r.now = newest.At(18, 30, 0, compute.NewYork).UTC()                 // when the file is published
	}
	r.now = cmp.Or(r.now, time.Now().UTC().Truncate(time.Second))
	return r, nil
}

// index adds a name if it can be that of a document.
func (r *Recorded) index(name upstream.Name) {
	kind, key := name.Split()
	switch kind {
	case upstream.Unknown:
		return
	case upstream.SettlementKind:
		if _, err := compute.ParseDate(key); err != nil {
			return
		}
		r.settlements = append(r.settlements, key)
	}
	r.captured[name] = time.Time{}
	if kind != upstream.OptionsKind && kind != upstream.QuotesKind {
		return
	}
	if body, err := r.read(name); err == nil {
		if q, err := cboe.DecodeQuote(body); err == nil {
			r.captured[name] = q.CapturedAt
			if q.CapturedAt.After(r.now) {
				r.now = q.CapturedAt
			}
		}
	}
}

// Now returns the time of the replay: the newest instant at which a document of the folder was captured.
func (r *Recorded) Now() time.Time { return r.now }

// Offers implements [upstream.Source].
func (r *Recorded) Offers(name upstream.Name) bool {
	kind, _ := name.Split()
	_, ok := r.captured[name]
	return ok || kind == upstream.SettlementKind && len(r.settlements) > 0
}

// Fetch implements [upstream.Source]. For a date without a settlement file it returns the newest earlier one, as the upstream
// does.
func (r *Recorded) Fetch(_ context.Context, name upstream.Name, since *upstream.Document) (*upstream.Document, error) {
	kind, key := name.Split()
	file, date := name, ""
	if kind == upstream.SettlementKind {
		i, found := slices.BinarySearch(r.settlements, key)
		if !found {
			i--
		}
		if i < 0 {
			return nil, &upstream.Error{Name: name, Reason: upstream.Missing, Err: errors.New("no settlement file of that date or before")}
		}
		date = r.settlements[i]
		file = upstream.Settlement(date)
	}
	captured, ok := r.captured[file]
	if !ok {
		return nil, &upstream.Error{Name: name, Reason: upstream.Missing, Err: errors.New("not recorded")}
	}
	if since != nil && since.FileDate == date {
		return nil, upstream.ErrNotModified
	}
	body, err := r.read(file)
	if err != nil {
		return nil, err
	}
	if captured.IsZero() {
		captured = r.now
	}
	return &upstream.Document{Name: name, Body: body, Received: captured, FileDate: date}, nil
}

// read returns the bytes of a document, unpacked.
func (r *Recorded) read(name upstream.Name) ([]byte, error) {
	path, _, _ := find(r.dir, name) // the error of Read says why it failed
	doc, _, err := Read(r.dir, path, name)
	if err != nil {
		return nil, err
	}
	if doc.Gzip != nil {
		return cboe.Unpack(doc)
	}
	return doc.Body, nil
}
