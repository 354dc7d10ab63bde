package snapshots

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/goccy/go-json"
)

// FuzzAltered: a stored file is accepted as it was written and in no other form: changed, cut, lengthened, with parts
// swapped, or in the place of another file.
func FuzzAltered(f *testing.F) {
	many := Edition{Default: sealed(f, `{"strike":1}`)}
	many.Variants = map[string]*Snapshot{"2026-11-20": many.Default, "2026-12-18": formed(f, sealed(f, `3`)), "2026-11-27": sealedIn(f, `{"strike":2}`)}
	good := encoded(f, gamma, File{Edition: &many, Build: "00ff", Summary: []byte(`["2026-11-20",7000]`)})
	for i, part := range []string{"", "\n", "0", `{"format":1,`, `"sha256":"`, strings.Repeat("\x00", 64), `"product":"gex/spx"`} {
		f.Add(uint16(i*40), uint16(i), []byte(part))
	}
	for i, b := range good { // a byte is changed, and the rest is lost
		for _, mask := range []byte{0x01, 0x02, 0x08, 0x0f, 0x20, 0x80, 0xff} {
			f.Add(uint16(i), uint16(1), []byte{b ^ mask})
		}
		f.Add(uint16(i), uint16(len(good)), []byte(nil))
	}
	f.Add(uint16(0), uint16(1), []byte("["))
	f.Add(uint16(10), uint16(1), []byte("2"))
	f.Add(uint16(len(good)), uint16(0), []byte("x"))
	f.Add(uint16(len(good)-1), uint16(9), []byte(nil))
	f.Add(uint16(0), uint16(len(good)), good[:len(good)/2])
	f.Fuzz(func(t *testing.T, at, remove uint16, insert []byte) {
		start := min(int(at), len(good))
		end := min(start+int(remove), len(good))
		b := bytes.Join([][]byte{good[:start], insert, good[end:]}, nil)
		got, err := decodeFile(b, keyOf(gamma))
		if bytes.Equal(b, good) {
			if err != nil {
				t.Fatalf("refused as it was written: %v", err)
			}
			sameFile(t, got, File{Edition: &many, Build: "00ff", Summary: []byte(`["2026-11-20",7000]`)})
			for _, place := range []key{{friday, pain}, {thursday, "gex-spx"}, {}} {
				fails(t, second(decodeFile(b, place)), ErrTorn, "as %q", place)
			}
			return
		}
		if !errors.Is(err, ErrTorn) && !errors.Is(err, ErrNewerFormat) {
			t.Fatalf("bytes %d to %d replaced by %q: %v", start, end, insert, err)
		}
	})
}

// decodeFile never panics and refuses only with its two errors. An edition that it accepts is equal after it is written and
// read again. The fuzzer cannot find a digest, so each input is also tried with the right one.
func FuzzDecodeFile(f *testing.F) {
	for name, file := range storedForms(f) {
		if name == "large" {
			continue
		}
		b := encoded(f, gamma, file)
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	f.Add([]byte("{\"format\":1,\"entries\":[{\"name\":\"a\",\"gzip\":-1},{}],\"summary\":-1}\nx"))
	f.Add([]byte("{\"format\":2}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		check(t, b)
		line, payload, _ := bytes.Cut(b, []byte{'\n'})
		var h fileHeader
		if json.Unmarshal(line, &h) != nil {
			return
		}
		h.Product, h.Date = gamma, friday
		check(t, reframed(t, string(payload), func(to *fileHeader) {
			format, sum := to.Format, to.SHA256
			*to = h
			to.Format, to.SHA256 = format, sum
		}))
	})
}

func check(t *testing.T, b []byte) {
	t.Helper()
	got, err := decodeFile(b, keyOf(gamma))
	if err != nil {
		failIf(t, !refused(err), "refused with %v", err)
		return
	}
	again, err := decodeFile(encoded(t, gamma, got), keyOf(gamma))
	if err != nil {
		t.Fatalf("accepted, but not when written again: %v", err)
	}
	sameFile(t, again, got)
}

// All JSON on one line without space around it can be sealed, byte for byte, and nothing else. The receipt has the digest of
// these bytes. A sealed body is JSON that a restart reads back.
func FuzzSeal(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e-3,null,true],"é":"\u00e9"}`, `"\ud800"`, `[]`, `NaN`, `{"data":{"data":1}}`, "{\"a\":\n1}", "\"\xff\"", `1e999`, `{"":0}x`, `"é\u2028<&>"`, `{"a":{"data":1,"meta":{}}}`, `[ 1 , 2 ]`, "{\"a\":\t1.50e+10}", `{"":"}"}`} {
		f.Add([]byte(seed))
	}
	for _, seed := range []string{ // refused
		"", " ", "\n", " {}", "{}\n", "\t1", "{\n}", "nul", "nulll", "nan", "-NaN", "Infinity", "-Infinity", `{"a":NaN}`, `[1,Infinity]`, `{"a":1,}`, `[1,]`,
		`[1 2]`, `{"a"}`, `{a:1}`, `{"a":1`, `{"a":1}}`, `{}{}`, `{} x`, "{}\x00", `01`, `1.`, `.5`, `+1`, `1e`, `0x10`, `"a`, "\"\n\"", "\"\x01\"", `"\x"`,
		`"\u12"`, "\ufeff{}", "{}\u00a0", `{"a":1},"meta":{}`, `1,"usage":{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Seal(data, meta(), Brotli, Zstd)
		line := len(bytes.Trim(data, " \t\r\n")) == len(data) && !bytes.Contains(data, []byte{'\n'})
		if valid := stdjson.Valid(data) && line; (err == nil) != valid {
			t.Fatalf("valid %t, but sealing says %v", valid, err)
		}
		if err != nil {
			return
		}
		if !json.Valid(s.Body(Identity)) {
			t.Fatalf("sealed body is not JSON: %s", s.Body(Identity))
		}
		if !bytes.Equal(s.Data(), data) || s.Meta.Receipt.DataSHA256 != sha(data) {
			t.Fatalf("data became %s with digest %s", s.Data(), s.Meta.Receipt.DataSHA256)
		}
		got, err := decodeFile(encoded(t, gamma, File{Edition: &Edition{Default: s}}), keyOf(gamma))
		must(t, err)
		sameSnapshot(t, "read back", got.Edition.Default, s)
	})
}
