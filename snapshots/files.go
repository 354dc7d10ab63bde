package snapshots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// files is what is on the disk, and what the disk has refused.
type files struct {
	dir    string // <Dir>/<Source>
	log    *slog.Logger
	latest func() time.Time // [Options.Latest]
	lock   *os.File         // keeps other processes out of dir
	writer *writer
	bad    atomic.Int64 // stored files found that can never be served

	writing chan struct{}             // full while files are written or removed, see use; who fills it may lock disk
	working sync.WaitGroup            // goroutines that do so
	since   atomic.Pointer[time.Time] // when the use of the disk that goes on began; nil: none goes on

	disk          sync.Mutex // held while it is decided what the disk is to have, not while it works; its holder may lock mu; guards the next fields
	objectsBefore string     // [Ages.ObjectsBefore]
	unread        bool       // a file could not be read at the start, so it may name any object

	mu     sync.Mutex          // guards the fields below; held only briefly
	index  map[key]*entry      // the files and objects that may be read
	dates  map[string][]string // by name, the dates that have a file in index, rising; the slices are never changed
	queue  map[key]Packed      // last write of each file that the disk has not taken yet
	outage error               // why the disk does not take files, as the log says; nil: it takes them
}

func newFiles(dir string, log *slog.Logger) *files {
	return &files{
		dir: dir, log: log, writer: &writer{log: log}, writing: make(chan struct{}, 1),
		index: map[key]*entry{}, dates: map[string][]string{}, queue: map[key]Packed{},
	}
}

// open takes the directory and indexes its files, as [Open] describes. No other goroutine uses f yet.
func (f *files) open() (err error) {
	if err = f.writer.makeDir(f.dir); err != nil {
		return err
	}
	if f.lock, err = f.writer.lockDir(f.dir); err != nil {
		return err
	}
	for _, dir := range []string{objectsDir, currentDir} {
		if err = f.writer.makeDir(filepath.Join(f.dir, dir)); err != nil {
			return err
		}
	}
	links := map[key]Packed{} // by the place under a date: the file in current/ that belongs there, too
	if err = walk(os.DirFS(f.dir), func(k key) error { return f.find(k, links) }); err != nil {
		return err
	}
	for k, p := range links {
		if e := f.index[k]; e == nil || e.age.computed.Before(p.entry.age.computed) {
			f.enqueue([]Packed{p})
		}
	}
	f.work()
	return nil
}

// find removes a temporary file, or indexes the file at k. It adds a file in current/ to links if it belongs under its date, too.
func (f *files) find(k key, links map[key]Packed) error {
	if Temporary(k.name) {
		if err := os.Remove(f.path(k)); err != nil {
			f.log.Warn("temporary file not removed", "err", err)
		}
		return nil
	}
	if k.dir == objectsDir {
		if sum := digestOfObject(k.name); sum != "" {
			f.remember(k, &entry{digest: sum})
		}
		return nil
	}
	var h fileHeader
	var e *entry
	file, err := readFile(f.path(k))
	if err == nil {
		h, e, err = readEntry(file, k)
	}
	if err != nil {
		f.passOver(k, nil, err)
		f.unread = f.unread || !errors.Is(err, ErrTorn)
		return nil
	}
	f.remember(k, e)
	if k.dir == currentDir && h.Dated {
		dated := key{h.Date, k.name}
		links[dated] = packed(dated, file, e, nil)
	}
	return nil
}

func (f *files) path(k key) string { return filepath.Join(f.dir, k.dir, k.name) }

// walk calls visit for every entry except folders in the directories of a source that hold its files, sorted by path. A file
// or link that has the name of such a directory, or of a temporary file, is visited with dir "", and so is the folder of a date
// that cannot be read. A file whose name is none of ours is not visited.
func walk(source fs.FS, visit func(k key) error) error {
	return fs.WalkDir(source, ".", func(at string, entry fs.DirEntry, err error) error {
		dir, name := path.Split(at)
		known := name == currentDir || name == objectsDir || isDate(name) || Temporary(name)
		switch {
		case err != nil && isDate(name):
			return visit(key{"", name})
		case err != nil:
			return err
		case at == "." || dir == "" && known && entry.IsDir() && !Temporary(name):
			return nil // visits what is in it
		case entry.IsDir() && (dir != "" || !known):
			return fs.SkipDir
		case dir == "" && !known:
			return nil
		case dir != "" && !Temporary(name) && !stored(at):
			return nil // of another program
		}
		if err = visit(key{strings.TrimSuffix(dir, "/"), name}); err == nil && entry.IsDir() {
			return fs.SkipDir // a folder in the place of a temporary file
		}
		return err
	})
}

// Packed is a file or an object as it is written. Nothing of it may be changed.
type Packed struct {
	Path   string
	SHA256 string // what [Store.Digest] returns
	Body   []byte
	Answer *Edition // what a request for the date of the file gets; nil: it is in the file, or it is an object

	key      key
	entry    *entry
	replaces string // digest of the other answer that was stored in its place; "" if there was none
}

func packed(k key, body []byte, e *entry, answer *Edition) Packed {
	e.size = int64(len(body))
	return Packed{Path: k.String(), SHA256: e.digest, Body: body, Answer: answer, key: k, entry: e}
}

// ErrOlder is an answer older than the one stored under its path.
var ErrOlder = errors.New("answer is older than the stored one")

// keepsOut says whether an answer that is there keeps another out, because it is newer.
func (f *files) keepsOut(there, other age) bool {
	return there.newer(other) && (f.latest == nil || !there.asOf.After(f.latest()))
}

