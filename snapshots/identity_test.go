package snapshots

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	market      = "market of seed 1"
	otherMarket = "market of seed 2"
)

func TestBind(t *testing.T) {
	s := open(t, t.TempDir())
	for range 2 {
		for range 2 {
			if err := s.Bind(market); err != nil {
				t.Errorf("the same: %v", err)
			}
		}
		if err := s.Bind(otherMarket); err == nil || !strings.Contains(err.Error(), market) || !strings.Contains(err.Error(), otherMarket) {
			t.Errorf("another: %v", err)
		}
		s = reopen(t, s)
	}
	if b, err := os.ReadFile(filepath.Join(s.dir, identityName)); string(b) != market+"\n" || err != nil {
		t.Errorf("the text is %q, %v", b, err)
	}
	if n, bad, err := Verify(s.opts.Dir); n != 0 || len(bad) != 0 || err != nil {
		t.Errorf("the identity is counted as a dated file: %d, %v, %v", n, bad, err)
	}
}

// A directory that an earlier version bound has the text alone. It is bound, and gets its copy.
func TestBindOfAnEarlierVersion(t *testing.T) {
	s := open(t, t.TempDir())
	save(t, s, gamma, friday, single(t, `1`))
	put(t, s, identityName, market+"\n")
	if _, bad, err := Verify(s.opts.Dir); len(bad) != 0 || err != nil {
		t.Errorf("bad files %v, %v", bad, err)
	}
	if err := s.Bind(otherMarket); err == nil {
		t.Error("bound to another market")
	}
	if err := s.Bind(market); err != nil || !exists(t, s, identityCopy) {
		t.Errorf("bound with %v", err)
	}
}

// Verify names a damaged identity. A start restores it if it can know what the directory holds; if not, its error says what
// to do.
func TestDamagedIdentity(t *testing.T) {
	var framed []byte
	for name, c := range map[string]struct {
		text, copied string // "": missing; "=": as written
		file         string // named by Verify
		refused      bool   // by Bind, if there are dated files
	}{
		"text altered":           {"market of seed 2\n", "=", identityName, false},
		"text cut off":           {"market of", "=", identityName, false},
		"text removed":           {"", "=", identityName, false},
		"copy altered":           {"=", "{}\n", identityCopy, false},
		"both altered":           {"\x00\x01\n", "x", identityName, true},
		"text cut off, no copy":  {"market of seed", "", identityName, true},
		"text binary, no copy":   {"mark\xff\n", "", identityName, true},
		"two lines, no copy":     {market + "\nmore\n", "", identityName, true},
		"text empty, no copy":    {"\n", "", identityName, true},
		"text removed, bad copy": {"", "x", identityName, true},
	} {
		for _, stocked := range []bool{false, true} {
			o, log := options(t.TempDir()), &testLog{}
			o.Log = log.logger(slog.LevelInfo)
			s := openWith(t, o)
			if err := s.Bind(market); err != nil {
				t.Fatal(err)
			}
			framed, _ = os.ReadFile(filepath.Join(s.dir, identityCopy))
			if stocked {
				save(t, s, gamma, friday, single(t, `1`))
			}
			for file, text := range map[string]string{identityName: c.text, identityCopy: c.copied} {
				if text == "" {
					os.Remove(filepath.Join(s.dir, file))
				} else if text != "=" {
					put(t, s, file, text)
				}
			}
			_, bad, err := Verify(o.Dir)
			if err != nil || len(bad) != 1 || bad[0].Path != filepath.Join(s.dir, c.file) {
				t.Errorf("%s: verify finds %v, %v", name, bad, err)
			}
			s = reopen(t, s)
			if err := s.Bind(otherMarket); !c.refused && err == nil {
				t.Errorf("%s: bound to another market", name)
			}
			if c.refused && !stocked {
				continue // bound: there is nothing that could belong to another market
			}
			err = s.Bind(market)
			if c.refused {
				if err == nil || !strings.Contains(err.Error(), "echo '"+market+"' > "+filepath.Join(s.dir, identityName)) {
					t.Errorf("%s: bound with %v", name, err)
				}
				put(t, s, identityName, market+"\n") // what the error says
				err = s.Bind(market)
			} else if n := log.count("identity file damaged"); n != 1 {
				t.Errorf("%s: logged %d times: %s", name, n, log)
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, bad, err := Verify(o.Dir); len(bad) != 0 || err != nil {
				t.Errorf("%s: after the start, verify finds %v, %v", name, bad, err)
			}
			if b, _ := os.ReadFile(filepath.Join(s.dir, identityCopy)); !bytes.Equal(b, framed) {
				t.Errorf("%s: the copy is %q", name, b)
			}
		}
	}
}

// A disk that refuses writes does not prevent the start of a directory whose identity is known, only of a new one.
func TestBindOnARefusingDisk(t *testing.T) {
	for _, known := range []bool{true, false} {
		dir := t.TempDir()
		d := unsynced()
		d.rename = func(string, string) error { return errors.New("refused") }
		s, err := openOn(d, options(dir))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		if known {
			put(t, s, identityName, market+"\n")
		}
		if err := s.Bind(market); (err == nil) != known {
			t.Errorf("known %t: bound with %v", known, err)
		}
	}
	blocked := open(t, t.TempDir())
	if err := os.Mkdir(filepath.Join(blocked.dir, identityName), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := blocked.Bind(market); err == nil {
		t.Error("bound though a folder stands in the place of the identity")
	}
}
