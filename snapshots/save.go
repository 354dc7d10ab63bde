package snapshots

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Save stores the files of one publication, and the objects that they name and that are not stored yet. In this order it
//
//  1. writes the files that the disk has refused before,
//  2. writes the objects, then the files in current/, then those of the dates, each durably,
//  3. lets reads find the files, whether the disk took them or not,
//  4. removes the objects that no file names any more.
//
// What the disk refuses stays in memory, in one queue, and is tried again every few seconds, by the next Save and by Close.
// Nothing that names a refused object is written before it. The store logs the begin and the end of such an outage, and
// [Store.DiskError] reports it. So the only errors are those of a file that cannot be encoded, and of [Options.Publish], which is
// called first. Save keeps the bodies of the editions and the Gzip of the objects.
func (s *Store) Save(files []File, objects []Object) error {
	s.disk.Lock()
	defer s.disk.Unlock()
	var places []placed
	named := map[string]bool{}
	for i := range files {
		f := &files[i]
		body, err := encodeFile(f)
		if err != nil {
			return fmt.Errorf("save %s: %w", f.Product, err)
		}
		p := placed{body: body, entry: entryOf(f, bodyDigest(body)), past: f.Edition.Default}
		for _, in := range f.Inputs {
			named[in.SHA256] = true
		}
		if f.Current {
			places = append(places, p.at(currentDir, f.Product))
		}
		if f.Dated {
			places = append(places, p.at(f.Date(), f.Product))
		}
	}
	batch, err := s.missing(objects, named)
	if err != nil {
		return err
	}
	if s.opts.Publish != nil {
		stored, err := s.opts.Publish(packed(places, batch))
		if err != nil {
			return err
		}
		defer stored()
	}
	s.place(places, batch)
	return nil
}

// placed is a file of an answer and its place.
type placed struct {
	key   key
	body  []byte
	entry *entry
	past  *Snapshot // what the history serves
}

func (p placed) at(dir, product string) placed {
	p.key = key{dir, FileName(product)}
	return p
}

// place writes files with further objects, and lets reads find them. s.disk is held.
func (s *Store) place(files []placed, objects map[key][]byte) {
	batch := maps.Clone(objects)
	if batch == nil {
		batch = map[key][]byte{}
	}
	for _, p := range files {
		batch[p.key] = p.body
	}
	s.flush(batch)
	s.reads.Lock()
	for _, p := range files {
		s.remember(p.key, p.entry)
		s.keepPast(p.key, p.past)
	}
	s.reads.Unlock()
	s.sweep()
}

func (s *Store) removed(k key) {
	if s.opts.Removed != nil {
		s.opts.Removed(k.String())
	}
}

// rank orders the writes of a publication: what is named before what names it.
func (k key) rank() int {
	switch k.dir {
	case objectsDir:
		return 0
	case currentDir:
		return 1
	}
	return 2
}

// flush writes the queue and a batch, which replaces what the queue has for the same places. What the disk refuses becomes the
// queue. While an object is refused, no file is written. s.disk is held.
func (s *Store) flush(batch map[key][]byte) {
	s.mu.Lock()
	before, all := len(s.queue), maps.Clone(s.queue)
	s.mu.Unlock()
	maps.Copy(all, batch)
	if len(all) == 0 {
		return
	}
	written := map[key]bool{}
	var failed []error
	for rank := range 3 {
		failed = append(failed, s.writeRank(all, rank, written)...)
		if rank == 0 && failed != nil {
			break
		}
	}
	s.mu.Lock()
	if before == 0 {
		s.refused = 0
	}
	for k := range written {
		delete(all, k)
		delete(s.loggedBad, k)
		if k.dir == objectsDir {
			s.objects[digestOfObject(k.name)] = time.Time{}
		}
	}
	s.queue, s.refused = all, s.refused+len(failed)
	if failed != nil {
		s.diskErr = failed[0]
	}
	refused := s.refused
	s.mu.Unlock()
	if before == 0 && len(all) > 0 {
		s.opts.Log.Error("disk refuses writes: answers are served from memory until it is writable again", "err", failed[0])
	}
	if before > 0 && len(all) == 0 {
		s.opts.Log.Info("disk writable again, all pending files saved", "refused_writes", refused)
	}
}

// writeRank writes the files of a rank, adds those that the disk took to written, and returns the errors of the others. The
// file of a date that has the bytes of a file in current/ becomes a link to it.
func (s *Store) writeRank(all map[key][]byte, rank int, written map[key]bool) (failed []error) {
	var keys []key
	for k := range all {
		if k.rank() == rank {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Compare(a.String(), b.String()) })
	var batch []replacement
	for _, k := range keys {
		w := replacement{dir: filepath.Join(s.dir, k.dir), name: k.name, body: all[k]}
		if same := (key{currentDir, k.name}); rank == 2 && written[same] && &all[same][0] == &all[k][0] {
			w.link = s.path(same)
		}
		batch = append(batch, w)
	}
	for i, err := range s.writer.write(batch) {
		if err == nil {
			written[keys[i]] = true
		} else {
			failed = append(failed, err)
		}
	}
	return failed
}

// retryEvery is the pause between two attempts to write the queue.
const retryEvery = 5 * time.Second

// retry writes the queue every few seconds until ctx ends.
func (s *Store) retry(ctx context.Context) {
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.disk.Lock()
		if s.DiskError() != nil {
			s.flush(nil)
			s.sweep()
		}
		s.disk.Unlock()
	}
}

// DiskError returns why files wait for the disk, or nil if none does.
func (s *Store) DiskError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil
	}
	return fmt.Errorf("disk refuses writes, %d files pending: %w", len(s.queue), s.diskErr)
}

// Ages say what [Store.Expire] removes. A date is YYYY-MM-DD; "" removes nothing.
type Ages struct {
	FilesBefore   string   // the files of Products under earlier dates
	Products      []string // whose files are removed
	ObjectsBefore string   // the objects that only files of earlier dates name
}

// Expire removes old files and objects. It returns how many files it removed, and the first error.
func (s *Store) Expire(ages Ages) (removed int, first error) {
	s.disk.Lock()
	defer s.disk.Unlock()
	for _, product := range ages.Products {
		for _, date := range s.DatesOf(product) {
			if date >= ages.FilesBefore {
				break
			}
			k := key{date, FileName(product)}
			err := os.Remove(s.path(k))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				first = cmp.Or(first, fmt.Errorf("expire old files: %w", err))
				continue
			}
			s.forget(k)
			s.mu.Lock()
			delete(s.queue, k)
			s.mu.Unlock()
			s.removed(k)
			removed++
		}
	}
	s.mu.Lock()
	for k, e := range s.index {
		if k.dir != currentDir && k.dir < ages.ObjectsBefore {
			e.objects = nil
		}
	}
	s.mu.Unlock()
	s.sweep()
	return removed, first
}

// bodyDigest returns the digest in the header of a file, "" if there is none.
func bodyDigest(file []byte) string {
	line, _, _ := bytes.Cut(file, []byte{'\n'})
	_, rest, found := bytes.Cut(line, []byte(digestMark))
	if !found || len(rest) < digestLen {
		return ""
	}
	return string(rest[:digestLen])
}
