package snapshots

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// gunzip unpacks exactly one member.
func gunzip(t testing.TB, b []byte) []byte {
	t.Helper()
	in := bytes.NewReader(b)
	z, err := gzip.NewReader(in)
	must(t, err)
	z.Multistream(false)
	out, err := io.ReadAll(z)
	must(t, err)
	if in.Len() > 0 {
		t.Fatalf("%d bytes after the member", in.Len())
	}
	return out
}

// unzstd unpacks exactly one frame, without checksum, that any browser takes.
func unzstd(t testing.TB, b []byte) []byte {
	t.Helper()
	var h zstd.Header
	if err := h.Decode(b); err != nil || h.HasCheckSum || !h.HasFCS || h.SingleSegment || h.WindowSize > 8<<20 {
		t.Fatalf("frame header %+v, %v", h, err)
	}
	for at := h.HeaderSize; ; {
		if at+3 > len(b) {
			t.Fatalf("no last block in %d bytes", len(b))
		}
		block := uint32(b[at]) | uint32(b[at+1])<<8 | uint32(b[at+2])<<16
		size := int(block >> 3)
		if block>>1&3 == 1 { // one byte, repeated
			size = 1
		}
		if at += 3 + size; block&1 == 1 {
			if at != len(b) {
				t.Fatalf("the last block ends after %d of %d bytes", at, len(b))
			}
			break
		}
	}
	z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1))
	must(t, err)
	defer z.Close()
	out, err := io.ReadAll(z)
	must(t, err)
	equal(t, h.FrameContentSize, uint64(len(out)), "content size")
	return out
}

// unpack decodes a whole body strictly: no byte may be missing, and none may follow.
func unpack(t testing.TB, c Coding, b []byte) []byte {
	t.Helper()
	switch c {
	case Gzip:
		return gunzip(t, b)
	case Brotli:
		out, err := io.ReadAll(brotli.NewReader(bytes.NewReader(b)))
		must(t, err)
		return out
	case Zstd:
		return unzstd(t, b)
	}
	return b
}

// noise returns a JSON string of size bytes that hardly compresses.
func noise(size int) string {
	r := rand.New(rand.NewPCG(1, uint64(size)))
	b := bytes.Repeat([]byte{'"'}, max(size, 2))
	for i := 1; i < len(b)-1; i++ {
		for b[i] == '"' || b[i] == '\\' || b[i] == 0x7f {
			b[i] = 0x20 + byte(r.IntN(96))
		}
	}
	return string(b)
}

// texts returns data of many kinds, also of sizes near those at which compressors begin a new block.
func texts(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{"null": "null", "empty": `""`, "digit": "0", "1 MB of one letter": `"` + strings.Repeat("a", 1<<20) + `"`, "1 MB of noise": noise(1 << 20)}
	for _, size := range []int{20, 4_000, 100_000, 1 << 20} {
		out[fmt.Sprintf("table of %d", size)] = string(document(size))
	}
	frame := len(sealed(t, `""`).Prefix(Identity)) - 2
	for _, block := range []int{1 << 15, 1<<16 - 1, 1 << 16, 1 << 17, 1 << 18} {
		for _, size := range []int{block - 1, block, block + 1} {
			out[fmt.Sprintf("noise, prefix of %d", size)] = noise(size - frame)
			out[fmt.Sprintf("letters, prefix of %d", size)] = `"` + strings.Repeat("ab", size)[:size-frame-2] + `"`
		}
	}
	return out
}

// usageSizes are lengths of usage around the limits of every length field, and beyond what is allowed.
var usageSizes = []int{
	0, 1, 2, 3, 18, 19, 20, 30, 31, 32, 100, 126, 127, 128, 150, 200, 254, 255, 256, 257, 510, 511, 512, 1023, 1024, 2047, 2048, 4094, 4095, 4096,
	4097, 8192, 65_534, 65_535, 65_536, 1 << 21,
}

// usageOf returns JSON of size bytes.
func usageOf(size int) []byte {
	switch size {
	case 0:
		return nil
	case 1:
		return []byte("7")
	}
	return []byte(`"` + strings.Repeat("u", size-2) + `"`)
}

// keyed returns a body with the usage of a caller, as a server puts it together.
func keyed(s *Snapshot, c Coding, usage []byte) []byte {
	start := s.AppendStart(nil, c, usage)
	return s.AppendTail(append(start, s.Prefix(c)[len(start):]...), c, usage)
}

// expected is what a keyed body must decode to.
func expected(s *Snapshot, usage []byte) []byte {
	if len(usage) == 0 || len(usage) > 4096 {
		usage = []byte("null")
	}
	body := strings.TrimSuffix(string(s.Body(Identity)), `{"tier":"anonymous"}}`)
	return []byte(body + string(usage) + "}")
}

