package keys

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/server/limits"
	"strikecache/snapshots"
)

const someID = "k_0123456789ab"

// ledgerAt opens a ledger with the time *clock.
func ledgerAt(t testing.TB, path string, log *logged, clock *time.Time) *Ledger {
	t.Helper()
	l := openLedger(path, log.logger(), func() time.Time { return *clock })
	t.Cleanup(func() { l.Close() })
	return l
}

func usagePath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "data", "usage.json")
}

func TestLedgerRestart(t *testing.T) {
	path, clock, log := usagePath(t), now, &logged{}
	l := ledgerAt(t, path, log, &clock)
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("a file was written without a count")
	}
	for range 5 {
		l.counter(someID).Take(clock.UnixNano(), 0)
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	l.counter(someID).Take(clock.UnixNano(), 0) // lost by the crash that follows
	want := "{\n  \"format\": 1,\n  \"day\": \"2026-11-21\",\n  \"requests\": {\n    \"k_0123456789ab\": 5\n  }\n}\n"
	if got := content(t, path); got != want {
		t.Errorf("file is\n%s", got)
	}
	if info, err := os.Stat(path); err != nil || checksModes && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	l = ledgerAt(t, path, log, &clock)
	if n := l.counter(someID).Count(clock.UnixNano()); n != 5 {
		t.Errorf("%d after a crash", n)
	}
	l.counter(someID).Take(clock.UnixNano(), 0)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = ledgerAt(t, path, log, &clock)
	if n := l.counter(someID).Count(clock.UnixNano()); n != 6 {
		t.Errorf("%d after an orderly end", n)
	}
	clock = clock.AddDate(0, 0, 1)
	l = ledgerAt(t, path, log, &clock)
	if n := l.counter(someID).Count(clock.UnixNano()); n != 0 {
		t.Errorf("%d on the next day", n)
	}
	if log.count("WARN")+log.count("ERROR") > 0 {
		t.Error(log)
	}
}

