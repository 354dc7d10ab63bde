package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"time"

	"strikecache/server/limits"
	"strikecache/server/watch"
)

// Table has the keys in force: those of the key file when it was last loaded, also after Close. Create it with [Open]. It is safe for
// concurrent use.
type Table struct {
	*watch.Files
	path   string
	log    *slog.Logger
	counts *Counts
	found  bool // the file has existed; only read uses it, which is not called concurrently

	entries atomic.Pointer[map[[sha256.Size]byte]*Entry] // never nil; the map never changes
}

// Open loads the key file, and loads it again after every change until Close. If the file is missing, the table is empty until the file
// exists. If the file is not usable, Open fails. If it becomes unusable later, the keys in force stay, and Err returns the reason.
// counts holds the usage of the keys.
func Open(path string, counts *Counts, log *slog.Logger) (*Table, error) {
	t := &Table{path: path, log: log, counts: counts}
	t.entries.Store(&map[[sha256.Size]byte]*Entry{})
	var err error
	if t.Files, err = watch.Open(watch.Config{Name: "key file", Paths: []string{path}, Read: t.read, Load: t.load, Log: log}); err != nil {
		return nil, err
	}
	return t, nil
}

// Len returns the number of keys, including expired and revoked keys.
func (t *Table) Len() int { return len(*t.entries.Load()) }

// Lookup finds the key of a secret at a Unix time in nanoseconds. It returns false if the key is unknown, expired or revoked. It does not
// keep secret and never allocates.
//
// Lookup compares digests and not secrets: the duration of a lookup may reveal something about a digest, never about a secret.
func (t *Table) Lookup(secret []byte, nowNanos int64) (*Entry, bool) {
	e, ok := (*t.entries.Load())[sha256.Sum256(secret)]
	if ok && e.State(time.Unix(0, nowNanos)) != active {
		e.usage.Refused.Add(1)
		return nil, false
	}
	return e, ok
}

// Refused returns how many requests were refused since the start, by the id of their key: over a limit, expired or revoked.
func (t *Table) Refused() map[string]uint64 {
	out := map[string]uint64{}
	for _, e := range *t.entries.Load() {
		out[e.ID] = e.usage.Refused.Load()
	}
	return out
}

// missing is the text that read returns until the file has existed once.
const missing = "no key file"

// read returns the text of the key file.
func (t *Table) read(path string) ([]byte, error) {
	text, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) && !t.found {
		return []byte(missing), nil
	}
	t.found = true
	return text, err
}

// load puts the text of the key file in force. A key that was in force before keeps its usage.
func (t *Table) load(contents [][]byte, _ time.Time) error {
	if string(contents[0]) == missing {
		t.log.Info("key file missing: every key is refused until the file exists", "file", t.path)
		return nil
	}
	keys, err := decode(contents[0])
	if err != nil {
		return fmt.Errorf("key file %s: %w", t.path, err)
	}
	next := make(map[[sha256.Size]byte]*Entry, len(keys))
	for _, k := range keys {
		var digest [sha256.Size]byte
		_, _ = hex.Decode(digest[:], []byte(k.SHA256)) // decode has checked it
		next[digest] = &Entry{Key: k, usage: t.counts.of(k.ID)}
	}
	t.entries.Store(&next)
	t.log.Info("keys loaded", "file", t.path, "keys", t.Len())
	return nil
}

// Entry is a key in force. Its fields never change. When the file is loaded again, every key gets a new entry with its old usage. Entry is
// safe for concurrent use, and its methods never allocate.
type Entry struct {
	Key
	usage *limits.Usage
}

// Admit decides about a request at a Unix time in nanoseconds and counts it if it is allowed; see [limits.Usage.Admit].
func (e *Entry) Admit(nowNanos int64) limits.Verdict {
	return e.usage.Admit(e.PerMinute, e.PerDay, nowNanos)
}
