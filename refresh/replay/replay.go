// Package replay returns recorded upstream documents from a folder.
//
// The folder has the upstream's own paths, each file plain or compressed as .gz:
//
//	options/_SPX.json  quotes/XLK.json  charts/historical/XLK.json  settlement/2026-10-05.csv
package replay

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
)

// Source reads recorded documents. It is safe for concurrent use.
type Source struct {
	dir         string
	captured    map[upstream.Name]time.Time // when each document was captured; zero if the document does not say
	settlements []string                    // dates, rising
	now         time.Time
}

// New indexes a folder. It fails when the folder holds no document.
func New(dir string) (*Source, error) {
	s := &Source{dir: dir, captured: map[upstream.Name]time.Time{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name := upstream.Name(strings.TrimSuffix(filepath.ToSlash(relative), ".gz"))
		kind, key := name.Split()
		if kind == upstream.Unknown {
			return nil
		}
		return s.index(name, kind, key)
	})
	if err != nil {
		return nil, fmt.Errorf("open replay folder: %w", err)
	}
	if len(s.captured) == 0 {
		return nil, fmt.Errorf("open replay folder: %s holds no document: want options/SYMBOL.json, "+
			"quotes/SYMBOL.json, charts/historical/SYMBOL.json or settlement/YYYY-MM-DD.csv, each also as .gz", dir)
	}
	slices.Sort(s.settlements)
	if s.now.IsZero() && len(s.settlements) > 0 {
		newest, _ := compute.ParseDate(s.settlements[len(s.settlements)-1]) // index has parsed it
		s.now = newest.At(18, 30, 0, compute.NewYork).UTC()                 // when the file is published
	}
	return s, nil
}

// index adds a document.
func (s *Source) index(name upstream.Name, kind upstream.Kind, key string) error {
	s.captured[name] = time.Time{}
	switch kind {
	case upstream.SettlementKind:
		if _, err := compute.ParseDate(key); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.settlements = append(s.settlements, key)
	case upstream.OptionsKind, upstream.QuotesKind:
		body, err := s.read(name, kind)
		if err != nil {
			return err
		}
		if q, err := cboe.DecodeQuote(body); err == nil {
			s.captured[name] = q.CapturedAt
			if q.CapturedAt.After(s.now) {
				s.now = q.CapturedAt
			}
		}
	}
	return nil
}

// Now returns the time of the replay: the newest instant at which a document of the folder was captured.
func (s *Source) Now() time.Time { return s.now }

// Offers implements [upstream.Source].
func (s *Source) Offers(name upstream.Name) bool {
	kind, _ := name.Split()
	_, ok := s.captured[name]
	return ok || kind == upstream.SettlementKind && len(s.settlements) > 0
}

// Fetch implements [upstream.Source]. For a date without a settlement file it returns the newest earlier one, as the upstream
// does.
func (s *Source) Fetch(ctx context.Context, name upstream.Name, since *upstream.Document) (*upstream.Document, error) {
	if err := ctx.Err(); err != nil {
		return nil, &upstream.Error{Name: name, Reason: upstream.TimedOut, Err: err}
	}
	kind, key := name.Split()
	file, date := name, ""
	if kind == upstream.SettlementKind {
		i, found := slices.BinarySearch(s.settlements, key)
		if !found {
			i--
		}
		if i < 0 {
			return nil, &upstream.Error{Name: name, Reason: upstream.Missing, Err: errors.New("no settlement file of that date or before")}
		}
		date = s.settlements[i]
		file = upstream.Settlement(date)
	}
	captured, ok := s.captured[file]
	if !ok {
		return nil, &upstream.Error{Name: name, Reason: upstream.Missing, Err: errors.New("not recorded")}
	}
	if since != nil && since.FileDate == date {
		return nil, upstream.ErrNotModified
	}
	body, err := s.read(file, kind)
	if err != nil {
		return nil, &upstream.Error{Name: name, Reason: upstream.Truncated, Err: err}
	}
	if captured.IsZero() {
		captured = s.now
	}
	return &upstream.Document{Name: name, Body: body, Received: captured, FileDate: date}, nil
}

// read returns the bytes of a document, from its plain or its compressed file.
func (s *Source) read(name upstream.Name, kind upstream.Kind) ([]byte, error) {
	path := filepath.Join(s.dir, filepath.FromSlash(string(name)))
	f, err := os.Open(path)
	packed := errors.Is(err, fs.ErrNotExist)
	if packed {
		path += ".gz"
		f, err = os.Open(path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r io.Reader = f
	if packed {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	body, err := io.ReadAll(io.LimitReader(r, kind.MaxBody()+1))
	if err == nil && int64(len(body)) > kind.MaxBody() {
		err = fmt.Errorf("over %d bytes", kind.MaxBody())
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return body, nil
}