// admit returns a batch without the files that are older than those stored in their places, and an ErrOlder of the first of
// them. Every file that is written goes through admit. f.disk is held.
func (f *files) admit(batch []Packed) (admitted []Packed, older error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range batch {
		e := f.last(p.key)
		if e != nil && f.keepsOut(e.age, p.entry.age) {
			older = cmp.Or(older, fmt.Errorf("%w: %s has %v, stored is %v", ErrOlder, p.Path, p.entry.age, e.age))
			continue
		}
		if e != nil && e.digest != p.SHA256 {
			p.replaces = e.digest
		}
		admitted = append(admitted, p)
	}
	return admitted, older
}

// enqueue queues objects and files. It changes nothing in the batch, which [Options.Publish] may keep. f.disk is held.
func (f *files) enqueue(batch []Packed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range batch {
		p.Answer = nil // the queue does not need it
		f.queue[p.key] = p
	}
}

// longestWrite is how long Save waits for the disk. Then the disk is said not to answer, and nobody waits for it until it does.
const longestWrite = 10 * time.Second

// use takes the disk until done is called.
func (f *files) use() (done func()) {
	f.writing <- struct{}{}
	f.since.Store(new(time.Now()))
	return func() {
		f.since.Store(nil)
		<-f.writing
	}
}

// work uses the disk for what waits for it.
func (f *files) work() {
	defer f.use()()
	f.clear(true)
}

// clear writes what is queued, and may remove what no file names. The caller uses the disk.
func (f *files) clear(sweeps bool) {
	if f.flush(); sweeps {
		f.sweep()
	}
}

// silent returns an error while the disk does not answer.
func (f *files) silent() error {
	if since := f.since.Load(); since != nil && time.Since(*since) >= longestWrite {
		return fmt.Errorf("disk has not answered since %s", since.UTC().Format(time.RFC3339))
	}
	return nil
}

// attempt lets do use the disk, and returns false if the disk does not answer: do then goes on when it does, or was not called, because the disk
// had not answered before.
func (f *files) attempt(do func()) bool {
	if f.silent() != nil {
		return false
	}
	done := make(chan struct{})
	f.working.Go(func() {
		defer close(done)
		defer f.use()()
		do()
	})
	for range longestWrite / time.Second { // one second after the other, so that the time in which the process is suspended counts as one
		select {
		case <-done:
			return true
		case <-time.After(time.Second):
		}
	}
	return false
}

// write lets the disk take what is queued, and lets reads find it, even if the disk refuses it or does not answer.
func (f *files) write(sweeps bool) {
	if f.attempt(func() { f.clear(sweeps) }) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, p := range f.queue {
		f.remember(k, p.entry)
	}
	if f.outage == nil {
		f.log.Error("disk does not answer: answers are served from memory until it does")
		f.outage = errors.New("disk does not answer")
	}
}

// The ranks order the writes of a publication: what is named before what names it.
const (
	rankObject = iota
	rankCurrent
	rankDated
	ranks
)

func (k key) rank() int {
	switch k.dir {
	case objectsDir:
		return rankObject
	case currentDir:
		return rankCurrent
	}
	return rankDated
}

// flush writes the queue, and lets reads find its files. What the disk refuses stays in the queue. While an object is refused, no file is written.
// The caller uses the disk.
func (f *files) flush() {
	f.mu.Lock()
	all := maps.Clone(f.queue)
	f.mu.Unlock()
	if len(all) == 0 {
		return
	}
	f.look(all)
	written := map[key]bool{}
	var refusal error
	for rank := range ranks {
		refusal = cmp.Or(refusal, f.writeRank(all, rank, written))
		if rank == rankObject && refusal != nil {
			break
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, p := range all {
		if f.queue[k].entry != p.entry {
			continue // a later write of its place is queued, or it was removed
		}
		f.remember(k, p.entry)
		if written[k] {
			delete(f.queue, k)
		}
	}
	switch {
	case refusal != nil && f.outage == nil:
		f.log.Error("disk refuses writes: answers are served from memory until it is writable again", "err", refusal)
	case refusal == nil && f.outage != nil:
		f.log.Info("disk writable again, all pending files saved")
	}
	f.outage = refusal
}

// writeRank writes the files of a rank, adds those that the disk took to written, and returns the first error of the others.
// The file of a date that is the same file as the one just written in current/, by its digest, becomes a link to it.
func (f *files) writeRank(all map[key]Packed, rank int, written map[key]bool) (first error) {
	var part []Packed
	for _, p := range all {
		if p.key.rank() == rank {
			part = append(part, p)
		}
	}
	slices.SortFunc(part, func(a, b Packed) int { return cmp.Compare(a.Path, b.Path) })
	var batch []replacement
	for _, p := range part {
		w := replacement{dir: filepath.Join(f.dir, p.key.dir), name: p.key.name, body: p.Body}
		if current := (key{currentDir, p.key.name}); rank == rankDated && written[current] && all[current].SHA256 == p.SHA256 {
			w.link = f.path(current)
		}
		batch = append(batch, w)
	}
	for i, err := range f.writer.write(batch) {
		if err == nil {
			written[part[i].key] = true
		}
		first = cmp.Or(first, err)
	}
	return first
}

// retryEvery is the pause between two attempts to write the queue.
const retryEvery = 5 * time.Second

// retry writes the queue every few seconds until ctx ends.
func (f *files) retry(ctx context.Context) {
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if f.waiting() > 0 {
			f.work()
		}
	}
}

// waiting returns how many files are queued.
func (f *files) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue)
}

// DiskError returns why files are queued, or nil while the disk takes all files.
func (f *files) DiskError() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch silent := f.silent(); {
	case len(f.queue) == 0:
		return nil
	case silent != nil || f.outage == nil:
		return silent
	}
	return fmt.Errorf("disk refuses writes, %d files pending: %w", len(f.queue), f.outage)
}
