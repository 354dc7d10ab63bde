package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// An object is a document or a state that a stored answer was computed from: a gzip file named by the SHA-256 of its
// unpacked bytes. It is written before the first file that names it, is never changed, and is removed when no file names it
// any more.

// Object is the bytes of an input for [Store.Save].
type Object struct {
	SHA256 string // of the unpacked bytes, in hexadecimal
	Body   []byte // unpacked; may be nil if Gzip is set
	Gzip   []byte // as the upstream sent it; nil: Save compresses Body
}

const objectSuffix = ".gz"

// unnamedFor is how long an object of another store may wait for the first file that names it. It comes just before the file, but the
// connection may break between them.
const unnamedFor = 24 * time.Hour

// ErrGone is an object that the directory does not have.
var ErrGone = errors.New("document is not stored")

func objectKey(sha256 string) key { return key{objectsDir, sha256 + objectSuffix} }

// ObjectPath returns the path of the object with a digest.
func ObjectPath(sha256 string) string { return objectKey(sha256).String() }

// digestOfObject returns the digest in the name of an object's file, "" for another name.
func digestOfObject(name string) string {
	sum, ok := strings.CutSuffix(name, objectSuffix)
	if !ok || len(sum) != digestLen || strings.Trim(sum, "0123456789abcdef") != "" {
		return ""
	}
	return sum
}

// pack returns the object in gzip.
func (o *Object) pack() []byte {
	if o.Gzip != nil {
		return o.Gzip
	}
	var out bytes.Buffer // takes all
	z, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	_, _ = z.Write(o.Body)
	_ = z.Close()
	return out.Bytes()
}

// unpackObject returns the unpacked bytes of an object, if they have the digest.
func unpackObject(packed []byte, sha256 string) ([]byte, error) {
	body, err := decompress(Gzip, packed, MaxTransfer)
	if err == nil && Digest(body) != sha256 {
		err = errors.New("digest differs")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTorn, err)
	}
	return body, nil
}

// checkFile checks that the bytes of a file or an object are whole and belong at k, and returns their digest.
func checkFile(k key, file []byte) (digest string, err error) {
	if sum := digestOfObject(k.name); k.dir == objectsDir {
		_, err = unpackObject(file, sum)
		return sum, err
	}
	h, _, err := unframe(file, k)
	return h.SHA256, err
}

// ReadObject reads and checks an object in the directory of a source. The error is ErrGone when it is not there. It takes no
// lock, and a running server may keep writing.
func ReadObject(dir, source, sha256 string) ([]byte, error) {
	k := objectKey(sha256)
	if digestOfObject(k.name) == "" {
		return nil, ErrGone
	}
	packed, err := readFile(filepath.Join(dir, source, k.dir, k.name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, err
	}
	return unpackObject(packed, sha256)
}

// missing returns the objects that are neither on the disk nor queued, packed. f.disk is held.
func (f *files) missing(objects []Object) (batch []Packed) {
	for i := range objects {
		o, k := &objects[i], objectKey(objects[i].SHA256)
		f.mu.Lock()
		known := f.last(k) != nil
		f.mu.Unlock()
		if known || slices.ContainsFunc(batch, func(p Packed) bool { return p.key == k }) || o.Body == nil && o.Gzip == nil {
			continue
		}
		batch = append(batch, packed(k, o.pack(), &entry{digest: o.SHA256}, nil))
	}
	return batch
}

// sweep removes the objects that no file names and that wait for none, and those that only files of dates before
// objectsBefore name. While files are queued, or if a file could not be read at the start, sweep removes no object from the disk:
// the files there may still name it. The caller uses the disk.
func (f *files) sweep() {
	f.disk.Lock() // a Save may count on an object before it queues the file that names it
	f.mu.Lock()
	named := map[string]bool{}
	for _, p := range f.queue {
		for _, sum := range p.entry.objects {
			named[sum] = true
		}
	}
	for k, e := range f.index {
		if k.dir != currentDir && k.dir < f.objectsBefore {
			continue // nothing that it names stays; in a directory of years, most files are such
		}
		for _, sum := range e.objects {
			named[sum] = true
		}
	}
	var orphans []key
	for k, e := range f.index {
		_, queued := f.queue[k]
		switch {
		case k.dir != objectsDir:
		case named[e.digest]:
			e.until = time.Time{}
		case time.Now().Before(e.until):
		case queued:
			delete(f.queue, k)
			f.forget(k)
		default:
			orphans = append(orphans, k)
		}
	}
	if len(f.queue) > 0 || f.unread {
		orphans = nil
	}
	for _, k := range orphans {
		f.forget(k)
	}
	f.mu.Unlock()
	f.disk.Unlock()
	for _, k := range orphans {
		_ = f.remove(k) // else the next start does
	}
}

// remove removes a file or an object that is neither queued nor indexed. The caller uses the disk.
func (f *files) remove(k key) error {
	if err := os.Remove(f.path(k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
