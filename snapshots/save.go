package snapshots

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"
)

// Save stores the files of one publication, and the objects that they name and that are not stored yet. In this order it
//
//  1. writes the files that the disk has refused before,
//  2. writes the objects, then the files in current/, then those of the dates, each durably,
//  3. lets reads find them, whether the disk took them or not,
//  4. removes the objects that no file names any more.
//
// What the disk refuses stays in memory, in one queue, and is tried again every few seconds, by the next Save and by Close.
// Nothing that names a refused object is written before it. The store logs the begin and the end of such an outage, and
// [Store.DiskError] reports it. So the only errors are those of a file that cannot be encoded, and of [Options.Publish], which is
// called first. Save keeps the bodies of the editions and the Gzip of the objects.
func (s *Store) Save(files []File, objects []Object) error {
	s.disk.Lock()
	defer s.disk.Unlock()
	batch, err := s.missing(objects)
	if err != nil {
		return err
	}
	var dated []Packed
	for i := range files {
		f := &files[i]
		h, body, err := encodeFile(f)
		if err != nil {
			return fmt.Errorf("save %s: %w", f.Product, err)
		}
		if f.Current {
			batch = append(batch, packed(key{currentDir, FileName(f.Product)}, body, newEntry(h, body), f.Edition.Default))
		}
		if f.Dated {
			dated = append(dated, packed(key{f.Date(), FileName(f.Product)}, body, newEntry(h, body), f.Edition.Default))
		}
	}
	batch = append(batch, dated...)
	if s.opts.Publish != nil {
		stored, err := s.opts.Publish(batch)
		if err != nil {
			return err
		}
		defer stored()
	}
	s.place(batch)
	return nil
}

// Packed is a file or an object as it is written. Nothing of it may be changed.
type Packed struct {
	Path   string
	SHA256 string // what [Store.Digest] returns
	Body   []byte
	Answer *Snapshot // the default of a file; nil for an object

	key   key
	entry *entry
}

func packed(k key, body []byte, e *entry, answer *Snapshot) Packed {
	return Packed{Path: k.String(), SHA256: e.digest, Body: body, Answer: answer, key: k, entry: e}
}

// place writes objects and files, and lets reads find them. s.disk is held.
func (s *Store) place(batch []Packed) {
	s.flush(batch)
	for _, p := range batch {
		s.remember(p.key, p.entry)
		if p.key.dir != currentDir && slices.Contains(s.dated, p.key.name) {
			s.history.Set(p.entry.id, p.Answer, p.Answer.cost())
		}
	}
	s.history.Wait() // a request right after a publication finds its answer in memory
	s.sweep()
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
// queue. While an object is refused, no file is written. s.disk is held, and only its holder changes the queue.
func (s *Store) flush(batch []Packed) {
	before, all := len(s.queue), maps.Clone(s.queue)
	for _, p := range batch {
		all[p.key] = p.Body
	}
	if len(all) == 0 {
		return
	}
	written := map[key]bool{}
	var refusal error
	for rank := range 3 {
		refusal = cmp.Or(refusal, s.writeRank(all, rank, written))
		if rank == 0 && refusal != nil {
			break
		}
	}
	s.mu.Lock()
	for k := range written {
		delete(all, k)
	}
	s.queue, s.diskErr = all, refusal
	s.mu.Unlock()
	if before == 0 && len(all) > 0 {
		s.opts.Log.Error("disk refuses writes: answers are served from memory until it is writable again", "err", refusal)
	}
	if before > 0 && len(all) == 0 {
		s.opts.Log.Info("disk writable again, all pending files saved")
	}
}

// writeRank writes the files of a rank, adds those that the disk took to written, and returns the first error of the others.
// The file of a date that has the bytes of a file in current/ becomes a link to it.
func (s *Store) writeRank(all map[key][]byte, rank int, written map[key]bool) (first error) {
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
		}
		first = cmp.Or(first, err)
	}
	return first
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
			if err := s.remove(k); err != nil {
				first = cmp.Or(first, fmt.Errorf("expire old files: %w", err))
				continue
			}
			removed++
		}
	}
	s.objectsBefore = max(s.objectsBefore, ages.ObjectsBefore)
	s.sweep()
	return removed, first
}
