// Package folder reads upstream documents from a folder.
//
// The folder has the upstream's own paths, each perhaps with .gz behind it. When both are there, the file without .gz counts. Its first
// bytes say whether a file is compressed, not its name:
//
//	options/_SPX.json  quotes/XLK.json  charts/historical/XLK.json  settlement/2026-10-05.csv
//
// There are two sources. [Recorded] has the documents that were there at the start, and its market stands still. [Live] has
// those that are there now. No link leads out of the folder.
package folder

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
)

// Live is a source of the documents that another program puts into a folder. It looks only at the files of the names that it
// is asked for. It is safe for concurrent use.
type Live struct {
	dir string

	mu    sync.Mutex             // held only briefly, and not while the folder is read
	found map[upstream.Name]bool // whether a file was there, of the names that were asked for
}

// NewLive returns the source of a folder. The folder must exist, but may be empty.
func NewLive(dir string) (*Live, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	return &Live{dir: dir, found: map[upstream.Name]bool{}}, root.Close()
}

// Offers implements [upstream.Source]. The SPX chain is always offered, because without it there is little to serve, and
// settlements once their folder is there. Another document is offered while its file is there. Offers looks at the folder only the
// first time that it is asked for a name, so that no request waits for a disk or a network. [Live.Version] looks again.
func (l *Live) Offers(name upstream.Name) bool {
	if name == upstream.Options("_SPX") {
		return true
	}
	key := offeredAs(name)
	l.mu.Lock()
	there, known := l.found[key]
	l.mu.Unlock()
	return there || !known && l.look(key) != ""
}

// offeredAs returns the file whose presence says that a document is offered, or the folder of all settlements.
func offeredAs(name upstream.Name) upstream.Name {
	if kind, _ := name.Split(); kind == upstream.SettlementKind {
		return "settlement"
	}
	return name
}

// Version returns a text that changes whenever the file of a document does, and "" while there is no file. It looks at the folder, and does not
// read the file.
func (l *Live) Version(name upstream.Name) string {
	if key := offeredAs(name); key != name {
		l.look(key)
		return l.version(name)
	}
	return l.look(name)
}

// look returns the version of a file or folder, and remembers whether it is there.
func (l *Live) look(name upstream.Name) string {
	v := l.version(name)
	l.mu.Lock()
	l.found[name] = v != ""
	l.mu.Unlock()
	return v
}

func (l *Live) version(name upstream.Name) string {
	_, info, err := find(l.dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return err.Error()
	}
	return version(info)
}

// version returns a text of the name, the size, the time of the last change and, where the system has one, the inode of a file.
// XLK.json.gz may get the inode of an XLK.json that was removed: the name tells them apart.
func version(info fs.FileInfo) string {
	return fmt.Sprint(info.Name(), info.Size(), info.ModTime().UnixNano(), reflect.Indirect(reflect.ValueOf(info.Sys())).FieldByName("Ino"))
}

// Fetch implements [upstream.Source]. It does not read a file again whose document is since.
func (l *Live) Fetch(_ context.Context, name upstream.Name, since *upstream.Document) (*upstream.Document, error) {
	path, info, err := find(l.dir, name)
	if err == nil && since != nil && since.ETag == version(info) {
		return nil, upstream.ErrNotModified
	}
	doc, info, err := Read(l.dir, path, name) // its error also says why find failed
	if err != nil {
		return nil, err
	}
	doc.Received, doc.ETag = time.Now().UTC(), version(info)
	return doc, nil
}

// find returns the path and the state of the file of a document: the plain file, else the compressed one.
func find(dir string, name upstream.Name) (path string, info fs.FileInfo, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return string(name), nil, err
	}
	defer root.Close()
	for _, path := range []string{string(name), string(name) + packed} {
		if info, err = root.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path, info, err
		}
	}
	return string(name), nil, err
}

// packed may end the path of a compressed file.
const packed = ".gz"

