package keys

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/bench/testkit"
)

const someID = "k_0123456789ab"

func usagePath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "data", "usage.json")
}

// passed waits until counts of this synctest bubble have been saved.
func passed() {
	time.Sleep(saveEvery)
	synctest.Wait()
}

// The counts are saved once a minute and at the stop. A kill loses what came since. A new day begins at 0.
func TestCountsRestart(t *testing.T) {
	path, log := usagePath(t), &testkit.Text{}
	synctest.Test(t, func(t *testing.T) {
		take := func(c *Counts, want int64) {
			t.Helper()
			equal(t, c.of(someID).Admit(0, 0, time.Now().UnixNano()).Today, want, "count")
		}
		c := OpenCounts(path, log.Logger(slog.LevelInfo))
		if passed(); exists(path) {
			t.Error("saved without a count")
		}
		take(c, 1)
		take(c, 2)
		passed()
		equal(t, content(t, path), `{"day":"2000-01-01","requests":{"k_0123456789ab":2},"last_use":{"k_0123456789ab":946684860}}`, "file")
		if info, err := os.Stat(path); err != nil || checksModes && info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
		take(c, 3)
		c.stop() // a kill: the third count is lost
		c = OpenCounts(path, log.Logger(slog.LevelInfo))
		take(c, 3)
		c.Close()
		c = OpenCounts(path, log.Logger(slog.LevelInfo))
		take(c, 4)
		time.Sleep(24 * time.Hour)
		if _, last := c.of(someID).Today(time.Now().UnixNano()); last != 946684920 {
			t.Errorf("last use at %d", last)
		}
		take(c, 1) // of the next day
		c.Close()
		if log.Count("\n") != 1 || log.Count("usage counts begin at 0: no file") != 1 {
			t.Error(log)
		}
	})
}

// With a damaged file the counts begin at 0, with one line in the log, and the file is replaced. No count is negative.
func TestDamagedCounts(t *testing.T) {
	good := `{"day":"2000-01-01","requests":{"k_0123456789ab":7}}`
	for text, want := range map[string]string{
		good: "", strings.Replace(good, "01-01", "01-02", 1): "", strings.Replace(good, ":7", ":-7", 1): "", `{"day":"2000-01-01","requests":null}`: "",
		strings.Replace(good, ":7", ":1e3", 1): "cannot unmarshal number 1e3", good + good: "after top-level value", "": "unexpected end of JSON input",
		good[:40]: "unexpected end of JSON input", strings.Repeat("\x00", 100): "invalid character", `{"users":[]}`: "parsing time",
		good + strings.Repeat(" ", maxCounts): "has over 1048576 bytes",
	} {
		synctest.Test(t, func(t *testing.T) {
			path, log := keyPath(t), &testkit.Text{}
			write(t, path, text)
			c := OpenCounts(path, log.Logger(slog.LevelInfo))
			c.Close()
			if want == "" && log.Count("\n") > 0 || want != "" && (log.Count("\n") != 1 || log.Count("usage counts begin at 0: file not usable") != 1 || log.Count(want) != 1) {
				t.Errorf("%.80s: logged %s", text, log)
			}
			if n, _ := c.of(someID).Today(now.UnixNano()); n != 0 && text != good {
				t.Errorf("%.80s: begins at %d", text, n)
			}
			want := c.of(someID).Admit(0, 0, now.UnixNano()).Today
			c.Close()
			again := &Counts{path: path}
			must(t, again.load(now))
			if n, last := again.of(someID).Today(now.UnixNano()); n != want || last != now.Unix() {
				t.Errorf("%.80s: %d and %d loaded, want %d: %s", text, n, last, want, content(t, path))
			}
		})
	}
}

// A save that fails is logged once. The counts are saved when the disk works again.
func TestCountsDiskFault(t *testing.T) {
	path, log := usagePath(t), &testkit.Text{}
	dir := filepath.Dir(path)
	write(t, dir, "a file where the directory should be")
	synctest.Test(t, func(t *testing.T) {
		c := OpenCounts(path, log.Logger(slog.LevelInfo))
		for range 3 {
			c.of(someID).Admit(0, 0, now.UnixNano())
			if passed(); c.Err() == nil {
				t.Error("no error")
			}
		}
		equal(t, log.Count("level=ERROR"), 1, "errors in the log")
		must(t, os.Remove(dir))
		if passed(); c.Err() != nil || log.Count("saved again") != 1 || !strings.Contains(content(t, path), `":3},"last_use":{"`) {
			t.Errorf("mended: %v, %s", c.Err(), log)
		}
		c.Close()
	})
}
