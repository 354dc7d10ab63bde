package snapshots

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/bench/testkit"
)

// diskFault is a way in which a disk refuses a file.
type diskFault struct {
	name  string
	step  step // at which the write fails
	err   error
	fresh bool // can only hit a date without a directory
	// hits says whether the fault hits a step on a path. It may leave on the disk what a real fault leaves.
	hits func(at step, path string) bool
}

// on returns a fault of a step: on a file if dated is true, else on a directory.
func on(want step, dated bool) func(at step, path string) bool {
	return func(at step, path string) bool {
		above := filepath.Base(filepath.Dir(path))
		return at == want && (isDate(above) || above == currentDir || above == objectsDir) == dated
	}
}

// half leaves a part of the bytes in the temporary file.
func half(at step, path string) bool {
	if at == stepWrite {
		os.WriteFile(Unfinished(filepath.Dir(path), filepath.Base(path))[0], []byte("half"), 0o644)
	}
	return at == stepWrite
}

var (
	noTemporaryFile = diskFault{"no temporary file", stepCreate, syscall.EROFS, false, on(stepCreate, true)}
	notSynced       = diskFault{"not synced", stepSync, syscall.EIO, false, on(stepSync, true)}
	diskFaults      = []diskFault{
		noTemporaryFile, notSynced,
		{"full before the first byte", stepWrite, syscall.ENOSPC, false, on(stepWrite, true)},
		{"full in the middle", stepWrite, syscall.ENOSPC, false, half},
		{"not renamed", stepRename, syscall.EDQUOT, false, on(stepRename, true)},
		{"the new name is not synced", stepSyncDir, syscall.EIO, false, on(stepSyncDir, true)},
		{"no directory", stepCreate, syscall.ENOSPC, true, on(stepCreate, false)},
		{"the directory's own entry is not synced", stepCreate, syscall.EIO, true, on(stepSyncDir, false)},
	}
)

// fault is a [diskFault] that happens while it is on.
type fault struct {
	on    atomic.Bool
	fired atomic.Int64
}

// in makes a writer meet the fault while the returned switch is on.
func (c diskFault) in(w *writer) *fault {
	f := &fault{}
	w.fault = func(at step, path string) error {
		if !f.on.Load() || !c.hits(at, path) {
			return nil
		}
		f.fired.Add(1)
		return c.err
	}
	return f
}

// openFaulty opens a store on a disk that fails while the returned fault is on.
func openFaulty(t *testing.T, c diskFault, o Options) (*Store, *fault) {
	t.Helper()
	s := openWith(t, o)
	return s, c.in(s.writer)
}

// saveIn stores an answer of friday in current/ or under its date alone.
func saveIn(t *testing.T, s *Store, dir, text string) {
	t.Helper()
	f := single(t, `"`+text+strings.Repeat(" more", 2000)+`"`)
	f.Product, f.Current, f.Dated = gamma, dir == currentDir, dir != currentDir
	must(t, s.Save([]File{f}, nil))
}

// wordIn returns the first word of the answer in a directory, "none" if there is none.
func wordIn(s *Store, dir string) string {
	f, err := s.Load(gamma, dir)
	if err != nil {
		return "none"
	}
	first, _, _ := strings.Cut(strings.Trim(string(f.Edition.Default.Data()), `"`), " ")
	return first
}

// stats checks the counts of a store whose disk is faulty.
func (f *fault) stats(t *testing.T, s *Store, at step, waiting int) {
	t.Helper()
	got := s.Stats()
	for i := range steps {
		if n, want := got.DiskErrors[i.String()], f.fired.Load(); (i == at && n != want) || (i != at && n != 0) {
			t.Errorf("%d errors of step %v, %d injected at %v", n, i, want, at)
		}
	}
	failIf(t, got.FilesWaiting != waiting || (s.DiskError() != nil) != (waiting > 0), "%d files wait, want %d; disk error %v", got.FilesWaiting, waiting, s.DiskError())
}

// after starts a store on a copy of the files, of which none is bad, and returns what [wordIn] finds.
func after(t *testing.T, s *Store, dir string) string {
	t.Helper()
	again := t.TempDir()
	must(t, os.CopyFS(again, os.DirFS(s.opts.Dir)))
	verified(t, again)
	return wordIn(open(t, again), dir)
}

