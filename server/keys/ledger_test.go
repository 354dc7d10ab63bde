package keys

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/server/limits"
)

const someID = "k_0123456789ab"

func usagePath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "data", "usage.json")
}

// flushed waits until a ledger of this synctest bubble has written what changed.
func flushed() {
	time.Sleep(FlushEvery)
	synctest.Wait()
}

func TestLedgerRestart(t *testing.T) {
	path, log := usagePath(t), &logged{}
	synctest.Test(t, func(t *testing.T) {
		take := func(l *Ledger, want int64) {
			t.Helper()
			if n, _ := l.counter(someID).Take(time.Now().UnixNano(), 0); n != want {
				t.Errorf("count %d, want %d", n, want)
			}
		}
		l := OpenLedger(path, log.logger())
		if flushed(); exists(path) {
			t.Error("a file was written without a count")
		}
		take(l, 1)
		take(l, 2)
		flushed()
		want := "{\n  \"format\": 1,\n  \"day\": \"2000-01-01\",\n  \"requests\": {\n    \"k_0123456789ab\": 2\n  }\n}\n"
		if got := content(t, path); got != want {
			t.Errorf("file is\n%s", got)
		}
		if info, err := os.Stat(path); err != nil || checksModes && info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if flushed(); exists(path) {
			t.Error("written without a change")
		}
		write(t, path, want)
		take(l, 3)
		l.stop() // a crash: the third count is lost
		l = OpenLedger(path, log.logger())
		take(l, 3)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = OpenLedger(path, log.logger())
		take(l, 4)
		time.Sleep(24 * time.Hour)
		take(l, 1) // of the next day
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if log.count("WARN")+log.count("ERROR") > 0 {
			t.Error(log)
		}
	})
}

// A quota holds over a restart, also if the key file appears after the start.
func TestQuotaSurvivesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keyFile, path := keyPath(t), usagePath(t)
		secret, _ := create(t, keyFile, Key{Name: "a", PerDay: 3})
		l := OpenLedger(path, (&logged{}).logger())
		e := lookup(open(t, keyFile, l, &logged{}), secret, now)
		for range 2 {
			e.Admit(now.UnixNano())
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		text := content(t, keyFile)
		if err := os.Remove(keyFile); err != nil {
			t.Fatal(err)
		}
		l = OpenLedger(path, (&logged{}).logger())
		defer l.Close()
		table := open(t, keyFile, l, &logged{})
		flushed()
		write(t, keyFile, text)
		if err := look(table); err != nil {
			t.Fatal(err)
		}
		e = lookup(table, secret, now)
		if v := e.Admit(now.UnixNano()); v.Outcome != limits.Allowed || v.Today != 3 {
			t.Errorf("%+v", v)
		}
		if v := e.Admit(now.UnixNano()); v.Outcome != limits.QuotaExceeded {
			t.Errorf("%+v", v)
		}
	})
}

// Files that cannot be used are logged. FuzzLedger tests that they are replaced, and which counts they give.
func TestLedgerUnusableFiles(t *testing.T) {
	good := `{"format":1,"day":"2000-01-01","requests":{"k_0123456789ab":7}}`
	for text, want := range map[string]string{
		good: "",
		strings.Replace(good, "01-01", "01-02", 1): "",
		good[:40]:                             "unexpected end of JSON input",
		strings.Repeat("\x00", 100):           "invalid character",
		`{"users":[]}`:                        "unknown field",
		strings.Replace(good, `1,`, `2,`, 1):  "format is 2, this version reads 1",
		good + strings.Repeat(" ", maxLedger): fmt.Sprint("has over ", maxLedger, " bytes"),
	} {
		synctest.Test(t, func(t *testing.T) {
			path, log := keyPath(t), &logged{}
			write(t, path, text)
			if err := OpenLedger(path, log.logger()).Close(); err != nil {
				t.Error(err)
			}
			if n := log.count("level=WARN"); (n > 0) != (want != "") || log.count(want) < n {
				t.Errorf("%.80s: logged %s", text, log)
			}
		})
	}
}

// A write that fails is logged once. The counts are written when the disk works again.
func TestLedgerDiskFault(t *testing.T) {
	path, log := usagePath(t), &logged{}
	dir := filepath.Dir(path)
	write(t, dir, "a file where the directory should be")
	synctest.Test(t, func(t *testing.T) {
		l := OpenLedger(path, log.logger())
		for range 3 {
			l.counter(someID).Take(now.UnixNano(), 0)
			if flushed(); l.Err() == nil {
				t.Error("no error")
			}
		}
		if n := log.count("level=ERROR"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		if flushed(); l.Err() != nil || log.count("written again") != 1 || !strings.Contains(content(t, path), ": 3\n") {
			t.Errorf("mended: %v, %s", l.Err(), log)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}