// NameOf returns the name of the document in a file. The path is relative to the folder.
func NameOf(path string) upstream.Name { return upstream.Name(strings.TrimSuffix(path, packed)) }

// Files returns the paths of the documents in a folder, rising, and how many other files there are. The error is that of the folder itself. Other
// folders that cannot be read are passed over.
func Files(dir string) (documents []string, others int, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		kind, _ := NameOf(path).Split()
		switch {
		case err != nil && path == ".":
			return err
		case err != nil:
			return fs.SkipDir
		case kind != upstream.Unknown:
			documents = append(documents, path)
		case !e.IsDir():
			others++
		}
		return nil
	})
	return documents, others, err
}

// Read returns the document of a name from a file of a folder, and the state of the file. The path is relative to the folder.
// The error is an [*upstream.Error]: Missing without a file, Unreachable when the file cannot be opened within the folder or is
// not a regular file, and TooLarge, before anything of the file is read. Read does not wait for the writer of a FIFO.
func Read(dir, path string, name upstream.Name) (*upstream.Document, fs.FileInfo, error) {
	failed := func(reason upstream.Reason, err error) (*upstream.Document, fs.FileInfo, error) {
		if errors.Is(err, fs.ErrNotExist) {
			reason = upstream.Missing
		}
		return nil, nil, &upstream.Error{Name: name, Reason: reason, Err: err}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return failed(upstream.Unreachable, err)
	}
	defer root.Close()
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return failed(upstream.Unreachable, fmt.Errorf("open within the folder: %w", err))
	}
	defer f.Close()
	kind, _ := name.Split()
	info, err := f.Stat()
	switch {
	case err != nil:
		return failed(upstream.Unreachable, err)
	case !info.Mode().IsRegular():
		return failed(upstream.Unreachable, fmt.Errorf("%s is not a regular file", path))
	case info.Size() > kind.MaxBody():
		return failed(upstream.TooLarge, fmt.Errorf("%s has %d bytes, over %d", path, info.Size(), kind.MaxBody()))
	}
	var body bytes.Buffer
	body.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := body.ReadFrom(io.LimitReader(f, kind.MaxBody())); err != nil {
		return failed(upstream.Truncated, err)
	}
	doc := &upstream.Document{Name: name}
	doc.Fill(body.Bytes())
	return doc, info, nil
}

// Recorded is a source of the documents that a folder had at the start. It is safe for concurrent use.
type Recorded struct {
	dir         string
	captured    map[upstream.Name]time.Time // when each document was captured; zero if the document does not say
	settlements []string                    // dates, rising
	now         time.Time
}

// NewRecorded indexes a folder. Of the chains, it reads and has only those that are named, or all if none is. It fails when the folder
// holds no such document. A document that cannot be read is an error of Fetch.
func NewRecorded(dir string, chains ...upstream.Name) (*Recorded, error) {
	r := &Recorded{dir: dir, captured: map[upstream.Name]time.Time{}}
	files, _, err := Files(dir)
	for _, path := range files {
		name := NameOf(path)
		if kind, _ := name.Split(); kind != upstream.OptionsKind || chains == nil || slices.Contains(chains, name) {
			r.index(name)
		}
	}
	if err == nil && len(r.captured) == 0 {
		err = errors.New("holds no document of an underlying or a fund: want options/SYMBOL.json, quotes/SYMBOL.json, charts/historical/SYMBOL.json or " +
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
			r.captured[name], r.now = q.CapturedAt, compute.Later(q.CapturedAt, r.now)
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
func (r *Recorded) Fetch(_ context.Context, name upstream.Name, _ *upstream.Document) (*upstream.Document, error) {
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
	files, others, _ := Files(filepath.Join(p.dir, d.String())) // what cannot be read has none
	for _, path := range files {
		names = append(names, NameOf(path))
	}
	return slices.Compact(names), others
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
