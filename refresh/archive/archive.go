// Package archive keeps the inputs of stored answers, so that a day can be computed again.
//
// A [Recipe] says what the answer of a product and a date was computed from: the settings, and the documents by their
// SHA-256. A document is what the upstream sent, or a state that earlier answers left. It is stored once, in gzip, under
// its digest, even if several recipes name it. A new recipe replaces the older one of its product and date. A document that
// no recipe names any more is removed. An [Archive] bounds its bytes and its age: it removes the oldest dates first.
//
// Documents are written before the recipes that name them, and removed after them. So a crash can leave only documents that
// no recipe names, and the next [Open] removes them. If a document cannot be written, no recipe is; if a recipe cannot be
// written, its older one stays. What was not written stays in memory, pending, until the next write.
//
// Before the caller writes the file of an answer, it puts the recipe under the product with the suffix [Next]. The recipe
// of the answer that the file still has stays beside it. After the caller has written the file, it puts the recipe under the
// product. So a crash at any instant leaves the recipe of the answer that is in the file.
package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"

	"strikecache/snapshots"
)

// Archive writes recipes and documents. Open it once per directory. All methods are safe for concurrent use. A nil Archive
// keeps nothing: Err and Close may be called on it.
type Archive struct {
	dir      string
	maxBytes int64
	log      *slog.Logger
	zip      *gzip.Writer
	write    func(batch []snapshots.Write) []error
	failed   atomic.Pointer[error] // the error of the last write; nil if nothing is pending

	mu      sync.Mutex      // held while files are written or removed
	files   map[string]file // by name: the recipes and documents on the disk
	pending map[string]file // by name: the recipes and documents that are not on the disk yet
}

// file is a recipe or a document.
type file struct {
	size    int64
	digests []string // of the documents that a recipe names
	body    []byte   // nil if the file is on the disk
}

// Open indexes the archive in a directory, which need not exist, and removes what a crash left behind. The caller
// owns the directory: no other process may write there. The archive keeps at most maxBytes.
func Open(dir string, maxBytes int64, log *slog.Logger) (*Archive, error) {
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	a := &Archive{
		dir: dir, maxBytes: maxBytes, log: log, zip: z, write: snapshots.WriteFiles,
		files: map[string]file{}, pending: map[string]file{},
	}
	if err := a.scan(); err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	return a, nil
}

// scan indexes the directory and removes the documents that no recipe names. A recipe that cannot be read may name any
// document, so it counts as naming every document in the directory.
func (a *Archive) scan() error {
	entries, err := os.ReadDir(a.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var documents, unreadable []string
	for _, e := range entries {
		name := e.Name()
		if snapshots.Temporary(name) {
			if err := os.Remove(filepath.Join(a.dir, name)); err != nil {
				return err
			}
			continue
		}
		digest := documentDigest(name)
		if digest == "" && !isRecipe(name) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		f := file{size: info.Size()}
		if digest != "" {
			documents = append(documents, digest)
		} else if r, err := readRecipe(a.dir, name); err != nil {
			a.log.Error("recipe not readable", "file", filepath.Join(a.dir, name), "err", err)
			unreadable = append(unreadable, name)
		} else {
			f.digests = r.digests()
		}
		a.files[name] = f
	}
	for _, name := range unreadable {
		a.files[name] = file{size: a.files[name].size, digests: documents}
	}
	a.sweep()
	return nil
}

// Next follows the product in the recipe of an answer whose file is being written.
const Next = "@next"

// Put archives recipes and those of their documents that the archive does not have yet. A recipe replaces the older one of
// its product and date. Then Put removes the recipe of that product and date with the suffix [Next]. Put does not keep the
// Body of a document, but its Gzip while it is pending. If a write fails, Put returns the error. What was not written is pending:
// the next Put or Close writes it.
func (a *Archive) Put(recipes []Recipe, documents []*Document) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var done []string
	for i := range recipes {
		body, err := encodeRecipe(&recipes[i])
		if err != nil {
			return err
		}
		a.pending[recipeFile(recipes[i].Product, recipes[i].Date)] = file{int64(len(body)), recipes[i].digests(), body}
		next := recipeFile(recipes[i].Product+Next, recipes[i].Date)
		delete(a.pending, next)
		if a.files[next].size > 0 {
			done = append(done, next)
		}
	}
	named := a.named()
	maps.DeleteFunc(a.pending, func(name string, _ file) bool {
		digest := documentDigest(name)
		return digest != "" && !named[digest]
	})
	for _, d := range documents {
		name := d.SHA256 + documentSuffix
		if (d.Body != nil || d.Gzip != nil) && named[d.SHA256] && a.pending[name].body == nil && !a.stored(d.SHA256) {
			body, err := a.pack(d)
			if err != nil {
				return err
			}
			a.pending[name] = file{size: int64(len(body)), body: body}
		}
	}
	if err := a.writePending(); err != nil {
		return err
	}
	for _, next := range done {
		a.remove(next)
	}
	return nil
}

