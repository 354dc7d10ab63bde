package keys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
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
// last [FlushEvery] at most, an orderly end loses none. The file has ids and counts, but no secret and no address.
// Create it with [OpenLedger]. A nil ledger keeps counts in memory only.
type Ledger struct {
	path string
	log  *slog.Logger
	stop func()

	mu      sync.Mutex
	days    map[string]*limits.Day // by id
	written []byte                 // the content of the file; nil before the first write
	failure watch.Failure          // of the last write
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
func OpenLedger(path string, log *slog.Logger) *Ledger {
	l := &Ledger{path: path, log: log, days: map[string]*limits.Day{}}
	if err := l.load(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("usage file not loaded: the counts of today start from 0", "file", path, "err", err)
	}
	l.stop = watch.Every(FlushEvery, func() { _ = l.flush() }) // flush logs its errors
	return l
}

// Close writes the counts a last time.
func (l *Ledger) Close() error {
	l.stop()
	return l.flush()
}

// Err returns the error of the last write, nil if it succeeded.
func (l *Ledger) Err() error { return l.failure.Err() }

// load reads the file. Counts of another day are left out.
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
	now := time.Now().UTC()
	if f.Day != now.Format(time.DateOnly) {
		return nil
	}
	for id, n := range f.Requests {
		l.counter(id).Restore(now.UnixNano(), n)
	}
	return nil
}

// counter returns the counter of a key, the same one in every call.
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

// flush writes the counts if they have changed since the last write. It logs an error unless the write before failed
// with the same error.
func (l *Ledger) flush() error {
	err := l.write()
	switch changed := l.failure.Set(err); {
	case changed && err == nil:
		l.log.Info("usage file is written again", "file", l.path)
	case changed:
		l.log.Error("usage file not written: a restart would forget counts", "file", l.path, "err", err)
	}
	return err
}

func (l *Ledger) write() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now().UTC()
	f := ledgerFile{Format: ledgerFormat, Day: now.Format(time.DateOnly), Requests: map[string]int64{}}
	for id, d := range l.days {
		if n := d.Count(now.UnixNano()); n > 0 {
			f.Requests[id] = n
		}
	}
	text, err := json.MarshalIndent(f, "", "  ") // sorts the ids
	if err != nil {
		return fmt.Errorf("encode counts: %w", err)
	}
	if bytes.Equal(text, l.written) || l.written == nil && len(f.Requests) == 0 {
		return nil
	}
	if err := snapshots.WritePrivateFile(filepath.Dir(l.path), filepath.Base(l.path), append(text, '\n')); err != nil {
		return err
	}
	l.written = text
	return nil
}
