package keys

import (
	"bytes"
	"encoding/json"
	"errors"
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
	// saveEvery is how often [Counts] are saved. A killed process loses the requests since the last save.
	saveEvery = time.Minute

	maxCounts = 1 << 20 // bytes; 10,000 keys take 620 KB
)

// Counts holds the usage of each key, and keeps the counts of the UTC day and the last use in a file. Create it with [OpenCounts]. The zero value
// keeps usage in memory only.
type Counts struct {
	path string
	log  *slog.Logger
	stop func()

	mu      sync.Mutex
	usage   map[string]*limits.Usage // by the public id of the key
	written []byte                   // content of the file, nil before the first save
	failure watch.Failure            // of the last save
}

type saved struct {
	Day      string           `json:"day"` // UTC, YYYY-MM-DD
	Requests map[string]int64 `json:"requests"`
	LastUse  map[string]int64 `json:"last_use"` // Unix seconds
}

// OpenCounts reads the counts of today from a file. Until [Counts.Close], it saves changed counts once a minute. If the file is missing,
// damaged or of another day, all counts begin at 0. A missing or damaged file is logged.
func OpenCounts(path string, log *slog.Logger) *Counts {
	c := &Counts{path: path, log: log}
	if err := c.load(time.Now().UTC()); errors.Is(err, fs.ErrNotExist) {
		log.Info("usage counts begin at 0: no file", "file", path)
	} else if err != nil {
		log.Warn("usage counts begin at 0: file not usable", "file", path, "err", err)
	}
	c.stop = watch.Every(saveEvery, c.save)
	return c
}

// Close stops the saves and saves the counts once more.
func (c *Counts) Close() {
	c.stop()
	c.save()
}

// Err returns the error of the last save, nil if it succeeded.
func (c *Counts) Err() error { return c.failure.Err() }

func (c *Counts) load(now time.Time) error {
	s, err := readCounts(c.path, now)
	for _, ids := range []map[string]int64{s.Requests, s.LastUse} {
		for id := range ids {
			c.of(id).Restore(now.UnixNano(), s.Requests[id], s.LastUse[id])
		}
	}
	return err
}

// readCounts reads a file of counts. Those of another day than today are left out.
func readCounts(path string, now time.Time) (s saved, err error) {
	text, err := watch.ReadFile(path, maxCounts)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil {
		_, err = time.Parse(time.DateOnly, s.Day)
	}
	if err != nil {
		return saved{}, err
	}
	if s.Day != now.Format(time.DateOnly) {
		s.Requests = nil
	}
	return s, nil
}

// of returns the usage of a key, the same one in every call.
func (c *Counts) of(id string) *limits.Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.usage == nil {
		c.usage = map[string]*limits.Usage{}
	}
	if c.usage[id] == nil {
		c.usage[id] = &limits.Usage{}
	}
	return c.usage[id]
}

// save writes the file. It logs an error unless the save before failed with the same error.
func (c *Counts) save() {
	err := c.write(time.Now().UTC())
	switch changed := c.failure.Set(err); {
	case changed && err == nil:
		c.log.Info("usage counts saved again", "file", c.path)
	case changed:
		c.log.Error("usage counts not saved, a restart loses them", "file", c.path, "err", err)
	}
}

func (c *Counts) write(now time.Time) error {
	s := saved{Day: now.Format(time.DateOnly), Requests: map[string]int64{}, LastUse: map[string]int64{}}
	c.mu.Lock()
	for id, u := range c.usage {
		n, last := u.Today(now.UnixNano())
		if n > 0 {
			s.Requests[id] = n
		}
		if last > 0 {
			s.LastUse[id] = last
		}
	}
	c.mu.Unlock()
	text, _ := json.Marshal(s) // strings and numbers can always be encoded
	if bytes.Equal(text, c.written) || c.written == nil && len(s.Requests) == 0 {
		return nil
	}
	if err := snapshots.WritePrivateFile(filepath.Dir(c.path), filepath.Base(c.path), text); err != nil {
		return err
	}
	c.written = text
	return nil
}
