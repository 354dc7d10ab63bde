package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

const (
	objectSuffix = ".gz"
	// maxObject bounds one object, packed and unpacked. The largest real one has 14 MB.
	maxObject = 64 << 20
)

// unnamedFor is how long an object of another store waits for the file that names it.
const unnamedFor = 2 * time.Minute

// ErrGone is an object that the directory does not have.
var ErrGone = errors.New("document is not stored")

func objectKey(sha256 string) key { return key{objectsDir, sha256 + objectSuffix} }

// digestOfObject returns the digest in the name of an object's file, "" for another name.
func digestOfObject(name string) string {
	sum, ok := strings.CutSuffix(name, objectSuffix)
	if !ok || len(sum) != digestLen || strings.Trim(sum, "0123456789abcdef") != "" {
		return ""
	}
	return sum
}

// pack returns the object in gzip.
func (o *Object) pack() ([]byte, error) {
	if o.Gzip != nil {
		return o.Gzip, nil
	}
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	z.Reset(&out)
	_, err = z.Write(o.Body)
	err = errors.Join(err, z.Close())
	return out.Bytes(), err
}

// unpackObject returns the unpacked bytes of an object, if they have the digest.
func unpackObject(packed []byte, sha256 string) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTorn, err)
	}
	body, err := io.ReadAll(io.LimitReader(z, maxObject+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrTorn, err)
	case len(body) > maxObject:
		return nil, fmt.Errorf("%w: over %d bytes", ErrTorn, maxObject)
	case digest(body) != sha256:
		return nil, fmt.Errorf("%w: digest differs", ErrTorn)
	}
	return body, nil
}

// ReadObject reads and checks an object in the directory of a source. The error is ErrGone when it is not there. It takes no
// lock, and a running server may keep writing.
func ReadObject(dir, source, sha256 string) ([]byte, error) {
	return readObject(filepath.Join(dir, source), sha256)
}

func readObject(dir, sha256 string) ([]byte, error) {
	k := objectKey(sha256)
	if digestOfObject(k.name) == "" {
		return nil, ErrGone
	}
	packed, err := readFile(filepath.Join(dir, k.dir, k.name), maxObject)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, err
	}
	return unpackObject(packed, sha256)
}

// Object returns the unpacked bytes of an object. The caller owns them. The error is ErrGone when the object is not stored.
func (s *Store) Object(sha256 string) ([]byte, error) {
	s.mu.Lock()
	packed, queued := s.queue[objectKey(sha256)]
	s.mu.Unlock()
	if queued {
		return unpackObject(packed, sha256)
	}
	return readObject(s.dir, sha256)
}

// missing returns the objects that are neither on the disk nor queued, packed, by their place. named are the digests that the
// files to be written name. s.disk is held.
func (s *Store) missing(objects []Object, named map[string]bool) (map[key][]byte, error) {
	out := map[key][]byte{}
	for i := range objects {
		o, k := &objects[i], objectKey(objects[i].SHA256)
		s.mu.Lock()
		_, queued := s.queue[k]
		_, stored := s.objects[o.SHA256]
		s.mu.Unlock()
		if queued || stored || !named[o.SHA256] || out[k] != nil || o.Body == nil && o.Gzip == nil {
			continue
		}
		packed, err := o.pack()
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", o.SHA256, err)
		}
		out[k] = packed
	}
	return out, nil
}

// sweep removes the objects that no file names. While files wait for the disk it removes none from the disk: the files there
// may still name them. s.disk is held.
func (s *Store) sweep() {
	s.mu.Lock()
	named := map[string]bool{}
	for _, e := range s.index {
		for _, sum := range e.objects {
			named[sum] = true
		}
	}
	for k := range s.queue {
		if k.dir == objectsDir && !named[digestOfObject(k.name)] {
			delete(s.queue, k)
		}
	}
	var unnamed []string
	for sum, until := range s.objects {
		if !named[sum] && len(s.queue) == 0 && time.Now().After(until) {
			unnamed = append(unnamed, sum)
		}
	}
	s.mu.Unlock()
	for _, sum := range unnamed {
		k := objectKey(sum)
		if err := os.Remove(s.path(k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // the next sweep tries again
		}
		s.mu.Lock()
		delete(s.objects, sum)
		s.mu.Unlock()
		s.removed(k)
	}
}

// Has says whether an object is on the disk.
func (s *Store) Has(sha256 string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.objects[sha256]
	return ok
}
