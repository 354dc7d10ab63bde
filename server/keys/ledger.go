package keys

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"strikecache/server/limits"
	"strikecache/server/watch"
	"strikecache/snapshots"
)

const (
	// FlushEvery is how often a [Ledger] writes counts that have changed. A crash loses at most what was counted since.
	FlushEvery = 10 * time.Second

	// maxLedger bounds a ledger in bytes; 10,000 keys take 340 KB.
	maxLedger    = 16 << 20
	ledgerFormat = 1
)

// Ledger keeps the day's counts of keys in a file, so that they survive a restart: a crash loses the counts of the
// last [FlushEvery] at most, an orderly end loses none. The file holds ids and counts, no secret and no address.
// Create it with [OpenLedger]. A nil ledger keeps counts in memory only.
type Ledger struct {
	path      string
	log       *slog.Logger
	now       func() time.Time
	writeFile func(dir, name string, b []byte) error // a test lets it fail
	stop      func()

	mu   sync.Mutex
	days map[string]*limits.Day // by id

	writing sync.Mutex
	written string // what the file holds; "" at the start
	failure atomic.Pointer[error]
}

// ledgerFile is the stored form.
type ledgerFile struct {
	Format   int              `json:"format"`
	Day      string           `json:"day"` // UTC, YYYY-MM-DD
	Requests map[string]int64 `json:"requests"`
}

// OpenLedger reads the counts of today from a file in a directory that need not exist, and writes them every
// [FlushEvery] when they have changed, until [Ledger.Close]. If the file is of another day or cannot be read, every
// key starts from 0; a file that cannot be read is logged. Open the [snapshots.Store] of the directory first: it
// removes the unfinished files of all writers.
func OpenLedger(path string, log *slog.Logger) *Ledger { return openLedger(path, log, time.Now) }

func openLedger(path string, log *slog.Logger, now func() time.Time) *Ledger {
	l := &Ledger{path: path, log: log, now: now, writeFile: snapshots.WritePrivateFile, days: map[string]*limits.Day{}}
	if err := l.load(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("usage file not loaded: the counts of today start from 0", "file", path, "err", err)
	}
	l.stop = watch.Every(FlushEvery, func() { _ = l.Flush() }) // Flush logs its errors
	return l
}

// Close writes the counts a last time. Nothing is written after it.
func (l *Ledger) Close() error {
	l.stop()
	return l.Flush()
}

// Err returns why the last write failed, nil if it did not.
func (l *Ledger) Err() error {
	if err := l.failure.Load(); err != nil {
		return *err
	}
	return nil
}

var idForm = regexp.MustCompile(`^k_[0-9a-f]{12}$`)

// load reads the file.
func (l *Ledger) load() error {
	text, err := watch.ReadFile(l.path, maxLedger)
	if err != nil {
		return err
	}
	var f ledgerFile
	if err := strictly(text, &f); err != nil {
		return err
	}
	if f.Format != ledgerFormat {
		return fmt.Errorf("format is %d, this version reads %d", f.Format, ledgerFormat)
	}
	day, err := time.Parse(time.DateOnly, f.Day)
	if err != nil {
		return fmt.Errorf("day %.20q is not YYYY-MM-DD", f.Day)
	}
	today := limits.DayNumber(l.now().UnixNano())
	switch stored := limits.DayNumber(day.UnixNano()); {
	case stored > today:
		return fmt.Errorf("its day %s lies in the future", f.Day)
	case stored < today:
		return nil
	}
	for id, n := range f.Requests {
		if !idForm.MatchString(id) || n < 0 || n > limits.MaxCount {
			l.log.Warn("usage file: a count starts from 0", "key", id, "count", n)
			continue
		}
		counter := &limits.Day{}
		counter.Restore(today, n)
		l.days[id] = counter
	}
	return nil
}

// counter returns the counter of a key, always the same one while it may hold a count of today.
func (l *Ledger) counter(id string) *limits.Day {
	if l == nil {
		return &limits.Day{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.days[id]
	if d == nil {
		d = &limits.Day{}
		l.days[id] = d
	}
	return d
}

// forget drops the counters of keys that are no longer present and hold no count of today.
func (l *Ledger) forget(present map[string]bool, now time.Time) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, d := range l.days {
		if !present[id] && d.Count(now.UnixNano()) == 0 {
			delete(l.days, id)
		}
	}
}

// Flush writes the counts if they have changed since the last write. It logs an error unless the write before failed
// with the same error.
func (l *Ledger) Flush() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	before, err := l.Err(), l.write()
	switch {
	case err == nil && before != nil:
		l.log.Info("usage file writable again", "file", l.path)
		l.failure.Store(nil)
	case err != nil:
		if before == nil || before.Error() != err.Error() {
			l.log.Error("usage file not written: a restart would forget counts", "file", l.path, "err", err)
		}
		l.failure.Store(&err)
	}
	return err
}

func (l *Ledger) write() error {
	now := l.now().UTC()
	f := ledgerFile{Format: ledgerFormat, Day: now.Format(time.DateOnly), Requests: map[string]int64{}}
	l.mu.Lock()
	for id, d := range l.days {
		if n := d.Count(now.UnixNano()); n > 0 {
			f.Requests[id] = n
		}
	}
	l.mu.Unlock()
	text, err := json.MarshalIndent(f, "", "  ") // sorts the ids
	if err != nil {
		return fmt.Errorf("encode counts: %w", err)
	}
	if string(text) == l.written || l.written == "" && len(f.Requests) == 0 {
		return nil
	}
	if err := l.writeFile(filepath.Dir(l.path), filepath.Base(l.path), append(text, '\n')); err != nil {
		return err
	}
	l.written = string(text)
	return nil
}
