package snapshots

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/bench/testkit"
)

// A file system that lacks an operation costs one warning at most: the store opens, and stores as on any other. An error that means a failure is one.
func TestFileSystemsThatLackAnOperation(t *testing.T) {
	lacking := []error{syscall.EINVAL, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EBADF}
	for _, c := range []struct {
		lacks step
		errs  []error
		warns string
	}{
		{stepSyncDir, append(lacking, syscall.EACCES), "cannot sync a directory"},
		{stepSync, lacking, "cannot sync a file"}, // syncthing/syncthing#5704: to fail is to store nothing
		{stepLock, append(lacking, syscall.ENOLCK), "cannot lock a directory"},
		{stepLink, []error{syscall.EPERM, syscall.EMLINK, syscall.EXDEV, syscall.EOPNOTSUPP, syscall.EIO}, ""},
	} {
		for _, err := range c.errs {
			o, log := options(t.TempDir()), &testkit.Text{}
			o.Log = log.Logger(slog.LevelWarn)
			f := newFiles(filepath.Join(o.Dir, o.Source), o.Log)
			fault := diskFault{err: err, hits: func(at step, _ string) bool { return at == c.lacks }}
			fault.in(f.writer).on.Store(true)
			must(t, errors.Join(f.open(), f.lock.Close()))
			s := openWith(t, o)
			s.writer = f.writer
			for _, word := range []string{"first", "second"} {
				saveWithObject(t, s, word)
				must(t, s.DiskError())
			}
			equal(t, verified(t, o.Dir), 3, "files")
			equal(t, wordIn(reopen(t, s), friday), "second", "after a restart")
			if lines := log.Count("\n"); lines > 1 || log.Count(c.warns) < lines || lines == 0 && c.warns != "" {
				t.Errorf("%v at step %d: %s", err, c.lacks, log)
			}
		}
	}
	for _, at := range []step{stepSyncDir, stepLock} {
		for _, err := range []error{syscall.EIO, syscall.EROFS} { // ext4 gives EROFS after a failure
			f := newFiles(filepath.Join(t.TempDir(), "simulated"), slog.New(slog.DiscardHandler))
			fault := diskFault{err: err, hits: func(is step, _ string) bool { return is == at }}
			fault.in(f.writer).on.Store(true)
			fails(t, f.open(), err, "step %d", at)
		}
	}
}

// A start on a disk that has become read-only finds what is stored, for one process (heketi/heketi#435).
func TestReadOnlyFileSystem(t *testing.T) {
	s := open(t, t.TempDir())
	saveWithObject(t, s, "first")
	must(t, s.Close())
	for _, want := range []error{nil, ErrLocked} {
		f := newFiles(s.dir, slog.New(slog.DiscardHandler))
		fault := diskFault{err: syscall.EROFS, hits: func(at step, _ string) bool { return at != stepLock }}
		fault.in(f.writer).on.Store(true)
		err := f.open()
		failIf(t, !errors.Is(err, want) || want == nil && f.digest(key{currentDir, FileName(gamma)}) == "", "%v: %d files found", err, len(f.index))
		defer f.lock.Close()
	}
}

// unreadable is a disk on which a folder cannot be read.
type unreadable struct {
	fs.FS
	folder string
}

func (u unreadable) Open(name string) (fs.File, error) {
	if name == u.folder {
		return nil, syscall.EIO
	}
	return u.FS.Open(name)
}

// A date whose folder cannot be read takes no other date away (bloomberg/comdb2#702). Without the folder of all current answers or objects
// there is no start.
func TestUnreadableFolders(t *testing.T) {
	s := open(t, t.TempDir())
	saveWithObject(t, s, "first")
	put(t, s, monday+"/gex-spx", "")
	for folder, want := range map[string]error{monday: nil, currentDir: syscall.EIO, objectsDir: syscall.EIO, ".": syscall.EIO} {
		var visited []key
		err := walk(unreadable{os.DirFS(s.dir), folder}, func(k key) error {
			visited = append(visited, k)
			return nil
		})
		failIf(t, !errors.Is(err, want), "%s: %v", folder, err)
		if folder == monday {
			failIf(t, len(visited) != 4 || !slices.Contains(visited, key{"", monday}), "visited %v", visited)
		}
	}
}