// Each step of each kind of write fails, for a new file and for one that replaces another. The old file stays, the new one
// is served, and the store says what is wrong. After the repair of the disk, nothing is missing.
func TestFaultDiskSteps(t *testing.T) {
	injected := int64(0)
	for _, c := range diskFaults {
		for _, dir := range []string{friday, currentDir} {
			for _, old := range []string{"none", "old"} {
				if c.fresh && (old != "none" || dir == currentDir) {
					continue
				}
				t.Run(c.name+"/"+dir+"/"+old, func(t *testing.T) {
					s, f := openFaulty(t, c, options(t.TempDir()))
					noRetries(s)
					failStep(t, s, f, dir, c, old)
					injected += f.fired.Load()
				})
			}
		}
	}
	t.Logf("figure: %d disk faults injected, %d kinds at %d steps; no file lost or bad", injected, len(diskFaults), steps)
}

func failStep(t *testing.T, s *Store, f *fault, dir string, c diskFault, stands string) {
	path := filepath.Join(s.dir, dir, "gex-spx")
	if stands == "old" {
		saveIn(t, s, dir, stands)
	}
	f.on.Store(true)
	for i, text := range []string{"first", "second"} {
		saveIn(t, s, dir, text)
		err := s.DiskError()
		failIf(t, !errors.Is(err, c.err) || !strings.Contains(err.Error(), path), "disk error %v, want %v", err, c.err)
		equal(t, f.fired.Load(), int64(i+1), "faults fired")
		equal(t, wordIn(s, dir), text, "from memory")
		failIf(t, dir == friday && !strings.HasPrefix(historical(t, s, friday), text+" "), "the history has another answer")
		f.stats(t, s, c.step, 1)
		if c.step == stepSyncDir { // the rename succeeded: the whole new file is in place
			stands = text
		}
		equal(t, after(t, s, dir), stands, "after a crash")
		equal(t, Unfinished(filepath.Dir(path), "gex-spx"), []string(nil), "left behind")
	}
	f.on.Store(false)
	must(t, save(s, pain, monday, single(t, `1`)))
	f.stats(t, s, c.step, 0)
	equal(t, wordIn(reopen(t, s), dir), "second", "after a restart")
}

// No file that names a refused object is written before the object. Both are served meanwhile, and written when the disk
// takes the object.
func TestFaultObjectBeforeItsFiles(t *testing.T) {
	refuse := diskFault{err: syscall.ENOSPC, hits: func(at step, path string) bool {
		return at == stepWrite && filepath.Base(filepath.Dir(path)) == objectsDir
	}}
	s, f := openFaulty(t, refuse, options(t.TempDir()))
	noRetries(s)
	f.on.Store(true)
	sum := saveWithObject(t, s, "a document")
	equal(t, held(t, s), []string(nil), "written")
	equal(t, text(s.Object(sum)), "a document", "object")
	equal(t, wordIn(s, currentDir), "a", "current")
	f.on.Store(false)
	must(t, save(s, pain, monday, single(t, `1`)))
	want := []string{monday + "/" + pain, friday + "/gex-spx", "current/gex-spx", "objects/" + sum + ".gz"}
	equal(t, held(t, s), want, "written")
}

