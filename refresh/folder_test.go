package refresh_test

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/refresh/folder"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// collector puts documents of a rig's market into a folder.
type collector struct {
	t   testing.TB
	r   *rig
	dir string
}

// made returns the document of a name as the market has it now.
func (c *collector) made(name upstream.Name) []byte {
	c.t.Helper()
	doc, err := c.r.market.Fetch(c.t.Context(), name, nil)
	must(c.t, err)
	return doc.Body
}

func (c *collector) put(name upstream.Name, body []byte) {
	c.t.Helper()
	path := filepath.Join(c.dir, filepath.FromSlash(string(name)))
	must(c.t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path+".tmp", body, 0o600), os.Rename(path+".tmp", path))
}

// accepts waits two seconds and checks whether the document in the folder is the accepted one.
func (c *collector) accepts(name upstream.Name, body []byte) {
	c.t.Helper()
	time.Sleep(2 * time.Second)
	synctest.Wait()
	if got, want := refresh.Accepted(c.r.Refresher, name), snapshots.Digest(body); got != want {
		c.t.Errorf("at %s, %s is %.8s, want %.8s", c.r.clock.Now().Format(time.DateTime), name, got, want)
	}
}

// What a collector puts into a folder is served within two seconds at any hour, also during the pause after a failure. A document
// that is refused leaves the one before, and is not decoded again until a file changes or the schedule says so.
func TestWatchedFolder(t *testing.T) {
	long(t)
	for name, start := range map[string]string{"in the session": "2026-11-20 11:00", "at night": "2026-11-20 22:00", "on a Sunday": "2026-11-22 12:00"} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { watchFolder(t, start) }) })
	}
}

func watchFolder(t *testing.T, start string) {
	var mu sync.Mutex
	runs := map[string]int{}
	c := &collector{t: t, dir: t.TempDir()}
	live, err := folder.NewLive(c.dir)
	must(t, err)
	r := newRig(t, t.TempDir(), start, func(cfg *refresh.Config) {
		cfg.Source.Source = live
		cfg.Observe = func(job, _ string, _ []string, _ time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			runs[job]++
		}
	})
	c.r = r
	defer r.begin()()
	since := func(job string, wait time.Duration) int {
		mu.Lock()
		before := runs[job]
		mu.Unlock()
		time.Sleep(wait)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return runs[job] - before
	}

	spx, xlf := upstream.Options("_SPX"), upstream.Options("XLF")
	since("spx", 3*time.Minute+300*time.Millisecond) // the chain is missing: the job pauses between tries
	first := c.made(spx)
	c.put(spx, first)
	c.accepts(spx, first)

	c.put(spx, first[:len(first)/2])
	c.accepts(spx, first)
	if n := since("spx", 20*time.Second); n > 3 {
		t.Errorf("the job ran %d times in 20 seconds for one refused file", n)
	}
	if n := since("spx", 10*time.Minute); n > 10 {
		t.Errorf("the job ran %d times in ten minutes: it does not back off", n)
	}
	second := c.made(spx)
	c.put(spx, second)
	c.accepts(spx, second)

	early := c.made(xlf)
	since("xlf", time.Minute)
	late := c.made(xlf)
	c.put(xlf, late)
	c.accepts(xlf, late)
	c.put(xlf, early) // the guard knows a chain whose file was not there at the start
	want := late
	if string(early) == string(late) {
		want = early
	}
	c.accepts(xlf, want)

	for _, symbol := range compute.FundSymbols() {
		c.put(upstream.Quotes(symbol), c.made(upstream.Quotes(symbol)))
		c.put(upstream.History(symbol), c.made(upstream.History(symbol)))
	}
	var settled upstream.Name // the newest
	for d := compute.DateOf(r.clock.Now()); d > compute.DateOf(r.clock.Now())-7; d-- {
		if calendar.IsSession(d) {
			if doc, err := r.market.Fetch(t.Context(), upstream.Settlement(d.String()), nil); err == nil && doc.FileDate == d.String() {
				c.put(doc.Name, doc.Body)
				settled = cmp.Or(settled, doc.Name)
			}
		}
	}
	time.Sleep(2 * time.Second)
	synctest.Wait()
	for resource, answered := range r.Offers() {
		if !answered {
			t.Errorf("%s has no answer: %s", resource, r.LastFailure(resource))
		}
	}
	if len(r.Offers()) != len(refresh.Resources(underlyings)) {
		t.Errorf("offered are %v", r.Offers())
	}
	history := upstream.History("XLK")
	corrected := bytes.Replace(c.made(history), []byte(`"close":`), []byte(`"close":1`), 1) // the history was complete
	c.put(history, corrected)
	c.accepts(history, corrected)
	corrected = append(c.made(settled), "ZZ,ZZ/Z6,2026-12-16,1.5\n"...) // of the same date
	c.put(settled, corrected)
	c.accepts("settlement/", corrected)
	closes := c.made(upstream.History("_VIX")) // the curve lacks a close, and the file was not there when it was asked for first
	c.put(upstream.History("_VIX"), closes)
	c.accepts(upstream.History("_VIX"), closes)

	time.Sleep(30 * time.Second)
	if n := since("sectors", 4*time.Minute); n > 4 {
		t.Errorf("the sectors were refreshed %d times in 4 minutes without a change", n)
	}
}