// A quota holds over a restart, also if the key file appears after the start.
func TestQuotaSurvivesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keyFile, path, clock := keyPath(t), usagePath(t), now
		secret, _ := create(t, keyFile, Spec{Name: "a", PerDay: 3})
		l := ledgerAt(t, path, &logged{}, &clock)
		e := lookup(open(t, keyFile, l, &logged{}), secret, now)
		for range 2 {
			e.Admit(now.UnixNano())
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(keyFile, keyFile+".away"); err != nil {
			t.Fatal(err)
		}
		l = ledgerAt(t, path, &logged{}, &clock)
		table := open(t, keyFile, l, &logged{})
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(keyFile+".away", keyFile); err != nil {
			t.Fatal(err)
		}
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

func TestLedgerUnusableFiles(t *testing.T) {
	good := `{"format":1,"day":"2026-11-21","requests":{"k_0123456789ab":7}}`
	for _, c := range []struct {
		text, logged string
		count        int64
	}{
		{good, "", 7},
		{good[:40], "the JSON ends too early", 0},
		{"", "the JSON ends too early", 0},
		{strings.Repeat("\x00", 100), "invalid character", 0},
		{`[]`, "there is a JSON array", 0},
		{`{"users":[]}`, "unknown field", 0},
		{good + good, "after the end", 0},
		{strings.Replace(good, `1,`, `2,`, 1), "format is 2, this version reads 1", 0},
		{strings.Replace(good, "2026-11-21", "today", 1), "is not YYYY-MM-DD", 0},
		{strings.Replace(good, "11-21", "11-22", 1), "lies in the future", 0},
		{strings.Replace(good, "11-21", "11-20", 1), "", 0},
		{strings.Replace(good, ":7", ":-7", 1), "a count starts from 0", 0},
		{strings.Replace(good, ":7", ":9999999999999", 1), "a count starts from 0", 0},
		{strings.Replace(good, ":7", ":1e99", 1), "must not be a JSON number", 0},
		{strings.Replace(good, "k_01", "sk_1", 1), "a count starts from 0", 0},
		{strings.Replace(good, ":7", `:7,"k_x":3`, 1), "a count starts from 0", 7},
		{strings.Repeat(" ", maxLedger+1), "has over 16777216 bytes", 0},
	} {
		path, clock, log := filepath.Join(t.TempDir(), "usage.json"), now, &logged{}
		write(t, path, c.text)
		l := ledgerAt(t, path, log, &clock)
		if n := l.counter(someID).Count(now.UnixNano()); n != c.count {
			t.Errorf("%.80s: count %d, want %d", c.text, n, c.count)
		}
		if n := log.count("level=WARN"); n != log.count(c.logged) && c.logged != "" || (n > 0) != (c.logged != "") {
			t.Errorf("%.80s: logged %s", c.text, log)
		}
		l.counter(someID).Take(now.UnixNano(), 0)
		if err := l.Close(); err != nil {
			t.Errorf("%.80s: %v", c.text, err)
		}
		if again := ledgerAt(t, path, &logged{}, &clock); again.counter(someID).Count(now.UnixNano()) != c.count+1 {
			t.Errorf("%.80s: the file was not replaced", c.text)
		}
	}
}

// A disk that refuses is logged once. What was counted is written when the disk is mended.
func TestLedgerDiskFaults(t *testing.T) {
	errDisk := errors.New("disk refuses")
	for step, fail := range map[string]func(dir, name string, b []byte) error{
		"before the rename": func(string, string, []byte) error { return errDisk },
		"after the rename": func(dir, name string, b []byte) error {
			return errors.Join(snapshots.WritePrivateFile(dir, name, b), errDisk)
		},
	} {
		path, clock, log := usagePath(t), now, &logged{}
		l := ledgerAt(t, path, log, &clock)
		l.counter(someID).Take(now.UnixNano(), 0)
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
		old := content(t, path)
		l.counter(someID).Take(now.UnixNano(), 0)
		l.writeFile = fail
		for range 3 {
			if err := l.Flush(); !errors.Is(err, errDisk) || !errors.Is(l.Err(), errDisk) {
				t.Errorf("%s: %v", step, err)
			}
		}
		if got := content(t, path); (got == old) != (step == "before the rename") {
			t.Errorf("%s: file is %s", step, got)
		}
		if n := log.count("level=ERROR"); n != 1 {
			t.Errorf("%s: logged %d times", step, n)
		}
		l.writeFile = snapshots.WritePrivateFile
		if err := l.Flush(); err != nil || l.Err() != nil || log.count("writable again") != 1 {
			t.Errorf("%s: mended: %v", step, err)
		}
		if got := content(t, path); got != strings.Replace(old, ": 1\n", ": 2\n", 1) {
			t.Errorf("%s: mended file is %s", step, got)
		}
	}
}

func TestLedgerFlushes(t *testing.T) {
	path := usagePath(t)
	synctest.Test(t, func(t *testing.T) {
		l := OpenLedger(path, slog.New(slog.DiscardHandler))
		l.counter(someID).Take(time.Now().UnixNano(), 0)
		time.Sleep(FlushEvery)
		synctest.Wait()
		if !strings.Contains(content(t, path), `"k_0123456789ab": 1`) {
			t.Errorf("file is %s", content(t, path))
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * FlushEvery)
		synctest.Wait()
		if _, err := os.Lstat(path); err == nil {
			t.Error("written without a change")
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The counter of a key that is no longer in the file is kept until the end of its day.
func TestLedgerForgets(t *testing.T) {
	clock := now
	l := ledgerAt(t, usagePath(t), &logged{}, &clock)
	for _, id := range []string{"used", "unused", "live"} {
		l.counter(id)
	}
	used, live := l.counter("used"), l.counter("live")
	used.Take(now.UnixNano(), 0)
	l.forget(map[string]bool{"live": true}, now)
	if len(l.days) != 2 || l.counter("used") != used || l.counter("live") != live {
		t.Errorf("%v", l.days)
	}
	l.forget(map[string]bool{"live": true}, now.AddDate(0, 0, 1))
	if len(l.days) != 1 || l.counter("live") != live {
		t.Errorf("%v", l.days)
	}
}