// What cannot be removed at the start stays, and prevents nothing.
func TestTemporaryFileThatStays(t *testing.T) {
	o, log := options(t.TempDir()), &testkit.Text{}
	o.Log = log.Logger(slog.LevelWarn)
	must(t, os.MkdirAll(filepath.Join(o.Dir, o.Source, tempPrefix+"x", "sub"), 0o755))
	saveWithObject(t, openWith(t, o), "first")
	equal(t, log.Count("temporary file not removed"), 1, "warnings: %s", log)
}

// What somebody has removed or cut off while the store is open is written again when the same answer is saved again.
func TestRemovedFilesAreWrittenAgain(t *testing.T) {
	for _, gone := range []string{"objects", "objects/*", "current", "current/*", friday, friday + "/*", "*", "..", "cut"} {
		t.Run(gone, func(t *testing.T) {
			s := open(t, t.TempDir())
			sum := saveWithObject(t, s, "a document")
			want := held(t, s)
			object := filepath.Join(s.dir, filepath.FromSlash(objectKey(sum).String()))
			if gone == "cut" {
				must(t, os.Truncate(object, 5))
			}
			paths, err := filepath.Glob(filepath.Join(s.dir, filepath.FromSlash(gone)))
			must(t, err)
			for _, path := range paths {
				must(t, os.RemoveAll(path))
			}
			saveWithObject(t, s, "a document")
			equal(t, held(t, s), want, "held")
			verified(t, s.opts.Dir)
			s = reopen(t, s)
			equal(t, text(s.Object(sum)), "a document", "object")
			equal(t, []string{wordIn(s, currentDir), wordIn(s, friday)}, []string{"a", "a"}, "answers")
		})
	}
}

// A disk that does not answer delays one Save by ten seconds, no other, no read of a past date, and no removal of old files. All is served from
// memory meanwhile, and written when the disk answers.
func TestFaultDiskHangs(t *testing.T) {
	for at := range steps {
		dir, log := t.TempDir(), &testkit.Text{}
		synctest.Test(t, func(t *testing.T) {
			o := options(dir)
			o.Log = log.Logger(slog.LevelInfo)
			s := openWith(t, o)
			must(t, save(s, gamma, monday, single(t, `"past"`)))
			answers := make(chan struct{})
			s.writer.fault = func(is step, path string) error {
				if is == at {
					<-answers
				}
				return nil
			}
			began := time.Now()
			for i, word := range []string{"first", "second", "third"} {
				sum := saveWithObject(t, s, word)
				equal(t, time.Since(began), longestWrite, "until %s is saved", word)
				equal(t, text(s.Object(sum)), word, "object")
				equal(t, []string{wordIn(s, currentDir), wordIn(s, friday)}, []string{word, word}, "answers")
				s.history.Del(s.digest(key{monday, "gex-spx"}))
				s.history.Wait()
				equal(t, historical(t, s, monday), "past", "a past date while %s is written", word)
				err := s.DiskError()
				failIf(t, err == nil || !strings.Contains(err.Error(), "disk has not answered since"), "save %d: %v", i, err)
			}
			_, err := s.Expire(Ages{FilesBefore: friday, Products: []string{"gex/spx"}})
			failIf(t, err == nil || time.Since(began) != longestWrite, "old files removed after %s: %v", time.Since(began), err)
			time.Sleep(time.Hour)
			close(answers)
			time.Sleep(retryEvery)
			synctest.Wait()
			must(t, s.DiskError())
			equal(t, len(held(t, s)), 4, "files, without those of the earlier answers")
			must(t, s.Close())
		})
		equal(t, wordIn(open(t, dir), friday), "third", "after a restart")
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		failIf(t, len(lines) != 2 || !strings.Contains(lines[0], "disk does not answer") || !strings.Contains(lines[1], "disk writable again"), "%v: log %s", at, log)
	}
}
