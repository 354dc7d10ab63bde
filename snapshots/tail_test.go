package snapshots

import (
	"bytes"
	"strings"
	"testing"

	"github.com/goccy/go-json"
)

// usageSizes are lengths of usage around the limits of every length field, and beyond what is allowed.
var usageSizes = []int{
	0, 1, 2, 3, 18, 19, 20, 30, 31, 32, 100, 126, 127, 128, 150, 200, 254, 255, 256, 257, 510, 511, 512, 1023, 1024, 2047, 2048, 4094, 4095, 4096,
	4097, 8192, 65_534, 65_535, 65_536, 1 << 21,
}

// usageOf is JSON of so many bytes.
func usageOf(size int) []byte {
	switch size {
	case 0:
		return nil
	case 1:
		return []byte("7")
	}
	return []byte(`"` + strings.Repeat("u", size-2) + `"`)
}

// keyed is a body with a caller's usage, as a server puts it together.
func keyed(s *Snapshot, c Coding, usage []byte) []byte {
	return s.AppendTail(bytes.Clone(s.Prefix(c)), c, usage)
}

// expected is what a keyed body must decode to.
func expected(s *Snapshot, usage []byte) []byte {
	if len(usage) == 0 || len(usage) > 4096 {
		usage = []byte("null")
	}
	body := strings.TrimSuffix(string(s.Body(Identity)), `{"tier":"anonymous"}}`)
	return []byte(body + string(usage) + "}")
}

func TestKeyedBodies(t *testing.T) {
	for name, data := range texts(t) {
		sizes := usageSizes
		if len(data) > 20_000 {
			sizes = []int{0, 1, 150, 4096}
		}
		s := sealed(t, data)
		for _, size := range sizes {
			usage := usageOf(size)
			want := expected(s, usage)
			if !json.Valid(want) {
				t.Fatalf("%s, usage of %d: no JSON", name, size)
			}
			for c := range Codings {
				body := keyed(s, c, usage)
				if got := unpack(t, c, body); !bytes.Equal(got, want) {
					t.Errorf("%s, usage of %d, %v: %d bytes, want %d", name, size, c, len(got), len(want))
				}
				if tail := len(body) - len(s.Prefix(c)); tail > max(size, len("null"))+MaxTail {
					t.Errorf("%s, usage of %d, %v: a tail of %d bytes", name, size, c, tail)
				}
			}
		}
	}
}

// A tail is appended: what stands before it stays, and so does the usage.
func TestAppendTailAppends(t *testing.T) {
	s := sealed(t, `{"a":1}`)
	longest := 0
	for c := range Codings {
		usage := []byte(`{"tier":"keyed"}`)
		alone := s.AppendTail(nil, c, usage)
		longest = max(longest, len(alone)-len(usage))
		if got := s.AppendTail([]byte("before"), c, usage); string(got) != "before"+string(alone) {
			t.Errorf("%v: %q", c, got)
		}
		if string(usage) != `{"tier":"keyed"}` {
			t.Errorf("%v: usage became %q", c, usage)
		}
		if anonymous := s.AppendTail(nil, c, []byte(anonymousUsage)); !bytes.Equal(append(bytes.Clone(s.Prefix(c)), anonymous...), s.Body(c)) {
			t.Errorf("%v: the anonymous body is put together in another way", c)
		}
	}
	if longest != MaxTail {
		t.Errorf("a tail adds up to %d bytes, MaxTail says %d", longest, MaxTail)
	}
}

func TestTailsAndTagsDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s := sealed(t, string(document(10_000)))
	for _, size := range []int{0, 150, MaxUsage, MaxUsage + 1} {
		usage := usageOf(size)
		buf := make([]byte, 0, max(min(size, MaxUsage), len("null"))+MaxTail)
		for c := range Codings {
			tag := []byte(s.ETag(c))
			if n := testing.AllocsPerRun(1000, func() {
				buf = s.AppendTail(buf[:0], c, usage)
				if !s.Matches(tag) || s.Matches(usage) {
					t.Fatal("a tag is not known")
				}
				s.LastModified()
			}); n != 0 {
				t.Errorf("usage of %d, %v: %v allocations", size, c, n)
			}
		}
	}
}

func BenchmarkAppendTail(b *testing.B) {
	s, usage := sealed(b, string(document(100_000))), usageOf(150)
	buf := make([]byte, 0, len(usage)+MaxTail)
	for c := range Codings {
		b.Run(c.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				buf = s.AppendTail(buf[:0], c, usage)
			}
		})
	}
}