// Every coding decodes to the identity body, with the anonymous usage and with any other.
func TestCodings(t *testing.T) {
	longest := 0
	for name, data := range texts(t) {
		sizes := usageSizes
		if len(data) > 20_000 {
			sizes = []int{0, 1, 150, 4096}
		}
		s := sealed(t, data)
		for c := range Codings {
			sameBytes(t, unpack(t, c, s.Body(c)), s.Body(Identity), "%s: %v", name, c)
			if p := s.Prefix(c); len(p) == 0 || &p[0] != &s.Body(c)[0] || len(p) >= len(s.Body(c)) || cap(p) != len(p) {
				t.Errorf("%s: %v prefix of %d bytes, room for %d, is not part of the body", name, c, len(p), cap(p))
			}
			if limit := len(s.Body(Identity)) / 2; c != Identity && strings.HasPrefix(name, "table") && len(data) >= 4000 && len(s.Body(c)) > limit {
				t.Errorf("%s: %d bytes in %v take %d", name, len(s.Body(Identity)), c, len(s.Body(c)))
			}
			failIf(t, !bytes.Equal(keyed(s, c, []byte(anonymousUsage)), s.Body(c)), "%s: the anonymous body in %v is not its prefix and tail", name, c)
			for _, size := range sizes {
				usage := usageOf(size)
				body := keyed(s, c, usage)
				sameBytes(t, unpack(t, c, body), expected(s, usage), "%s, usage of %d, %v", name, size, c)
				longest = max(longest, len(body)-len(s.Prefix(c))-size)
			}
		}
	}
	equal(t, longest, MaxTail+len("null"), "bytes that a tail adds at most")
}

func sealedIn(t testing.TB, data string, codings ...Coding) *Snapshot {
	t.Helper()
	s, err := Seal([]byte(data), meta(), codings...)
	must(t, err)
	return s
}

func TestSealInCodings(t *testing.T) {
	whole := sealed(t, `{"a":1}`)
	for _, in := range [][]Coding{nil, {Brotli}, {Zstd}, {Identity, Gzip}, {Zstd, Brotli, Zstd}, {Codings}} {
		s := sealedIn(t, `{"a":1}`, in...)
		again, err := s.Reseal(s.Meta)
		must(t, err)
		sameSnapshot(t, fmt.Sprintf("again in %v", in), again, s)
		for c := range Codings {
			want := c <= Gzip || slices.Contains(in, c)
			failIf(t, s.Has(c) != want || (s.Body(c) != nil) != want || (s.Prefix(c) != nil) != want, "in %v: has %v: %t", in, c, s.Has(c))
			failIf(t, want && !bytes.Equal(unpack(t, c, s.Body(c)), whole.Body(Identity)), "in %v: the %v body differs", in, c)
			if got := string(s.AppendTail([]byte("x"), c, []byte("1"))); !want && got != "x" {
				t.Errorf("in %v: tail %q in %v", in, got, c)
			}
			failIf(t, s.ETag(c) != whole.ETag(c) || !s.Matches([]byte(whole.ETag(c))), "in %v: tag %s in %v", in, s.ETag(c), c)
		}
	}
}

// A stored zstd frame without its size, with another size, or cut short, is refused.
func TestFrameOfAnotherSize(t *testing.T) {
	s := sealed(t, string(document(4000)))
	frame, tail := s.Body(Zstd), len(s.Body(Zstd))-len(s.Prefix(Zstd))
	for what, stored := range map[string][]byte{
		"without size": slices.Concat(frame[:4], []byte{0}, frame[5:6], frame[zstdStart:]), "of another size": slices.Concat(frame[:6], []byte{1}, frame[7:]),
		"cut short": slices.Concat(frame[:9], frame[len(frame)-tail:]),
	} {
		bodies := s.bodies
		bodies[Zstd] = stored
		failIf(t, second(parse(bodies)) == nil, "a frame %s is read", what)
	}
}

// A body that decodes to more than the limit is refused, however small it is.
func TestDecompressIsBounded(t *testing.T) {
	s := sealed(t, `"`+strings.Repeat("a", 1<<20)+`"`)
	size := len(s.Body(Identity))
	for c := range Codings {
		out, err := decompress(c, s.Body(c), size)
		must(t, err)
		sameBytes(t, out, s.Body(Identity), "%v", c)
		failIf(t, second(decompress(c, s.Body(c), size-1)) == nil, "%v: over the limit of %d bytes", c, size-1)
	}
}