// If nothing else is written, pending files are tried again every few seconds, and no more often, until the disk takes
// them. However long the outage lasts, the log says once that it began and once that it is over.
func TestFaultDiskIsTriedAgain(t *testing.T) {
	document := single(t, `"waits"`)
	dir, log := t.TempDir(), &testkit.Text{}
	synctest.Test(t, func(t *testing.T) {
		o := options(dir)
		o.Log = log.Logger(slog.LevelInfo)
		s, f := openFaulty(t, notSynced, o)
		f.on.Store(true)
		for _, date := range []string{thursday, friday} {
			if err := save(s, gamma, date, document); err != nil || !errors.Is(s.DiskError(), syscall.EIO) {
				t.Errorf("saved with %v, %v", err, s.DiskError())
			}
		}
		const tries = 100
		for range tries {
			time.Sleep(retryEvery)
			synctest.Wait()
		}
		if got, want := f.fired.Load(), int64(3+2*tries); got < want-2 || got > want {
			t.Errorf("%d attempts in %d pauses, want %d", got, tries, want)
		}
		f.stats(t, s, stepSync, 2)
		f.on.Store(false)
		time.Sleep(retryEvery)
		synctest.Wait()
		f.stats(t, s, stepSync, 0)
		equal(t, s.Stats().FilesWritten, int64(2), "files written")
		time.Sleep(100 * retryEvery)
		synctest.Wait()
		equal(t, s.Stats().FilesWritten, int64(2), "files written after the disk was mended")
		t.Logf("figure: %d attempts on a disk that was gone for %v, then 2 files of 2 written", f.fired.Load(), tries*retryEvery)
	})
	for _, line := range []string{"level=ERROR", "disk refuses writes", "disk writable again, all pending files saved"} {
		equal(t, log.Count(line), 1, "lines with %q: %s", line, log)
	}
	equal(t, log.Count("\n"), 2, "lines: %s", log)
	s := open(t, dir)
	for _, date := range []string{thursday, friday} {
		equal(t, historical(t, s, date), "waits", "%s", date)
	}
}

// Close tries once more and reports the files that are lost. Nothing is written after it.
func TestFaultDiskAtClose(t *testing.T) {
	document := single(t, `"waits"`)
	for _, mended := range []bool{true, false} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			s, f := openFaulty(t, notSynced, options(dir))
			f.on.Store(true)
			if err := save(s, gamma, friday, document); err != nil || s.DiskError() == nil {
				t.Error("saved")
			}
			f.on.Store(!mended)
			if err := s.Close(); mended != (err == nil) || !mended && !errors.Is(err, notSynced.err) {
				t.Errorf("mended %t: closed with %v", mended, err)
			}
			tried := f.fired.Load()
			time.Sleep(10 * retryEvery)
			synctest.Wait()
			equal(t, f.fired.Load(), tried, "attempts, also after Close ended")
		})
		equal(t, historical(t, open(t, dir), friday) == "waits", mended, "there after a restart")
	}
}

// A pending file is dropped when its date expires, so a dead disk does not fill the memory.
func TestFaultDiskExpiresWhatWaits(t *testing.T) {
	s, f := openFaulty(t, noTemporaryFile, options(t.TempDir()))
	noRetries(s)
	f.on.Store(true)
	for _, date := range []string{monday, tuesday, friday} {
		must(t, save(s, pain, date, single(t, `1`)))
	}
	equal(t, s.Stats().FilesWaiting, 3, "files wait")
	expire(t, s, Ages{FilesBefore: friday, Products: []string{pain}}, 2)
	equal(t, s.Stats().FilesWaiting, 1, "files wait after they expired")
}

// A file that does not fit on the disk does not keep the other files of its batch from the disk. A batch of any size has few
// files open.
func TestFaultBatch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), friday)
	var batch []replacement
	for i := range 5 * atOnce {
		batch = append(batch, replacement{dir: dir, name: fmt.Sprintf("f%d", i), body: []byte("new")})
	}
	most := 0
	var mu sync.Mutex
	w := &writer{log: slog.New(slog.DiscardHandler), fault: func(at step, path string) error {
		mu.Lock()
		defer mu.Unlock()
		files, _ := filepath.Glob(filepath.Join(dir, tempPrefix+"*"))
		most = max(most, len(files))
		if filepath.Base(path) == "f0" && at == stepWrite {
			return syscall.ENOSPC
		}
		return nil
	}}
	for i, err := range w.write(batch) {
		body, _ := os.ReadFile(batch[i].path())
		failIf(t, i == 0 && !errors.Is(err, syscall.ENOSPC) || i > 0 && (err != nil || string(body) != "new"), "%s: %v, %q", batch[i].name, err, body)
	}
	if left := len(names(t, dir)); left != len(batch)-1 || most > atOnce {
		t.Errorf("%d files at the end, at most %d temporary ones", left, most)
	}
}
