package snapshots

import (
	"bytes"
	"encoding/json"
	"testing"
)

// decodeFile never panics, refuses with one of its two errors, and what it accepts is written again as an equal
// edition. The fuzzer cannot find a digest, so each input is tried with the right one too.
func FuzzDecodeFile(f *testing.F) {
	for name, file := range files(f) {
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
		right, err := frame(h, payload)
		if err != nil {
			return // too long a header
		}
		check(t, right)
	})
}

func check(t *testing.T, b []byte) {
	t.Helper()
	got, err := decodeFile(b, gamma, friday)
	if err != nil {
		if !refused(err) {
			t.Errorf("refused with %v", err)
		}
		return
	}
	again, err := decodeFile(encoded(t, gamma, got), gamma, friday)
	if err != nil {
		t.Fatalf("accepted, but not when written again: %v", err)
	}
	sameFile(t, again, got)
}

// What is JSON can be sealed, and what is sealed is JSON that a restart reads back. Space around the value is left
// out of it: no encoder writes any.
func FuzzSeal(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e-3,null,true],"é":"\u00e9"}`, `"\ud800"`, `[]`, `NaN`, `{"data":{"data":1}}`, "{\"a\":\n1}", "\"\xff\"", `1e999`, `{"":0}x`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.Trim(data, " \t\r\n")
		s, err := Seal(data, meta())
		if valid := json.Valid(data) && !bytes.Contains(data, []byte{'\n'}); (err == nil) != valid {
			t.Fatalf("valid %t, but sealing says %v", valid, err)
		}
		if err != nil {
			return
		}
		if !json.Valid(s.Body(Identity)) {
			t.Fatalf("sealed body is no JSON: %s", s.Body(Identity))
		}
		got, err := decodeFile(encoded(t, gamma, File{Edition: &Edition{Default: s}}), gamma, friday)
		if err != nil {
			t.Fatal(err)
		}
		sameSnapshot(t, "read back", got.Edition.Default, s)
	})
}