// pack returns a document in gzip.
func (a *Archive) pack(d *Document) ([]byte, error) {
	if d.Gzip != nil {
		return d.Gzip, nil
	}
	var out bytes.Buffer
	out.Grow(len(d.Body) / 5)
	a.zip.Reset(&out)
	_, err := a.zip.Write(d.Body)
	err = errors.Join(err, a.zip.Close())
	a.zip.Reset(nil) // lets go of out
	return out.Bytes(), err
}

// stored says whether a document is on the disk.
func (a *Archive) stored(digest string) bool {
	return a.files[digest+documentSuffix].size > 0 || a.files[digest+olderSuffix].size > 0
}

// writePending writes the pending documents, and then the pending recipes, which name them. Then it removes the documents
// that no recipe names any more, and the oldest dates if the archive is over its bound.
func (a *Archive) writePending() (err error) {
	defer func() {
		if a.failed.Store(nil); err != nil {
			a.failed.Store(&err)
		}
	}()
	for _, ofDocuments := range []bool{true, false} {
		var batch []snapshots.Write
		for name, f := range a.pending {
			if (documentDigest(name) != "") == ofDocuments {
				batch = append(batch, snapshots.Write{Dir: a.dir, Name: name, Body: f.body})
			}
		}
		for i, failed := range a.write(batch) {
			name := batch[i].Name
			if failed != nil {
				err = fmt.Errorf("archive %s: %w", name, failed)
				continue
			}
			f := a.pending[name]
			f.body = nil
			a.files[name] = f
			delete(a.pending, name)
		}
		if err != nil {
			return err
		}
	}
	a.sweep()
	for _, date := range a.dates() {
		if a.bytes() <= a.maxBytes {
			break
		}
		a.forget(date, "over the maximum size")
	}
	return nil
}

// bytes returns the size of the files on the disk.
func (a *Archive) bytes() (sum int64) {
	for _, f := range a.files {
		sum += f.size
	}
	return sum
}

// named returns the digests of the documents that a recipe names, on the disk or pending.
func (a *Archive) named() map[string]bool {
	named := map[string]bool{}
	for _, files := range []map[string]file{a.files, a.pending} {
		for _, f := range files {
			for _, digest := range f.digests {
				named[digest] = true
			}
		}
	}
	return named
}

// sweep removes the documents that no recipe names.
func (a *Archive) sweep() {
	named := a.named()
	for name := range a.files {
		if digest := documentDigest(name); digest != "" && !named[digest] {
			a.remove(name)
		}
	}
}

// remove removes a file. If that fails, the next sweep tries again.
func (a *Archive) remove(name string) {
	if err := os.Remove(filepath.Join(a.dir, name)); err == nil || errors.Is(err, fs.ErrNotExist) {
		delete(a.files, name)
	}
}

// forget removes the recipes of a date, and then the documents that only they named.
func (a *Archive) forget(date, why string) {
	before := a.bytes()
	for name := range a.files {
		if documentDigest(name) == "" && dateOf(name) == date {
			a.remove(name)
		}
	}
	a.sweep()
	a.log.Info("archived inputs removed", "date", date, "why", why, "bytes", before-a.bytes())
}

// Expire removes the recipes of the dates before the given one, YYYY-MM-DD, and then the documents that only they named.
// The newest date always stays.
func (a *Archive) Expire(before string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	dates := a.dates()
	for _, date := range dates[:max(len(dates)-1, 0)] {
		if date < before {
			a.forget(date, "over the maximum age")
		}
	}
}

// dates returns the dates with a recipe on the disk, rising.
func (a *Archive) dates() []string {
	var dates []string
	for name := range a.files {
		if documentDigest(name) == "" {
			dates = append(dates, dateOf(name))
		}
	}
	slices.Sort(dates)
	return slices.Compact(dates)
}

// Holds says whether a recipe of a product and a date on the disk, with or without the suffix [Next], names exactly these
// inputs, in this order, and all of them are on the disk.
func (a *Archive) Holds(product, date string, inputs []string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	named := func(product string) bool { return slices.Equal(a.files[recipeFile(product, date)].digests, inputs) }
	if len(inputs) == 0 || !named(product) && !named(product+Next) {
		return false
	}
	return !slices.ContainsFunc(inputs, func(digest string) bool { return !a.stored(digest) })
}

// Err returns the error because of which recipes are pending; nil if none are. It never waits for the disk.
func (a *Archive) Err() error {
	if a == nil {
		return nil
	}
	if err := a.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Recipe reads the recipe of a product and a date. The error is ErrGone when there is none.
func (a *Archive) Recipe(product, date string) (*Recipe, error) {
	return ReadRecipe(a.dir, product, date)
}

// Body reads the bytes of an input and checks them. The error is ErrGone when they are not there.
func (a *Archive) Body(in Input) ([]byte, error) { return ReadDocument(a.dir, in.SHA256) }

// Close tries once more to write the pending recipes.
func (a *Archive) Close() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.writePending()
}
